// Makes what belongs to a router besides its record: the enrollment it begins with, and an identity of its own if it tunnels.
import { isDeepStrictEqual } from 'node:util'
import { chooseExpiry, type RequestedExpiry } from '../../authentication/enrollment/enrollments.ts'
import { edgeRouterPolicies } from '../../definitions/resources/edge-router-policies.ts'
import { edgeRouters } from '../../definitions/resources/edge-routers.ts'
import { enrollments } from '../../definitions/resources/enrollments.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { type RouterInterface, routers, type VersionInfo } from '../../definitions/resources/routers.ts'
import { newToken } from '../../foundation/ids.ts'
import type { Config } from '../../settings/settings.ts'
import { type EntityStore, find, get, newEntity } from '../../storage/entities/entities.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'

/** The members of an edge router that decide about its identity. */
interface Tunneler {
  readonly id: string
  readonly name: string
  readonly isTunnelerEnabled: boolean
}

/** The members of a router's record that follow from its certificate. */
const UNVERIFIED = {
  isVerified: false,
  fingerprint: null,
  certPem: null,
  unverifiedFingerprint: null,
  unverifiedCertPem: null,
  formerFingerprint: null,
} as const

export class RouterProvisioner {
  readonly #entities: EntityStore
  readonly #config: Config

  constructor(entities: EntityStore, config: Config) {
    this.#entities = entities
    this.#config = config
  }

  /** Makes the enrollment of a router that has none: `erott` is for edge routers, `trott` for all others. */
  async enroll(
    tx: WriteContext,
    method: 'erott' | 'trott',
    id: string,
    requested: RequestedExpiry | null = {},
  ): Promise<void> {
    const router = method === 'erott' ? { edgeRouterId: id } : { transitRouterId: id }
    const expiresAt = chooseExpiry(tx, requested ?? {}, this.#config['enrollment.router'])
    const enrollment = newEntity(tx, enrollments, { ...router, method, expiresAt, token: newToken() })
    await this.#entities.insert(tx, enrollments, enrollment)
  }

  /**
   * Removes the certificates of an edge router, and makes a new enrollment: an earlier one is invalid from then on.
   * Everything else about the router stays. @throws NOT_FOUND, COULD_NOT_VALIDATE for a time that has passed
   */
  async reEnroll(context: Context, id: string, requested: RequestedExpiry): Promise<void> {
    await context.write(async (tx) => {
      const router = await get(tx, edgeRouters, id)
      const outstanding = tx.db.selectFrom('enrollments').select('id').where('edgeRouterId', '=', id)
      for (const enrollment of await outstanding.execute())
        await this.#entities.removeInTransaction(tx, enrollments, enrollment.id)
      await this.#entities.update(tx, edgeRouters, router, UNVERIFIED)
      await this.enroll(tx, 'erott', id, requested)
    })
  }

  /** Stores the network interfaces that a router reports; they are shown while it is offline, too. */
  async storeInterfaces(context: Context, id: string, interfaces: readonly RouterInterface[]): Promise<void> {
    await context.write(async (tx) => {
      const router = await find(tx, routers, id)
      if (!router || isDeepStrictEqual(router.interfaces, interfaces)) return
      // No administrator asked for it, and a router may report as often as it likes.
      await this.#entities.update(tx, routers, router, { interfaces }, { audit: 'none' })
    })
  }

  /** Stores the software with which a router connected, because it has to be known while the router is offline, too. */
  async storeVersion(context: Context, id: string, lastVersion: VersionInfo): Promise<void> {
    await context.write(async (tx) => {
      const router = await find(tx, routers, id)
      if (!router || isDeepStrictEqual(router.lastVersion, lastVersion)) return
      // The software of a router is changed on its machine; the audit shows changes of the controller.
      await this.#entities.update(tx, routers, router, { lastVersion }, { audit: 'none' })
    })
  }

  /**
   * Follows a change of an edge router: one that dials and hosts services itself has an identity of the same id and name,
   * and a policy that lets this identity use the router.
   */
  async followTunneler(tx: WriteContext, now: Tunneler | undefined, before: Tunneler | undefined): Promise<void> {
    const was = before?.isTunnelerEnabled ? before : undefined
    const is = now?.isTunnelerEnabled ? now : undefined
    if (is && !was) await this.#makeIdentity(tx, is)
    if (was && !is) await this.#removeIdentity(tx, was.id)
    if (is && was && is.name !== was.name) {
      const identity = await find(tx, identities, is.id)
      if (identity) await this.#entities.update(tx, identities, identity, { name: is.name })
    }
  }

  async #makeIdentity(tx: WriteContext, router: Tunneler): Promise<void> {
    const { identity, policy } = toTunnelerRecords(router)
    await this.#entities.insert(tx, identities, newEntity(tx, identities, identity))
    await this.#entities.insert(tx, edgeRouterPolicies, newEntity(tx, edgeRouterPolicies, policy))
  }

  /** A record that is gone already does not keep the router from being changed. */
  async #removeIdentity(tx: WriteContext, id: string): Promise<void> {
    if (await find(tx, edgeRouterPolicies, id)) await this.#entities.removeInTransaction(tx, edgeRouterPolicies, id)
    if (await find(tx, identities, id)) await this.#entities.removeInTransaction(tx, identities, id)
  }
}

/** The identity of an edge router that dials and hosts services itself, and the policy that lets it use the router, as they are made. */
export function toTunnelerRecords({ id, name }: Pick<Tunneler, 'id' | 'name'>) {
  const itself = [`@${id}`]
  const roles = { edgeRouterRoles: itself, identityRoles: itself }
  return {
    identity: { id, name, typeId: 'Router', isAdmin: false },
    policy: { id, name: `edge-router-${id}-system`, semantic: 'AnyOf', ...roles, isSystem: true },
  } as const
}
