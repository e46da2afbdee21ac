// Fields that hold sets of strings: duplicates vanish, order is by bytes, as clients of the peer know it.
import {
  type Field,
  type FieldOptions,
  field,
  fromText,
  type Kind,
  type Nullable,
  type ReferenceOptions,
  rawJson,
  toText,
} from './field.ts'
import { isHexadecimal, toHexDigits } from './hexadecimal.ts'

export const setFields = {
  /** A set of any strings. */
  strings<const O extends FieldOptions<string[]>>(
    options = {} as O,
  ): Field<Nullable<string[], O>, Nullable<string, O>, O> {
    return field(makeSetKind({ minItems: options.minItems }), options)
  },

  /** A set of hexadecimal values, such as hashes, written with or without separators; only their digits are kept. */
  hexStrings<const O extends FieldOptions<string[]>>(options = {} as O): Field<string[], string, O> {
    const kind = makeSetKind({
      minItems: options.minItems,
      objection(value) {
        const bad = (value as string[]).find((one) => !isHexadecimal(one))
        return bad === undefined ? undefined : { reason: 'has an entry that is not hexadecimal', value: bad }
      },
      normalize: (value) => toSortedSet((value as string[]).map(toHexDigits)),
    })
    return field(kind, options)
  },

  /** Attributes by which policies find this record. */
  roleAttributes<const O extends FieldOptions<string[]>>(
    options = {} as O,
  ): Field<string[], string, O & { filter: true }> {
    const kind = makeSetKind({
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
    const kind = makeSetKind({
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
    const kind = makeSetKind({
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
}

function makeSetKind(more: Partial<Kind> & { minItems?: number; maxItems?: number }): Kind {
  const { minItems, maxItems, ...rest } = more
  return {
    name: 'set',
    column: 'text',
    schema: { type: 'array', items: { type: 'string' }, minItems, maxItems },
    filterType: 'string',
    encode: toText,
    decode: fromText,
    toJson: rawJson,
    normalize: (value) => toSortedSet(value as string[]),
    empty: [],
    ...rest,
  }
}

// From the first code unit on, the order of UTF-16, which is the language's own, is not that of UTF-8.
const BEYOND_COMMON_ORDER = /[\ud800-\uffff]/

/** Each string once, in ascending order of bytes. */
export function toSortedSet(values: Iterable<string>): string[] {
  const once = [...new Set(values)]
  if (!once.some((value) => BEYOND_COMMON_ORDER.test(value))) return once.sort()
  return once
    .map((value) => ({ value, bytes: Buffer.from(value) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ value }) => value)
}
