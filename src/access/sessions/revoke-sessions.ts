// Revokes the sessions that a change de-authorizes, in the transaction of that change.

import { hasOtherMfa } from '../../authentication/api-sessions/live-api-sessions.ts'
import { postureChecks } from '../../definitions/resources/posture-checks.ts'
import { sessions } from '../../definitions/resources/sessions.ts'
import type { Instant } from '../../foundation/clock.ts'
import type { PolicyReader, PolicyType } from '../../policy/policy-index.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import {
  matchesSelector,
  mergeSelectors,
  parseRoleSelector,
  type RoleBearer,
  type RoleSelector,
} from '../../policy/role-selector.ts'
import type { EntityStore } from '../../storage/entities/entities.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { ChangeOf, RecordChange, RecordOf } from '../../storage/transactions/changes.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { Access } from '../access.ts'
import type { Decision } from '../decision.ts'
import type { PostureDeadlines } from '../posture/posture-deadlines.ts'

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

/** The parts that decide whether a session may live, and until when. */
export interface RevocationParts {
  readonly access: Access
  readonly deadlines: PostureDeadlines
  readonly entities: EntityStore
}

/** Revokes every session that the changes of this transaction de-authorize; administrators' sessions too. */
export async function revokeSessions(
  { access, deadlines, entities }: RevocationParts,
  tx: WriteContext,
): Promise<void> {
  const { own, all } = tx.uncommitted
  const judged = await judgeSessions({ access, db: tx.db }, own, all)
  const revokedSessions: CandidateSession[] = []
  for (const { session, decision } of judged) {
    if (decision.isAllowed) deadlines.schedule(session.identity.id, decision)
    else revokedSessions.push(session)
  }
  if (revokedSessions.length === 0) return
  const ids = revokedSessions.map(({ id }) => id)
  await entities.removeAllIn(tx, sessions, ids)
}

/** The sessions that changes de-authorize. Only the sessions that one of the changes can concern are examined. */
export async function findRevokedSessions(
  context: Reading,
  changes: readonly RecordChange[],
): Promise<CandidateSession[]> {
  const judged = await judgeSessions(context, changes, changes)
  return judged.flatMap(({ session, decision }) => (decision.isAllowed ? [] : session))
}

interface JudgedSession {
  readonly session: CandidateSession
  readonly decision: Decision
}

/**
 * The sessions that one of the changes can concern, with what is decided about them after the changes.
 * @param allChanges the changes, and those that memory does not know yet either
 */
async function judgeSessions(
  context: Reading,
  changes: readonly RecordChange[],
  allChanges: readonly RecordChange[],
): Promise<JudgedSession[]> {
  const { access } = context
  const mayDemandPosture =
    access.index.hasPostureChecks || allChanges.some(({ resource }) => resource === postureChecks.plural)
  const relevant = changes.filter((change) => mayDeauthorize(change, mayDemandPosture))
  if (relevant.length === 0) return []
  const criteria = access.withHypothetical(allChanges, (index) =>
    relevant.flatMap((change) => listConcerned(index, change)),
  )
  const concerned = new Map<string, CandidateSession>()
  for (const each of criteria)
    for (const session of await querySessions(context, each)) concerned.set(session.id, session)
  if (concerned.size === 0) return []
  return access.withHypothetical(allChanges, () =>
    [...concerned.values()].map((session) => ({ session, decision: access.decide(session) })),
  )
}

/**
 * Whether a change may de-authorize sessions, as far as it says so itself: most do not, and cost no more than this.
 * @param mayDemandPosture whether there are posture checks, or one is created: most networks have none
 */
function mayDeauthorize(change: RecordChange, mayDemandPosture: boolean): boolean {
  switch (change.resource) {
    case 'identities': {
      const { before, after } = change
      if (!after) return false
      const mayTimeOutSooner = mayDemandPosture && before !== undefined && gains(before, after, 'roleAttributes')
      return mayTimeOutSooner || loses(before, after, 'roleAttributes')
    }
    case 'services':
      return change.after !== undefined && loses(change.before, change.after, 'roleAttributes')
    case 'service-policies':
      return (
        (change.before && !onlyGrows(change.before, change.after)) || (mayDemandPosture && isDemanding(change.after))
      )
    case 'posture-checks':
      return change.after !== undefined
    // Its MFA was removed, or its machine woke or was unlocked.
    case 'api-sessions':
      return mayDemandPosture && hasOtherMfa(change.before, change.after)
    // The right may have gone since it was asked for.
    case 'sessions':
      return change.after !== undefined
    case 'machines':
      return true
    default:
      return false
  }
}

/** The sessions that a change may de-authorize, found in the index as it is after the changes. */
function listConcerned(index: PolicyReader, change: RecordChange): SessionCriteria[] {
  const { id } = change
  switch (change.resource) {
    case 'identities':
      return change.after && (loses(change.before, change.after, 'roleAttributes') || demandsMfa(index, change.after))
        ? [{ identityIds: [id] }]
        : []
    case 'services':
      return [{ serviceIds: [id] }]
    case 'service-policies':
      return listOfPolicy(index, change)
    case 'posture-checks':
      return listOfCheck(index, change)
    case 'api-sessions':
      return [{ apiSessionIds: [id] }]
    case 'sessions':
      return [{ ids: [id] }]
    case 'machines':
      return [{ identityIds: [id] }]
    default:
      return []
  }
}

type Policy = RecordOf<'service-policies'>
type Identity = RecordOf<'identities'>

/** Whether a list lacks an entry that it had before. */
function loses<Field extends string>(
  before: Readonly<Record<Field, readonly string[]>> | undefined,
  after: Readonly<Record<Field, readonly string[]>>,
  field: Field,
): boolean {
  return before?.[field].some((entry) => !after[field].includes(entry)) ?? false
}

/** Also of a record that is new, and has had none. */
function gains<Field extends string>(
  before: Readonly<Record<Field, readonly string[]>> | undefined,
  after: Readonly<Record<Field, readonly string[]>>,
  field: Field,
): boolean {
  return before ? loses(after, before, field) : true
}

/** Whether a policy grants at least what it granted before, and demands at most what it demanded. */
function onlyGrows(before: Policy, after: Policy | undefined): boolean {
  if (!after || before.type !== after.type) return false
  const sides = ['identityRoles', 'serviceRoles'] as const
  if (after.semantic === 'AnyOf') {
    const demandsMore = before.semantic === 'AllOf' || gains(before, after, 'postureCheckRoles')
    return !(demandsMore && isDemanding(after)) && sides.every((side) => !loses(before, after, side))
  }
  const isSame = (side: (typeof sides)[number] | 'postureCheckRoles') => String(before[side]) === String(after[side])
  return before.semantic === 'AllOf' && [...sides, 'postureCheckRoles' as const].every(isSame)
}

function isDemanding(policy: Policy | undefined): boolean {
  return policy !== undefined && policy.postureCheckRoles.length > 0
}

/** Whether a policy of the identity demands MFA with a timeout: if it is shorter than others, MFA times out sooner for all of them. */
function demandsMfa(index: PolicyReader, { id, roleAttributes }: Identity): boolean {
  return index.findServicePolicies({ id, attributes: roleAttributes }).some((policy) => hasMfaTimeout(index, policy))
}

function hasMfaTimeout(index: PolicyReader, policy: IndexedPolicy): boolean {
  return index
    .listRequiredPostureChecks(policy)
    .some((check) => check.typeId === 'MFA' && check.timeoutMs !== Number.POSITIVE_INFINITY)
}

/** The grant of a policy: its type, the identities and the services. */
interface Grant {
  readonly type: PolicyType
  readonly identities: RoleSelector
  readonly services: RoleSelector
}

function toGrant({ type, semantic, identityRoles, serviceRoles }: Policy): Grant {
  return {
    type,
    identities: parseRoleSelector(semantic, identityRoles),
    services: parseRoleSelector(semantic, serviceRoles),
  }
}

/** The sessions that a policy granted which now grants less, and those of its identities if it demands MFA. */
function listOfPolicy(index: PolicyReader, { id, before, after }: ChangeOf<'service-policies'>): SessionCriteria[] {
  const lostGrants = before && !onlyGrows(before, after) ? [listOfGrant(index, toGrant(before))] : []
  const policy = isDemanding(after) ? index.findServicePolicy(id) : undefined
  return policy && hasMfaTimeout(index, policy) ? [...lostGrants, { identities: policy.subjects }] : lostGrants
}

/**
 * The sessions that policies grant which demand a posture check, if it demands something else or is demanded by more of them; and
 * those of their identities if it is one of MFA.
 */
function listOfCheck(index: PolicyReader, { id, before, after }: ChangeOf<'posture-checks'>): SessionCriteria[] {
  if (!after) return []
  const demanding = index.findServicePoliciesOfPostureCheck(id)
  const hasSameDetails = JSON.stringify(before?.details) === JSON.stringify(after.details)
  const demandedGrants =
    gains(before, after, 'roleAttributes') || !hasSameDetails
      ? demanding.map(({ type, subjects: identities, objects: services }) =>
          listOfGrant(index, { type: type as PolicyType, identities, services }),
        )
      : []
  const timedOut = demanding.filter((policy) => hasMfaTimeout(index, policy)).map(({ subjects }) => subjects)
  return [...demandedGrants, ...mergeSelectors(timedOut).map((identities) => ({ identities }))]
}

/** The sessions that a policy may have granted: found from the side that says most about them. */
function listOfGrant(index: PolicyReader, { type, identities, services }: Grant): SessionCriteria {
  const areFewIdentities = !identities.isAll && identities.attributes.size === 0
  if (areFewIdentities) return { type, identityIds: [...identities.ids], matching: identities }
  if (!services.isAll) return { type, serviceIds: index.listMatchingServices(services), matching: identities }
  return { type, identities, matching: identities }
}

const findSessionIds = prepareQuery((db, identityId: string) =>
  db.selectFrom('sessions').select('id').where('identityId', '=', identityId),
)

interface SessionCriteria {
  readonly ids?: readonly string[]
  readonly identityIds?: readonly string[]
  readonly apiSessionIds?: readonly string[]
  readonly serviceIds?: readonly string[]
  /** Sessions of identities that have one of the side's attributes, or are named by it. */
  readonly identities?: RoleSelector
  readonly type?: PolicyType
  /** Only those of identities that the side selects. */
  readonly matching?: RoleSelector
}

async function querySessions({ db }: Reading, wanted: SessionCriteria): Promise<CandidateSession[]> {
  const { ids, identityIds, apiSessionIds, serviceIds, identities, type, matching } = wanted
  // Most identities hold no session, and are changed often: this is a look into one index.
  const [identityId, ...others] = identityIds ?? []
  if (identityId !== undefined && others.length === 0 && (await findSessionIds(db, identityId)).length === 0) return []
  let query = db
    .selectFrom('sessions as session')
    .innerJoin('identities as identity', 'identity.id', 'session.identityId')
    .select(['session.id', 'session.createdAt', 'session.serviceId', 'session.type', 'session.apiSessionId'])
    .select(['session.identityId', 'identity.roleAttributes'])
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
  // An identity is read once for each of its sessions, and most identities have the attributes of others.
  const attributesByText = new Map<string, readonly string[]>()
  const candidates: CandidateSession[] = []
  for (const { id, createdAt, serviceId, type, apiSessionId, identityId, roleAttributes } of await query.execute()) {
    let attributes = attributesByText.get(roleAttributes)
    if (!attributes) {
      attributes = JSON.parse(roleAttributes) as string[]
      attributesByText.set(roleAttributes, attributes)
    }
    const identity = { id: identityId, attributes }
    if (matching && !matchesSelector(matching, identity)) continue
    candidates.push({ id, createdAt, serviceId, type, apiSessionId, identity })
  }
  return candidates
}
