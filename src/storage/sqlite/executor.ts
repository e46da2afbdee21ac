// Runs Kysely's queries synchronously on one connection, inside `.execute()`: few microtasks, and order as written.
//
// Reads and writes share the connection, and each statement is prepared once (`statements.ts`).
import {
  type CompiledQuery,
  type DatabaseConnection,
  type DialectAdapter,
  type KyselyPlugin,
  type QueryExecutor,
  type QueryId,
  type QueryResult,
  type RootOperationNode,
  SqliteAdapter,
  SqliteQueryCompiler,
} from 'kysely'
import type { SqlDialectAdapter } from '../sql-dialect.ts'
import { StoreMisuseError } from '../store.ts'
import { sqliteDialect } from './sql-dialect.ts'
import { translateSqliteError } from './sqlite-errors.ts'
import type { PreparedStatements } from './statements.ts'

/** The permissions of a handle, checked before each statement. */
export interface WritePermit {
  /** Throws if the statement may not run. */
  check(isReadOnly: boolean): void
  /** Receives each statement that changes data. */
  changed?(query: RootOperationNode): void
}

/** Kysely's adapter, which also provides the SQL dialect of this database. */
class SqliteDialectAdapter extends SqliteAdapter implements SqlDialectAdapter {
  readonly sqlDialect = sqliteDialect
}

const adapter = new SqliteDialectAdapter()
const compiler = new SqliteQueryCompiler()

export class SqliteExecutor implements QueryExecutor {
  readonly #statements: PreparedStatements
  readonly #permit: WritePermit

  constructor(statements: PreparedStatements, permit: WritePermit) {
    this.#statements = statements
    this.#permit = permit
  }

  get adapter(): DialectAdapter {
    return adapter
  }

  get plugins(): readonly KyselyPlugin[] {
    return []
  }

  transformQuery<T extends RootOperationNode>(node: T): T {
    return node
  }

  compileQuery<R>(node: RootOperationNode, queryId: QueryId): CompiledQuery<R> {
    return compiler.compileQuery(node, queryId) as CompiledQuery<R>
  }

  executeQuery<R>(compiled: CompiledQuery<R>): Promise<QueryResult<R>> {
    try {
      return Promise.resolve(this.#run(compiled))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** The rows of a query, at once. @throws what `executeQuery` is rejected with */
  read<R>(compiled: CompiledQuery<R>): readonly R[] {
    return this.#run(compiled).rows
  }

  #run<R>(compiled: CompiledQuery<R>): QueryResult<R> {
    try {
      const statement = this.#statements.get(compiled.sql)
      const isReadOnly = statement.reader && statement.readonly
      this.#permit.check(isReadOnly)
      const parameters = toBindable(compiled.parameters)
      if (!isReadOnly) this.#permit.changed?.(compiled.query)
      if (statement.reader) return { rows: statement.all(parameters) as R[] }
      const { changes, lastInsertRowid } = statement.run(parameters)
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
    } catch (error) {
      throw translateSqliteError(error)
    }
  }

  // Streams have a connection of their own (`Store.stream`): an iterator here would block every write.
  // biome-ignore lint/correctness/useYield: it refuses
  async *stream<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new StoreMisuseError('stream through Store.stream, not through the query')
  }

  provideConnection<T>(_consumer: (connection: DatabaseConnection) => Promise<T>): Promise<T> {
    return Promise.reject(new StoreMisuseError('transactions go through Store.write'))
  }

  withConnectionProvider(): QueryExecutor {
    return this
  }

  withPlugin(): QueryExecutor {
    return this.#rejectPlugins()
  }

  withPlugins(): QueryExecutor {
    return this.#rejectPlugins()
  }

  withPluginAtFront(): QueryExecutor {
    return this.#rejectPlugins()
  }

  withoutPlugins(): QueryExecutor {
    return this
  }

  #rejectPlugins(): never {
    throw new StoreMisuseError('the store runs queries without plugins')
  }
}

/** Converts parameters for SQLite. A value that it would silently convert to NULL is a defect of this code, and is rejected. */
export function toBindable(parameters: readonly unknown[]): unknown[] {
  return parameters.map((value) => {
    if (typeof value === 'boolean') return value ? 1 : 0
    if (value === undefined || Number.isNaN(value)) throw new StoreMisuseError(`${String(value)} cannot be stored`)
    return value
  })
}
