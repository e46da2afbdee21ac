// Finds members that are written in another case than the schema has them, as clients written in Go may send them.
import type { JsonSchema } from './json-schema.ts'

/**
 * Returns the value with the member names of its schema: a name in another case counts if the value has none that matches
 * exactly. Keys of free maps stay as they are, because no schema names them.
 */
export function withSchemaNames(schema: JsonSchema, value: unknown): unknown {
  if (Array.isArray(value)) {
    const { items } = schema
    return items ? value.map((entry) => withSchemaNames(items, entry)) : value
  }
  const { properties } = schema
  if (typeof value !== 'object' || value === null || !properties) return value
  const missing = Object.keys(properties).filter((name) => !Object.hasOwn(value, name))
  const byFoldedName = new Map(missing.map((name) => [name.toLowerCase(), name]))
  return Object.fromEntries(
    Object.entries(value).map(([sent, member]) => {
      const name = Object.hasOwn(properties, sent) ? sent : (byFoldedName.get(sent.toLowerCase()) ?? sent)
      const ofMember = Object.hasOwn(properties, name) ? properties[name] : undefined
      return [name, ofMember ? withSchemaNames(ofMember, member) : member]
    }),
  )
}
