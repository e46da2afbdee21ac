// When the services of an API session last changed: clients poll this time to learn whether to fetch their services again.
import { LRUCache } from 'lru-cache'
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import type { Commit } from '../../storage/changes.ts'
import type { ReadContext } from '../../storage/context.ts'
import type { Cache } from '../../storage/projection.ts'
import type { Access } from '../access.ts'
import type { Viewer } from '../viewers.ts'
import type { ServiceDigest, ServiceDigests } from './service-digests.ts'

/** What an API session was last shown, as far as it has to be compared with. */
export interface ShownServices extends Pick<ServiceDigest, 'digest' | 'isExact'> {
  /** The newest stamp that concerned its identity (`UpdateTimes`). */
  readonly stamp: Instant
  /** Empty if it was shown services that have no known digest. */
  readonly digest: string
  /** The time that it received. */
  readonly changedAt: Instant
  /** When time alone changes the digest, on the monotonic clock. */
  readonly validUntil: number
}

// About 90,000 API sessions.
const MAX_BYTES = 32 * 1024 * 1024
// The digest, the times, and the entry of the map.
const SHOWN_BYTES = 350

interface ServiceChangesParts {
  readonly access: Access
  readonly clock: Clock
  readonly digests: Pick<ServiceDigests, 'compute'>
  readonly startedAt: Instant
  readonly maxBytes?: number
}

/** An API session whose services are compared. */
export interface PollingSession {
  readonly id: string
  readonly createdAt: Instant
}

/**
 * A change stamps the roles that it may concern. If the newest stamp of an API session is the one that it saw last, nothing has
 * changed. Otherwise its services are compared with those that it was shown, by their digests, and the time moves if they differ.
 *
 * Without the last digest, because it was evicted or the process started, the newest stamp is the time: it may move once without
 * a change, but no change is missed.
 */
export class ServiceChanges implements Cache {
  readonly kind = 'cache'
  readonly name = 'service changes'
  readonly #access: Access
  readonly #clock: Clock
  readonly #digests: Pick<ServiceDigests, 'compute'>
  readonly #startedAt: Instant
  readonly #shown: LRUCache<string, ShownServices>

  constructor({ access, clock, digests, startedAt, maxBytes = MAX_BYTES }: ServiceChangesParts) {
    this.#access = access
    this.#clock = clock
    this.#digests = digests
    this.#startedAt = startedAt
    this.#shown = new LRUCache({ maxSize: maxBytes, sizeCalculation: () => SHOWN_BYTES })
  }

  /**
   * Returns when the services of an API session last changed; if they have not, the later of its sign-in and the start of
   * the controller. The services are those that policies grant it, not those that an administrator sees besides them.
   */
  async getLastChange(context: ReadContext, apiSession: PollingSession, viewer: Viewer): Promise<Instant> {
    return (await this.compare(context, apiSession, viewer)).changedAt
  }

  /**
   * Compares the services of an API session with those that it was shown last, and returns what it is shown from now on. A list
   * counts as a poll: if it shows a change, the next poll returns the time of that change, even if it is undone by then.
   */
  async compare(context: ReadContext, apiSession: PollingSession, viewer: Viewer): Promise<ShownServices> {
    return this.#findCurrent(apiSession.id, viewer.identity) ?? this.#compareDigests(context, apiSession, viewer)
  }

  /** Returns the time that the API session received last, if nothing can have changed since: without a promise, for most polls. */
  findUnchanged(apiSessionId: string, identity: RoleBearer): Instant | undefined {
    return this.#findCurrent(apiSessionId, identity)?.changedAt
  }

  /**
   * Notes that an API session was shown services, once they are read. If they may have changed since they were last compared, its
   * next poll returns a new time even if the services are by then what they were: what it was shown is not that.
   */
  noteShown(apiSessionId: string, identity: RoleBearer): void {
    const last = this.#shown.get(apiSessionId)
    if (!last || this.#findCurrent(apiSessionId, identity)) return
    this.#shown.set(apiSessionId, { ...last, digest: '', isExact: false, validUntil: 0 })
  }

  /** What the API session was shown last, if nothing can have changed since. */
  #findCurrent(apiSessionId: string, identity: RoleBearer): ShownServices | undefined {
    const last = this.#shown.get(apiSessionId)
    if (!last || this.#clock.monotonic() >= last.validUntil) return undefined
    return last.stamp === this.#access.updates.read(identity) ? last : undefined
  }

  async #compareDigests(context: ReadContext, apiSession: PollingSession, viewer: Viewer): Promise<ShownServices> {
    const stamp = this.#access.updates.read(viewer.identity)
    const monotonic = this.#clock.monotonic()
    const subject = { ...viewer, apiSessionId: apiSession.id }
    const { digest, isExact, transitions } = await this.#digests.compute(context, subject)
    // Another request of the session may have seen a later change meanwhile.
    const previous = this.#shown.get(apiSession.id)
    if (previous && previous.stamp > stamp) return previous
    const changedAt =
      previous?.digest === digest
        ? previous.changedAt
        : Math.max(this.#findTime(stamp, transitions, apiSession.createdAt), previous ? previous.changedAt + 1 : 0)
    this.#access.updates.noteSent(changedAt)
    const validUntil = monotonic + transitions.nextAt - transitions.now
    const current = { stamp, digest, isExact, changedAt, validUntil }
    this.#shown.set(apiSession.id, current)
    return current
  }

  /** The time of the newest event that may have changed the services. */
  #findTime(stamp: Instant, { lastAt }: ServiceDigest['transitions'], signedInAt: Instant): Instant {
    return Math.max(stamp, lastAt, signedInAt, this.#startedAt)
  }

  /** Drops all digests: the next poll of each API session returns its newest stamp. */
  clear(): void {
    this.#shown.clear()
  }

  apply({ changes }: Commit): void {
    for (const { resource, operation, id } of changes) {
      if (resource === apiSessions.plural && operation === 'delete') this.#shown.delete(id)
    }
  }
}
