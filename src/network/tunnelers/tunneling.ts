// Routers that dial and host services themselves: each acts as an identity with its own id, with an API session and sessions.
import type { Access } from '../../access/access.ts'
import type { ServiceView } from '../../access/services/service-behavior.ts'
import type { ServiceChanges } from '../../access/services/service-changes.ts'
import { createSession, type SessionParts } from '../../access/sessions/create-session.ts'
import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import { type ClientInfo, diffClientInfo } from '../../authentication/api-sessions/create-api-session.ts'
import { isDisabled } from '../../authentication/disabling.ts'
import { findTunneler } from '../../authentication/router-identities.ts'
import { apiSessions as apiSessionRecords } from '../../definitions/resources/api-sessions.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { services } from '../../definitions/resources/services.ts'
import { ControllerError } from '../../foundation/errors.ts'
import type { PolicyType } from '../../policy/policy-index.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import type { Behaviors } from '../../storage/behavior.ts'
import { type EntityStore, find } from '../../storage/entities/entities.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import { toJsonText } from '../../storage/records/raw-json.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import { RequestRefusedError } from '../client-requests/request-refused.ts'
import type { SessionSync } from '../routers/session-sync.ts'

type Identity = Entity<typeof identities>

/** The API session of a router that tunnels. */
export interface TunnelerApiSession {
  readonly id: string
  readonly token: string
  /** Whether the router cannot know it yet. */
  readonly isNew: boolean
  readonly identity: Identity
  /** How long it stays alive without being used. */
  readonly timeoutMs: number
}

/** The session of such a router for one service. */
export interface TunnelerSession {
  readonly id: string
  readonly token: string
  readonly apiSession: TunnelerApiSession
}

/** A service as such a router is told about it. */
export interface TunneledService {
  readonly id: string
  readonly name: string
  readonly permissions: readonly PolicyType[]
  readonly isEncrypted: boolean
  /** JSON: name of the config type → data. */
  readonly config: string
  /** JSON. */
  readonly tags: string
}

export interface TunneledServices {
  /** The version that the router sends back with its next question; empty if it has no API session. */
  readonly version: string
  readonly services: readonly TunneledService[]
}

const findServiceByName = prepareQuery<[name: string], { id: string }>((db, name) =>
  db.selectFrom('services').select('id').where('name', '=', name),
)

const findServiceById = prepareQuery<[id: string], { id: string }>((db, id) =>
  db.selectFrom('services').select('id').where('id', '=', id),
)

const findLastApiSession = prepareQuery<[identityId: string], { id: string; lastActivityAt: number }>(
  (db, identityId) =>
    db
      .selectFrom('api_sessions')
      .select(['id', 'lastActivityAt'])
      .where('identityId', '=', identityId)
      .orderBy('n', 'desc'),
)

interface TunnelingParts {
  readonly access: Access
  readonly apiSessions: ApiSessions
  readonly behaviors: Behaviors
  readonly entities: EntityStore
  readonly posture: SessionParts['posture']
  readonly serviceChanges: ServiceChanges
  readonly sessionIds: SessionParts['sessionIds']
  readonly sessionTokens: SessionParts['sessionTokens']
  readonly sessionSync: SessionSync
}

export class Tunneling {
  readonly #parts: TunnelingParts

  constructor(parts: TunnelingParts) {
    this.#parts = parts
  }

  /**
   * Returns the API session of a router that tunnels: the one that it has, also if the router was restarted, or a new one.
   * @throws RequestRefusedError if the router may not tunnel
   */
  async openApiSession(context: Context, routerId: string, client?: ClientInfo): Promise<TunnelerApiSession> {
    const { apiSessions, sessionSync } = this.#parts
    const identity = await this.#requireIdentity(context, routerId)
    if (client) await this.#storeClientInfo(context, identity, client)
    const last = apiSessions.listOfIdentity(routerId).at(-1)
    const live = last && apiSessions.use(apiSessions.deriveToken(last.id), context.clock.now())
    const id = live?.id ?? (await this.#createApiSession(context, identity))
    // Routers know it before one of them receives its token by a response.
    if (!live) await sessionSync.settle()
    const token = apiSessions.deriveToken(id)
    return { id, token, isNew: live === undefined, identity, timeoutMs: apiSessions.lifetime.timeoutMs }
  }

  #createApiSession(context: Context, identity: Identity): Promise<string> {
    const { apiSessions, entities } = this.#parts
    return context.write(async (tx) => {
      // Another request of the router may have come first.
      const [existing] = await findLastApiSession(tx.db, identity.id)
      if (existing && existing.lastActivityAt + apiSessions.lifetime.timeoutMs > tx.clock.now()) return existing.id
      const session = { identity, authenticatorId: '', ipAddress: '', configTypes: ['all'] }
      const created = await apiSessions.insert(tx, session)
      // The certificate of the router is what it proves. It cannot be asked for a second factor.
      await entities.update(tx, apiSessionRecords, created, { isMfaComplete: true }, { audit: 'none' })
      return created.id
    })
  }

  async #storeClientInfo(context: Context, identity: Identity, client: ClientInfo): Promise<void> {
    if (!diffClientInfo(identity, client)) return
    await context.write(async (tx) => {
      const current = await find(tx, identities, identity.id)
      const changed = current && diffClientInfo(current, client)
      if (changed) await this.#parts.entities.update(tx, identities, current, changed, { audit: 'none' })
    })
  }

  /** @throws RequestRefusedError */
  async #requireIdentity(context: Context, routerId: string): Promise<Identity> {
    const isEnabled = (await findTunneler(context, routerId)) !== undefined
    const identity = isEnabled ? await find(context, identities, routerId) : undefined
    if (!identity) throw new RequestRefusedError('tunneling-not-enabled', 'tunneling is not enabled for the router')
    if (isDisabled(identity, context.clock.now()))
      throw new RequestRefusedError('other', 'the identity of the router is disabled')
    return identity
  }

  /**
   * Returns the session of a router for a service: the one that it has, or a new one.
   * @throws RequestRefusedError if policies, posture or routers do not permit it
   */
  async openSession(
    context: Context,
    routerId: string,
    named: { readonly id: string } | { readonly name: string },
    type: PolicyType,
  ): Promise<TunnelerSession> {
    const { access, apiSessions, entities, posture, sessionIds, sessionTokens } = this.#parts
    const apiSession = await this.openApiSession(context, routerId)
    const [service] = await ('id' in named
      ? findServiceById(context.db, named.id)
      : findServiceByName(context.db, named.name))
    if (!service) throw new RequestRefusedError('unknown-service', 'the service does not exist')
    const owner = { identity: toRoleBearer(apiSession.identity), isAdmin: false, apiSessionId: apiSession.id }
    const request = { serviceId: service.id, type, tags: {} }
    try {
      const parts = { access, auth: { apiSessions }, entities, posture, sessionIds, sessionTokens }
      const id = await createSession(parts, context, owner, request)
      return { id, token: apiSessions.deriveToken(id), apiSession }
    } catch (error) {
      if (!(error instanceof ControllerError)) throw error
      throw new RequestRefusedError('other', error.message)
    }
  }

  /**
   * The services that a router may dial or host, with their configs; undefined if nothing has changed since `version`.
   * @param version of an earlier list; empty if there is none
   * @throws RequestRefusedError if the router may not tunnel
   */
  async listServices(context: Context, routerId: string, version: string): Promise<TunneledServices | undefined> {
    const { access, apiSessions, behaviors, serviceChanges } = this.#parts
    const record = await this.#requireIdentity(context, routerId)
    const identity = toRoleBearer(record)
    const apiSession = apiSessions.listOfIdentity(routerId).at(-1)
    const viewer = { identity, isAdmin: false, ...(apiSession ? { apiSessionId: apiSession.id } : {}) }
    const current = apiSession ? String(await serviceChanges.getLastChange(context, apiSession, viewer)) : ''
    if (current !== '' && version === current) return undefined
    const rows = await context.db
      .selectFrom('services')
      .selectAll()
      .where(isOneOf(context.db, 'id', access.listServices(identity)))
      .orderBy('id')
      .execute()
    const view: ServiceView = { viewer, configTypes: ['all'] }
    const computed = (await behaviors.get(services).computeFields?.(context, rows, view)) ?? []
    const listed = rows.map(({ id, name, encryptionRequired, tags }, at) => ({
      id,
      name,
      tags,
      isEncrypted: encryptionRequired === 1,
      permissions: (computed[at]?.permissions ?? []) as PolicyType[],
      config: toJsonText(computed[at]?.config ?? {}),
    }))
    return { version: current, services: listed }
  }
}

const toRoleBearer = ({ id, roleAttributes }: Identity): RoleBearer => ({ id, attributes: roleAttributes })
