// The kinds of field that resources are made of: for each, its JSON Schema, its column, its filter type and its JSON text.
import { isoTime, parseTime } from '../clock.ts'
import { hexDigits, isHexadecimal } from './hexadecimal.ts'
import type { JsonSchema, TypedSchema } from './json-schema.ts'
import { typed } from './json-schema.ts'

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
  /** Must be sent: on create and replace (`true`), or on one of them only. */
  readonly required?: boolean | 'create' | 'replace'
  readonly access?: Access
  readonly nullable?: boolean
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
  normalise?(value: unknown): unknown
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
  /** An unknown target is a 400 of this field; without it a 404, as clients expect of most references. */
  readonly unknown?: string
  /** The accepted ids, where they are few and fixed. */
  readonly choices?: readonly string[]
}

// biome-ignore lint/suspicious/noExplicitAny: a field of any value type; inference happens per definition
export type AnyField = Field<any, any, FieldOptions>
export type Fields = Readonly<Record<string, AnyField>>

/** The member of a request body that carries a field. */
export function memberName(name: string, field: AnyField): string {
  return field.options.input ?? name
}

type Null<V, O> = O extends { nullable: true } ? V | null : V

function field<V, S extends Stored, O extends FieldOptions>(kind: Kind, options: O): Field<V, S, O> {
  return { kind, options }
}

const same = (value: unknown) => value as Stored
const quoted = (stored: Stored) => JSON.stringify(stored)
const pasted = (stored: Stored) => stored as string
const toText = (value: unknown) => JSON.stringify(value)
const fromText = (stored: Stored) => JSON.parse(stored as string) as unknown

/** A value of tags and app data: decisions allow string, number, boolean and null, nothing nested. */
export type TagValue = string | number | boolean | null
export type Tags = Record<string, TagValue>

export interface TextOptions extends FieldOptions<string> {
  /** What is stored in place of blank text, e.g. null for an external id. */
  readonly blank?: string | null
  readonly format?: string
}

export interface IntegerOptions extends FieldOptions<number> {
  /** Brings a value that broke no rule into the form that is stored. */
  readonly normalise?: (value: number) => number
}

export interface JsonOptions<V> extends FieldOptions<V> {
  /** A rule beyond the schema; see `Kind.objection`. */
  readonly objection?: (value: V) => Objection | undefined
  /** Brings a value that broke no rule into the form that is stored. */
  readonly normalise?: (value: V) => V
}

export interface ReferenceFieldOptions extends FieldOptions<string>, ReferenceOptions {
  readonly blank?: string | null
}

export const f = {
  text<const O extends TextOptions>(options = {} as O): Field<Null<string, O>, Null<string, O>, O> {
    const { minLength, maxLength, format, blank } = options
    const kind: Kind = {
      name: 'text',
      column: 'text',
      schema: { type: 'string', minLength, maxLength, format },
      filterType: 'string',
      encode: same,
      decode: (stored) => stored,
      toJson: quoted,
      normalise: blank === undefined ? undefined : (value) => ((value as string).trim() === '' ? blank : value),
      empty: '',
    }
    return field(kind, options)
  },

  /** A unique, non-empty name; the API sets no other bound. */
  name<const O extends FieldOptions<string>>(options = {} as O) {
    return f.text({ required: true, unique: true, filter: true, minLength: 1, ...options })
  },

  int<const O extends IntegerOptions>(options = {} as O): Field<Null<number, O>, Null<number, O>, O> {
    const kind: Kind = {
      name: 'integer',
      column: 'integer',
      schema: { type: 'integer', minimum: options.min, maximum: options.max },
      filterType: 'integer',
      encode: same,
      decode: (stored) => stored,
      toJson: String,
      objection: (value) => (Number.isSafeInteger(value) ? undefined : { reason: 'is beyond all bounds', value }),
      ...(options.normalise ? { normalise: (value) => options.normalise?.(value as number) } : {}),
      empty: 0,
    }
    return field(kind, options)
  },

  bool<const O extends FieldOptions<boolean>>(options = {} as O): Field<Null<boolean, O>, Null<number, O>, O> {
    const kind: Kind = {
      name: 'boolean',
      column: 'integer',
      schema: { type: 'boolean' },
      filterType: 'boolean',
      encode: (value) => (value ? 1 : 0),
      decode: (stored) => stored === 1,
      toJson: (stored) => (stored === 1 ? 'true' : 'false'),
      empty: false,
    }
    return field(kind, options)
  },

  /** An instant: milliseconds in the code and the column, RFC 3339 on the wire. */
  time<const O extends FieldOptions<number>>(options = {} as O): Field<Null<number, O>, Null<number, O>, O> {
    const kind: Kind = {
      name: 'time',
      column: 'integer',
      schema: { type: 'string', format: 'date-time' },
      filterType: 'date',
      encode: same,
      decode: (stored) => stored,
      toJson: (stored) => `"${isoTime(stored as number)}"`,
      normalise: (value) => (typeof value === 'string' ? parseTime(value) : value),
    }
    return field(kind, options)
  },

  choice<const C extends string, const O extends FieldOptions<NoInfer<C>>>(
    choices: readonly C[],
    options = {} as O,
  ): Field<Null<C, O>, Null<C, O>, O> {
    const kind: Kind = {
      name: 'text',
      column: 'text',
      schema: { type: 'string', enum: choices },
      filterType: 'string',
      encode: same,
      decode: (stored) => stored,
      toJson: quoted,
    }
    return field(kind, options)
  },

  /** Any JSON that fits `schema`, kept as it came. */
  json<V, const O extends JsonOptions<NoInfer<V>>>(
    schema: TypedSchema<V>,
    options = {} as O,
  ): Field<Null<V, O>, Null<string, O>, O> {
    const kind: Kind = {
      name: 'json',
      column: 'text',
      schema,
      encode: toText,
      decode: fromText,
      toJson: pasted,
      empty: schema.type === 'array' ? [] : {},
      ...(options.objection ? { objection: (value) => options.objection?.(value as V) } : {}),
      ...(options.normalise ? { normalise: (value) => options.normalise?.(value as V) } : {}),
    }
    return field(kind, options)
  },

  /** User-defined keys with plain values; `tags` of every record, and the application data of some. */
  tags<const O extends FieldOptions<Tags>>(options = {} as O): Field<Tags, string, O> {
    const kind: Kind = {
      name: 'json',
      column: 'text',
      schema: { type: 'object', additionalProperties: { type: ['string', 'number', 'boolean', 'null'] } },
      filterType: 'tags',
      encode: toText,
      decode: fromText,
      toJson: pasted,
      // A key that is set to null is a key that is not there.
      normalise: (value) => Object.fromEntries(Object.entries(value as Tags).filter(([, one]) => one !== null)),
      empty: {},
    }
    return field(kind, options)
  },

  /** A map from keys to values that fit one schema. */
  map<V, const O extends FieldOptions<Record<string, NoInfer<V>>>>(
    values: TypedSchema<V>,
    options = {} as O,
  ): Field<Record<string, V>, string, O> {
    const schema = typed<Record<string, V>>({ type: 'object', additionalProperties: values })
    return f.json(schema, options) as Field<Record<string, V>, string, O>
  },

  /** A structured value with members of their own; stored as one JSON column, patched member by member. */
  object<const M extends Fields, const O extends FieldOptions>(
    members: M,
    options = {} as O,
  ): Field<Null<Values<M>, O>, Null<string, O>, O> {
    const kind: Kind = {
      name: 'object',
      column: 'text',
      schema: { type: 'object' },
      encode: toText,
      decode: fromText,
      toJson: hasOmitted(members)
        ? (stored) => JSON.stringify(withoutOmitted(members, JSON.parse(stored as string) as Record<string, unknown>))
        : pasted,
      members,
    }
    return field(kind, options)
  },

  /** A set of strings: duplicates vanish, order is by bytes, as clients of the peer know it. */
  strings<const O extends FieldOptions<string[]>>(options = {} as O): Field<Null<string[], O>, Null<string, O>, O> {
    return field(setKind({ minItems: options.minItems }), options)
  },

  /** A set of hexadecimal values, such as hashes, written with or without separators; only their digits are kept. */
  hexStrings<const O extends FieldOptions<string[]>>(options = {} as O): Field<string[], string, O> {
    const kind = setKind({
      minItems: options.minItems,
      objection(value) {
        const bad = (value as string[]).find((one) => !isHexadecimal(one))
        return bad === undefined ? undefined : { reason: 'has an entry that is not hexadecimal', value: bad }
      },
      normalise: (value) => sortedSet((value as string[]).map(hexDigits)),
    })
    return field(kind, options)
  },

  /** One such value; blank text is none. */
  hex<const O extends FieldOptions<string> & { nullable: true }>(options: O): Field<string | null, string | null, O> {
    const { kind } = f.text(options)
    return field(
      {
        ...kind,
        objection: (value) =>
          (value as string).trim() === '' || isHexadecimal(value as string)
            ? undefined
            : { reason: 'is not hexadecimal', value },
        normalise: (value) => hexDigits(value as string) || null,
      },
      options,
    )
  },

  /** Attributes by which policies find this record. */
  roleAttributes<const O extends FieldOptions<string[]>>(
    options = {} as O,
  ): Field<string[], string, O & { filter: true }> {
    const kind = setKind({
      objection(value) {
        const bad = (value as string[]).find((attribute) => attribute.startsWith('#') || attribute.startsWith('@'))
        return bad === undefined ? undefined : { reason: `may not begin with "${bad[0]}"`, value: bad }
      },
    })
    return field(kind, { ...options, filter: true })
  },

  /** One side of a policy: `#attribute`, `@id` of a record of `target`, or `#all` alone. */
  roles<const O extends FieldOptions<string[]>>(
    target: string,
    options = {} as O,
  ): Field<string[], string, O & { filter: true }> {
    const kind = setKind({
      target,
      roles: true,
      objection(value) {
        const roles = value as string[]
        const bare = roles.filter((role) => !(role.startsWith('#') || role.startsWith('@')))
        if (bare.length > 0)
          return { reason: 'has entries that begin neither with # (an attribute) nor with @ (an id)', value: bare }
        if (roles.includes('#all') && roles.length > 1) return { reason: 'may hold nothing beside #all', value: roles }
        return undefined
      },
    })
    return field(kind, { ...options, filter: true })
  },

  /** A set of ids of records of `target`. */
  references<const O extends FieldOptions<string[]> & ReferenceOptions>(
    target: string,
    options = {} as O,
  ): Field<string[], string, O> {
    const kind = setKind({
      maxItems: options.maxItems,
      target,
      reference: options,
      objection(value) {
        const ids = value as string[]
        const twice = ids.find((id, at) => ids.indexOf(id) !== at)
        return twice === undefined ? undefined : { reason: `names ${twice} twice`, value: ids }
      },
    })
    return field(kind, options)
  },

  /** The id of a record of `target`. */
  reference<const O extends ReferenceFieldOptions>(
    target: string,
    options = {} as O,
  ): Field<Null<string, O>, Null<string, O>, O> {
    const { blank, choices } = options
    const kind: Kind = {
      name: 'reference',
      column: 'text',
      schema: choices ? { type: 'string', enum: choices } : { type: 'string' },
      filterType: 'string',
      encode: same,
      decode: (stored) => stored,
      toJson: quoted,
      normalise: blank === undefined ? undefined : (value) => ((value as string).trim() === '' ? blank : value),
      target,
      reference: options,
    }
    return field(kind, options)
  },
}

function setKind(more: Partial<Kind> & { minItems?: number; maxItems?: number }): Kind {
  const { minItems, maxItems, ...rest } = more
  return {
    name: 'set',
    column: 'text',
    schema: { type: 'array', items: { type: 'string' }, minItems, maxItems },
    filterType: 'string',
    encode: toText,
    decode: fromText,
    toJson: pasted,
    normalise: (value) => sortedSet(value as string[]),
    empty: [],
    ...rest,
  }
}

function hasOmitted(members: Fields): boolean {
  return Object.values(members).some(
    ({ kind, options }) => options.omitNull || (kind.members !== undefined && hasOmitted(kind.members)),
  )
}

/** A structured value without the members that are left out while they are null. */
function withoutOmitted(members: Fields, value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const [name, { kind, options }] of Object.entries(members)) {
    const member = value[name] ?? null
    if (member === null && options.omitNull) continue
    kept[name] = kind.members && member !== null ? withoutOmitted(kind.members, member as typeof value) : member
  }
  return kept
}

// From the first code unit on, the order of UTF-16, which is the language's own, is not that of UTF-8.
const BEYOND_COMMON_ORDER = /[\ud800-\uffff]/

/** Each string once, in ascending order of bytes. */
export function sortedSet(values: Iterable<string>): string[] {
  const once = [...new Set(values)]
  if (!once.some((value) => BEYOND_COMMON_ORDER.test(value))) return once.sort()
  return once
    .map((value) => ({ value, bytes: Buffer.from(value) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ value }) => value)
}

// ---- types that follow from fields --------------------------------------------------------------------------------

export type ValueOf<F> = F extends Field<infer V, infer _S, infer _O> ? V : never
export type StoredOf<F> = F extends Field<infer _V, infer S, infer _O> ? S : never
type OptionsOf<F> = F extends Field<infer _V, infer _S, infer O> ? O : never

/** The values of fields, as the code sees them. */
export type Values<F extends Fields> = { -readonly [K in keyof F]: ValueOf<F[K]> }

/** The same, as the columns hold them. */
export type StoredValues<F extends Fields> = { -readonly [K in keyof F]: StoredOf<F[K]> }

type InputName<K, O> = O extends { input: infer N extends string } ? N : K
type IsWritable<O> = O extends { access: 'read' | 'internal' } ? false : true
type IsRequired<O, On> = O extends { required: true } ? true : O extends { required: On } ? true : false

type Required_<F extends Fields, On> = {
  [K in keyof F as IsWritable<OptionsOf<F[K]>> extends true
    ? IsRequired<OptionsOf<F[K]>, On> extends true
      ? InputName<K, OptionsOf<F[K]>>
      : never
    : never]: ValueOf<F[K]>
}
type Optional_<F extends Fields, On> = {
  [K in keyof F as IsWritable<OptionsOf<F[K]>> extends true
    ? IsRequired<OptionsOf<F[K]>, On> extends true
      ? never
      : InputName<K, OptionsOf<F[K]>>
    : never]?: ValueOf<F[K]> | null
}

/** What a caller may send to create a record. */
export type CreateInput<F extends Fields> = Required_<F, 'create'> & Optional_<F, 'create'>
/** What a caller may send to replace one. */
export type ReplaceInput<F extends Fields> = Required_<F, 'replace'> & Optional_<F, 'replace'>
/** What a caller may send to patch one. */
export type PatchInput<F extends Fields> = Partial<CreateInput<F>>
