// Dialing and hosting: whether a sign-in may, in the order in which clients know the refusals, and the session it gets.
import type { Context } from '../context.ts'
import { errors, invalid, notFound } from '../errors.ts'
import { newToken } from '../ids.ts'
import type { PolicyType } from '../policy/policy-index.ts'
import type { Attributed } from '../policy/side.ts'
import { services } from '../resources/services.ts'
import { sessions } from '../resources/sessions.ts'
import type { Tags } from '../schema/fields.ts'
import { insert, newEntity } from '../store/entities.ts'
import { kept } from '../store/kept.ts'
import { recordTable } from '../store/record-tables.ts'
import { isOneOf, untyped } from '../store/untyped.ts'
import { allOf, findingsOf, type PostureSubject } from './posture.ts'

/** Who asks. */
export interface Dialer {
  readonly identity: Attributed
  readonly isAdmin: boolean
  readonly apiSessionId: string
}

export interface SessionRequest {
  readonly serviceId: string
  /** `Invalid` is a word that clients may send, and that is refused after everything else. */
  readonly type: PolicyType | 'Invalid'
  readonly tags: Tags
}

const existing = kept<[apiSessionId: string, serviceId: string, type: string], { id: string }>(
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
export async function openSession(context: Context, dialer: Dialer, request: SessionRequest): Promise<string> {
  const { apiSessionId, identity } = dialer
  const { serviceId, type, tags } = request
  const [present] = await existing(context.db, apiSessionId, serviceId, type)
  if (present) return present.id
  await assertReachable(context, dialer, request)
  return context.write(async (tx) => {
    // Another request of the same client may have come first.
    const [made] = await existing(tx.db, apiSessionId, serviceId, type)
    if (made) return made.id
    const values = { apiSessionId, identityId: identity.id, serviceId, type, tags, token: newToken() }
    return (await insert(tx, sessions, newEntity(tx, sessions, values), undefined, 'none')).id
  })
}

async function assertReachable(
  context: Context,
  { identity, isAdmin, apiSessionId }: Dialer,
  { serviceId, type }: SessionRequest,
): Promise<void> {
  const { access } = context.controller
  const isVisible = isAdmin
    ? await recordTable(services).exists(context.db, serviceId)
    : access.mayReach(identity, serviceId)
  if (!isVisible) throw notFound('service', serviceId)
  if (type !== 'Invalid') {
    if (!access.mayReach(identity, serviceId, type)) {
      throw invalid('ServiceId', `is no service that this identity may ${type.toLowerCase()}`, serviceId)
    }
    await assertPosture(context, { identityId: identity.id, apiSessionId }, identity, { serviceId, type })
  }
  if (access.commonRouters(identity, serviceId).length === 0) throw errors.NO_EDGE_ROUTERS_AVAILABLE()
  if (type === 'Invalid') throw invalid('type', 'must be Dial or Bind', type)
}

/** One policy whose checks all pass is enough. @throws INVALID_POSTURE with what failed, by policy */
async function assertPosture(
  { db, controller: { access } }: Context,
  subject: PostureSubject,
  identity: Attributed,
  { serviceId, type }: { readonly serviceId: string; readonly type: PolicyType },
): Promise<void> {
  const failed = new Map<string, readonly string[]>()
  for (const policy of access.granting(access.policiesOf(identity, type), serviceId)) {
    const findings = findingsOf(access, policy, subject)
    if (allOf(findings) === 'passing') return
    const missing = findings.filter(({ evidence }) => evidence !== 'passing')
    failed.set(
      policy.id,
      missing.map(({ postureCheckId }) => postureCheckId),
    )
  }
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
  throw errors.INVALID_POSTURE({ message: 'posture checks of every policy that grants the service fail', data })
}
