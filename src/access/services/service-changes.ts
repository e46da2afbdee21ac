// The services that clients are shown: when they last changed, which clients poll, and the lists that they then fetch.
import { LRUCache } from 'lru-cache'
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { JsonForm } from '../../definitions/schema/json-forms.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import type { Cache } from '../../storage/transactions/projection.ts'
import type { Access } from '../access.ts'
import type { Viewer } from '../viewers.ts'
import type { ServiceDigest, ServiceDigests } from './service-digests.ts'

/** The services that an API session was last shown, as far as they have to be compared with. */
interface ShownServices extends Pick<ServiceDigest, 'digest' | 'isExact'> {
  /** The newest commit that concerned its identity (`UpdateTimes`). */
  readonly stamp: Instant
  /** Empty if it was shown services that have no known digest. */
  readonly digest: string
  /** The time that it received. */
  readonly changedAt: Instant
  /** When time alone may change the digest, on the monotonic clock. */
  validUntil: number
}

/** The part of the services that a list shows, without filter and order of its own, and its form. */
export interface ListShape {
  readonly limit: number
  readonly offset: number
  /** Ids of config types. */
  readonly configTypes: readonly string[]
  readonly form: JsonForm
}

// About 90,000 API sessions.
const MAX_SHOWN_BYTES = 32 * 1024 * 1024
// The digest, the times, and the entry of the map.
const SHOWN_BYTES = 350

// About 1,000 lists of 20 services.
const MAX_LIST_BYTES = 16 * 1024 * 1024
// The objects, and the entry of the map.
const LIST_BYTES = 250

interface ServiceChangesParts {
  readonly access: Access
  readonly clock: Clock
  readonly digests: Pick<ServiceDigests, 'compute'>
  readonly maxShownBytes?: number
  readonly maxListBytes?: number
}

/** An API session whose services are compared. */
export interface PollingSession {
  readonly id: string
  readonly createdAt: Instant
}

/**
 * **The time** is that of the newest commit that may concern an identity, of the last transition that time alone made, or of the
 * sign-in, whichever is the latest: every process that follows the commits finds the same. While services stay as the API session was
 * shown them, by their digest, so does its time, whatever commits may have concerned them. Without the last digest, because it was
 * evicted, the process started, or another one showed it, the time may move once without a change, but no change is missed. A client
 * that comes back to a process which has its digest may get the time again that it had there, of the same services.
 *
 * **A list** is rendered once for all that are shown the same: after a change, all clients that it concerns fetch their lists again, and
 * most of them have the same policies, or posture checks that find the same. It is found by the digest of what it shows, and by its
 * shape. Nothing invalidates it: other services have another digest. What the digest is computed from, for each member of a list:
 *
 * - which services, `totalCount`: the policies that grant the identity a service (policy index)
 * - `_links`, `id`, `createdAt`, `updatedAt`, `tags`, `name`, `roleAttributes`, `configs`, `encryptionRequired`,
 *   `maxIdleTimeMillis`, `terminatorStrategy`: the bytes of the cached record, which a list copies
 * - `config`: the ids, types, names of types and data of all configs of the service
 * - `permissions`: the types of the policies that grant the service
 * - `postureQueries`: the same JSON, for every policy that grants the identity a service, if one of them has a posture check; else
 *   the permissions
 *
 * A list is rendered for its request alone if that is not all that it shows (`ServiceDigest.isExact`).
 */
export class ServiceChanges implements Cache {
  readonly kind = 'cache'
  readonly name = 'service changes'
  readonly #access: Access
  readonly #clock: Clock
  readonly #digests: Pick<ServiceDigests, 'compute'>
  readonly #shown: LRUCache<string, ShownServices>
  readonly #lists: LRUCache<string, Buffer>

  constructor({ access, clock, digests, ...limits }: ServiceChangesParts) {
    const { maxShownBytes = MAX_SHOWN_BYTES, maxListBytes = MAX_LIST_BYTES } = limits
    this.#access = access
    this.#clock = clock
    this.#digests = digests
    this.#shown = new LRUCache({ maxSize: maxShownBytes, sizeCalculation: () => SHOWN_BYTES })
    this.#lists = new LRUCache({
      maxSize: maxListBytes,
      sizeCalculation: (body, key) => LIST_BYTES + key.length + body.length,
    })
  }

  /**
   * Returns when the services of an API session last changed. The services are those that policies grant it, not those that an
   * administrator sees besides them.
   */
  async getLastChange(context: ReadContext, apiSession: PollingSession, viewer: Viewer): Promise<Instant> {
    return (await this.#compare(context, apiSession, viewer)).changedAt
  }

  /** Returns the time that the API session received last, if nothing can have changed since: without a promise, for most polls. */
  findUnchanged(apiSessionId: string, identity: RoleBearer): Instant | undefined {
    return this.#findCurrent(apiSessionId, identity)?.changedAt
  }

  /**
   * Returns the body of a list for an identity that does not administer, because administrators see more than the digest covers; `render`
   * renders it if it is not cached.
   */
  async findList(
    context: ReadContext,
    apiSession: PollingSession,
    viewer: Viewer,
    shape: ListShape,
    render: () => Promise<Buffer>,
  ): Promise<Buffer> {
    // A list counts as a poll: if it shows a change, the next poll returns the time of that change, even if it is undone by then.
    const { stamp, digest, isExact } = await this.#compare(context, apiSession, viewer)
    const key = isExact ? toKey(digest, shape) : undefined
    const cached = key === undefined ? undefined : this.#lists.get(key)
    if (cached) return cached
    const body = await render()
    // After a later commit, the list may show a change that the digest does not.
    if (key !== undefined && this.#access.updates.read(viewer.identity) === stamp) this.#lists.set(key, body)
    this.noteShown(apiSession.id, viewer.identity)
    return body
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

  /** The services that the API session was shown last, if nothing can have changed since. */
  #findCurrent(apiSessionId: string, identity: RoleBearer): ShownServices | undefined {
    const last = this.#shown.get(apiSessionId)
    if (!last || this.#clock.monotonic() >= last.validUntil) return undefined
    return last.stamp === this.#access.updates.read(identity) ? last : undefined
  }

  /** Compares the services of an API session with those that it was shown last, and returns what it is shown from now on. */
  async #compare(context: ReadContext, apiSession: PollingSession, viewer: Viewer): Promise<ShownServices> {
    const unchanged = this.#findCurrent(apiSession.id, viewer.identity)
    if (unchanged) return unchanged
    const stamp = this.#access.updates.read(viewer.identity)
    const monotonic = this.#clock.monotonic()
    const { digest, isExact, transitions } = await this.#digests.compute(context, {
      ...viewer,
      apiSessionId: apiSession.id,
    })
    // Another request of the session may have seen a later change meanwhile.
    const previous = this.#shown.get(apiSession.id)
    if (previous && previous.stamp > stamp) return previous
    // A clock that was set back makes a transition earlier than the commit before it.
    const changedAt =
      previous?.digest === digest
        ? previous.changedAt
        : Math.max(stamp, transitions.lastAt, apiSession.createdAt, previous ? previous.changedAt + 1 : 0)
    const validUntil = monotonic + transitions.nextAt - transitions.now
    const current = { stamp, digest, isExact, changedAt, validUntil }
    this.#shown.set(apiSession.id, current)
    return current
  }

  /** The clock was set: that shifts the times of API sessions, some of which are shown with services, so all are compared again. */
  noteClockStep(): void {
    for (const last of this.#shown.values()) last.validUntil = 0
  }

  /** Drops all digests: the next poll of each API session returns the time of the newest commit that may concern it. */
  clear(): void {
    this.#shown.clear()
  }

  apply({ changes }: Commit): void {
    for (const { resource, operation, id } of changes) {
      if (resource === apiSessions.plural && operation === 'delete') this.#shown.delete(id)
    }
  }
}

function toKey(digest: string, { limit, offset, configTypes, form }: ListShape): string {
  return `${digest} ${form} ${limit} ${offset} ${configTypes.join()}`
}
