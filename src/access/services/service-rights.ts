// The permissions of an identity on a service, and its posture queries, as records show them.
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import type { RawJson } from '../../storage/records/raw-json.ts'
import { makePassingQuerySet, type PostureQuerySets } from './posture-query-sets.ts'

type Permission = 'Bind' | 'Dial'

/** The members that say what may be done with a service. */
export interface PermissionFields {
  readonly members: Readonly<Record<string, unknown>>
  readonly withoutConfig: Record<string, unknown>
}

/** The permissions that policies which grant a service give together. */
export function listPermissions(granting: readonly IndexedPolicy[]): Permission[] {
  return (['Bind', 'Dial'] as const).filter((type) => granting.some((policy) => policy.type === type))
}

/** The fields that policies grant, made once for all services that the same policies grant. */
export class ServiceRights {
  readonly #querySets: PostureQuerySets | undefined
  readonly #fieldsByKey = new Map<string, PermissionFields>()

  /** @param querySets of the policies; undefined if none of them has a posture check */
  constructor(querySets: PostureQuerySets | undefined) {
    this.#querySets = querySets
  }

  /** The fields of a service that these policies grant. */
  describe(granting: readonly IndexedPolicy[]): PermissionFields {
    const permissions = listPermissions(granting)
    // Without checks all policies of a type look alike.
    const key = this.#querySets ? granting.map(({ id }) => id).join() : permissions.join()
    let rights = this.#fieldsByKey.get(key)
    if (!rights) {
      const members = { permissions, postureQueries: this.#listPostureQueries(granting, permissions) }
      rights = { members, withoutConfig: { config: {}, ...members } }
      this.#fieldsByKey.set(key, rights)
    }
    return rights
  }

  #listPostureQueries(granting: readonly IndexedPolicy[], permissions: readonly Permission[]): RawJson[] {
    const querySets = this.#querySets
    if (!querySets) return permissions.map(makePassingQuerySet)
    return granting.flatMap(({ id }) => querySets.get(id) ?? [])
  }
}
