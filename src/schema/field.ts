// What a field is: the options it is written with, and what is the same for all fields of a kind.
import type { JsonSchema } from './json-schema.ts'

/** What a column can hold; booleans are 0 and 1, times are milliseconds, everything structured is JSON text. */
export type Stored = string | number | null

/** How a literal of the filter language compares with a field. */
export type FilterType = 'string' | 'integer' | 'boolean' | 'date' | 'tags'

/**
 * Who sets a field, and who sees it.
 * `write`: callers set it, on create, replace and patch. `create`: callers set it once; it is accepted and left alone
 * afterwards. `read`: the controller sets it and shows it. `internal`: the controller sets it and never shows it.
 */
export type Access = 'write' | 'create' | 'read' | 'internal'

export interface FieldOptions<V = unknown> {
  /** One sentence for documents and help. */
  readonly summary?: string
  /** Must be sent: on create and replace (`true`), on one of them only, or on patch too (`always`). */
  readonly required?: boolean | 'create' | 'replace' | 'always'
  readonly access?: Access
  /** Its value can be null. */
  readonly nullable?: boolean
  /**
   * Bodies may hold null, all of them or those that patch: the field then falls back to its default; one that is required
   * has none, and a patch leaves it as it is.
   */
  readonly acceptsNull?: boolean | 'patch'
  /** What a create or replace without the field stores; without it null where nullable, else the kind's empty value. */
  readonly default?: V
  /** Lists can be filtered and sorted by it, under its own name or the one given. */
  readonly filter?: boolean | string
  /** No two records may hold the same value. */
  readonly unique?: boolean
  /** Goes in, never comes out; `***` in the audit. */
  readonly secret?: boolean
  /** Shown to whoever may see the record, and yet `***` in the audit, which others read. */
  readonly masked?: boolean
  /** Left out of the record while null, instead of being sent as null. */
  readonly omitNull?: boolean
  /** The member that carries it in request bodies, where that is not the field's own name. */
  readonly input?: string
  /** What a command sends, and says that it sends, where a person leaves a required field out. */
  readonly commandDefault?: V
  /** Values that only the controller gives it, beside those that callers may choose from. */
  readonly systemChoices?: readonly string[]
  // Bounds, for the kinds that have them.
  readonly minLength?: number
  readonly maxLength?: number
  readonly min?: number
  readonly max?: number
  readonly minItems?: number
  readonly maxItems?: number
}

declare const VALUE: unique symbol
declare const STORED: unique symbol

/** One field of a resource. `V` is its value in the code, `S` what its column holds, `O` the options as written. */
export interface Field<V = unknown, S extends Stored = Stored, O extends FieldOptions = FieldOptions> {
  readonly kind: Kind
  readonly options: O
  readonly [VALUE]?: V
  readonly [STORED]?: S
}

/** What is the same for all fields of a kind. `encode`, `decode` and `toJson` never see null. */
export interface Kind {
  readonly name: 'text' | 'integer' | 'boolean' | 'time' | 'json' | 'object' | 'set' | 'reference'
  readonly column: 'text' | 'integer'
  readonly schema: JsonSchema
  readonly filterType?: FilterType
  /** Value → column. */
  encode(value: unknown): Stored
  /** Column → value. */
  decode(stored: Stored): unknown
  /** Column → JSON text of the record. */
  toJson(stored: Stored): string
  /** Brings a value that fits the schema into the form that is stored; throws nothing. */
  normalize?(value: unknown, purpose: 'create' | 'replace' | 'patch'): unknown
  /** A rule beyond the schema. */
  objection?(value: unknown): Objection | undefined
  /** The resource (plural) a reference or a set of references points at. */
  readonly target?: string
  /** For references and sets of references. */
  readonly reference?: ReferenceOptions
  /** Entries of a set are policy roles: `@id` of the target, `#attribute`, `#all`. */
  readonly roles?: true
  /** Members of a structured field, each with a requirement of its own; patches merge member by member. */
  readonly members?: Fields
  /** Every body may hold null; see `FieldOptions.acceptsNull`. */
  readonly acceptsNull?: true
  /** A value of another JSON type breaks a rule of the field, instead of making the body unreadable. */
  readonly isTypeRule?: boolean | undefined
  /** What an absent, required-nowhere field holds. */
  readonly empty?: unknown
}

/** What is wrong with a value: the end of a sentence that begins with the field, and the part of it that is wrong. */
export interface Objection {
  readonly reason: string
  readonly value?: unknown
}

export interface ReferenceOptions {
  /** The record member that shows the target as {_links, entity, id, name}. */
  readonly as?: string
  /** That member also says what collection the target is in, as `urlName`. */
  readonly withUrlName?: boolean
  /** What deleting the target does: refuse with 409, delete this record too, or set the field to null. */
  readonly onDelete?: 'restrict' | 'cascade' | 'clear'
  /** The member under which an unknown target is reported, where that is not the member that names it. */
  readonly unknown?: string
  /** The status for an unknown target where clients expect it; everywhere else it is 400, as for any other bad value. */
  readonly unknownStatus?: 404
  /** The accepted ids, where they are few and fixed. */
  readonly choices?: readonly string[]
}

// biome-ignore lint/suspicious/noExplicitAny: a field of any value type; inference happens per definition
export type AnyField = Field<any, any, FieldOptions>
export type Fields = Readonly<Record<string, AnyField>>

/** The member of a request body that carries a field. */
export function toMemberName(name: string, field: AnyField): string {
  return field.options.input ?? name
}

export type Nullable<V, O> = O extends { nullable: true } ? V | null : V

export function field<V, S extends Stored, O extends FieldOptions>(kind: Kind, options: O): Field<V, S, O> {
  return { kind, options }
}

// ---- how values are kept in columns, by most kinds ----

export const asStored = (value: unknown) => value as Stored
export const quoteString = (stored: Stored) => JSON.stringify(stored)
export const rawJson = (stored: Stored) => stored as string
export const toText = (value: unknown) => JSON.stringify(value)
export const fromText = (stored: Stored) => JSON.parse(stored as string) as unknown

/** Whether some member, at any depth, is left out while it is null. */
export function hasOmitted(members: Fields): boolean {
  return Object.values(members).some(
    ({ kind, options }) => options.omitNull || (kind.members !== undefined && hasOmitted(kind.members)),
  )
}

/** A structured value without the members that are left out while they are null. */
export function withoutOmitted(members: Fields, value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const [name, { kind, options }] of Object.entries(members)) {
    const member = value[name] ?? null
    if (member === null && options.omitNull) continue
    kept[name] = kind.members && member !== null ? withoutOmitted(kind.members, member as typeof value) : member
  }
  return kept
}
