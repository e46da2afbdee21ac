// Role selectors: which records the roles of a policy match.

export type Semantic = 'AllOf' | 'AnyOf'

/** The parsed roles of one side of a policy. */
export interface RoleSelector {
  readonly semantic: Semantic
  /** The roles contain `#all`. */
  readonly isAll: boolean
  readonly ids: ReadonlySet<string>
  readonly attributes: ReadonlySet<string>
}

/** A record as policies see it. */
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
 * Whether a selector matches a record: by its id, whatever the semantic; by `#all`; or by all or any of its attributes. A
 * selector without roles matches nothing.
 */
export function matchesSelector(selector: RoleSelector, record: RoleBearer): boolean {
  if (selector.isAll || selector.ids.has(record.id)) return true
  if (selector.attributes.size === 0) return false
  if (selector.semantic === 'AnyOf') return record.attributes.some((attribute) => selector.attributes.has(attribute))
  const heldAttributes = new Set(record.attributes)
  return [...selector.attributes].every((attribute) => heldAttributes.has(attribute))
}

/** Returns the roles by which a selector matches a record; none if it does not match. */
export function findDecidingRoles(selector: RoleSelector, record: RoleBearer): string[] {
  if (selector.isAll) return ['#all']
  const byId = selector.ids.has(record.id) ? [`@${record.id}`] : []
  const shared = record.attributes.filter((attribute) => selector.attributes.has(attribute))
  const isEnough = selector.semantic === 'AnyOf' ? shared.length > 0 : shared.length === selector.attributes.size
  return isEnough ? [...byId, ...shared.map((attribute) => `#${attribute}`)] : byId
}

/**
 * Returns the fewest attributes that a record lacks for a selector to match it; none if it matches already. Undefined if
 * the selector names no attributes, so that none helps.
 */
export function findLackingAttributes(selector: RoleSelector, record: RoleBearer): string[] | undefined {
  if (matchesSelector(selector, record)) return []
  if (selector.attributes.size === 0) return undefined
  const required = [...selector.attributes].sort()
  if (selector.semantic === 'AnyOf') return required.slice(0, 1)
  return required.filter((attribute) => !record.attributes.includes(attribute))
}

/**
 * Merges selectors into as few as possible that match the same records. Ids and single attributes go into one selector, so
 * that a list over hundreds of policies needs only a handful of conditions.
 */
export function mergeSelectors(selectors: Iterable<RoleSelector>): RoleSelector[] {
  const ids = new Set<string>()
  const attributes = new Set<string>()
  const conjunctions = new Map<string, RoleSelector>()
  for (const selector of selectors) {
    if (selector.isAll) return [selector]
    for (const id of selector.ids) ids.add(id)
    if (selector.semantic === 'AnyOf' || selector.attributes.size < 2) {
      for (const attribute of selector.attributes) attributes.add(attribute)
    } else {
      conjunctions.set(JSON.stringify([...selector.attributes].sort()), { ...selector, ids: new Set() })
    }
  }
  const isEmpty = ids.size === 0 && attributes.size === 0
  return [...(isEmpty ? [] : [{ semantic: 'AnyOf', isAll: false, ids, attributes } as const]), ...conjunctions.values()]
}
