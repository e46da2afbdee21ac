// When something last changed that an identity may reach: what clients poll to learn whether to fetch their services.
import type { Instant } from '../clock.ts'
import type { RoleBearer, RoleSelector } from './role-selector.ts'

/**
 * Times are kept by role, not by identity: whatever concerns a policy stamps the roles of its subjects, old and new. An
 * identity's time is the newest among its own attributes, so no change is missed, and a poll costs a few look-ups. An
 * identity that shares only some of a policy's attributes may be told of a change that does not concern it.
 *
 * Whoever was told a time is told a later one after the next change, also where both happen in one millisecond.
 */
export class UpdateTimes {
  readonly #startedAt: Instant
  readonly #byAttribute = new Map<string, Instant>()
  readonly #byIdentity = new Map<string, Instant>()
  #ofAll: Instant = 0
  /** The latest time that anybody was told. */
  #told: Instant = 0

  constructor(startedAt: Instant) {
    this.#startedAt = startedAt
  }

  /** What changed is unknown: every identity is told a later time than before. */
  restart(): void {
    this.#byAttribute.clear()
    this.#byIdentity.clear()
    if (this.#told > 0) this.#ofAll = this.#told + 1
  }

  /** Something about a policy with these subjects changed. */
  stamp(subjects: RoleSelector, at: Instant): void {
    const time = this.#untold(at)
    if (subjects.isAll) this.#ofAll = time
    for (const attribute of subjects.attributes) this.#byAttribute.set(attribute, time)
    for (const id of subjects.ids) this.#byIdentity.set(id, time)
  }

  /** Something about the identity itself changed. */
  stampIdentity(id: string, at: Instant): void {
    this.#byIdentity.set(id, this.#untold(at))
  }

  forgetIdentity(id: string): void {
    this.#byIdentity.delete(id)
  }

  /** The newest time that concerns the identity; without any that of its sign-in, or of the start where that was later. */
  lastChangeFor({ id, attributes }: RoleBearer, signedInAt: Instant): Instant {
    let newest = Math.max(this.#ofAll, this.#byIdentity.get(id) ?? 0)
    for (const attribute of attributes) newest = Math.max(newest, this.#byAttribute.get(attribute) ?? 0)
    const time = newest || Math.max(signedInAt, this.#startedAt)
    if (time > this.#told) this.#told = time
    return time
  }

  #untold(at: Instant): Instant {
    return at > this.#told ? at : this.#told + 1
  }
}
