// The posture queries of a service for an identity: for each policy that grants it, the posture checks and whether they pass.

import { getCompiledResource } from '../../definitions/model/index.ts'
import type { AnyRow } from '../../definitions/resources/define.ts'
import { postureChecks } from '../../definitions/resources/posture-checks.ts'
import { EMPTY_OR_NULL } from '../../definitions/schema/json-forms.ts'
import { type Instant, toIsoTime } from '../../foundation/clock.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import {
  evaluateMfa,
  findTimeoutEnd,
  isLegacyClient,
  NO_TIMEOUT_SECONDS,
  toSecondsRemaining,
  toTimeoutSeconds,
} from '../../policy/posture/mfa.ts'
import type { MfaCheck, PostureCheck, RequiredProcess } from '../../policy/posture/posture-checks.ts'
import { getRecordTable } from '../../storage/entities/record-tables.ts'
import { RawJson, toJsonText } from '../../storage/records/raw-json.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import type { Access } from '../access.ts'
import type { CheckFinding, PostureEvaluation } from '../decision.ts'
import type { Viewer } from '../viewers.ts'

/** By policy id: JSON of its set of posture queries. */
export type PostureQuerySets = ReadonlyMap<string, RawJson>

/** How what is left of a timeout is rendered: in seconds from now, as clients see it, or as the time when it ends. */
export type TimeoutForm = 'remaining' | 'end'

/** Evaluates the checks of policies for a viewer. Returns undefined if none of the policies has a check. */
export async function renderPostureQuerySets(
  access: Access,
  context: Pick<ReadContext, 'db'>,
  policies: readonly IndexedPolicy[],
  { identity, apiSessionId }: Viewer,
  timeoutForm: TimeoutForm = 'remaining',
): Promise<PostureQuerySets | undefined> {
  const evaluation = access.evaluatePosture({ identity, apiSessionId })
  const evaluated = policies.map((policy) => evaluation.evaluatePolicy(policy))
  const findings = new Map(evaluated.flatMap((policy) => policy.findings.map((finding) => [finding.check.id, finding])))
  if (findings.size === 0) return undefined
  const rows = await getRecordTable(postureChecks).findByIds(context.db, [...findings.keys()])
  const isLegacy = await isViewedByLegacyClient(context, identity.id, findings.values())
  const form = { isLegacy, timeoutForm }
  const queries = new Map(
    rows.map((row) => [row.id, renderQuery(row, findings.get(row.id) as CheckFinding, evaluation, form)]),
  )
  return new Map(
    evaluated.map((evaluatedPolicy) => {
      const { policy, evidence } = evaluatedPolicy
      const ofPolicy = evaluatedPolicy.findings.flatMap(({ check }) => queries.get(check.id) ?? [])
      return [policy.id, renderQuerySet(policy.id, policy.type, evidence === 'passing', ofPolicy)]
    }),
  )
}

/** Whether the client of the identity is a legacy one, if a check makes a difference between clients. */
async function isViewedByLegacyClient(
  { db }: Pick<ReadContext, 'db'>,
  identityId: string,
  findings: Iterable<CheckFinding>,
): Promise<boolean> {
  if (![...findings].some(({ check }) => check.typeId === 'MFA' && check.ignoreLegacyEndpoints)) return false
  const row = await db.selectFrom('identities').select('sdkInfo').where('id', '=', identityId).executeTakeFirst()
  return isLegacyClient(JSON.parse(row?.sdkInfo ?? '{}') as { type?: string; version?: string })
}

/** The set of a policy without checks that is not named: clients look for one that passes for each permission. */
export function makePassingQuerySet(permission: 'Bind' | 'Dial'): RawJson {
  return renderQuerySet(`no-posture-checks-${permission.toLowerCase()}`, permission, true, [])
}

function renderQuerySet(
  policyId: string,
  policyType: string | undefined,
  isPassing: boolean,
  postureQueries: readonly RawJson[],
): RawJson {
  return new RawJson(toJsonText({ policyId, policyType, isPassing, postureQueries }))
}

const { links: linksOf } = getCompiledResource(postureChecks.plural).recordPlan
const NO_PROCESSES = new RawJson(EMPTY_OR_NULL)
const renderProcess = ({ osType, path }: RequiredProcess) => ({ osType, path })

interface QueryForm {
  readonly isLegacy: boolean
  readonly timeoutForm: TimeoutForm
}

function renderQuery(
  row: AnyRow,
  { check, evidence }: CheckFinding,
  evaluation: PostureEvaluation,
  form: QueryForm,
): RawJson {
  return new RawJson(
    toJsonText({
      _links: new RawJson(linksOf(row)),
      id: row.id,
      createdAt: toIsoTime(row.createdAt),
      updatedAt: toIsoTime(Math.max(row.updatedAt, findLastPrompt(check, evaluation))),
      tags: new RawJson(row.tags),
      queryType: check.typeId,
      isPassing: evidence === 'passing',
      ...renderTimeout(check, evaluation, form),
      ...(check.typeId === 'MFA' ? renderPrompts(check) : {}),
      ...(check.typeId === 'PROCESS' ? { process: renderProcess(check.process) } : {}),
      processes: check.typeId === 'PROCESS_MULTI' ? check.processes.map(renderProcess) : NO_PROCESSES,
    }),
  )
}

/** In seconds; -1 stands for a check without a timeout. Of several API sessions the one counts that has the least left. */
function renderTimeout(check: PostureCheck, { facts, now }: PostureEvaluation, { isLegacy, timeoutForm }: QueryForm) {
  if (check.typeId !== 'MFA') return { timeout: NO_TIMEOUT_SECONDS, timeoutRemaining: NO_TIMEOUT_SECONDS }
  const conditions = { strictestMfaTimeoutMs: facts.strictestMfaTimeoutMs, isLegacyClient: isLegacy }
  const sessions = facts.apiSessions.length > 0 ? facts.apiSessions : [undefined]
  const endsAt = Math.min(...sessions.map((session) => findTimeoutEnd(check, session, conditions, now)))
  const timeout = toTimeoutSeconds(check)
  if (timeoutForm === 'end') return { timeout, timeoutRemaining: endsAt }
  const isRunning = endsAt > now && endsAt !== Number.POSITIVE_INFINITY
  return {
    timeout,
    timeoutRemaining: toSecondsRemaining(endsAt, now),
    ...(isRunning ? { timeoutAt: toIsoTime(endsAt) } : {}),
  }
}

/** When clients ask for MFA again: only what the check demands is a member, as in OpenZiti's release 2.0. */
function renderPrompts({ promptOnWake, promptOnUnlock }: MfaCheck) {
  return { ...(promptOnWake ? { promptOnWake } : {}), ...(promptOnUnlock ? { promptOnUnlock } : {}) }
}

/** When time alone changes what a viewer is shown of posture checks. */
export interface PostureTransitions {
  /** The last time that it did; 0 if it never did. */
  readonly lastAt: Instant
  /** The next time that it does, if nothing else happens; Infinity if it never does. */
  readonly nextAt: Instant
  /** The time at which this was computed. */
  readonly now: Instant
}

const NO_TRANSITIONS: PostureTransitions = { lastAt: 0, nextAt: Number.POSITIVE_INFINITY, now: 0 }

/** Finds the transitions of the checks of policies: MFA times out, or the grace of a prompt ends. */
export function findPostureTransitions(
  access: Access,
  policies: readonly IndexedPolicy[],
  { identity, apiSessionId }: Viewer,
): PostureTransitions {
  if (!access.index.hasPostureChecks) return NO_TRANSITIONS
  const { facts, now } = access.evaluatePosture({ identity, apiSessionId })
  let { lastAt, nextAt } = NO_TRANSITIONS
  for (const check of policies.flatMap((policy) => access.index.listRequiredPostureChecks(policy))) {
    if (check.typeId !== 'MFA') continue
    for (const session of facts.apiSessions) {
      if (session.mfaPassedAt === null) continue
      const endsAt = evaluateMfa(check, session, facts.strictestMfaTimeoutMs, now)
      if (endsAt > now) nextAt = Math.min(nextAt, endsAt)
      else lastAt = Math.max(lastAt, endsAt)
    }
  }
  return { lastAt, nextAt, now }
}

/** When a machine last woke or was unlocked, if the check prompts after that: clients take it for a change of the check. */
function findLastPrompt(check: PostureCheck, { facts }: PostureEvaluation): Instant {
  if (check.typeId !== 'MFA') return 0
  const times = facts.apiSessions.flatMap(({ wokenAt, unlockedAt }) => [
    check.promptOnWake ? (wokenAt ?? 0) : 0,
    check.promptOnUnlock ? (unlockedAt ?? 0) : 0,
  ])
  return Math.max(0, ...times)
}
