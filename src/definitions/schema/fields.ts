// The kinds of field that resources are made of: for each, its JSON Schema, its column, its filter type and its JSON text.
import { parseTime, toIsoTime } from '../../foundation/clock.ts'
import {
  asStored,
  type Field,
  type FieldOptions,
  type Fields,
  field,
  fromText,
  hasMembersToRender,
  type Kind,
  type Nullable,
  type Objection,
  quoteString,
  type ReferenceOptions,
  rawJson,
  renderMembers,
  toText,
} from './field.ts'
import type { Values } from './field-values.ts'
import { isHexadecimal, toHexDigits } from './hexadecimal.ts'
import type { TypedSchema } from './json-schema.ts'
import { typed } from './json-schema.ts'
import { setFields } from './set-fields.ts'

// The public interface of `schema/`: other folders import fields from here.
export {
  type AnyField,
  type Field,
  type FieldOptions,
  type Fields,
  type Objection,
  type ReferenceOptions,
  renderMember,
  renderMembers,
  toMemberName,
} from './field.ts'
export type { CreateInput, StoredValues, Values } from './field-values.ts'
export { toSortedSet } from './set-fields.ts'

/** The total size of tags, and of app data, as JSON. Every read of a record reads them, and the audit stores them. */
export const MAX_TAGS_BYTES = 16_384

/** A value of tags and app data; nothing nested. */
type TagValue = string | number | boolean | null
export type Tags = Record<string, TagValue>

export interface TextOptions extends FieldOptions<string> {
  /** The stored value of blank text, e.g. null for an external id. */
  readonly blank?: string | null
  readonly format?: string
  /** Rejects text without a visible character: only blanks, controls, zero-width and direction characters. */
  readonly mustBeVisible?: boolean
}

export interface IntegerOptions extends FieldOptions<number> {
  /** Both bounds are inclusive. Every use of the field must support them: as a time, in the store, in JSON, in clients. */
  readonly min: number
  readonly max: number
  /** Converts a valid value to its stored form. */
  readonly normalize?: (value: number) => number
}

export interface TagsOptions extends FieldOptions<Tags> {
  /** Their total size as JSON. */
  readonly maxBytes?: number
}

export interface JsonOptions<V> extends FieldOptions<V> {
  /** A rule beyond the schema; see `Kind.objection`. */
  readonly objection?: (value: V) => Objection | undefined
  /** Converts a valid value to its stored form. */
  readonly normalize?: (value: V) => V
  /** See `Kind.isTypeRule`. */
  readonly isTypeRule?: boolean
  /** The JSON text of a record, from that of the column; the same by default. */
  readonly toJson?: (stored: string) => string
}

export interface MapOptions<V> extends FieldOptions<Record<string, V>> {
  /** The resource, by its plural name, whose ids are the keys. */
  readonly keysOf?: string
}

export interface ReferenceFieldOptions extends FieldOptions<string>, ReferenceOptions {
  readonly blank?: string | null
}

const VISIBLE = /[^\p{White_Space}\p{Control}\p{Format}\p{Default_Ignorable_Code_Point}]/u

/** Whether a person can see some of the text. */
export function hasVisibleCharacter(text: string): boolean {
  return VISIBLE.test(text)
}

function checkVisible(value: unknown): Objection | undefined {
  return hasVisibleCharacter(value as string) ? undefined : { reason: 'must have a visible character', value }
}

function withoutNullTags(tags: Tags): Tags {
  return Object.fromEntries(Object.entries(tags).filter(([, value]) => value !== null))
}

export const f = {
  text<const O extends TextOptions>(options = {} as O): Field<Nullable<string, O>, Nullable<string, O>, O> {
    const { minLength, maxLength, format, blank, mustBeVisible } = options
    const kind: Kind = {
      name: 'text',
      column: 'text',
      schema: { type: 'string', minLength, maxLength, format },
      filterType: 'string',
      encode: asStored,
      decode: (stored) => stored,
      toJson: quoteString,
      normalize: blank === undefined ? undefined : (value) => ((value as string).trim() === '' ? blank : value),
      ...(mustBeVisible ? { objection: checkVisible } : {}),
      empty: '',
    }
    return field(kind, options)
  },

  /** A unique name that people can see; the API sets no other bound. */
  name<const O extends FieldOptions<string>>(options = {} as O) {
    return f.text({
      required: true,
      unique: true,
      filter: true,
      minLength: 1,
      mustBeVisible: true,
      summary: 'Unique among the records of its kind.' as string,
      ...options,
    })
  },

  int<const O extends IntegerOptions>(options: O): Field<Nullable<number, O>, Nullable<number, O>, O> {
    const kind: Kind = {
      name: 'integer',
      column: 'integer',
      schema: { type: 'integer', minimum: options.min, maximum: options.max },
      filterType: 'integer',
      encode: asStored,
      decode: (stored) => stored,
      toJson: String,
      ...(options.normalize ? { normalize: (value) => options.normalize?.(value as number) } : {}),
      empty: 0,
    }
    return field(kind, options)
  },

  bool<const O extends FieldOptions<boolean>>(options = {} as O): Field<Nullable<boolean, O>, Nullable<number, O>, O> {
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
  time<const O extends FieldOptions<number>>(options = {} as O): Field<Nullable<number, O>, Nullable<number, O>, O> {
    const kind: Kind = {
      name: 'time',
      column: 'integer',
      schema: { type: 'string', format: 'date-time' },
      filterType: 'date',
      encode: asStored,
      decode: (stored) => stored,
      toJson: (stored) => `"${toIsoTime(stored as number)}"`,
      normalize: (value) => (typeof value === 'string' ? parseTime(value) : value),
    }
    return field(kind, options)
  },

  choice<const C extends string, const O extends FieldOptions<NoInfer<C>>>(
    choices: readonly C[],
    options = {} as O,
  ): Field<Nullable<C, O>, Nullable<C, O>, O> {
    const kind: Kind = {
      name: 'text',
      column: 'text',
      schema: { type: 'string', enum: choices },
      filterType: 'string',
      encode: asStored,
      decode: (stored) => stored,
      toJson: quoteString,
    }
    return field(kind, options)
  },

  /** Any JSON that matches `schema`, stored unchanged. */
  json<V, const O extends JsonOptions<NoInfer<V>>>(
    schema: TypedSchema<V>,
    options = {} as O,
  ): Field<Nullable<V, O>, Nullable<string, O>, O> {
    const kind: Kind = {
      name: 'json',
      column: 'text',
      schema,
      encode: toText,
      decode: fromText,
      toJson: options.toJson ? (stored) => options.toJson?.(stored as string) ?? '' : rawJson,
      empty: schema.type === 'array' ? [] : {},
      isTypeRule: options.isTypeRule,
      ...(options.objection ? { objection: (value) => options.objection?.(value as V) } : {}),
      ...(options.normalize ? { normalize: (value) => options.normalize?.(value as V) } : {}),
    }
    return field(kind, options)
  },

  /** User-defined keys with plain values; `tags` of every record, and the application data of some. */
  tags<const O extends TagsOptions>(options = {} as O): Field<Tags, string, O> {
    const { maxBytes = MAX_TAGS_BYTES } = options
    const kind: Kind = {
      name: 'json',
      column: 'text',
      schema: { type: 'object', additionalProperties: { type: ['string', 'number', 'boolean', 'null'] } },
      filterType: 'tags',
      encode: toText,
      decode: fromText,
      toJson: rawJson,
      // In a patch, null removes a key; in a new value it stays, because null is a valid tag value.
      normalize: (value, purpose) => (purpose === 'patch' ? withoutNullTags(value as Tags) : value),
      objection: (value) =>
        Buffer.byteLength(JSON.stringify(value)) > maxBytes
          ? { reason: `must be at most ${maxBytes} bytes of JSON` }
          : undefined,
      acceptsNull: true,
      empty: {},
    }
    return field(kind, options)
  },

  /** A map whose values match one schema. */
  map<V, const O extends MapOptions<NoInfer<V>>>(
    values: TypedSchema<V>,
    options = {} as O,
  ): Field<Record<string, V>, string, O> {
    const { keysOf } = options
    const { kind } = f.json(typed<Record<string, V>>({ type: 'object', additionalProperties: values }))
    return field(keysOf === undefined ? kind : { ...kind, keyTarget: keysOf }, options)
  },

  /** A structured value with members of their own; stored as one JSON column, patched member by member. */
  object<const M extends Fields, const O extends FieldOptions>(
    members: M,
    options = {} as O,
  ): Field<Nullable<Values<M>, O>, Nullable<string, O>, O> {
    const kind: Kind = {
      name: 'object',
      column: 'text',
      schema: { type: 'object' },
      encode: toText,
      decode: fromText,
      toJson: hasMembersToRender(members)
        ? (stored) => `{${renderMembers(members, JSON.parse(stored as string) as Record<string, unknown>).slice(1)}}`
        : rawJson,
      members,
    }
    return field(kind, options)
  },

  /** A hexadecimal value; blank text means null. */
  hex<const O extends FieldOptions<string> & { nullable: true }>(options: O): Field<string | null, string | null, O> {
    const { kind } = f.text(options)
    return field(
      {
        ...kind,
        objection: (value) =>
          (value as string).trim() === '' || isHexadecimal(value as string)
            ? undefined
            : { reason: 'is not hexadecimal', value },
        normalize: (value) => toHexDigits(value as string) || null,
      },
      options,
    )
  },

  /** The id of a record of `target`. */
  reference<const O extends ReferenceFieldOptions>(
    target: string,
    options = {} as O,
  ): Field<Nullable<string, O>, Nullable<string, O>, O> {
    const { blank, choices } = options
    const kind: Kind = {
      name: 'reference',
      column: 'text',
      schema: choices ? { type: 'string', enum: choices } : { type: 'string' },
      filterType: 'string',
      encode: asStored,
      decode: (stored) => stored,
      toJson: quoteString,
      normalize: blank === undefined ? undefined : (value) => ((value as string).trim() === '' ? blank : value),
      target,
      reference: options,
    }
    return field(kind, options)
  },

  ...setFields,
}
