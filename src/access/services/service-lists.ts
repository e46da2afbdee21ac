// Lists of services as clients receive them, rendered once for all API sessions that are shown the same.
//
// After a change, all clients that it concerns fetch their lists again, and most of them are shown the same: those with
// the same policies, or with posture checks that find the same.
import { LRUCache } from 'lru-cache'
import type { JsonForm } from '../../definitions/schema/json-forms.ts'
import type { ReadContext } from '../../storage/context.ts'
import type { Access } from '../access.ts'
import type { Viewer } from '../viewers.ts'
import type { PollingSession, ServiceChanges, ShownServices } from './service-changes.ts'

/** The API session that lists its services. */
export interface ListingClient {
  readonly apiSession: PollingSession
  /** Its identity, which does not administer: administrators see more than the digest covers. */
  readonly viewer: Viewer
}

/** Which part of the services a list shows, without filter and order of its own, and in which form. */
export interface ListShape {
  readonly limit: number
  readonly offset: number
  /** Ids of config types. */
  readonly configTypes: readonly string[]
  readonly form: JsonForm
}

// About 1,000 lists of 20 services.
const MAX_BYTES = 16 * 1024 * 1024
// The objects, and the entry of the map.
const ENTRY_BYTES = 250

interface ServiceListsParts {
  readonly access: Access
  readonly changes: ServiceChanges
  readonly maxBytes?: number
}

/**
 * A list is found by the digest of what it shows (`ServiceDigests`), and by its shape. Nothing invalidates it: other services have
 * another digest. What the digest is computed from, for each member of a list:
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
export class ServiceLists {
  readonly #access: Access
  readonly #changes: ServiceChanges
  readonly #bodies: LRUCache<string, Buffer>

  constructor({ access, changes, maxBytes = MAX_BYTES }: ServiceListsParts) {
    this.#access = access
    this.#changes = changes
    this.#bodies = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: (body, key) => ENTRY_BYTES + key.length + body.length,
    })
  }

  /** Returns the body of a list; `render` renders it if it is not cached. */
  async find(
    context: ReadContext,
    client: ListingClient,
    shape: ListShape,
    render: () => Promise<Buffer>,
  ): Promise<Buffer> {
    const services = await this.#changes.compare(context, client.apiSession, client.viewer)
    const key = services.isExact ? toKey(services, shape) : undefined
    const cached = key === undefined ? undefined : this.#bodies.get(key)
    return cached ?? this.#render(client, services.stamp, key, render)
  }

  async #render(
    { apiSession, viewer }: ListingClient,
    stamp: ShownServices['stamp'],
    key: string | undefined,
    render: () => Promise<Buffer>,
  ): Promise<Buffer> {
    const body = await render()
    // If the stamp has moved, the list may show a change that the digest does not.
    if (key !== undefined && this.#access.updates.read(viewer.identity) === stamp) this.#bodies.set(key, body)
    this.#changes.noteShown(apiSession.id, viewer.identity)
    return body
  }
}

function toKey({ digest }: ShownServices, { limit, offset, configTypes, form }: ListShape): string {
  return `${digest} ${form} ${limit} ${offset} ${configTypes.join()}`
}
