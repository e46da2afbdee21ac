// When something last changed that may concern the services of an identity: only then are its services compared.
import type { Instant } from '../foundation/clock.ts'
import type { RoleBearer, RoleSelector } from './role-selector.ts'

/**
 * Times are those of commits, of which each is later than all before it. They are stored by role, not by identity: a change of a
 * policy stamps the roles of its subjects, old and new. The time of an identity is the newest time of its attributes, so no change
 * is missed, a change costs the same for any number of identities, and a look costs a few look-ups. An identity that has only some
 * of a policy's attributes may see a new time without a change.
 *
 * Every process that follows the same commits finds the same times, but for those before its start: they count as one.
 */
export class UpdateTimes {
  readonly #byAttribute = new Map<string, Instant>()
  readonly #byIdentity = new Map<string, Instant>()
  #lastChangeForAll: Instant = 0

  /** Records a change that concerns every identity; all others that are known are earlier. */
  stampAll(at: Instant): void {
    this.#byAttribute.clear()
    this.#byIdentity.clear()
    this.#lastChangeForAll = at
  }

  /** Records a change of a policy with these subjects. */
  stamp(subjects: RoleSelector, at: Instant): void {
    if (subjects.isAll) this.#lastChangeForAll = at
    for (const attribute of subjects.attributes) this.#byAttribute.set(attribute, at)
    for (const id of subjects.ids) this.#byIdentity.set(id, at)
  }

  /** Records a change of the identity itself. */
  stampIdentity(id: string, at: Instant): void {
    this.#byIdentity.set(id, at)
  }

  removeIdentity(id: string): void {
    this.#byIdentity.delete(id)
  }

  /** Returns the newest time that concerns the identity; 0 if there is none. */
  read({ id, attributes }: RoleBearer): Instant {
    let newest = Math.max(this.#lastChangeForAll, this.#byIdentity.get(id) ?? 0)
    for (const attribute of attributes) newest = Math.max(newest, this.#byAttribute.get(attribute) ?? 0)
    return newest
  }
}
