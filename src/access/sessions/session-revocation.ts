// Revokes the sessions that a change de-authorizes, in the transaction of that change.

import { MFA_TIMES } from '../../authentication/sessions/live-api-sessions.ts'
import { sessions } from '../../definitions/resources/sessions.ts'
import type { Instant } from '../../foundation/clock.ts'
import type { PolicyReader, PolicyType, ServicePolicyRecord } from '../../policy/policy-index.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import type { PostureCheck } from '../../policy/posture/posture-checks.ts'
import {
  matchesSelector,
  mergeSelectors,
  parseRoleSelector,
  type RoleBearer,
  type RoleSelector,
} from '../../policy/role-selector.ts'
import type { Change } from '../../storage/changes.ts'
import type { WriteContext } from '../../storage/context.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { Access } from '../access.ts'
import type { Decision } from '../decision.ts'
import type { RecordChange } from '../index-updates.ts'
import type { PostureDeadlines } from '../posture/posture-deadlines.ts'
import { POSTURE } from '../posture/posture-events.ts'

/** A session with what decides whether it may live. */
interface CandidateSession {
  readonly id: string
  readonly createdAt: Instant
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

/** What decides whether sessions live, and when they have to be judged again. */
export interface RevocationParts {
  readonly access: Access
  readonly deadlines: PostureDeadlines
}

/**
 * Revokes every session that the changes of this transaction de-authorize; administrators' sessions too.
 * @param earlierChanges the changes of the transactions that commit together with this one; memory does not hold them yet
 */
export async function revokeSessions(
  { access, deadlines }: RevocationParts,
  tx: WriteContext,
  earlierChanges: readonly Change[],
  ownChanges: readonly Change[],
): Promise<void> {
  const judged = await judgeSessions({ access, db: tx.db }, earlierChanges, ownChanges)
  const revokedSessions: CandidateSession[] = []
  for (const { session, decision } of judged) {
    if (deadlines.isKept(session, decision)) deadlines.schedule(session.identity.id, decision)
    else revokedSessions.push(session)
  }
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
  const judged = await judgeSessions(context, earlierChanges, ownChanges)
  return judged.flatMap(({ session, decision }) => (decision.isAllowed ? [] : session))
}

interface JudgedSession {
  readonly session: CandidateSession
  readonly decision: Decision
}

/** The sessions that one of the changes can concern, with what is decided about them after the changes. */
async function judgeSessions(
  context: Reading,
  earlierChanges: readonly RecordChange[],
  ownChanges: readonly RecordChange[],
): Promise<JudgedSession[]> {
  const concerned = new Map<string, CandidateSession>()
  const add = (sessions: readonly CandidateSession[]) => {
    for (const session of sessions) concerned.set(session.id, session)
  }
  for (const change of ownChanges) {
    add(await findCandidates(context, earlierChanges, ownChanges, change))
    add(await findMfaCandidates(context, [...earlierChanges, ...ownChanges], change))
  }
  const identityIds = ownChanges.flatMap(({ resource, id }) => (resource === POSTURE ? [id] : []))
  if (identityIds.length > 0) add(await querySessions(context, { identityIds }))
  if (concerned.size === 0) return []
  const { access } = context
  return access.withHypothetical([...earlierChanges, ...ownChanges], () =>
    [...concerned.values()].map((session) => ({ session, decision: access.decide(session) })),
  )
}

const findSessionIds = prepareQuery((db, identityId: string) =>
  db.selectFrom('sessions').select('id').where('identityId', '=', identityId),
)

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
      return (await findSessionIds(tx.db, id)).length > 0 ? querySessions(tx, { identityIds: [id] }) : []
    case 'services':
      return after && losesEntries(before, after, 'roleAttributes') ? querySessions(tx, { serviceIds: [id] }) : []
    case 'service-policies':
      return before && !onlyGrows(before, after)
        ? findPolicyCandidates(tx, earlierChanges, toGrant(before as unknown as ServicePolicyRecord))
        : []
    // A policy demands a check that it did not demand before, because the check is new or has a role attribute more; or the
    // check demands something else.
    case 'posture-checks':
      return after && (gainsEntries(before, after, 'roleAttributes') || !hasSameDetails(before, after))
        ? findCheckCandidates(tx, [...earlierChanges, ...ownChanges], id)
        : []
    // Its MFA was removed, or its machine woke or was unlocked.
    case 'api-sessions':
      return before && after && hasOtherMfa(before, after) && tx.access.index.hasPostureChecks
        ? querySessions(tx, { apiSessionIds: [id] })
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

function hasSameDetails(before: Values | undefined, after: Values): boolean {
  return before?.details === after.details || JSON.stringify(before?.details) === JSON.stringify(after.details)
}

function hasOtherMfa(before: Values, after: Values): boolean {
  return MFA_TIMES.some((time) => before[time] !== after[time])
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

/**
 * The sessions of identities of which a change may demand MFA with a shorter timeout than before: then it times out sooner for
 * all their policies.
 */
async function findMfaCandidates(
  tx: Reading,
  changes: readonly RecordChange[],
  { resource, id, before, after }: RecordChange,
): Promise<CandidateSession[]> {
  if (!after || !mayDemandPosture(tx, changes)) return []
  const demandsMfa = (index: PolicyReader, policy: IndexedPolicy) =>
    index.listRequiredPostureChecks(policy).some(hasMfaTimeout)
  if (resource === 'identities') {
    if (!before || !gainsEntries(before, after, 'roleAttributes')) return []
    const identity = { id, attributes: after.roleAttributes as string[] }
    const isConcerned = tx.access.withHypothetical(changes, (index) =>
      index.findServicePolicies(identity).some((policy) => demandsMfa(index, policy)),
    )
    return isConcerned ? querySessions(tx, { identityIds: [id] }) : []
  }
  const isDemanding = ((after.postureCheckRoles ?? []) as readonly string[]).length > 0
  if (resource !== 'posture-checks' && !(resource === 'service-policies' && isDemanding)) return []
  const selectors = tx.access.withHypothetical(changes, (index) => {
    const policies =
      resource === 'posture-checks' ? index.findServicePoliciesOfPostureCheck(id) : [index.findServicePolicy(id)]
    return policies.flatMap((policy) => (policy && demandsMfa(index, policy) ? [policy.subjects] : []))
  })
  const candidates: CandidateSession[] = []
  for (const identities of mergeSelectors(selectors)) candidates.push(...(await querySessions(tx, { identities })))
  return candidates
}

/** Whether there are posture checks, or one is created: most networks have none, and identities are changed often. */
function mayDemandPosture({ access }: Reading, changes: readonly RecordChange[]): boolean {
  return access.index.hasPostureChecks || changes.some(({ resource }) => resource === 'posture-checks')
}

function hasMfaTimeout(check: PostureCheck): boolean {
  return check.typeId === 'MFA' && check.timeoutMs !== Number.POSITIVE_INFINITY
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
  readonly apiSessionIds?: readonly string[]
  readonly serviceIds?: readonly string[]
  /** Sessions of identities that have one of the side's attributes, or are named by it. */
  readonly identities?: RoleSelector
  readonly type?: PolicyType
}

async function querySessions({ db }: Reading, wanted: SessionCriteria): Promise<CandidateSession[]> {
  let query = db
    .selectFrom('sessions as session')
    .innerJoin('identities as identity', 'identity.id', 'session.identityId')
    .select(['session.id', 'session.createdAt', 'session.serviceId', 'session.type', 'session.apiSessionId'])
    .select(['session.identityId', 'identity.roleAttributes'])
  const { ids, identityIds, apiSessionIds, serviceIds, identities, type } = wanted
  if (type) query = query.where('session.type', '=', type)
  if (ids) query = query.where(isOneOf(db, 'session.id', ids))
  if (identityIds) query = query.where(isOneOf(db, 'session.identityId', identityIds))
  if (apiSessionIds) query = query.where(isOneOf(db, 'session.apiSessionId', apiSessionIds))
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
  return rows.map(({ id, createdAt, serviceId, type, apiSessionId, identityId, roleAttributes }) => ({
    id,
    createdAt,
    serviceId,
    type,
    apiSessionId,
    identity: { id: identityId, attributes: JSON.parse(roleAttributes) as string[] },
  }))
}
