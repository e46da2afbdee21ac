// The handle that a transaction's body works with: a Kysely instance that can be closed.
import { type RootOperationNode, SqliteAdapter, SqliteQueryCompiler, Transaction } from 'kysely'
import type { Database } from '../database.ts'
import { StoreMisuseError } from '../store.ts'
import { SqliteExecutor } from './executor.ts'
import type { PreparedStatements } from './statements.ts'

export interface QueryHandle {
  readonly db: Transaction<Database>
  /** The tables that were changed through it. */
  readonly tables: ReadonlySet<string>
  /** Rejects every later use, so that a body cannot continue after its end. */
  close(): void
}

export function openQueryHandle(statements: PreparedStatements): QueryHandle {
  let isOpen = true
  const tables = new Set<string>()
  const executor = new SqliteExecutor(statements, {
    check: () => {
      if (!isOpen) throw new StoreMisuseError('a transaction was used after its end')
    },
    changed: (query) => {
      const table = findChangedTable(query)
      if (table) tables.add(table)
    },
  })
  const db = new Transaction<Database>({
    config: { dialect: unsupportedDialect },
    dialect: unsupportedDialect,
    driver: unsupportedDriver,
    executor,
  })
  return {
    db,
    tables,
    close: () => {
      isOpen = false
    },
  }
}

function findChangedTable(query: RootOperationNode): string | undefined {
  switch (query.kind) {
    case 'InsertQueryNode':
      return query.into?.table.identifier.name
    case 'DeleteQueryNode':
      return findFirstTable(query.from.froms)
    case 'UpdateQueryNode':
      return query.table ? findFirstTable([query.table]) : undefined
    default:
      return undefined
  }
}

function findFirstTable(nodes: readonly unknown[]): string | undefined {
  const node = nodes[0] as { kind: string; table?: { identifier: { name: string } } } | undefined
  return node?.kind === 'TableNode' ? node.table?.identifier.name : undefined
}

const refuse = () => {
  throw new StoreMisuseError('queries run through the executor')
}

/** Kysely asks for a driver and a dialect; with an executor of its own it uses neither. */
export const unsupportedDriver = {
  init: refuse,
  acquireConnection: refuse,
  beginTransaction: refuse,
  commitTransaction: refuse,
  rollbackTransaction: refuse,
  releaseConnection: refuse,
  destroy: async () => {},
}
export const unsupportedDialect = {
  createDriver: () => unsupportedDriver,
  createQueryCompiler: () => new SqliteQueryCompiler(),
  createAdapter: () => new SqliteAdapter(),
  createIntrospector: refuse,
}
