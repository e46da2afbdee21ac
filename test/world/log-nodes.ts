// Stores that share a log, each with rows and memory of its own.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { AuditSealer } from '../../src/storage/audit/audit-seal.ts'
import type { CommitLog } from '../../src/storage/commit-log.ts'
import type { Database } from '../../src/storage/database.ts'
import { openForReading } from '../../src/storage/sqlite/connection.ts'
import { digestRows, type RowDigests } from '../../src/storage/sqlite/row-digest.ts'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import type { AuditOrigin, Store, TransactionScope } from '../../src/storage/store.ts'
import type { Change, Commit } from '../../src/storage/transactions/changes.ts'
import type { DerivedRows } from '../../src/storage/transactions/projection.ts'
import { TestClock } from './controller.ts'

export const ORIGIN: AuditOrigin = {
  actor: { kind: 'system', id: null, name: null },
  requestId: 'test',
  address: null,
}
export const auditSealer = new AuditSealer(Buffer.alloc(32, 1))

/** The ids that exist, in memory. */
class Ids implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'ids'
  ids = new Set<string>()

  async rebuild(db: Kysely<Database>): Promise<void> {
    this.ids = new Set(await readIds(db))
  }

  apply({ changes }: Commit): void {
    for (const { operation, id } of changes) {
      if (operation === 'create') this.ids.add(id)
      if (operation === 'delete') this.ids.delete(id)
    }
  }
}

export async function readIds(db: Kysely<Database>): Promise<string[]> {
  return (await db.selectFrom('identity_types').select('id').execute()).map(({ id }) => id)
}

export function change(operation: 'create' | 'delete', id: string): Change {
  return { operation, audit: 'event', resource: 'identity-types', id, at: 1 }
}

/** The body of a transaction that adds a record. */
export const add = (id: string) => async (tx: TransactionScope) => {
  await tx.db.insertInto('identity_types').values({ id, createdAt: 1, updatedAt: 1, tags: '{}', name: id }).execute()
  tx.record(change('create', id))
}

export interface LogNode {
  readonly name: string
  store: Store
  ids: Ids
}

export class LogNodes {
  readonly clock = new TestClock(1_000_000)
  readonly all: LogNode[] = []
  readonly #directory = mkdtempSync(join(tmpdir(), 'shared-log-'))

  /** Opens a node; one that was there before continues with its rows, in another process as it were. */
  async open(name: string, log: CommitLog): Promise<LogNode> {
    const store = await openSqliteStore(this.#file(name), this.clock, {
      auditSealer,
      log,
      fail(error) {
        throw error
      },
      reportError(error) {
        throw error
      },
    })
    const existing = this.all.find((node) => node.name === name)
    const node = Object.assign(existing ?? { name }, { store, ids: new Ids() })
    await store.projections.start(node.ids)
    if (!existing) this.all.push(node)
    return node
  }

  digest({ name }: LogNode): RowDigests {
    const connection = openForReading(this.#file(name))
    try {
      return digestRows(connection)
    } finally {
      connection.close()
    }
  }

  async close(): Promise<void> {
    for (const { store } of this.all) await store.close()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  #file(name: string): string {
    return join(this.#directory, `${name}.db`)
  }
}
