// Dialing and hosting: whether a sign-in may, in the order in which clients know the refusals, and the session it gets.
import type { Context } from '../context.ts'
import { errors, invalidError, notFoundError } from '../errors.ts'
import { newToken } from '../ids.ts'
import type { PolicyType } from '../policy/policy-index.ts'
import type { RoleBearer } from '../policy/role-selector.ts'
import { services } from '../resources/services.ts'
import { sessions } from '../resources/sessions.ts'
import type { Tags } from '../schema/fields.ts'
import { type EntityStore, newEntity } from '../store/entities.ts'
import { prepareQuery } from '../store/prepared-queries.ts'
import { getRecordTable } from '../store/record-tables.ts'
import { isOneOf, untyped } from '../store/untyped.ts'
import type { Access } from './access.ts'
import type { EvaluatedPolicy } from './decision.ts'

/** What sessions are opened with. */
export interface SessionParts {
  readonly access: Access
  readonly entities: EntityStore
}

/** Who asks. */
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

const existingSession = prepareQuery<[apiSessionId: string, serviceId: string, type: string], { id: string }>(
  (db, apiSessionId, serviceId, type) =>
    db
      .selectFrom('sessions')
      .select('id')
      .where('apiSessionId', '=', apiSessionId)
      .where('serviceId', '=', serviceId)
      .where('type', '=', type) as never,
)

/**
 * The id of the session by which a sign-in reaches a service: the one that it has already, else a new one.
 * @throws NOT_FOUND for a service that it does not see, COULD_NOT_VALIDATE where no policy of the type grants it,
 *   INVALID_POSTURE, NO_EDGE_ROUTERS_AVAILABLE
 */
export async function createSession(
  parts: SessionParts,
  context: Context,
  dialer: SessionOwner,
  request: SessionRequest,
): Promise<string> {
  const { apiSessionId, identity } = dialer
  const { serviceId, type, tags } = request
  const [present] = await existingSession(context.db, apiSessionId, serviceId, type)
  if (present) return present.id
  const grantedType = await requireReachable(parts.access, context, dialer, request)
  return context.write(async (tx) => {
    // Another request of the same client may have come first.
    const [made] = await existingSession(tx.db, apiSessionId, serviceId, type)
    if (made) return made.id
    const values = { apiSessionId, identityId: identity.id, serviceId, type: grantedType, tags, token: newToken() }
    return (await parts.entities.insert(tx, sessions, newEntity(tx, sessions, values), undefined, 'none')).id
  })
}

async function requireReachable(
  access: Access,
  context: Context,
  { identity, isAdmin, apiSessionId }: SessionOwner,
  { serviceId, type }: SessionRequest,
): Promise<PolicyType> {
  const isVisible = isAdmin
    ? await getRecordTable(services).exists(context.db, serviceId)
    : access.isVisible(identity, serviceId)
  if (!isVisible) throw notFoundError('service', serviceId)
  if (type !== 'Invalid') {
    const decision = access.decide({ identity, serviceId, type, apiSessionId })
    if (!decision.isGranted) {
      throw invalidError('ServiceId', `is not a service that this identity may ${type.toLowerCase()}`, serviceId)
    }
    if (!decision.isAllowed) throw await makePostureError(context, decision.policies)
  }
  if (access.listCommonRouters(identity, serviceId).length === 0) throw errors.NO_EDGE_ROUTERS_AVAILABLE()
  if (type === 'Invalid') throw invalidError('type', 'must be Dial or Bind', type)
  return type
}

/** INVALID_POSTURE with the checks that do not pass, by policy. */
async function makePostureError({ db }: Context, policies: readonly EvaluatedPolicy[]): Promise<Error> {
  const failed = new Map(
    policies.map(({ policy, findings }) => [
      policy.id,
      findings.flatMap(({ postureCheckId, evidence }) => (evidence === 'passing' ? [] : [postureCheckId])),
    ]),
  )
  const rows = await untyped(db)
    .selectFrom('posture_checks')
    .select(['id', 'typeId'])
    .where(isOneOf(db, 'id', [...failed.values()].flat()))
    .execute()
  const typeOf = new Map(rows.map(({ id, typeId }) => [id, typeId]))
  const data = Object.fromEntries(
    [...failed].map(([policyId, ids]) => [
      policyId,
      ids.map((id) => ({ id, typeId: typeOf.get(id), isPassing: false })),
    ]),
  )
  return errors.INVALID_POSTURE({ message: 'posture checks of every policy that grants the service fail', data })
}
