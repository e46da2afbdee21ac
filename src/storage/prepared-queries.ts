// Statements whose text is built once: on hot paths, building and compiling costs more than running them.
import type { Compilable, CompiledQuery, Kysely, SqlBool } from 'kysely'
import type { Database } from './database.ts'
import { type SqlText, sqlText } from './lists/sql-text.ts'
import { StoreMisuseError } from './store.ts'
import { isElementOf } from './untyped.ts'

export type Parameter = string | number | null

/**
 * Builds the statement, at the first call. It must use each parameter once, as a value, in the given order, because later calls
 * only replace the values.
 */
type Build<P extends readonly Parameter[], Row> = (db: Kysely<Database>, ...parameters: P) => Compilable<Row>

/** The statement with other parameters, to run later. */
export type PreparedStatement<P extends readonly Parameter[], Row> = (
  db: Kysely<Database>,
  ...parameters: P
) => CompiledQuery<Row>

/** Runs the statement with other parameters. */
export type PreparedQuery<P extends readonly Parameter[], Row> = (
  db: Kysely<Database>,
  ...parameters: P
) => Promise<Row[]>

/** Prepares a statement that is run by other means, such as `Store.scan`. */
export function prepareStatement<const P extends readonly Parameter[], Row>(
  build: Build<P, Row>,
): PreparedStatement<P, Row> {
  let compiled: CompiledQuery<Row> | undefined
  return (db, ...parameters) => {
    compiled ??= assertParametersMatch(build(db, ...parameters).compile(), parameters)
    const { query, queryId, sql } = compiled
    return { query, queryId, sql, parameters }
  }
}

/** Prepares a query. */
export function prepareQuery<const P extends readonly Parameter[], Row>(build: Build<P, Row>): PreparedQuery<P, Row> {
  const compile = prepareStatement(build)
  return async (db, ...parameters) => {
    const { rows } = await db.executeQuery<Row>(compile(db, ...parameters))
    return rows
  }
}

/** Inserts a row and returns its key. */
export type PreparedInsert<P extends readonly Parameter[]> = (db: Kysely<Database>, ...parameters: P) => Promise<number>

/**
 * Prepares a statement that inserts one row, whose key is an integer. It must not have a RETURNING clause: SQLite then copies each
 * page before it changes it, so as to undo the statement alone, which costs more the more pages the transaction has changed before.
 */
export function prepareInsert<const P extends readonly Parameter[]>(build: Build<P, unknown>): PreparedInsert<P> {
  const compile = prepareStatement(build)
  return async (db, ...parameters) => {
    const { insertId } = await db.executeQuery(compile(db, ...parameters))
    return Number(insertId)
  }
}

/**
 * Prepares a query of the rows in which a column has one of some values; `isAmong` is that condition. A single value is compared,
 * because a list takes four times as long to unpack as the row to find.
 */
export function prepareQueryAmong<V extends string | number, Row>(
  build: (db: Kysely<Database>, isAmong: (column: string) => SqlText<SqlBool>) => Compilable<Row>,
): (db: Kysely<Database>, values: readonly V[]) => Promise<Row[]> {
  const findOne = prepareQuery((db, value: V) =>
    build(db, (column) => sqlText<SqlBool>`${sqlText.ref(column)} = ${value}`),
  )
  const findSeveral = prepareQuery((db, json: string) => build(db, (column) => isElementOf(db, column, json)))
  return (db, values) => {
    const [first] = values
    return first !== undefined && values.length === 1 ? findOne(db, first) : findSeveral(db, JSON.stringify(values))
  }
}

function assertParametersMatch<Row>(
  compiled: CompiledQuery<Row>,
  parameters: readonly Parameter[],
): CompiledQuery<Row> {
  const isSame =
    compiled.parameters.length === parameters.length &&
    parameters.every((parameter, at) => Object.is(parameter, compiled.parameters[at]))
  if (!isSame)
    throw new StoreMisuseError(`a prepared statement does not take its parameters as they are given: ${compiled.sql}`)
  return compiled
}
