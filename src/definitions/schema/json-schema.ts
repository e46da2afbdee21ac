// The part of JSON Schema (draft-07) that definitions are written in.

export interface JsonSchema {
  readonly [keyword: string]: unknown
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly enum?: readonly unknown[]
  readonly description?: string
}

export const text: JsonSchema = { type: 'string' }
export const flag: JsonSchema = { type: 'boolean' }
export const whole: JsonSchema = { type: 'integer' }
export const uuid: JsonSchema = { type: 'string', format: 'uuid' }
export const time: JsonSchema = { type: 'string', format: 'date-time' }

/** An object with these members, all of them optional. */
export function objectOf(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: 'object', properties }
}

/** An object with these members, all of them required but the `optional` ones. */
export function requiredObject(
  properties: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  return { ...objectOf(properties), required: Object.keys(properties).filter((name) => !optional.includes(name)) }
}

export function listOf(items: JsonSchema): JsonSchema {
  return { type: 'array', items }
}

/** A value of the schema, or null. */
export function orNull(schema: JsonSchema): JsonSchema {
  return { ...schema, nullable: true }
}

/** Sub-paths and related records, by name. */
export const links: JsonSchema = { type: 'object', additionalProperties: objectOf({ href: text }) }

/** How one record shows another. */
export const entityReference = objectOf({ _links: links, entity: text, id: text, name: text })

/** Returns the schema without undefined members, which schema compilers reject. */
export function compact(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined))
}

declare const VALUE: unique symbol

/** A schema with the TypeScript type of its values. */
export type TypedSchema<V> = JsonSchema & { readonly [VALUE]?: V }

/** Asserts that the values of `schema` have the type `V`; nothing checks it. */
export function typed<V>(schema: JsonSchema): TypedSchema<V> {
  return schema
}

/** Any JSON object. */
export const anyObject = typed<Record<string, unknown>>({ type: 'object' })
