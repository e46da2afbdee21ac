// Revokes the sessions that a change de-authorizes, in the transaction of that change.
import type { WriteContext } from '../context.ts'
import type { PolicyType, ServicePolicyRecord } from '../policy/policy-index.ts'
import { matchesSelector, parseRoleSelector, type RoleBearer, type RoleSelector } from '../policy/role-selector.ts'
import { sessions } from '../resources/sessions.ts'
import type { Change } from '../store/changes.ts'
import { type PreparedQuery, prepareQuery } from '../store/prepared-queries.ts'
import { isOneOf } from '../store/untyped.ts'
import type { Access } from './access.ts'
import type { RecordChange } from './index-updates.ts'

/** A session with what decides whether it may live. */
interface CandidateSession {
  readonly id: string
  readonly serviceId: string
  readonly type: PolicyType
  readonly apiSessionId: string
  readonly identity: RoleBearer
}

/** The evaluator, and the database as the transaction sees it. */
interface Reading {
  readonly access: Access
  readonly db: WriteContext['db']
}

/**
 * Revokes every session that the changes of this transaction de-authorize; administrators' sessions too.
 * @param earlierChanges the changes of the transactions that commit together with this one; memory does not hold them yet
 */
export async function revokeSessions(
  access: Access,
  tx: WriteContext,
  earlierChanges: readonly Change[],
  ownChanges: readonly Change[],
): Promise<void> {
  const revokedSessions = await findRevokedSessions({ access, db: tx.db }, earlierChanges, ownChanges)
  if (revokedSessions.length === 0) return
  // All by one statement, because a policy may have been the right of thousands, and nothing belongs to a session.
  const ids = revokedSessions.map(({ id }) => id)
  await tx.db
    .deleteFrom('sessions')
    .where(isOneOf(tx.db, 'id', ids))
    .execute()
  const at = tx.clock.now()
  for (const { id, serviceId, type, identity } of revokedSessions) {
    const before = { id, serviceId, type, identityId: identity.id }
    tx.record({ operation: 'delete', audit: 'none', resource: sessions.plural, id, at, before })
  }
}

/** The sessions that changes de-authorize. Only the sessions that one of the changes can concern are examined. */
export async function findRevokedSessions(
  context: Reading,
  earlierChanges: readonly RecordChange[],
  ownChanges: readonly RecordChange[],
): Promise<CandidateSession[]> {
  const concerned = new Map<string, CandidateSession>()
  for (const change of ownChanges) {
    for (const session of await findCandidates(context, earlierChanges, ownChanges, change))
      concerned.set(session.id, session)
  }
  if (concerned.size === 0) return []
  const { access } = context
  return access.withHypothetical([...earlierChanges, ...ownChanges], () =>
    [...concerned.values()].filter((session) => !access.decide(session).isAllowed),
  )
}

const sessionIdsOfIdentity: PreparedQuery<[string], { id: string }> = prepareQuery((db, identityId) =>
  db.selectFrom('sessions').select('id').where('identityId', '=', identityId),
) as never

/** The sessions that a change may de-authorize. */
async function findCandidates(
  tx: Reading,
  earlierChanges: readonly RecordChange[],
  ownChanges: readonly RecordChange[],
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
        ? findPolicyCandidates(tx, earlierChanges, toGrant(before as unknown as ServicePolicyRecord))
        : []
    // A policy demands a check that it did not demand before: the check is new, or has a role attribute more.
    case 'posture-checks':
      return after && gainsEntries(before, after, 'roleAttributes')
        ? findCheckCandidates(tx, [...earlierChanges, ...ownChanges], id)
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

/** Also of a record that is new, and has had none. */
function gainsEntries(before: Values | undefined, after: Values, field: string): boolean {
  if (!before) return true
  return losesEntries(after, before, field)
}

/** Whether a policy grants at least what it granted before, and demands at most what it demanded. */
function onlyGrows(before: Values, after: Values | undefined): boolean {
  if (!after || before.type !== after.type) return false
  const sides = ['identityRoles', 'serviceRoles']
  if (after.semantic === 'AnyOf') {
    const demandsMore = before.semantic === 'AllOf' || gainsEntries(before, after, 'postureCheckRoles')
    const mayDemandMore = demandsMore && (after.postureCheckRoles as readonly string[]).length > 0
    return !mayDemandMore && sides.every((side) => !losesEntries(before, after, side))
  }
  const isSame = (side: string) => String(before[side]) === String(after[side])
  return before.semantic === 'AllOf' && [...sides, 'postureCheckRoles'].every(isSame)
}

/** What a policy grants to whom. */
interface Grant {
  readonly type: PolicyType
  readonly identities: RoleSelector
  readonly services: RoleSelector
}

function toGrant({ type, semantic, identityRoles, serviceRoles }: ServicePolicyRecord): Grant {
  return {
    type,
    identities: parseRoleSelector(semantic, identityRoles),
    services: parseRoleSelector(semantic, serviceRoles),
  }
}

/** The sessions that the policies grant that demand a posture check, as they are after the changes. */
async function findCheckCandidates(
  tx: Reading,
  changes: readonly RecordChange[],
  postureCheckId: string,
): Promise<CandidateSession[]> {
  const demanding = tx.access.withHypothetical(changes, (index) =>
    index.findServicePoliciesOfPostureCheck(postureCheckId),
  )
  const candidates: CandidateSession[] = []
  for (const { type, subjects: identities, objects: services } of demanding) {
    const grant = { type: type as PolicyType, identities, services }
    candidates.push(...(await findPolicyCandidates(tx, changes, grant)))
  }
  return candidates
}

/** The sessions that a policy may have granted: found from the side that says most about them. */
async function findPolicyCandidates(
  tx: Reading,
  earlierChanges: readonly RecordChange[],
  { type, identities, services }: Grant,
): Promise<CandidateSession[]> {
  const areFewIdentities = !identities.isAll && identities.attributes.size === 0
  const candidates = areFewIdentities
    ? await querySessions(tx, { type, identityIds: [...identities.ids] })
    : !services.isAll
      ? await querySessions(tx, { type, serviceIds: listMatchingServices(tx, earlierChanges, services) })
      : await querySessions(tx, { type, identities })
  return candidates.filter(({ identity }) => matchesSelector(identities, identity))
}

function listMatchingServices(
  { access }: Reading,
  earlierChanges: readonly RecordChange[],
  side: RoleSelector,
): string[] {
  return access.withHypothetical(earlierChanges, (index) => index.listMatchingServices(side))
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
    .select(['session.id', 'session.serviceId', 'session.type', 'session.apiSessionId'])
    .select(['session.identityId', 'identity.roleAttributes'])
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
  return rows.map(({ id, serviceId, type, apiSessionId, identityId, roleAttributes }) => ({
    id,
    serviceId,
    type,
    apiSessionId,
    identity: { id: identityId, attributes: JSON.parse(roleAttributes) as string[] },
  }))
}
