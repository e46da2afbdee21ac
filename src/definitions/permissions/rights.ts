// The rights that the words of an identity give together, and the decision whether they suffice.
import { parseWord, READ_BY_ADMINISTRATORS, READ_EVERYTHING, type RecordScope, type WordRights } from './words.ts'

/** The members of a record that decide whether it is in a scope. */
export interface ScopedRecord {
  readonly roleAttributes?: readonly string[] | undefined
  readonly tags?: Readonly<Record<string, unknown>> | undefined
}

/** The records that a right is on. */
export type Extent = 'all' | readonly RecordScope[]

export class Rights {
  readonly isAdministrator: boolean
  readonly #everywhere: ReadonlySet<string>
  readonly #scoped: ReadonlyMap<string, readonly RecordScope[]>

  /** @param everywhere the rights on all records; `scoped`: those on some */
  private constructor(
    isAdministrator: boolean,
    everywhere: ReadonlySet<string>,
    scoped: ReadonlyMap<string, readonly RecordScope[]>,
  ) {
    this.isAdministrator = isAdministrator
    this.#everywhere = everywhere
    this.#scoped = scoped
  }

  static readonly administrator = new Rights(true, new Set(), new Map())
  static readonly none = new Rights(false, new Set(), new Map())

  /** The rights of words; those that are unknown give none. */
  static fromWords(words: readonly string[]): Rights {
    const everywhere = new Set<string>()
    const scoped = new Map<string, RecordScope[]>()
    for (const word of words) {
      const { rights, scope }: Omit<WordRights, 'word'> = parseWord(word) ?? { rights: [] }
      for (const right of rights) {
        if (!scope) everywhere.add(right)
        else scoped.set(right, [...(scoped.get(right) ?? []), scope])
      }
    }
    return new Rights(false, everywhere, scoped)
  }

  /** Whether an identity without a right is like this one. */
  get isEmpty(): boolean {
    return !this.isAdministrator && this.#everywhere.size === 0 && this.#scoped.size === 0
  }

  /** Whether all that administrators and auditors read is read. */
  get readsEverything(): boolean {
    return this.isAdministrator || this.#everywhere.has(READ_EVERYTHING)
  }

  /** Whether any record may be read. */
  get readsAnything(): boolean {
    const isReading = (right: string) => right.endsWith('.read')
    return this.readsEverything || [...this.#everywhere, ...this.#scoped.keys()].some(isReading)
  }

  /** Whether a right is held on all records. */
  has(right: string): boolean {
    if (this.isAdministrator || this.#everywhere.has(right)) return true
    return this.#everywhere.has(READ_EVERYTHING) && right.endsWith('.read') && !READ_BY_ADMINISTRATORS.has(right)
  }

  /** The records that a right is held on; undefined if none. */
  findExtent(right: string): Extent | undefined {
    return this.has(right) ? 'all' : this.#scoped.get(right)
  }

  /** Whether a right is held on all records of an extent. */
  isHeldOn(right: string, extent: Extent): boolean {
    return extent === 'all' ? this.has(right) : this.#coversScopes(right, extent)
  }

  /** Whether another identity holds nothing that is not held here. */
  covers(other: Rights): boolean {
    if (this.isAdministrator || other === this) return true
    if (other.isAdministrator) return false
    const hasAll = [...other.#everywhere].every((right) => this.has(right))
    return hasAll && [...other.#scoped].every(([right, scopes]) => this.#coversScopes(right, scopes))
  }

  /** The rights that both hold. */
  intersect(other: Rights): Rights {
    if (this.isAdministrator) return other
    if (other.isAdministrator) return this
    const everywhere = [...this.#everywhere, ...other.#everywhere].filter(
      (right) => this.has(right) && other.has(right),
    )
    const scoped = new Map<string, readonly RecordScope[]>()
    for (const [right, scopes] of [...this.#scoped, ...other.#scoped]) {
      const common = scopes.filter((scope) => this.#coversScopes(right, [scope]) && other.#coversScopes(right, [scope]))
      const earlier = scoped.get(right) ?? []
      if (common.length > 0) scoped.set(right, [...earlier, ...common])
    }
    return new Rights(false, new Set(everywhere), scoped)
  }

  #coversScopes(right: string, scopes: readonly RecordScope[]): boolean {
    if (this.has(right)) return true
    const own = this.#scoped.get(right) ?? []
    return scopes.every((scope) => own.some((held) => isSameScope(held, scope)))
  }
}

/** Whether a record is among those that a right is on. */
export function isInExtent({ roleAttributes = [], tags = {} }: ScopedRecord, extent: Extent): boolean {
  if (extent === 'all') return true
  return extent.some((scope) =>
    'attribute' in scope
      ? roleAttributes.includes(scope.attribute)
      : Object.hasOwn(tags, scope.tag) && tags[scope.tag] === scope.value,
  )
}

function isSameScope(some: RecordScope, other: RecordScope): boolean {
  if ('attribute' in some) return 'attribute' in other && some.attribute === other.attribute
  return 'tag' in other && some.tag === other.tag && some.value === other.value
}

/** The identity, as far as it decides about rights. */
export interface RightsHolder {
  readonly isAdmin: boolean
  readonly permissions: readonly string[]
}

// By the identity of the list, of which a change makes another: requests of a session share one.
const rightsOfLists = new WeakMap<readonly string[], Rights>()

/** The rights of an identity. */
export function findRights({ isAdmin, permissions }: RightsHolder): Rights {
  if (isAdmin) return Rights.administrator
  if (permissions.length === 0) return Rights.none
  let rights = rightsOfLists.get(permissions)
  if (!rights) {
    rights = Rights.fromWords(permissions)
    rightsOfLists.set(permissions, rights)
  }
  return rights
}
