// The names that lists can be filtered and sorted by, and the columns behind them.
import type { AnyResource } from '../resources/define.ts'
import { getResource } from '../resources/index.ts'
import type { AnyField, Fields } from '../schema/fields.ts'
import { toSetTableName } from './columns.ts'

export interface FilterSymbol {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date' | 'tags'
  readonly column: string
  /** The member of the record that shows it. */
  readonly member: string
  /** A member inside a JSON column. */
  readonly path?: readonly string[]
  readonly isNullable: boolean
  /** No two records have the same value, and an index finds the one that has it. */
  readonly isUnique?: boolean
  /** A set: usable in `anyOf`, `allOf`, `count` and `isEmpty` only. */
  readonly set?: SymbolSet
  /** The stored values that literals stand for, if these are not the literals themselves. */
  readonly values?: ReadonlyMap<string, readonly string[]>
  /** Every record has this one value. */
  readonly constant?: boolean
  /** It is true of the records with these ids at this moment, and stored nowhere. */
  readonly trueIds?: readonly string[]
  /** The name of the record that `column` refers to, by the table it lies in; nothing to sort by. */
  readonly namedIn?: string
}

/** The place of the elements of a set, and the resource (plural) whose records they name, if any. */
type SymbolSet =
  /** In a JSON column, and in a table of their own that is ordered by value. */
  | { readonly kind: 'members'; readonly table: string; readonly linked?: string }
  /** Ids of the records that match the roles of a policy; nothing stores them. */
  | { readonly kind: 'matched'; readonly linked: string }

/** The subject of a list, as filters and orders see it: a table, and the names of its columns. */
export interface FilterSource {
  readonly table: string
  readonly symbols: ReadonlyMap<string, FilterSymbol>
  /** The order of a list that asks for none, and of what is equal in the order it asks for; unique among the rows. */
  readonly key: { readonly column: string; readonly isDescending: boolean }
  /** Only what the list shows is known of its records, and of those that their sets name, the id alone. */
  readonly isLimited?: true
  /** JSON text of the names of the symbols, in order, as list responses show them; `tags` stands for every `tags.…`. */
  readonly filterableFields: string
}

const BY_ID = { column: 'id', isDescending: false } as const

/** Compiles a resource with all of its symbols, as filters of administrators see it. */
export function compileFilterSource(resource: AnyResource): FilterSource {
  return toFilterSource({ table: resource.table, symbols: mapByName(collectSymbols(resource)), key: BY_ID })
}

/**
 * The symbols of a list that shows only `members` of its records. A filter or an order by any other member would tell the
 * caller its value.
 */
export function limitSource(source: FilterSource, members: ReadonlySet<string>): FilterSource {
  const symbols = [...source.symbols.values()].filter(
    ({ member, constant }) => members.has(member) || constant !== undefined,
  )
  return toFilterSource({ table: source.table, symbols: mapByName(symbols), key: BY_ID, isLimited: true })
}

/** Completes a source with what follows from its symbols. */
export function toFilterSource(source: Omit<FilterSource, 'filterableFields'>): FilterSource {
  return { ...source, filterableFields: JSON.stringify([...source.symbols.keys()].sort()) }
}

/** The symbols of fields that no resource describes. */
export function toFilterSymbols(fields: Fields): ReadonlyMap<string, FilterSymbol> {
  return mapByName(listPlainSymbols(undefined, fields))
}

function mapByName(symbols: readonly FilterSymbol[]): ReadonlyMap<string, FilterSymbol> {
  return new Map(symbols.map((symbol) => [symbol.name, symbol]))
}

function collectSymbols(resource: AnyResource): FilterSymbol[] {
  const symbols: FilterSymbol[] = []
  if (!('isSystem' in resource.fields)) {
    const common = { name: 'isSystem', type: 'boolean', isNullable: false } as const
    symbols.push({ ...common, column: 'id', member: 'isSystem', constant: false })
  }
  symbols.push(...listPlainSymbols(resource, resource.fields))
  for (const fields of Object.values(resource.variants ?? {})) {
    for (const symbol of listMemberSymbols('details', [], fields)) {
      const name = symbol.path?.[0] ?? ''
      symbols.push({ ...symbol, name, member: name })
    }
  }
  for (const [name, alias] of Object.entries(resource.symbols)) {
    const field = resource.fields[alias.field]
    if (field)
      symbols.push({
        ...toFieldSymbol(resource, alias.field, field),
        name,
        values: new Map(Object.entries(alias.values)),
      })
  }
  for (const [name, relation] of Object.entries(resource.relations)) {
    // A name with a dash could not be written in a filter.
    if (relation.kind !== 'byRoles' || name.includes('-')) continue
    const set = { kind: 'matched', linked: relation.resource } as const
    symbols.push({ name, type: 'string', column: relation.field, member: relation.field, isNullable: false, set })
  }
  return symbols
}

function listPlainSymbols(resource: AnyResource | undefined, fields: Fields): FilterSymbol[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    if (field.kind.members) return listMemberSymbols(name, [], field.kind.members)
    if (!field.options.filter || !isPublic(field)) return []
    return [toFieldSymbol(resource, name, field), ...nameSymbols(name, field)]
  })
}

/** The symbol for the name of the record that a reference refers to: `service.name`. */
function nameSymbols(column: string, { kind, options }: AnyField): FilterSymbol[] {
  const as = kind.name === 'reference' ? kind.reference?.as : undefined
  const target = kind.target ? getResource(kind.target) : undefined
  if (!as || !target || !('name' in target.fields)) return []
  const isNullable = options.nullable === true
  return [{ name: `${as}.name`, type: 'string', column, member: as, isNullable, namedIn: target.table }]
}

/** Sets that exist for the controller's own sake are symbols by, but not by callers. */
function isPublic(field: AnyField): boolean {
  return field.options.access !== 'internal' || field.kind.name !== 'set'
}

function toFieldSymbol(resource: AnyResource | undefined, name: string, { kind, options }: AnyField): FilterSymbol {
  const linked = kind.target && !kind.roles ? { linked: kind.target } : {}
  return {
    name: typeof options.filter === 'string' ? options.filter : name,
    type: kind.filterType ?? 'string',
    column: name,
    member: name,
    isNullable: options.nullable === true,
    ...(options.unique ? { isUnique: true } : {}),
    ...(resource && kind.name === 'set'
      ? { set: { kind: 'members', table: toSetTableName(resource, name), ...linked } as const }
      : {}),
  }
}

function listMemberSymbols(column: string, path: readonly string[], members: Fields): FilterSymbol[] {
  return Object.entries(members).flatMap(([name, field]) => {
    const inner = [...path, name]
    if (field.kind.members) return listMemberSymbols(column, inner, field.kind.members)
    if (!field.options.filter) return []
    const symbol = toFieldSymbol(undefined, name, field)
    return [{ ...symbol, name: [column, ...inner].join('.'), column, member: column, path: inner, isNullable: true }]
  })
}
