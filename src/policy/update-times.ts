// When something last changed that may concern the services of an identity: only then are its services compared.
import type { Instant } from '../foundation/clock.ts'
import type { RoleBearer, RoleSelector } from './role-selector.ts'

/**
 * Times are stored by role, not by identity: a change of a policy stamps the roles of its subjects, old and new. The time of
 * an identity is the newest time of its attributes, so no change is missed, a change costs the same for any number of
 * identities, and a look costs a few look-ups. An identity that has only some of a policy's attributes may see a new time
 * without a change.
 *
 * After a change, an identity sees a later time than before, even if both fall into the same millisecond.
 */
export class UpdateTimes {
  readonly #byAttribute = new Map<string, Instant>()
  readonly #byIdentity = new Map<string, Instant>()
  #lastChangeForAll: Instant = 0
  /** The latest time that was read for any identity, or sent to one. */
  #latestRead: Instant = 0

  /** What changed is unknown: every identity sees a later time than before. */
  restart(): void {
    this.#byAttribute.clear()
    this.#byIdentity.clear()
    if (this.#latestRead > 0) this.stampAll(0)
  }

  /** Records a change that concerns every identity. */
  stampAll(at: Instant): void {
    this.#lastChangeForAll = this.#nextTime(at)
  }

  /** Records a change of a policy with these subjects. */
  stamp(subjects: RoleSelector, at: Instant): void {
    const time = this.#nextTime(at)
    if (subjects.isAll) this.#lastChangeForAll = time
    for (const attribute of subjects.attributes) this.#byAttribute.set(attribute, time)
    for (const id of subjects.ids) this.#byIdentity.set(id, time)
  }

  /** Records a change of the identity itself. */
  stampIdentity(id: string, at: Instant): void {
    this.#byIdentity.set(id, this.#nextTime(at))
  }

  removeIdentity(id: string): void {
    this.#byIdentity.delete(id)
  }

  /** Returns the newest time that concerns the identity; 0 if there is none. */
  read({ id, attributes }: RoleBearer): Instant {
    let newest = Math.max(this.#lastChangeForAll, this.#byIdentity.get(id) ?? 0)
    for (const attribute of attributes) newest = Math.max(newest, this.#byAttribute.get(attribute) ?? 0)
    this.noteSent(newest)
    return newest
  }

  /** Records that a client received a time: later changes get later ones. */
  noteSent(time: Instant): void {
    if (time > this.#latestRead) this.#latestRead = time
  }

  #nextTime(at: Instant): Instant {
    return at > this.#latestRead ? at : this.#latestRead + 1
  }
}
