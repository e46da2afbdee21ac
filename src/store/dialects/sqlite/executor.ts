// Runs Kysely's queries synchronously on one connection, inside `.execute()`: few microtasks, and order as written.
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
import { StoreMisuse } from '../../store.ts'
import type { SpeakingAdapter } from '../dialect.ts'
import { translate } from './faults.ts'
import type { Statements } from './statements.ts'
import { sqliteWords } from './words.ts'

/** What a handle may do, asked before each statement. */
export interface Permit {
  /** Throws where the statement may not run. */
  check(isReadOnly: boolean): void
  /** Told of each statement that changes something. */
  changed?(query: RootOperationNode): void
}

/** Kysely's adapter, which also knows the words of this database. */
class SpeakingSqliteAdapter extends SqliteAdapter implements SpeakingAdapter {
  readonly words = sqliteWords
}

const adapter = new SpeakingSqliteAdapter()
const compiler = new SqliteQueryCompiler()

export class SqliteExecutor implements QueryExecutor {
  readonly #statements: Statements
  readonly #permit: Permit

  constructor(statements: Statements, permit: Permit) {
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
      return Promise.reject(translate(error))
    }
  }

  #run<R>(compiled: CompiledQuery<R>): QueryResult<R> {
    const statement = this.#statements.get(compiled.sql)
    const isReadOnly = statement.reader && statement.readonly
    this.#permit.check(isReadOnly)
    const parameters = bindable(compiled.parameters)
    if (!isReadOnly) this.#permit.changed?.(compiled.query)
    if (statement.reader) return { rows: statement.all(parameters) as R[] }
    const { changes } = statement.run(parameters)
    return { rows: [], numAffectedRows: BigInt(changes) }
  }

  // Streams have a connection of their own (`Store.stream`): an iterator here would block every write.
  // biome-ignore lint/correctness/useYield: it refuses
  async *stream<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new StoreMisuse('stream through Store.stream, not through the query')
  }

  provideConnection<T>(_consumer: (connection: DatabaseConnection) => Promise<T>): Promise<T> {
    return Promise.reject(new StoreMisuse('transactions go through Store.write'))
  }

  withConnectionProvider(): QueryExecutor {
    return this
  }

  withPlugin(): QueryExecutor {
    return this.#withoutPluginsHere()
  }

  withPlugins(): QueryExecutor {
    return this.#withoutPluginsHere()
  }

  withPluginAtFront(): QueryExecutor {
    return this.#withoutPluginsHere()
  }

  withoutPlugins(): QueryExecutor {
    return this
  }

  #withoutPluginsHere(): never {
    throw new StoreMisuse('the store runs queries without plugins')
  }
}

/** Parameters as SQLite takes them. What it would silently turn into NULL is a mistake of ours and refused. */
export function bindable(parameters: readonly unknown[]): unknown[] {
  return parameters.map((value) => {
    if (typeof value === 'boolean') return value ? 1 : 0
    if (value === undefined || Number.isNaN(value)) throw new StoreMisuse(`${String(value)} cannot be stored`)
    return value
  })
}
