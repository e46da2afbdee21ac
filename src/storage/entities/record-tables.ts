// The tables of a resource and the statements that every request runs on them, made once for each resource.
import type { Kysely } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { SetTableInfo } from '../../definitions/model/columns.ts'
import type { CompiledResource } from '../../definitions/model/compiled-resource.ts'
import { compiledResources } from '../../definitions/model/index.ts'
import type { AnyResource, AnyRow } from '../../definitions/resources/define.ts'
import type { Database } from '../database.ts'
import { sqlText } from '../lists/sql-text.ts'
import {
  type Parameter,
  type PreparedInsert,
  type PreparedQuery,
  prepareInsert,
  prepareQuery,
  prepareQueryAmong,
} from '../prepared-queries.ts'
import { getSqlDialect } from '../sql-dialect.ts'
import { isElementOf, type UntypedRow, untyped } from '../untyped.ts'
import { subtypeConditions } from './subtypes.ts'

// Clients change the same few groups of columns; the bound prevents a client that tries all groups from filling the memory.
const MAX_UPDATE_STATEMENTS = 64

class RecordTable {
  readonly sets: readonly SetTableInfo[]
  readonly #table: string
  readonly #byIds: (db: Kysely<Database>, ids: readonly string[]) => Promise<AnyRow[]>
  readonly #byKeys: (db: Kysely<Database>, keys: readonly number[]) => Promise<AnyRow[]>
  readonly #idExists: PreparedQuery<[string], { id: string }>
  readonly #remove: PreparedQuery<[number], unknown>
  readonly #insert: PreparedInsert<Parameter[]>
  readonly #columns: readonly string[]
  readonly #updates = new LRUCache<string, PreparedQuery<Parameter[], { n: number }>>({ max: MAX_UPDATE_STATEMENTS })
  readonly #members = new Map<string, MemberStatements>()

  constructor({ definition, columns, sets }: CompiledResource) {
    const { table } = definition
    this.#table = table
    this.#columns = columns
    this.sets = sets
    const conditions = subtypeConditions(definition)
    const among = <V extends string | number>(column: string) =>
      prepareQueryAmong<V, AnyRow>((db, isAmong) => {
        const query = untyped(db).selectFrom(table).selectAll().where(isAmong(column))
        return conditions.reduce((restricted, condition) => restricted.where(condition), query) as never
      })
    this.#byIds = among('id')
    this.#byKeys = among('n')
    this.#idExists = prepareQuery((db, id) => {
      const query = untyped(db).selectFrom(table).select('id').where('id', '=', id)
      return conditions.reduce((restricted, condition) => restricted.where(condition), query) as never
    })
    this.#remove = prepareQuery((db, n) => untyped(db).deleteFrom(table).where('n', '=', n))
    this.#insert = prepareInsert((db, ...values) => {
      const row = Object.fromEntries(this.#columns.map((column, at) => [column, values[at] as Parameter]))
      return untyped(db).insertInto(table).values(row)
    })
    for (const { table: members } of this.sets) this.#members.set(members, prepareMemberStatements(members))
  }

  async findById(db: Kysely<Database>, id: string): Promise<AnyRow | undefined> {
    return (await this.#byIds(db, [id]))[0]
  }

  /** The rows of those ids that exist, in no particular order. */
  findByIds(db: Kysely<Database>, ids: readonly string[]): Promise<AnyRow[]> {
    return this.#byIds(db, ids)
  }

  /** The rows of those keys (`n`) that exist, in no particular order. */
  findByKeys(db: Kysely<Database>, keys: readonly number[]): Promise<AnyRow[]> {
    return this.#byKeys(db, keys)
  }

  async exists(db: Kysely<Database>, id: string): Promise<boolean> {
    return (await this.#idExists(db, id)).length > 0
  }

  /** Stores a complete row and returns its key. */
  insert(db: Kysely<Database>, row: UntypedRow): Promise<number> {
    return this.#insert(db, ...this.#columns.map((column) => row[column] ?? null))
  }

  /** Changes some columns of the record of that id and returns its key. */
  async update(db: Kysely<Database>, id: string, changed: UntypedRow): Promise<number> {
    const columns = Object.keys(changed)
    const key = columns.join()
    let update = this.#updates.get(key)
    if (!update) {
      update = prepareQuery((handle, ...values) => {
        const set = Object.fromEntries(columns.map((column, at) => [column, values[at] as Parameter]))
        return untyped(handle)
          .updateTable(this.#table)
          .set(set)
          .where('id', '=', values[columns.length] as string)
          .returning('n') as never
      })
      this.#updates.set(key, update)
    }
    const [stored] = await update(db, ...Object.values(changed), id)
    if (!stored) throw new Error(`${this.#table} has no record ${id} to change`)
    return stored.n
  }

  async remove(db: Kysely<Database>, n: number): Promise<void> {
    await this.#remove(db, n)
  }

  /** Updates the table of a set from the old members of a record to the new ones. */
  async writeMembers(
    db: Kysely<Database>,
    set: SetTableInfo,
    n: number,
    old: readonly string[],
    now: readonly string[],
  ): Promise<void> {
    const { add, remove } = this.#members.get(set.table) as MemberStatements
    const oldSet = new Set(old)
    const newSet = new Set(now)
    const removed = old.filter((value) => !newSet.has(value))
    const added = now.filter((value) => !oldSet.has(value))
    if (removed.length > 0) await remove(db, n, JSON.stringify(removed))
    if (added.length > 0) await add(db, n, JSON.stringify(added))
  }
}

interface MemberStatements {
  readonly add: PreparedQuery<[number, string], unknown>
  readonly remove: PreparedQuery<[number, string], unknown>
}

/** One parameter for any number of members: the same statement for all, and no limit on how many. */
function prepareMemberStatements(table: string): MemberStatements {
  const elements = (db: Kysely<Database>, json: string) => getSqlDialect(db).elements(sqlText`${json}`)
  return {
    add: prepareQuery((db, n, json) =>
      untyped(db)
        .insertInto(table)
        .columns(['n', 'value'])
        .expression(sqlText`select ${n}, value from ${elements(db, json)}`),
    ),
    remove: prepareQuery((db, n, json) =>
      untyped(db)
        .deleteFrom(table)
        .where('n', '=', n)
        .where(isElementOf(db, 'value', json)),
    ),
  }
}

const tables: ReadonlyMap<string, RecordTable> = new Map(
  compiledResources.map((compiled) => [compiled.definition.plural, new RecordTable(compiled)]),
)

/** The table of a resource. */
export function getRecordTable({ plural }: AnyResource): RecordTable {
  const table = tables.get(plural)
  if (!table) throw new Error(`no resource is called ${plural}`)
  return table
}
