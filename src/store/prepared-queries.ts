// Statements whose text is built once: on hot paths, building and compiling costs more than running them.
import type { Compilable, CompiledQuery, Kysely } from 'kysely'
import type { Database } from './database.ts'
import { StoreMisuseError } from './store.ts'
import { type UntypedDatabase, untyped } from './untyped.ts'

export type Parameter = string | number | null

/** Runs the statement with other parameters. */
export type PreparedQuery<P extends readonly Parameter[], Row> = (
  db: Kysely<Database>,
  ...parameters: P
) => Promise<Row[]>

/**
 * Prepares the statement that `build` returns at the first call. It must use each parameter once, as a value, in the given
 * order, because later calls only replace the values.
 */
export function prepareQuery<const P extends readonly Parameter[], Row>(
  build: (db: Kysely<UntypedDatabase>, ...parameters: P) => Compilable<Row>,
): PreparedQuery<P, Row> {
  let compiled: CompiledQuery<Row> | undefined
  return async (db, ...parameters) => {
    compiled ??= assertParametersMatch(build(untyped(db), ...parameters).compile(), parameters)
    const { query, queryId, sql } = compiled
    const { rows } = await db.executeQuery<Row>({ query, queryId, sql, parameters })
    return rows
  }
}

/** The same, with the types of the tables. */
export function prepareTypedQuery<const P extends readonly Parameter[], Row>(
  build: (db: Kysely<Database>, ...parameters: P) => Compilable<Row>,
): PreparedQuery<P, Row> {
  return prepareQuery((db, ...parameters) => build(db as unknown as Kysely<Database>, ...parameters))
}

function assertParametersMatch<Row>(
  compiled: CompiledQuery<Row>,
  parameters: readonly Parameter[],
): CompiledQuery<Row> {
  const isSame =
    compiled.parameters.length === parameters.length &&
    parameters.every((parameter, at) => Object.is(parameter, compiled.parameters[at]))
  if (!isSame)
    throw new StoreMisuseError(`a kept statement does not take its parameters as they are given: ${compiled.sql}`)
  return compiled
}
