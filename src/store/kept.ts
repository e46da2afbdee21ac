// Statements whose text is built once: on hot paths, building and compiling costs more than running them.
import type { Compilable, CompiledQuery, Kysely } from 'kysely'
import type { Database } from './database.ts'
import { StoreMisuse } from './store.ts'
import { type UntypedDatabase, untyped } from './untyped.ts'

export type Parameter = string | number | null

/** Runs the statement with other parameters. */
export type Kept<P extends readonly Parameter[], Row> = (db: Kysely<Database>, ...parameters: P) => Promise<Row[]>

/**
 * Keeps the statement that `build` makes at the first call. It must use each parameter once, as a value, in the order in
 * which they are given: what differs from call to call is only what they are.
 */
export function kept<const P extends readonly Parameter[], Row>(
  build: (db: Kysely<UntypedDatabase>, ...parameters: P) => Compilable<Row>,
): Kept<P, Row> {
  let compiled: CompiledQuery<Row> | undefined
  return async (db, ...parameters) => {
    compiled ??= checked(build(untyped(db), ...parameters).compile(), parameters)
    const { query, queryId, sql } = compiled
    const { rows } = await db.executeQuery<Row>({ query, queryId, sql, parameters })
    return rows
  }
}

/** The same for tables that are known where the statement is written. */
export function keptOn<const P extends readonly Parameter[], Row>(
  build: (db: Kysely<Database>, ...parameters: P) => Compilable<Row>,
): Kept<P, Row> {
  return kept((db, ...parameters) => build(db as unknown as Kysely<Database>, ...parameters))
}

function checked<Row>(compiled: CompiledQuery<Row>, parameters: readonly Parameter[]): CompiledQuery<Row> {
  const isSame =
    compiled.parameters.length === parameters.length &&
    parameters.every((parameter, at) => Object.is(parameter, compiled.parameters[at]))
  if (!isSame) throw new StoreMisuse(`a kept statement does not take its parameters as they are given: ${compiled.sql}`)
  return compiled
}
