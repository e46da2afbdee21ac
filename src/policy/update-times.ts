// When the services of an identity last changed: clients poll this time to learn whether to fetch their services again.
import type { Instant } from '../clock.ts'
import type { RoleBearer, RoleSelector } from './role-selector.ts'

/**
 * Times are stored by role, not by identity: a change of a policy stamps the roles of its subjects, old and new. The time of
 * an identity is the newest time of its attributes, so no change is missed and a poll costs a few look-ups. An identity that
 * has only some of a policy's attributes may see a new time without a change.
 *
 * After a change, a client receives a later time than before, even if both fall into the same millisecond.
 */
export class UpdateTimes {
  readonly #startedAt: Instant
  readonly #byAttribute = new Map<string, Instant>()
  readonly #byIdentity = new Map<string, Instant>()
  #lastChangeForAll: Instant = 0
  /** The latest time that any client received. */
  #lastSentAt: Instant = 0

  constructor(startedAt: Instant) {
    this.#startedAt = startedAt
  }

  /** What changed is unknown: every identity is told a later time than before. */
  restart(): void {
    this.#byAttribute.clear()
    this.#byIdentity.clear()
    if (this.#lastSentAt > 0) this.#lastChangeForAll = this.#lastSentAt + 1
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

  /** Returns the newest time that concerns the identity; defaults to the later of its sign-in and the start. */
  getLastChange({ id, attributes }: RoleBearer, signedInAt: Instant): Instant {
    let newest = Math.max(this.#lastChangeForAll, this.#byIdentity.get(id) ?? 0)
    for (const attribute of attributes) newest = Math.max(newest, this.#byAttribute.get(attribute) ?? 0)
    const time = newest || Math.max(signedInAt, this.#startedAt)
    if (time > this.#lastSentAt) this.#lastSentAt = time
    return time
  }

  #nextTime(at: Instant): Instant {
    return at > this.#lastSentAt ? at : this.#lastSentAt + 1
  }
}
