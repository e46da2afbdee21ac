// The names that a resource's lists can be filtered and sorted by, and the columns behind them.
import type { AnyResource } from '../resources/define.ts'
import type { AnyField, Fields } from '../schema/fields.ts'

export interface FilterSymbol {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date' | 'tags'
  readonly column: string
  /** A member inside a JSON column. */
  readonly path?: readonly string[]
  readonly isNullable: boolean
  /** A set: usable in `anyOf`, `allOf`, `count` and `isEmpty` only. */
  readonly isSet: boolean
  /** For sets of ids: the resource that a sub-query may ask about. */
  readonly linked?: string
  /** What literals stand for, where that is not themselves. */
  readonly values?: Readonly<Record<string | number, readonly string[]>>
  /** Every record has this one value. */
  readonly constant?: boolean
}

const tables = new WeakMap<AnyResource, ReadonlyMap<string, FilterSymbol>>()

/** The symbols of a resource by name; `tags` stands for every `tags.…`. */
export function symbolsOf(resource: AnyResource): ReadonlyMap<string, FilterSymbol> {
  let symbols = tables.get(resource)
  if (!symbols) {
    symbols = new Map(collect(resource).map((symbol) => [symbol.name, symbol]))
    tables.set(resource, symbols)
  }
  return symbols
}

/** The names as list answers show them. */
export function filterableFields(resource: AnyResource): string[] {
  return [...symbolsOf(resource).keys()].sort()
}

function collect(resource: AnyResource): FilterSymbol[] {
  const found: FilterSymbol[] = []
  if (!('isSystem' in resource.fields)) {
    found.push({ name: 'isSystem', type: 'boolean', column: 'id', isNullable: false, isSet: false, constant: false })
  }
  for (const [name, field] of Object.entries(resource.fields)) {
    if (field.kind.members) found.push(...memberSymbols(name, [], field.kind.members))
    else if (field.options.filter && isPublic(field)) found.push(fieldSymbol(name, field))
  }
  for (const [name, alias] of Object.entries(resource.symbols)) {
    const field = resource.fields[alias.field]
    if (field) found.push({ ...fieldSymbol(alias.field, field), name, values: alias.values })
  }
  return found
}

/** Sets that exist for the controller's own sake are found by, but not by callers. */
function isPublic(field: AnyField): boolean {
  return field.options.access !== 'internal' || field.kind.name !== 'set'
}

function fieldSymbol(name: string, field: AnyField): FilterSymbol {
  const { kind, options } = field
  const isSet = kind.name === 'set'
  return {
    name: typeof options.filter === 'string' ? options.filter : name,
    type: kind.filterType ?? 'string',
    column: name,
    isNullable: options.nullable === true,
    isSet,
    ...(isSet && kind.target && !kind.roles ? { linked: kind.target } : {}),
  }
}

function memberSymbols(column: string, path: readonly string[], members: Fields): FilterSymbol[] {
  return Object.entries(members).flatMap(([name, field]) => {
    const inner = [...path, name]
    if (field.kind.members) return memberSymbols(column, inner, field.kind.members)
    if (!field.options.filter) return []
    const symbol = fieldSymbol(name, field)
    return [{ ...symbol, name: [column, ...inner].join('.'), column, path: inner, isNullable: true }]
  })
}
