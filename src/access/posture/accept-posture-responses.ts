// Accepts what a client reports about its machine, with what follows: the services that it changes, and the sessions that it ends.
import type { ApiSessions } from '../../authentication/sessions/api-sessions.ts'
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import { NO_TIMEOUT_SECONDS, toTimeoutSeconds } from '../../policy/posture/mfa.ts'
import type { PostureCheckType } from '../../policy/posture/posture-checks.ts'
import { applyResponses, type DemandedProcesses, type PostureResponse } from '../../policy/posture/posture-responses.ts'
import type { Context } from '../../storage/context.ts'
import { type EntityStore, get } from '../../storage/entities/entities.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { Access } from '../access.ts'
import type { CheckFinding, PostureSubject } from '../decision.ts'
import { findRoleBearerOfSession } from '../role-bearers.ts'
import type { PostureDeadlines } from './posture-deadlines.ts'
import { recordPostureEvent } from './posture-events.ts'
import type { ReportedPosture } from './reported-posture.ts'

/** What responses are accepted with. */
export interface PostureResponseParts {
  readonly access: Access
  readonly entities: EntityStore
  readonly posture: ReportedPosture
  readonly deadlines: PostureDeadlines
  readonly sessions: ApiSessions
}

/** The client that reports. */
export interface Reporter {
  readonly identityId: string
  readonly apiSessionId: string
}

/** A service whose state a response has changed, by one type of posture check. Times are seconds; -1 means none. */
export interface ChangedService {
  readonly id: string
  readonly name: string
  readonly postureQueryType: PostureCheckType
  readonly timeout: number
  readonly timeoutRemaining: number
}

/** What a posture check found before and after the responses. */
interface ChangedFinding {
  readonly before: CheckFinding
  readonly after: CheckFinding
}

/**
 * Stores the responses of a client, all of them valid, and revokes the sessions of its identity that lose their right.
 * Returns the services of the identity whose state has changed. Only the posture checks that policies demand of the identity
 * are evaluated, and a transaction runs only if one of them stopped passing, or a machine woke or was unlocked.
 */
export async function acceptPostureResponses(
  parts: PostureResponseParts,
  context: Context,
  reporter: Reporter,
  responses: readonly PostureResponse[],
): Promise<ChangedService[]> {
  const { access, posture, sessions } = parts
  const { identityId, apiSessionId } = reporter
  const subject = { identity: await findRoleBearerOfSession(sessions, context, reporter), apiSessionId }
  const policies = access.findPolicies(subject.identity)
  const before = evaluateAll(access, subject, policies)
  // What can fail comes first: a report that is not stored as a whole must not count in part, and would not be announced.
  await storeEndpointState(parts, context, apiSessionId, responses)
  if (responses.some(({ typeId }) => typeId !== 'ENDPOINT_STATE')) {
    const demanded = listDemandedProcesses(access)
    posture.setMachine(
      identityId,
      applyResponses(posture.findMachine(identityId), responses, demanded, context.clock.now()),
    )
  }
  const changes = compareFindings(before, evaluateAll(access, subject, policies))
  if (changes.size === 0) return []
  await announce(parts, context, identityId, changes)
  return listChangedServices(access, context, policies, changes)
}

function evaluateAll(access: Access, subject: PostureSubject, policies: readonly IndexedPolicy[]): CheckFinding[] {
  const evaluation = access.evaluatePosture(subject)
  const findings = policies.flatMap((policy) => evaluation.evaluatePolicy(policy).findings)
  return findings
}

function compareFindings(
  before: readonly CheckFinding[],
  after: readonly CheckFinding[],
): ReadonlyMap<string, ChangedFinding> {
  const changes = new Map<string, ChangedFinding>()
  const findingsBefore = new Map(before.map((finding) => [finding.check.id, finding]))
  for (const finding of after) {
    const previous = findingsBefore.get(finding.check.id)
    if (previous && (previous.evidence !== finding.evidence || previous.failsAt !== finding.failsAt))
      changes.set(finding.check.id, { before: previous, after: finding })
  }
  return changes
}

/** What processes the posture checks ask for. The paths are collected when the first process is looked up. */
function listDemandedProcesses({ index }: Access): DemandedProcesses {
  let paths: ReadonlySet<string> | undefined
  const collectPaths = () =>
    new Set(
      [...index.listPostureChecks()].flatMap((check) =>
        check.typeId === 'PROCESS_MULTI' ? check.processes.map(({ path }) => path) : [],
      ),
    )
  return {
    isProcessCheck: (id) => index.findPostureCheck(id)?.typeId === 'PROCESS',
    isPathNamed(path) {
      paths ??= collectPaths()
      return paths.has(path)
    },
  }
}

/** Stores with the API session that its machine woke or was unlocked, because that must survive a restart. */
async function storeEndpointState(
  { entities }: PostureResponseParts,
  context: Context,
  apiSessionId: string,
  responses: readonly PostureResponse[],
): Promise<void> {
  const has = (event: 'woken' | 'unlocked') =>
    responses.some((response) => response.typeId === 'ENDPOINT_STATE' && response[event] === true)
  const [hasWoken, wasUnlocked] = [has('woken'), has('unlocked')]
  if (!hasWoken && !wasUnlocked) return
  await context.write(async (tx) => {
    const session = await get(tx, apiSessions, apiSessionId)
    // After the proof that it asks to renew, also within one millisecond.
    const at = Math.max(tx.clock.now(), (session.mfaPassedAt ?? 0) + 1)
    const changed = { ...(hasWoken ? { wokenAt: at } : {}), ...(wasUnlocked ? { unlockedAt: at } : {}) }
    await entities.update(tx, apiSessions, session, changed, { audit: 'none' })
  })
}

/** Tells the identity that its services changed, and revokes the sessions that have lost their right. */
async function announce(
  { access, deadlines }: PostureResponseParts,
  context: Context,
  identityId: string,
  changes: ReadonlyMap<string, ChangedFinding>,
): Promise<void> {
  access.updates.stampIdentity(identityId, context.clock.now())
  if ([...changes.values()].every(({ after }) => after.evidence === 'passing')) return
  try {
    await context.write(async (tx) => recordPostureEvent(tx, identityId))
  } catch (error) {
    // The response is stored, and the client may not send it again: the sessions are judged when the store works again.
    deadlines.scheduleNow(identityId)
    throw error
  }
}

/** The services of policies that demand a check whose finding has changed, each once for each type of check. */
async function listChangedServices(
  access: Access,
  { db, clock }: Context,
  policies: readonly IndexedPolicy[],
  changes: ReadonlyMap<string, ChangedFinding>,
): Promise<ChangedService[]> {
  const byService = new Map<string, Map<PostureCheckType, Omit<ChangedService, 'name'>>>()
  for (const policy of policies) {
    for (const { id } of access.index.listRequiredPostureChecks(policy)) {
      const change = changes.get(id)
      if (!change) continue
      const times = renderTimes(change.after, clock.now())
      for (const serviceId of access.index.listGrantedServices([policy])) {
        const entry = { id: serviceId, postureQueryType: change.after.check.typeId, ...times }
        const shortest = byService.get(serviceId) ?? new Map<PostureCheckType, Omit<ChangedService, 'name'>>()
        byService.set(serviceId, shortest)
        const present = shortest.get(entry.postureQueryType)
        if (!present || isShorter(entry.timeoutRemaining, present.timeoutRemaining))
          shortest.set(entry.postureQueryType, entry)
      }
    }
  }
  const rows = await db
    .selectFrom('services')
    .select(['id', 'name'])
    .where(isOneOf(db, 'id', [...byService.keys()]))
    .orderBy('name')
    .execute()
  return rows.flatMap(({ id, name }) => [...(byService.get(id)?.values() ?? [])].map((entry) => ({ ...entry, name })))
}

function isShorter(a: number, b: number): boolean {
  return a !== NO_TIMEOUT_SECONDS && (b === NO_TIMEOUT_SECONDS || a < b)
}

function renderTimes({ check, evidence, failsAt }: CheckFinding, now: number) {
  if (check.typeId !== 'MFA') return { timeout: NO_TIMEOUT_SECONDS, timeoutRemaining: NO_TIMEOUT_SECONDS }
  const hasEnd = failsAt !== Number.POSITIVE_INFINITY
  const whilePassing = hasEnd ? Math.floor((failsAt - now) / 1_000) : NO_TIMEOUT_SECONDS
  return { timeout: toTimeoutSeconds(check), timeoutRemaining: evidence === 'passing' ? whilePassing : 0 }
}
