// Matches member names regardless of case, because clients written in Go may send them in another case.
import type { JsonSchema } from './json-schema.ts'

/**
 * Returns the value with the member names of its schema. A name in another case counts if the value has no exact match.
 * Keys of maps stay unchanged, because no schema names them.
 */
export function withSchemaNames(schema: JsonSchema, value: unknown): unknown {
  if (Array.isArray(value)) {
    const { items } = schema
    return items ? value.map((entry) => withSchemaNames(items, entry)) : value
  }
  const { properties } = schema
  if (typeof value !== 'object' || value === null || !properties) return value
  let byFoldedName: ReadonlyMap<string, string> | undefined
  return Object.fromEntries(
    Object.entries(value).map(([sent, member]) => {
      // Most clients send every name as it is.
      if (!Object.hasOwn(properties, sent)) byFoldedName ??= foldMissingNames(properties, value)
      const name = Object.hasOwn(properties, sent) ? sent : (byFoldedName?.get(sent.toLowerCase()) ?? sent)
      const memberSchema = Object.hasOwn(properties, name) ? properties[name] : undefined
      return [name, memberSchema ? withSchemaNames(memberSchema, member) : member]
    }),
  )
}

/** Returns the names of a schema that a value does not have, by their lower case. */
function foldMissingNames(properties: NonNullable<JsonSchema['properties']>, value: object): Map<string, string> {
  const missingNames = Object.keys(properties).filter((name) => !Object.hasOwn(value, name))
  return new Map(missingNames.map((name) => [name.toLowerCase(), name]))
}
