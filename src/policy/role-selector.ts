// One side of a policy: which records its roles match.

export type Semantic = 'AllOf' | 'AnyOf'

/** The roles of one side, taken apart. */
export interface RoleSelector {
  readonly semantic: Semantic
  /** `#all` stands there. */
  readonly isAll: boolean
  readonly ids: ReadonlySet<string>
  readonly attributes: ReadonlySet<string>
}

/** What policies know a record by. */
export interface RoleBearer {
  readonly id: string
  readonly attributes: readonly string[]
}

export function parseRoleSelector(semantic: Semantic, roles: readonly string[]): RoleSelector {
  const isAll = roles.includes('#all')
  return {
    semantic,
    isAll,
    ids: new Set(roles.filter((role) => role.startsWith('@')).map((role) => role.slice(1))),
    attributes: new Set(isAll ? [] : roles.filter((role) => role.startsWith('#')).map((role) => role.slice(1))),
  }
}

/**
 * Whether a side matches a record: named by id, whatever the semantic; `#all`; or by its attributes, all of them or any
 * one. A side without roles matches nothing.
 */
export function matchesSelector(side: RoleSelector, record: RoleBearer): boolean {
  if (side.isAll || side.ids.has(record.id)) return true
  if (side.attributes.size === 0) return false
  if (side.semantic === 'AnyOf') return record.attributes.some((attribute) => side.attributes.has(attribute))
  const held = new Set(record.attributes)
  return [...side.attributes].every((attribute) => held.has(attribute))
}

/** The roles by which a side matches a record, as they are written; none where it does not match. */
export function findDecidingRoles(side: RoleSelector, record: RoleBearer): string[] {
  if (side.isAll) return ['#all']
  const byId = side.ids.has(record.id) ? [`@${record.id}`] : []
  const shared = record.attributes.filter((attribute) => side.attributes.has(attribute))
  const isEnough = side.semantic === 'AnyOf' ? shared.length > 0 : shared.length === side.attributes.size
  return isEnough ? [...byId, ...shared.map((attribute) => `#${attribute}`)] : byId
}

/**
 * The fewest attributes that a record lacks for a side to match it; none where it matches already. Undefined where no
 * attribute helps, because the side asks for none.
 */
export function findLackingAttributes(side: RoleSelector, record: RoleBearer): string[] | undefined {
  if (matchesSelector(side, record)) return []
  if (side.attributes.size === 0) return undefined
  const wanted = [...side.attributes].sort()
  if (side.semantic === 'AnyOf') return wanted.slice(0, 1)
  return wanted.filter((attribute) => !record.attributes.includes(attribute))
}

/**
 * The fewest sides that match together what these match: everything that one attribute or id decides goes into one side,
 * so that a list over hundreds of policies asks a handful of questions.
 */
export function mergeSelectors(sides: Iterable<RoleSelector>): RoleSelector[] {
  const ids = new Set<string>()
  const attributes = new Set<string>()
  const demanding = new Map<string, RoleSelector>()
  for (const side of sides) {
    if (side.isAll) return [side]
    for (const id of side.ids) ids.add(id)
    if (side.semantic === 'AnyOf' || side.attributes.size < 2) {
      for (const attribute of side.attributes) attributes.add(attribute)
    } else {
      demanding.set(JSON.stringify([...side.attributes].sort()), { ...side, ids: new Set() })
    }
  }
  const isEmpty = ids.size === 0 && attributes.size === 0
  return [...(isEmpty ? [] : [{ semantic: 'AnyOf', isAll: false, ids, attributes } as const]), ...demanding.values()]
}
