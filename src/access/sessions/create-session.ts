// Dialing and hosting: whether a sign-in may, in the order in which clients know the refusals, and the session it gets.
import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import { postureChecks } from '../../definitions/resources/posture-checks.ts'
import { services } from '../../definitions/resources/services.ts'
import { sessions } from '../../definitions/resources/sessions.ts'
import type { Tags } from '../../definitions/schema/fields.ts'
import { errors, invalidError, notFoundError } from '../../foundation/errors.ts'
import { newId } from '../../foundation/ids.ts'
import type { PolicyType } from '../../policy/policy-index.ts'
import { describeComparison } from '../../policy/posture/descriptions.ts'
import type { FailedServiceRequests } from '../../policy/posture/failed-service-requests.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import { type EntityStore, find, newEntity } from '../../storage/entities/entities.ts'
import { getRecordTable } from '../../storage/entities/record-tables.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { Access } from '../access.ts'
import { loadNamesByIds } from '../advice/subject.ts'
import type { SessionIds } from './session-ids.ts'
import type { SessionTokens } from './session-tokens.ts'

/** The parts that open sessions. */
export interface SessionParts {
  readonly access: Access
  readonly auth: { readonly apiSessions: Pick<ApiSessions, 'deriveToken'> }
  readonly entities: EntityStore
  readonly posture: { readonly failedRequests: FailedServiceRequests }
  readonly sessionIds: SessionIds
  readonly sessionTokens: Pick<SessionTokens, 'areSigned' | 'isOutdated'>
}

/** The caller that asks for a session. */
export interface SessionOwner {
  readonly identity: RoleBearer
  readonly isAdmin: boolean
  readonly apiSessionId: string
}

export interface SessionRequest {
  readonly serviceId: string
  /** `Invalid` is a word that clients may send, and that is refused after everything else. */
  readonly type: PolicyType | 'Invalid'
  readonly tags: Tags
}

const findExistingSession = prepareQuery((db, apiSessionId: string, serviceId: string, type: SessionRequest['type']) =>
  db
    .selectFrom('sessions')
    .select(['id', 'type', 'hasSignedToken'])
    .where('apiSessionId', '=', apiSessionId)
    .where('serviceId', '=', serviceId)
    .where('type', '=', type as PolicyType),
)

/**
 * The id of the session by which a sign-in reaches a service: the one that it has already, else a new one.
 * @throws NOT_FOUND for a service that it does not see, COULD_NOT_VALIDATE if no policy of the type grants it,
 *   INVALID_POSTURE, NO_EDGE_ROUTERS_AVAILABLE
 */
export async function createSession(
  parts: SessionParts,
  context: Context,
  dialer: SessionOwner,
  request: SessionRequest,
): Promise<string> {
  const { serviceId, type } = request
  const { areSigned } = parts.sessionTokens
  const key = { apiSessionId: dialer.apiSessionId, serviceId, type, isSigned: areSigned }
  const cachedId = parts.sessionIds.get(key)
  if (cachedId !== undefined) return cachedId
  const [existing] = await findExistingSession(context.db, key.apiSessionId, serviceId, type)
  if (!existing) return insertSession(parts, context, dialer, request)
  const form = { type: existing.type, hasSignedToken: existing.hasSignedToken === 1 }
  if (parts.sessionTokens.isOutdated(form)) await noteSignedToken(parts, context, existing.id)
  parts.sessionIds.set(key, existing.id)
  return existing.id
}

/** Stores that the client of a session asked for it again, and so receives a signed token. */
async function noteSignedToken({ entities }: SessionParts, context: Context, id: string): Promise<void> {
  await context.write(async (tx) => {
    const session = await find(tx, sessions, id)
    if (session) await entities.update(tx, sessions, session, { hasSignedToken: true }, { audit: 'none' })
  })
}

async function insertSession(
  parts: SessionParts,
  context: Context,
  dialer: SessionOwner,
  request: SessionRequest,
): Promise<string> {
  const { apiSessionId, identity } = dialer
  const { serviceId, type, tags } = request
  const grantedType = await requireReachable(parts, context, dialer, request)
  return context.write(async (tx) => {
    // Another request of the same client may have come first.
    const [existing] = await findExistingSession(tx.db, apiSessionId, serviceId, type)
    if (existing) return existing.id
    // The token follows from the id, so that routers can be told about its end when only the id is left.
    const id = newId()
    const opaqueToken = parts.auth.apiSessions.deriveToken(id)
    const hasSignedToken = parts.sessionTokens.areSigned
    const values = {
      id,
      apiSessionId,
      identityId: identity.id,
      serviceId,
      type: grantedType,
      tags,
      opaqueToken,
      hasSignedToken,
    }
    return (await parts.entities.insert(tx, sessions, newEntity(tx, sessions, values), { audit: 'none' })).id
  })
}

async function requireReachable(
  parts: SessionParts,
  context: Context,
  dialer: SessionOwner,
  { serviceId, type }: SessionRequest,
): Promise<PolicyType> {
  const { access } = parts
  const { identity, isAdmin, apiSessionId } = dialer
  const isVisible = isAdmin
    ? await getRecordTable(services).exists(context.db, serviceId)
    : access.isVisible(identity, serviceId)
  if (!isVisible) throw notFoundError('service', serviceId)
  if (type !== 'Invalid') {
    const decision = access.decide({ identity, serviceId, type, apiSessionId })
    if (!decision.isGranted) {
      throw invalidError('ServiceId', `is not a service that this identity may ${type.toLowerCase()}`, serviceId)
    }
    if (!decision.isAllowed) throw await recordPostureFailure(parts, context, dialer, serviceId, type)
  }
  if (access.listCommonRouters(identity, serviceId).length === 0) throw errors.NO_EDGE_ROUTERS_AVAILABLE()
  if (type === 'Invalid') throw invalidError('type', 'must be Dial or Bind', type)
  return type
}

/** Records the request among the failed ones of the identity. Returns INVALID_POSTURE with the checks that do not pass, by policy. */
async function recordPostureFailure(
  { access, posture }: SessionParts,
  { db, clock }: Context,
  { identity, apiSessionId }: SessionOwner,
  serviceId: string,
  type: PolicyType,
): Promise<Error> {
  const question = { identity, serviceId, type, apiSessionId }
  const { facts } = access.evaluatePosture(question)
  const now = clock.now()
  const failures = access.decide(question).policies.map(({ policy, findings }) => ({
    policy,
    checks: findings.flatMap(({ check, evidence }) => (evidence === 'passing' ? [] : [check])),
  }))
  const names = await loadNamesByIds({ db }, postureChecks, [
    ...new Set(failures.flatMap(({ checks }) => checks.map(({ id }) => id))),
  ])
  const [service] = (await loadNamesByIds({ db }, services, [serviceId])).values()
  posture.failedRequests.add(identity.id, {
    when: now,
    apiSessionId,
    serviceId,
    serviceName: service ?? '',
    sessionType: type,
    policyFailures: failures.map(({ policy, checks }) => ({
      policyId: policy.id,
      policyName: policy.name,
      checks: checks.map((check) => ({
        postureCheckId: check.id,
        postureCheckName: names.get(check.id) ?? '',
        postureCheckType: check.typeId,
        ...describeComparison(check, facts, now),
      })),
    })),
  })
  const data = Object.fromEntries(
    failures.map(({ policy, checks }) => [
      policy.id,
      checks.map(({ id, typeId }) => ({ id, typeId, isPassing: false })),
    ]),
  )
  return errors.INVALID_POSTURE({ message: 'posture checks of every policy that grants the service fail', data })
}
