// Identities: their enrollments and hosting, the sessions that end with them, and what other tables know of them.
import type { Kysely } from 'kysely'
import type { ConnectionStatus, LiveNetwork } from '../../access/live-network.ts'
import type { PolicyScopes } from '../../access/policy-scopes.ts'
import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import { type DisabledState, isDisabled } from '../../authentication/disabling.ts'
import type { EnrollmentIssuer, RequestedEnrollment } from '../../authentication/enrollment/enrollments.ts'
import type { VerifiedMfa } from '../../authentication/mfa/verified-mfa.ts'
import { findTunneler } from '../../authentication/router-identities.ts'
import type { AnyRow, ComputedInput, Entity, Inputs } from '../../definitions/resources/define.ts'
import type { identities } from '../../definitions/resources/identities.ts'
import { toSortedSet } from '../../definitions/schema/fields.ts'
import { toIsoTime } from '../../foundation/clock.ts'
import { errors, invalidError } from '../../foundation/errors.ts'
import type { Behavior, Draft, FindRelated } from '../../storage/behavior.ts'
import type { Database } from '../../storage/database.ts'
import { prepareQueryAmong } from '../../storage/prepared-queries.ts'
import { RawJson } from '../../storage/records/raw-json.ts'
import { findReferences } from '../../storage/records/references.ts'
import type { Context, ReadContext, WriteContext } from '../../storage/transactions/context.ts'

type Identity = Entity<typeof identities>
type ByIdentity<V> = ReadonlyMap<string, V>

/** The computed fields of an identity. */
type PresentState = Readonly<
  Record<'disabled' | 'hasApiSession' | 'hasEdgeRouterConnection' | 'edgeRouterConnectionStatus', unknown>
>

/** All present states: a list renders each object once, however many records it describes. */
const presentStates = {
  online: describePresence('online'),
  offline: describePresence('offline'),
  unknown: describePresence('unknown'),
}

function describePresence(status: ConnectionStatus) {
  const presence = { hasEdgeRouterConnection: status === 'online', edgeRouterConnectionStatus: status }
  const describe = (disabled: boolean): Readonly<Record<'signedIn' | 'signedOut', PresentState>> => ({
    signedIn: { disabled, hasApiSession: true, ...presence },
    signedOut: { disabled, hasApiSession: false, ...presence },
  })
  return { enabled: describe(false), disabled: describe(true) }
}

const findAuthenticators = prepareQueryAmong((db, isAmong) =>
  db
    .selectFrom('authenticators')
    .select(['id', 'identityId', 'method', 'username', 'fingerprint'])
    .where(isAmong('identityId')),
)
const findEnrollments = prepareQueryAmong((db, isAmong) =>
  db
    .selectFrom('enrollments')
    .select(['id', 'identityId', 'method', 'token', 'expiresAt', 'caId'])
    .where(isAmong('identityId')),
)
/** In the order of their ids. SQLite takes five times as long to sort the one row that most identities have as to find it. */
function sortById<Row extends { readonly id: string }>(rows: readonly Row[]): readonly Row[] {
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

/** The collaborators of the behavior of identities. */
interface IdentityBehaviorParts {
  readonly apiSessions: ApiSessions
  readonly enrollments: EnrollmentIssuer
  readonly network: LiveNetwork
  readonly scopes: PolicyScopes
  readonly verifiedMfa: Pick<VerifiedMfa, 'has'>
}

export class IdentityBehavior implements Behavior<typeof identities, RequestedEnrollment | null | undefined> {
  readonly #apiSessions: ApiSessions
  readonly #enrollments: EnrollmentIssuer
  readonly #network: LiveNetwork
  readonly #verifiedMfa: Pick<VerifiedMfa, 'has'>
  readonly relations: Readonly<Record<string, FindRelated>>

  constructor({ apiSessions, enrollments, network, scopes, verifiedMfa }: IdentityBehaviorParts) {
    this.#apiSessions = apiSessions
    this.#enrollments = enrollments
    this.#network = network
    this.#verifiedMfa = verifiedMfa
    this.relations = {
      'service-policies': (context, id) => scopes.findServicePoliciesOfIdentity(context, id),
      services: (context, id, { policyType }) => scopes.findServicesOfIdentity(context, id, policyType),
      'edge-router-policies': (context, id) => scopes.findEdgeRouterPoliciesOfIdentity(context, id),
      'edge-routers': (context, id) => scopes.findEdgeRoutersOfIdentity(context, id),
    }
  }

  async prepareCreate(
    { clock }: Context,
    { next }: Draft<typeof identities>,
    { disabled, enrollment }: Inputs<typeof identities>,
  ): Promise<RequestedEnrollment | null | undefined> {
    if (disabled) next.disabledAt = clock.now()
    return enrollment
  }

  async check(tx: WriteContext, next: Identity, previous: Identity | undefined): Promise<void> {
    await this.#requireRouterValues(tx, next, previous)
    completeHosting(next, previous)
  }

  async created(
    tx: WriteContext,
    identity: Identity,
    enrollment: RequestedEnrollment | null | undefined,
  ): Promise<void> {
    if (enrollment) await this.#enrollments.storeRequested(tx, identity.id, enrollment)
  }

  async updated(tx: WriteContext, identity: Identity, previous: Identity): Promise<void> {
    if (identity.disabledAt !== null && identity.disabledAt !== previous.disabledAt) {
      await this.#apiSessions.revokeAll(tx, { identityId: identity.id })
    }
  }

  async beforeDelete(tx: WriteContext, { id, isDefaultAdmin }: Identity): Promise<void> {
    if (isDefaultAdmin) throw errors.ENTITY_CAN_NOT_BE_DELETED({ message: 'this is the first administrator' })
    if (await findTunneler(tx, id)) {
      throw errors.ENTITY_CAN_NOT_BE_DELETED({ message: 'it belongs to an edge router, and goes with it' })
    }
    await this.#apiSessions.revokeAll(tx, { identityId: id })
  }

  /** Credentials, outstanding enrollments and second factors. */
  async deriveFields({ db }: ReadContext, rows: readonly AnyRow[]): Promise<Record<string, unknown>[]> {
    const ids = rows.map(({ id }) => id)
    const authenticators = await loadAuthenticators(db, ids)
    const enrollments = await this.#loadEnrollments(db, ids)
    return ids.map((id) => ({
      isMfaEnabled: this.#verifiedMfa.has(id),
      authenticators: authenticators.get(id) ?? {},
      enrollment: enrollments.get(id) ?? {},
      interfaces: null,
    }))
  }

  computeFields({ clock }: ReadContext, records: readonly ComputedInput[]): readonly PresentState[] {
    const now = clock.now()
    return records.map((record) => {
      const { enabled, disabled } = presentStates[this.#network.getConnectionStatus(record.id)]
      const states = isDisabled(record as unknown as DisabledState, now) ? disabled : enabled
      return this.#apiSessions.isSignedIn(record.id, now) ? states.signedIn : states.signedOut
    })
  }

  /** The identity of a router keeps its type, and follows its router's name. @throws COULD_NOT_VALIDATE */
  async #requireRouterValues(tx: WriteContext, next: Identity, previous: Identity | undefined): Promise<void> {
    if (!previous || (next.typeId === previous.typeId && next.name === previous.name)) return
    const router = await findTunneler(tx, next.id)
    if (!router) return
    if (next.typeId !== 'Router') throw invalidError('typeId', 'cannot change: it belongs to an edge router')
    if (next.name !== router.name) throw invalidError('name', 'cannot change: rename the edge router instead')
  }

  async #loadEnrollments(db: Kysely<Database>, ids: readonly string[]): Promise<ByIdentity<Record<string, unknown>>> {
    const rows = sortById(await findEnrollments(db, ids))
    const jwts = await Promise.all(rows.map((row) => this.#enrollments.signJwt(row)))
    const caIds = rows.flatMap(({ caId }) => caId ?? [])
    const authorities = await findReferences(db, 'cas', caIds)
    const enrollments = new Map<string, Record<string, unknown>>()
    for (const [at, { id, identityId, method, token, expiresAt, caId }] of rows.entries()) {
      const authority = caId === null ? {} : { caId, ca: new RawJson(authorities.get(caId)?.text ?? 'null') }
      const enrollment = { expiresAt: toIsoTime(expiresAt), id, jwt: jwts[at], token, ...authority }
      if (identityId) enrollments.set(identityId, { ...enrollments.get(identityId), [method]: enrollment })
    }
    return enrollments
  }
}

/** Keeps the hosted services in agreement with the costs and precedences of hosting them. */
function completeHosting(next: Identity, previous: Identity | undefined): void {
  const isHostingSame =
    next.serviceHostingCosts === previous?.serviceHostingCosts &&
    next.serviceHostingPrecedences === previous?.serviceHostingPrecedences
  if (!isHostingSame) {
    const named = [...Object.keys(next.serviceHostingCosts), ...Object.keys(next.serviceHostingPrecedences)]
    next.hostedServices = toSortedSet(named)
  } else if (next.hostedServices !== previous?.hostedServices) {
    // A service is being deleted, and with it the cost and the precedence of hosting it.
    next.serviceHostingCosts = pickKeys(next.hostedServices, next.serviceHostingCosts)
    next.serviceHostingPrecedences = pickKeys(next.hostedServices, next.serviceHostingPrecedences)
  }
}

async function loadAuthenticators(
  db: Kysely<Database>,
  ids: readonly string[],
): Promise<ByIdentity<Record<string, unknown>>> {
  const rows = sortById(await findAuthenticators(db, ids))
  const authenticators = new Map<string, Record<string, unknown>>()
  for (const { id, identityId, method, username, fingerprint } of rows) {
    const authenticator = method === 'cert' ? { fingerprint, id } : { id, username }
    authenticators.set(identityId, { ...authenticators.get(identityId), [method]: authenticator })
  }
  return authenticators
}

function pickKeys<V>(keys: readonly string[], map: Readonly<Record<string, V>>): Record<string, V> {
  const pickedKeys = new Set(keys)
  return Object.fromEntries(Object.entries(map).filter(([key]) => pickedKeys.has(key)))
}
