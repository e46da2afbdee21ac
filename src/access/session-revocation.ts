// Ends the sessions that a change takes the right to, inside the transaction that makes it.
import type { WriteContext } from '../context.ts'
import type { PolicyType, ServicePolicyRecord } from '../policy/policy-index.ts'
import { matchesSelector, parseRoleSelector, type RoleBearer, type RoleSelector } from '../policy/role-selector.ts'
import { sessions } from '../resources/sessions.ts'
import type { Change } from '../store/changes.ts'
import { type PreparedQuery, prepareQuery } from '../store/prepared-queries.ts'
import { isOneOf } from '../store/untyped.ts'
import type { RecordChange } from './index-updates.ts'

/** A session with what decides whether it may live. */
interface CandidateSession {
  readonly id: string
  readonly serviceId: string
  readonly type: PolicyType
  readonly identity: RoleBearer
}

type Reading = Pick<WriteContext, 'db' | 'controller'>

/**
 * Ends every session whose right the changes of this transaction took away; whoever holds it, administrators included.
 * @param earlier what transactions changed that commit together with this one, and that memory has not heard of
 */
export async function revokeSessions(
  tx: WriteContext,
  earlier: readonly Change[],
  own: readonly Change[],
): Promise<void> {
  const lost = await findRevokedSessions(tx, earlier, own)
  if (lost.length === 0) return
  // All by one statement, because a policy may have been the right of thousands, and nothing belongs to a session.
  const ids = lost.map(({ id }) => id)
  await tx.db
    .deleteFrom('sessions')
    .where(isOneOf(tx.db, 'id', ids))
    .execute()
  const at = tx.clock.now()
  for (const { id, serviceId, type, identity } of lost) {
    const before = { id, serviceId, type, identityId: identity.id }
    tx.record({ operation: 'delete', audit: 'none', resource: sessions.plural, id, at, before })
  }
}

/** The sessions that changes take the right to. Only those are looked at that one of the changes can concern. */
export async function findRevokedSessions(
  context: Reading,
  earlier: readonly RecordChange[],
  own: readonly RecordChange[],
): Promise<CandidateSession[]> {
  const concerned = new Map<string, CandidateSession>()
  for (const change of own) {
    for (const session of await findCandidates(context, earlier, change)) concerned.set(session.id, session)
  }
  if (concerned.size === 0) return []
  return context.controller.access.withHypothetical([...earlier, ...own], (index) =>
    [...concerned.values()].filter(({ identity, serviceId, type }) => !index.mayReach(identity, serviceId, type)),
  )
}

const sessionIdsOfIdentity: PreparedQuery<[string], { id: string }> = prepareQuery((db, identityId) =>
  db.selectFrom('sessions').select('id').where('identityId', '=', identityId),
) as never

/** The sessions that a change may take the right of. */
async function findCandidates(
  tx: Reading,
  earlier: readonly RecordChange[],
  change: RecordChange,
): Promise<CandidateSession[]> {
  const { resource, id, before, after } = change
  switch (resource) {
    case 'identities':
      if (!after || !losesEntries(before, after, 'roleAttributes')) return []
      // Most identities hold no session, and are changed often: this is a look into one index.
      return (await sessionIdsOfIdentity(tx.db, id)).length > 0 ? querySessions(tx, { identityIds: [id] }) : []
    case 'services':
      return after && losesEntries(before, after, 'roleAttributes') ? querySessions(tx, { serviceIds: [id] }) : []
    case 'service-policies':
      return before && !onlyGrows(before, after)
        ? findPolicyCandidates(tx, earlier, before as unknown as ServicePolicyRecord)
        : []
    // The right may have gone since it was asked for.
    case 'sessions':
      return after ? querySessions(tx, { ids: [id] }) : []
    default:
      return []
  }
}

type Values = Readonly<Record<string, unknown>>

function losesEntries(before: Values | undefined, after: Values, field: string): boolean {
  const had = (before?.[field] ?? []) as readonly string[]
  const has = after[field] as readonly string[]
  return had !== has && had.some((entry) => !has.includes(entry))
}

/** Whether a policy grants at least what it granted before. */
function onlyGrows(before: Values, after: Values | undefined): boolean {
  if (!after || before.type !== after.type) return false
  const sides = ['identityRoles', 'serviceRoles']
  if (after.semantic === 'AnyOf') return sides.every((side) => !losesEntries(before, after, side))
  const isSame = (side: string) => String(before[side]) === String(after[side])
  return before.semantic === 'AllOf' && sides.every(isSame)
}

/** The sessions that a policy, as it was, may have granted: found from the side that says most about them. */
async function findPolicyCandidates(tx: Reading, earlier: readonly RecordChange[], policy: ServicePolicyRecord) {
  const { semantic, type } = policy
  const identities = parseRoleSelector(semantic, policy.identityRoles)
  const services = parseRoleSelector(semantic, policy.serviceRoles)
  const areFewIdentities = !identities.isAll && identities.attributes.size === 0
  const candidates = areFewIdentities
    ? await querySessions(tx, { type, identityIds: [...identities.ids] })
    : !services.isAll
      ? await querySessions(tx, { type, serviceIds: listMatchingServices(tx, earlier, services) })
      : await querySessions(tx, { type, identities })
  return candidates.filter(({ identity }) => matchesSelector(identities, identity))
}

function listMatchingServices({ controller }: Reading, earlier: readonly RecordChange[], side: RoleSelector): string[] {
  return controller.access.withHypothetical(earlier, (index) => index.servicesMatching(side))
}

interface SessionCriteria {
  readonly ids?: readonly string[]
  readonly identityIds?: readonly string[]
  readonly serviceIds?: readonly string[]
  /** Sessions of identities that have one of the side's attributes, or are named by it. */
  readonly identities?: RoleSelector
  readonly type?: PolicyType
}

async function querySessions({ db }: Reading, wanted: SessionCriteria): Promise<CandidateSession[]> {
  let query = db
    .selectFrom('sessions as session')
    .innerJoin('identities as identity', 'identity.id', 'session.identityId')
    .select(['session.id', 'session.serviceId', 'session.type', 'session.identityId', 'identity.roleAttributes'])
  const { ids, identityIds, serviceIds, identities, type } = wanted
  if (type) query = query.where('session.type', '=', type)
  if (ids) query = query.where(isOneOf(db, 'session.id', ids))
  if (identityIds) query = query.where(isOneOf(db, 'session.identityId', identityIds))
  if (serviceIds) query = query.where(isOneOf(db, 'session.serviceId', serviceIds))
  if (identities && !identities.isAll) {
    query = query.where((eb) =>
      eb.or([
        isOneOf(db, 'session.identityId', [...identities.ids]),
        eb(
          'identity.n',
          'in',
          eb
            .selectFrom('identities_role_attributes')
            .select('n')
            .where(isOneOf(db, 'value', [...identities.attributes])),
        ),
      ]),
    )
  }
  const rows = await query.execute()
  return rows.map(({ id, serviceId, type, identityId, roleAttributes }) => ({
    id,
    serviceId,
    type,
    identity: { id: identityId, attributes: JSON.parse(roleAttributes) as string[] },
  }))
}
