// The model of a field: its kind, which many fields share, and its own options.
import { EMPTY_OR_NULL, inBothForms } from './json-forms.ts'
import type { JsonSchema } from './json-schema.ts'

/** The value of a column: booleans are 0 and 1, times are milliseconds, structured values are JSON text. */
export type Stored = string | number | null

/** How a literal of the filter language compares with a field. */
type FilterType = 'string' | 'integer' | 'boolean' | 'date' | 'tags'

/**
 * The actors that set a field and see it.
 * `write`: clients set it, on create, replace and patch. `create`: clients set it on create; updates accept and ignore it.
 * `read`: the controller sets it and shows it. `internal`: the controller sets it and never shows it.
 */
type FieldAccess = 'write' | 'create' | 'read' | 'internal'

export interface FieldOptions<V = unknown> {
  /** One sentence for documents and help. */
  readonly summary?: string
  /** Must be sent: on create and replace (`true`), on one of them only, or on patch too (`always`). */
  readonly required?: boolean | 'create' | 'replace' | 'always'
  readonly access?: FieldAccess
  /** Its value can be null. */
  readonly nullable?: boolean
  /**
   * Bodies, or those of a patch only, may hold null: the field then falls back to its default. A required field has no
   * default: a patch leaves it unchanged.
   */
  readonly acceptsNull?: boolean | 'patch'
  /** The value if a create or replace does not send the field; defaults to null if nullable, else to the kind's empty value. */
  readonly default?: V
  /** Lists can be filtered and sorted by it, under its own name or this one. */
  readonly filter?: boolean | string
  /** No two records may hold the same value. */
  readonly unique?: boolean
  /** Write-only: no response shows it, and the audit shows `***`. */
  readonly secret?: boolean
  /**
   * Its value is a ciphertext of `SecretCipher`, which the code that uses the secret decrypts. A rotation of the key finds it
   * by this option. Requires `secret`.
   */
  readonly isEncrypted?: boolean
  /** Responses show it, but the audit shows `***`, because other people read the audit. */
  readonly masked?: boolean
  /** Responses omit it while it is null. */
  readonly omitNull?: boolean
  /**
   * How compatible clients know it while it is an empty set, or null: see `JsonForm`. `absent` leaves the member out, and `null` is
   * null in place of an empty set.
   */
  readonly compatibleEmpty?: 'null' | 'absent'
  /** The member that carries it in request bodies; defaults to the field's own name. */
  readonly input?: string
  /** The value that a command sends, and reports, if a person omits a required field. */
  readonly commandDefault?: V
  /** Values that only the controller sets, besides those that clients may choose from. */
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

/** The common part of all fields of a kind. `encode`, `decode` and `toJson` never receive null. */
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
  /** Converts a value that matches the schema to its stored form; does not throw. */
  normalize?(value: unknown, purpose: 'create' | 'replace' | 'patch'): unknown
  /** A rule beyond the schema. */
  objection?(value: unknown): Objection | undefined
  /** The resource (plural) that a reference or a set of references points to. */
  readonly target?: string
  /** The resource (plural) whose ids are the keys of a map. */
  readonly keyTarget?: string
  /** For references and sets of references. */
  readonly reference?: ReferenceOptions
  /** Entries of a set are policy roles: `@id` of the target, `#attribute`, `#all`. */
  readonly roles?: true
  /** Members of a structured field; a patch merges them one by one. */
  readonly members?: Fields
  /** Every body may hold null; see `FieldOptions.acceptsNull`. */
  readonly acceptsNull?: true
  /** A value of another JSON type breaks a rule of the field, instead of making the body unreadable. */
  readonly isTypeRule?: boolean | undefined
  /** The value of an absent field that is not required. */
  readonly empty?: unknown
}

/** The problem of a value: the end of a sentence that begins with the field, and the part of the value that is wrong. */
export interface Objection {
  readonly reason: string
  readonly value?: unknown
}

export interface ReferenceOptions {
  /** The record member that shows the target as {_links, entity, id, name}. */
  readonly as?: string
  /** Whether the member also shows the collection of the target, as `urlName`. */
  readonly withUrlName?: boolean
  /** The effect of a delete of the target: it is refused with 409, deletes this record too, or sets the field to null. */
  readonly onDelete?: 'restrict' | 'cascade' | 'clear'
  /** The member that an error about an unknown target names; defaults to the field's member. */
  readonly unknown?: string
  /** The status for an unknown target, if clients expect 404; defaults to 400, as for any other bad value. */
  readonly unknownStatus?: 404
  /** The accepted ids, if they are few and fixed. */
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

// ---- how most kinds store values in columns ----

export const asStored = (value: unknown) => value as Stored
export const quoteString = (stored: Stored) => JSON.stringify(stored)
export const rawJson = (stored: Stored) => stored as string
export const toText = (value: unknown) => JSON.stringify(value)
export const fromText = (stored: Stored) => JSON.parse(stored as string) as unknown

/** Whether some member, at any depth, is not always written as it is stored. */
export function hasMembersToRender(members: Fields): boolean {
  return Object.values(members).some(
    ({ kind, options }) =>
      options.omitNull || options.compatibleEmpty || (kind.members !== undefined && hasMembersToRender(kind.members)),
  )
}

/** JSON text of the members of a structured value, marked where its forms differ; each with a comma before it. */
export function renderMembers(members: Fields, value: Readonly<Record<string, unknown>>): string {
  let text = ''
  for (const [name, field] of Object.entries(members)) {
    const member = value[name]
    text += renderMember(
      `,"${name}":`,
      field,
      member === undefined || member === null ? null : field.kind.encode(member),
    )
  }
  return text
}

/** JSON text of one member from its column, marked where its forms differ. @param key a comma, its name and a colon */
export function renderMember(key: string, { kind, options }: AnyField, stored: Stored | undefined): string {
  const { omitNull, compatibleEmpty } = options
  if (stored === null || stored === undefined) {
    const absent = omitNull ? '' : `${key}null`
    return compatibleEmpty === 'absent' ? inBothForms(absent, '') : absent
  }
  return compatibleEmpty === 'null' && stored === '[]' ? key + EMPTY_OR_NULL : key + kind.toJson(stored)
}
