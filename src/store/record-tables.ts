// The tables of a resource and the statements that every request runs on them, made once for each resource.
import { type Kysely, sql } from 'kysely'
import type { AnyResource, AnyRow } from '../resources/define.ts'
import type { AnyField } from '../schema/fields.ts'
import type { Database } from './database.ts'
import { wordsOf } from './dialects/dialect.ts'
import { type Kept, kept, type Parameter } from './kept.ts'
import { isOfKind } from './kinds.ts'
import { indexedSets, setTableName } from './rows.ts'
import { isElementOf, type UntypedRow } from './untyped.ts'

/** A set field with a table of its own. */
export interface SetTableOf {
  readonly field: string
  readonly table: string
}

/** A field through which records of this resource name others. */
export interface Naming {
  readonly name: string
  readonly field: AnyField
  readonly target: string
}

// Callers change the same few groups of columns again and again; whoever tries them all fills no memory.
const MOST_UPDATES = 64

export class RecordTable {
  readonly sets: readonly SetTableOf[]
  readonly namings: readonly Naming[]
  readonly #table: string
  readonly #byId: Kept<[string], AnyRow>
  readonly #byIds: Kept<[ids: string], AnyRow>
  readonly #byKeys: Kept<[keys: string], AnyRow>
  readonly #idExists: Kept<[string], { id: string }>
  readonly #remove: Kept<[number], unknown>
  readonly #insert: Kept<Parameter[], { n: number }>
  readonly #columns: readonly string[]
  readonly #updates = new Map<string, Kept<Parameter[], { n: number }>>()
  readonly #members = new Map<string, MemberStatements>()

  constructor(resource: AnyResource) {
    const { table, fields } = resource
    this.#table = table
    this.#columns = Object.keys(fields)
    this.sets = indexedSets(resource).map((field) => ({ field, table: setTableName(resource, field) }))
    this.namings = Object.entries(fields).flatMap(([name, field]) =>
      field.kind.target ? [{ name, field, target: field.kind.target }] : [],
    )
    const marks = isOfKind(resource)
    this.#byId = kept((db, id) => {
      const found = db.selectFrom(table).selectAll().where('id', '=', id)
      return marks.reduce((query, mark) => query.where(mark), found) as never
    })
    const among = (column: string): Kept<[json: string], AnyRow> =>
      kept((db, json) => {
        const found = db
          .selectFrom(table)
          .selectAll()
          .where(isElementOf(db, column, json))
        return marks.reduce((query, mark) => query.where(mark), found) as never
      })
    this.#byIds = among('id')
    this.#byKeys = among('n')
    this.#idExists = kept((db, id) => {
      const found = db.selectFrom(table).select('id').where('id', '=', id)
      return marks.reduce((query, mark) => query.where(mark), found) as never
    })
    this.#remove = kept((db, n) => db.deleteFrom(table).where('n', '=', n))
    this.#insert = kept((db, ...values) => {
      const row = Object.fromEntries(this.#columns.map((column, at) => [column, values[at] as Parameter]))
      return db.insertInto(table).values(row).returning('n') as never
    })
    for (const { table: members } of this.sets) this.#members.set(members, memberStatements(members))
  }

  async byId(db: Kysely<Database>, id: string): Promise<AnyRow | undefined> {
    return (await this.#byId(db, id))[0]
  }

  /** Those of the ids that there are, in no order. */
  byIds(db: Kysely<Database>, ids: readonly string[]): Promise<AnyRow[]> {
    return this.#byIds(db, JSON.stringify(ids))
  }

  /** Those of the keys (`n`) that there are, in no order. */
  byKeys(db: Kysely<Database>, keys: readonly number[]): Promise<AnyRow[]> {
    return this.#byKeys(db, JSON.stringify(keys))
  }

  async exists(db: Kysely<Database>, id: string): Promise<boolean> {
    return (await this.#idExists(db, id)).length > 0
  }

  /** Stores a complete row and returns its key. */
  async insert(db: Kysely<Database>, row: UntypedRow): Promise<number> {
    const [stored] = await this.#insert(db, ...this.#columns.map((column) => row[column] ?? null))
    if (!stored) throw new Error(`${this.#table} took no row`)
    return stored.n
  }

  /** Changes some columns of the record of that id and returns its key. */
  async update(db: Kysely<Database>, id: string, changed: UntypedRow): Promise<number> {
    const columns = Object.keys(changed)
    const key = columns.join()
    let update = this.#updates.get(key)
    if (!update) {
      update = kept((handle, ...values) => {
        const set = Object.fromEntries(columns.map((column, at) => [column, values[at] as Parameter]))
        return handle
          .updateTable(this.#table)
          .set(set)
          .where('id', '=', values[columns.length] as string)
          .returning('n') as never
      })
      if (this.#updates.size >= MOST_UPDATES) this.#updates.clear()
      this.#updates.set(key, update)
    }
    const [stored] = await update(db, ...Object.values(changed), id)
    if (!stored) throw new Error(`${this.#table} has no record ${id} to change`)
    return stored.n
  }

  async remove(db: Kysely<Database>, n: number): Promise<void> {
    await this.#remove(db, n)
  }

  /** Brings the table of a set from the old members of a record to the new ones. */
  async writeMembers(
    db: Kysely<Database>,
    set: SetTableOf,
    n: number,
    old: readonly string[],
    now: readonly string[],
  ): Promise<void> {
    const { add, take } = this.#members.get(set.table) as MemberStatements
    const held = new Set(old)
    const kept = new Set(now)
    const gone = old.filter((value) => !kept.has(value))
    const come = now.filter((value) => !held.has(value))
    if (gone.length > 0) await take(db, n, JSON.stringify(gone))
    if (come.length > 0) await add(db, n, JSON.stringify(come))
  }
}

interface MemberStatements {
  readonly add: Kept<[number, string], unknown>
  readonly take: Kept<[number, string], unknown>
}

/** One parameter for any number of members: the same statement for all, and no limit on how many. */
function memberStatements(table: string): MemberStatements {
  const elements = (db: Kysely<never>, json: string) => wordsOf(db).elements(sql`${json}`)
  return {
    add: kept((db, n, json) =>
      db
        .insertInto(table)
        .columns(['n', 'value'])
        .expression(sql`select ${n}, value from ${elements(db as never, json)}`),
    ),
    take: kept((db, n, json) =>
      db
        .deleteFrom(table)
        .where('n', '=', n)
        .where(isElementOf(db, 'value', json)),
    ),
  }
}

const tables = new WeakMap<AnyResource, RecordTable>()

export function recordTable(resource: AnyResource): RecordTable {
  let table = tables.get(resource)
  if (!table) {
    table = new RecordTable(resource)
    tables.set(resource, table)
  }
  return table
}
