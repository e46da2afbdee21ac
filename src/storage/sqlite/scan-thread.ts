// The thread for reads of many records, so that no other request waits for them.
import { parentPort, workerData } from 'node:worker_threads'
import { openExistingForReading, type SqliteDatabase } from './connection.ts'
import { CostExceededError, CostGuard } from './cost-guard.ts'
import { takeRows } from './take-rows.ts'

/** A request to the thread. A cursor reads all of its rows from one snapshot of the database. */
export type ScanRequest =
  | ({ readonly kind: 'rows'; readonly timeoutMs: number } & ScanStatement)
  | ({ readonly kind: 'open'; readonly cursor: number } & ScanStatement)
  | { readonly kind: 'next'; readonly cursor: number; readonly count: number; readonly timeoutMs: number }
  | { readonly kind: 'close'; readonly cursor: number }

interface ScanStatement {
  readonly sql: string
  readonly parameters: readonly unknown[]
}

/** One reply to each request, in their order. */
export type ScanReply =
  | { readonly rows: readonly unknown[] }
  | { readonly failure: { readonly message: string; readonly code: unknown; readonly isTooCostly: boolean } }

interface Cursor {
  readonly connection: SqliteDatabase
  readonly rows: IterableIterator<unknown>
}

const guard = new CostGuard()
const connection = open()
const cursors = new Map<number, Cursor>()

function open(): SqliteDatabase {
  const newConnection = openExistingForReading(workerData as string)
  guard.install(newConnection)
  return newConnection
}

function handleRequest(request: ScanRequest): readonly unknown[] {
  switch (request.kind) {
    case 'rows': {
      const statement = connection.prepare(request.sql)
      return guard.withinTime(request.timeoutMs, () => statement.all(request.parameters))
    }
    case 'open':
      openCursor(request.cursor, request)
      return []
    case 'next':
      return guard.withinTime(request.timeoutMs, () => readRows(request.cursor, request.count))
    case 'close':
      closeCursor(request.cursor)
      return []
  }
}

function openCursor(cursor: number, { sql, parameters }: ScanStatement): void {
  const own = open()
  try {
    cursors.set(cursor, { connection: own, rows: own.prepare(sql).iterate(parameters) })
  } catch (error) {
    own.close()
    throw error
  }
}

function readRows(cursor: number, count: number): readonly unknown[] {
  const { rows } = cursors.get(cursor) ?? {}
  // A thread that started after a failure does not have the cursors of the one that failed.
  if (!rows) throw Object.assign(new Error('the cursor is not open'), { code: 'SQLITE_IOERR' })
  return takeRows(rows, count)
}

function closeCursor(cursor: number): void {
  const openedCursor = cursors.get(cursor)
  if (!openedCursor || !cursors.delete(cursor)) return
  openedCursor.rows.return?.()
  openedCursor.connection.close()
}

parentPort?.on('message', (request: ScanRequest) => {
  let reply: ScanReply
  try {
    reply = { rows: handleRequest(request) }
  } catch (error) {
    const { message, code } = error as Error & { readonly code?: unknown }
    reply = { failure: { message, code, isTooCostly: error instanceof CostExceededError } }
  }
  parentPort?.postMessage(reply)
})
