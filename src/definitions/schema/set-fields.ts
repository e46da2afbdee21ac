// Fields that hold sets of strings: without duplicates, in the order of their bytes, as OpenZiti clients expect it.
import {
  type Field,
  type FieldOptions,
  field,
  fromText,
  type Kind,
  type Nullable,
  type Objection,
  type ReferenceOptions,
  rawJson,
  toText,
} from './field.ts'
import { isHexadecimal, toHexDigits } from './hexadecimal.ts'

export interface StringsOptions extends FieldOptions<string[]> {
  /** A rule beyond the schema; see `Kind.objection`. */
  readonly objection?: (value: readonly string[]) => Objection | undefined
}

export const setFields = {
  /** A set of strings: any, unless the options name a rule. */
  strings<const O extends StringsOptions>(options = {} as O): Field<Nullable<string[], O>, Nullable<string, O>, O> {
    const { minItems, maxItems, objection } = options
    const kind = makeSetKind({ minItems, maxItems })
    return field(objection ? { ...kind, objection: (value) => objection(value as string[]) } : kind, options)
  },

  /** A set of some of these strings. */
  choices<const C extends string, const O extends FieldOptions<NoInfer<C>[]>>(
    choices: readonly C[],
    options = {} as O,
  ): Field<C[], string, O> {
    return field(makeSetKind({ schema: { type: 'array', items: { type: 'string', enum: choices } } }), options)
  },

  /** A set of hexadecimal values, such as hashes, with or without separators; only the digits are stored. */
  hexStrings<const O extends FieldOptions<string[]>>(options = {} as O): Field<string[], string, O> {
    const kind = makeSetKind({
      minItems: options.minItems,
      objection(value) {
        const invalidEntry = (value as string[]).find((one) => !isHexadecimal(one))
        return invalidEntry === undefined
          ? undefined
          : { reason: 'has an entry that is not hexadecimal', value: invalidEntry }
      },
      normalize: (value) => toSortedSet((value as string[]).map(toHexDigits)),
    })
    return field(kind, options)
  },

  /** Role attributes, by which policies find the record. */
  roleAttributes<const O extends FieldOptions<string[]>>(
    options = {} as O,
  ): Field<string[], string, O & { filter: true }> {
    return field(makeSetKind({ objection: checkRoleAttributes }), { ...options, filter: true })
  },

  /** Role attributes of other records that are made later; lists are not filtered by them. */
  futureRoleAttributes<const O extends FieldOptions<string[]>>(options = {} as O): Field<string[], string, O> {
    return field(makeSetKind({ objection: checkRoleAttributes }), options)
  },

  /** The roles of a selector: `#attribute`, `@id` of a record of `target`, or `#all` alone. */
  roles<const O extends FieldOptions<string[]>>(
    target: string,
    options = {} as O,
  ): Field<string[], string, O & { filter: true }> {
    const kind = makeSetKind({
      target,
      roles: true,
      objection(value) {
        const roles = value as string[]
        const invalidRoles = roles.filter((role) => !(role.startsWith('#') || role.startsWith('@')))
        if (invalidRoles.length > 0)
          return {
            reason: 'has entries that begin neither with # (an attribute) nor with @ (an id)',
            value: invalidRoles,
          }
        if (roles.includes('#all') && roles.length > 1) return { reason: 'may hold nothing besides #all', value: roles }
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
        const duplicate = ids.find((id, at) => ids.indexOf(id) !== at)
        return duplicate === undefined ? undefined : { reason: `names ${duplicate} twice`, value: ids }
      },
    })
    return field(kind, options)
  },
}

function checkRoleAttributes(value: unknown): Objection | undefined {
  const invalidEntry = (value as string[]).find((attribute) => attribute.startsWith('#') || attribute.startsWith('@'))
  return invalidEntry === undefined
    ? undefined
    : { reason: `may not begin with "${invalidEntry[0]}"`, value: invalidEntry }
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

// From this code unit on, the order of UTF-16, by which JavaScript sorts, differs from the order of UTF-8.
const BEYOND_COMMON_ORDER = /[\ud800-\uffff]/

/** Returns each string once, in ascending order of its bytes. */
export function toSortedSet(values: Iterable<string>): string[] {
  const unique = [...new Set(values)]
  if (!unique.some((value) => BEYOND_COMMON_ORDER.test(value))) return unique.sort()
  return unique
    .map((value) => ({ value, bytes: Buffer.from(value) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ value }) => value)
}
