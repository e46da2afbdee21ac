// When something last changed that an identity may reach: what clients poll to learn whether to fetch their services.
import type { Instant } from '../clock.ts'
import type { Attributed, Side } from './side.ts'

/**
 * Times are kept by role, not by identity: whatever concerns a policy stamps the roles of its subjects, old and new. An
 * identity's time is the newest among its own attributes, so no change is missed, and a poll costs a few look-ups. An
 * identity that shares only some of a policy's attributes may be told of a change that does not concern it.
 */
export class UpdateTimes {
  readonly #byAttribute = new Map<string, Instant>()
  readonly #byIdentity = new Map<string, Instant>()
  #ofAll: Instant = 0

  /** Something about a policy with these subjects changed. */
  stamp(subjects: Side, at: Instant): void {
    if (subjects.isAll) this.#ofAll = at
    for (const attribute of subjects.attributes) this.#byAttribute.set(attribute, at)
    for (const id of subjects.ids) this.#byIdentity.set(id, at)
  }

  /** Something about the identity itself changed. */
  stampIdentity(id: string, at: Instant): void {
    this.#byIdentity.set(id, at)
  }

  forgetIdentity(id: string): void {
    this.#byIdentity.delete(id)
  }

  /** The newest time that concerns the identity; 0 where nothing has changed since the start. */
  of({ id, attributes }: Attributed): Instant {
    let newest = Math.max(this.#ofAll, this.#byIdentity.get(id) ?? 0)
    for (const attribute of attributes) newest = Math.max(newest, this.#byAttribute.get(attribute) ?? 0)
    return newest
  }
}
