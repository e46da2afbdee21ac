// Accepts what a client reports about its machine, with what follows: the services that it changes, and the sessions that it ends.
import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import { isSameReport, type MachineState } from '../../policy/posture/machine-state.ts'
import { NO_TIMEOUT_SECONDS, toTimeoutSeconds } from '../../policy/posture/mfa.ts'
import type { PostureCheckType } from '../../policy/posture/posture-checks.ts'
import { applyResponses, type DemandedProcesses, type PostureResponse } from '../../policy/posture/posture-responses.ts'
import { type EntityStore, get } from '../../storage/entities/entities.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { Access } from '../access.ts'
import type { CheckFinding, PostureSubject } from '../decision.ts'
import { findRoleBearerOfSession } from '../role-bearers.ts'
import type { ReportedPosture } from './reported-posture.ts'

/** The parts that accept responses. */
export interface PostureResponseParts {
  readonly access: Access
  readonly entities: EntityStore
  readonly posture: ReportedPosture
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

/** The results of a posture check before and after the responses. */
interface ChangedFinding {
  readonly before: CheckFinding
  readonly after: CheckFinding
}

/**
 * Stores the responses of a client, all of them valid, and revokes the sessions of its identity that lose their right, in one
 * transaction; there is none if its machine reports what it reported before.
 * Returns the services of the identity whose state has changed. Only the posture checks that policies demand of the identity
 * are evaluated.
 */
export async function acceptPostureResponses(
  parts: PostureResponseParts,
  context: Context,
  reporter: Reporter,
  responses: readonly PostureResponse[],
): Promise<ChangedService[]> {
  const { access, posture, sessions } = parts
  const { identityId, apiSessionId } = reporter
  const events = listEndpointEvents(responses)
  const report = responses.filter(({ typeId }) => typeId !== 'ENDPOINT_STATE')
  const isNews = report.length > 0 && !touchIfSame(parts, context, identityId, report)
  if (events.length === 0 && !isNews) return []
  const subject = { identity: await findRoleBearerOfSession(sessions, context, reporter), apiSessionId }
  const policies = access.findPolicies(subject.identity)
  const before = evaluateAll(access, subject, policies)
  await context.write(async (tx) => {
    if (events.length > 0) await storeEndpointEvents(parts, tx, apiSessionId, events)
    if (isNews) {
      // Another session of the identity may have reported something else meanwhile, which stays.
      const machine = applyReport(parts, context, posture.findNewest(tx, identityId), report)
      await posture.store(tx, identityId, machine)
    }
  })
  const changes = compareFindings(before, evaluateAll(access, subject, policies))
  return changes.size === 0 ? [] : listChangedServices(access, context, policies, changes)
}

/** The state of a machine after a report. */
function applyReport(
  { access }: PostureResponseParts,
  { clock }: Context,
  previous: MachineState | undefined,
  report: readonly PostureResponse[],
): MachineState {
  return applyResponses(previous, report, listDemandedProcesses(access), clock.now())
}

/** Notes the time of a report that says what is known already. Returns false if it says anything else. */
function touchIfSame(
  parts: PostureResponseParts,
  context: Context,
  identityId: string,
  report: readonly PostureResponse[],
): boolean {
  const previous = parts.posture.findMachine(identityId)
  const machine = applyReport(parts, context, previous, report)
  if (!previous || !isSameReport(previous, machine)) return false
  parts.posture.touch(identityId, machine)
  return true
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

/** The processes that the posture checks ask for. The paths are collected when the first process is looked up. */
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

type EndpointEvent = 'woken' | 'unlocked'

function listEndpointEvents(responses: readonly PostureResponse[]): EndpointEvent[] {
  return (['woken', 'unlocked'] as const).filter((event) =>
    responses.some((response) => response.typeId === 'ENDPOINT_STATE' && response[event] === true),
  )
}

/** Stores with the API session that its machine woke or was unlocked. */
async function storeEndpointEvents(
  { entities }: PostureResponseParts,
  tx: WriteContext,
  apiSessionId: string,
  events: readonly EndpointEvent[],
): Promise<void> {
  const session = await get(tx, apiSessions, apiSessionId)
  // After the proof that it asks to renew, also within one millisecond.
  const at = Math.max(tx.clock.now(), (session.mfaPassedAt ?? 0) + 1)
  const changed = Object.fromEntries(events.map((event) => [`${event}At`, at]))
  await entities.update(tx, apiSessions, session, changed, { audit: 'none' })
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
