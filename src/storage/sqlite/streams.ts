// Streams rows one by one, each stream on a connection of its own, because an open iterator keeps its connection on an old
// snapshot. Streams whose rows take long to find are read in a thread.
import type { CompiledQuery } from 'kysely'
import { errors } from '../../foundation/errors.ts'
import type { Reader, StreamOptions } from '../store.ts'
import { openForReading, type SqliteDatabase } from './connection.ts'
import type { DatabaseFiles } from './database-files.ts'
import { toBindable } from './executor.ts'
import type { Cursor, Scans } from './scans.ts'
import { translateSqliteError } from './sqlite-errors.ts'
import { takeRows } from './take-rows.ts'

// While a stream is open, the write-ahead log grows; it restarts only once the stream is closed. Administrators have streams
// of their own, which no other reader can take.
const MAX_OPEN = { administrators: 12, others: 8 } as const
const MAX_PER_READER = { administrators: 6, others: 2 } as const
const MAX_IDLE_CONNECTIONS = 2
const RETRY_AFTER_SECONDS = 5

// The number of rows that are read in one turn of the event loop, or in one message of a thread.
const ROWS_AT_ONCE = 200

const MAX_STREAM_MS = 60_000
const MAX_IDLE_MS = 10_000
// A stream that was idle for this long can be evicted for an administrator.
const MIN_IDLE_BEFORE_EVICTION_MS = 1_000

/** The stream ended before its last row, because its reader took too long. */
export class StreamTimeoutError extends Error {
  constructor(reason: string) {
    super(`a stream was cut: ${reason}`)
    this.name = 'StreamTimeoutError'
  }
}

interface OpenStream {
  readonly reader: Reader
  /** When the last row was handed out; undefined while the reader waits for the next one. */
  idleSince: number | undefined
  cut(reason: string): void
  end(): void
}

export class Streams {
  readonly #file: string
  readonly #files: DatabaseFiles
  readonly #scans: Scans
  readonly #idleConnections: SqliteDatabase[] = []
  readonly #open = new Set<OpenStream>()

  /** @param files the files of the writing connection, because a stream must not read other ones */
  constructor(file: string, files: DatabaseFiles, scans: Scans) {
    this.#file = file
    this.#files = files
    this.#scans = scans
  }

  #openConnection(): SqliteDatabase {
    try {
      this.#files.requirePresent()
      return openForReading(this.#file)
    } catch (error) {
      throw translateSqliteError(error)
    }
  }

  get open(): number {
    return this.#open.size
  }

  /**
   * The rows of a query, on the snapshot of the database at the first row. The connection is released at the end, if the
   * consumer stops, if it does not read for too long, and when the time is up.
   * @throws SERVER_TOO_MANY_REQUESTS if the reader has too many streams open, or all readers together, StreamTimeoutError if
   * this one was cut, STORAGE_UNAVAILABLE if the database cannot be read, and as `Scans.rows` does
   */
  async *rows<Row>(query: CompiledQuery<Row>, options: StreamOptions): AsyncGenerator<Row> {
    const { reader, isCostly, timeoutMs = MAX_STREAM_MS, idleTimeoutMs = MAX_IDLE_MS } = options
    this.#makeRoom(reader)
    const cursor = isCostly ? this.#scans.cursor(query, reader) : this.#openCursor(query)
    let cutReason: string | undefined
    const startedAt = performance.now()
    const stream: OpenStream = {
      reader,
      idleSince: undefined,
      cut: (reason) => {
        cutReason ??= reason
        stream.end()
      },
      end: () => {
        if (!this.#open.delete(stream)) return
        clearTimeout(timer)
        cursor.close()
      },
    }
    const check = () => {
      const now = performance.now()
      const leftMs = startedAt + timeoutMs - now
      const idleLeftMs = (stream.idleSince ?? now) + idleTimeoutMs - now
      if (leftMs <= 0) stream.cut(`it was open for more than ${timeoutMs} ms`)
      else if (idleLeftMs <= 0) stream.cut(`nothing was read from it for ${idleTimeoutMs} ms`)
      else timer = setTimeout(check, Math.ceil(Math.min(leftMs, idleLeftMs))).unref()
    }
    let timer: NodeJS.Timeout | undefined
    this.#open.add(stream)
    try {
      check()
      for (;;) {
        const rows = await cursor.next(ROWS_AT_ONCE)
        if (rows.length === 0 && cutReason === undefined) return
        for (const row of rows) {
          if (cutReason !== undefined) break
          stream.idleSince = performance.now()
          yield row as Row
          stream.idleSince = undefined
        }
        if (cutReason !== undefined) throw new StreamTimeoutError(cutReason)
      }
    } catch (error) {
      throw translateSqliteError(error)
    } finally {
      stream.end()
    }
  }

  close(): void {
    for (const stream of [...this.#open]) stream.cut('the store was closed')
    for (const connection of this.#idleConnections.splice(0)) connection.close()
  }

  /** Opens a cursor in this thread, for rows that are found quickly. */
  #openCursor({ sql, parameters }: CompiledQuery): Cursor {
    const connection = this.#idleConnections.pop() ?? this.#openConnection()
    let rows: IterableIterator<unknown> | undefined
    return {
      next(count) {
        rows ??= connection.prepare(sql).iterate(toBindable(parameters))
        return takeRows(rows, count)
      },
      close: () => {
        rows?.return?.()
        if (this.#idleConnections.length < MAX_IDLE_CONNECTIONS) this.#idleConnections.push(connection)
        else connection.close()
      },
    }
  }

  #makeRoom(reader: Reader): void {
    const kind = reader.isAdministrator ? 'administrators' : 'others'
    const streamsOfKind = [...this.#open].filter((stream) => stream.reader.isAdministrator === reader.isAdministrator)
    const ownStreams = streamsOfKind.filter((stream) => stream.reader.id === reader.id)
    const isOwnLimit = ownStreams.length >= MAX_PER_READER[kind]
    if (!isOwnLimit && streamsOfKind.length < MAX_OPEN[kind]) return
    const idlest = reader.isAdministrator ? findLongestIdle(isOwnLimit ? ownStreams : streamsOfKind) : undefined
    if (idlest) {
      idlest.cut('an administrator needed its place')
      return
    }
    const cause = isOwnLimit
      ? `${reader.id} has ${ownStreams.length} streams open`
      : `${streamsOfKind.length} streams are open`
    throw errors.SERVER_TOO_MANY_REQUESTS(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
}

function findLongestIdle(streams: readonly OpenStream[]): OpenStream | undefined {
  const latest = performance.now() - MIN_IDLE_BEFORE_EVICTION_MS
  const idle = streams.filter(({ idleSince }) => idleSince !== undefined && idleSince <= latest)
  return idle.sort((a, b) => (a.idleSince ?? 0) - (b.idleSince ?? 0))[0]
}
