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

/** An object with these members, none of which must be there. */
export function objectOf(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: 'object', properties }
}

/** An object that has all of these members. */
export function requiredObject(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { ...objectOf(properties), required: Object.keys(properties) }
}

export function listOf(items: JsonSchema): JsonSchema {
  return { type: 'array', items }
}

/** Sub-paths and related records, by name. */
export const links: JsonSchema = { type: 'object', additionalProperties: objectOf({ href: text }) }

/** How one record shows another. */
export const entityReference = objectOf({ _links: links, entity: text, id: text, name: text })

/** The same schema without the members that are undefined, which a compiler of schemas would trip over. */
export function compact(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined))
}

declare const VALUE: unique symbol

/** A schema that says in the type system what its values are. */
export type TypedSchema<V> = JsonSchema & { readonly [VALUE]?: V }

/** Vouches that values of `schema` are of type `V`. */
export function typed<V>(schema: JsonSchema): TypedSchema<V> {
  return schema
}

/** Any JSON object. */
export const anyObject = typed<Record<string, unknown>>({ type: 'object' })
