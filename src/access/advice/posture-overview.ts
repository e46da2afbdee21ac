// An overview of the machines of an identity, for people: what was reported and when, and which posture checks pass or fail, with the reason.

import { postureChecks } from '../../definitions/resources/posture-checks.ts'
import { type Instant, toIsoTime } from '../../foundation/clock.ts'
import { describeComparison, explainFinding, type PostureComparison } from '../../policy/posture/descriptions.ts'
import type { Evidence } from '../../policy/posture/evaluate-check.ts'
import { listProcesses, type MachineState } from '../../policy/posture/machine-state.ts'
import type { PostureCheck } from '../../policy/posture/posture-checks.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { Access } from '../access.ts'
import type { PostureEvaluation } from '../decision.ts'
import type { NamedRecord, NamedRoleBearer } from './chain.ts'
import { loadNamesByIds } from './subject.ts'

/** The result of a posture check on the machines of an identity. */
export interface CheckedPosture extends NamedRecord, PostureComparison {
  readonly typeId: string
  readonly evidence: Evidence
  /** The reason, in one sentence without a full stop. */
  readonly message: string
  /** When it fails if nothing else happens; null if time alone changes nothing. */
  readonly failsAt: string | null
}

/** Something that a machine reported. */
interface ReportedState {
  readonly at: string
  /** The subject of the check, such as `operating system`. */
  readonly subject: string
  readonly value: string
}

export interface PostureOverview {
  readonly identity: NamedRecord
  /** The newest first. */
  readonly reported: readonly ReportedState[]
  readonly apiSessions: readonly {
    readonly id: string
    readonly mfaPassedAt: string | null
    readonly wokenAt: string | null
    readonly unlockedAt: string | null
  }[]
  /** The posture checks that policies demand of the identity, by name. */
  readonly postureChecks: readonly (CheckedPosture & { readonly policies: readonly NamedRecord[] })[]
}

/** Describes the reports of an identity's machines, and the results of the posture checks that policies demand of it. */
export async function describePosture(
  access: Access,
  context: Context,
  { id, name, attributes }: NamedRoleBearer,
): Promise<PostureOverview> {
  const identity = { id, attributes }
  const evaluation = access.evaluatePosture({ identity })
  const policiesByCheck = new Map<PostureCheck, NamedRecord[]>()
  for (const policy of access.findPolicies(identity)) {
    const named = { id: policy.id, name: policy.name }
    for (const check of access.index.listRequiredPostureChecks(policy))
      policiesByCheck.set(check, [...(policiesByCheck.get(check) ?? []), named])
  }
  const names = await loadNamesByIds(
    context,
    postureChecks,
    [...policiesByCheck.keys()].map((check) => check.id),
  )
  const checks = [...policiesByCheck].map(([check, policies]) => ({
    ...describeCheck(check, names.get(check.id) ?? check.id, evaluation),
    policies: policies.sort((a, b) => (a.id < b.id ? -1 : 1)),
  }))
  const { machine, apiSessions } = evaluation.facts
  return {
    identity: { id, name },
    reported: machine ? listReported(machine) : [],
    apiSessions: apiSessions.map((session) => ({
      id: session.id,
      mfaPassedAt: toTime(session.mfaPassedAt),
      wokenAt: toTime(session.wokenAt),
      unlockedAt: toTime(session.unlockedAt),
    })),
    postureChecks: checks.sort((a, b) => (a.name < b.name ? -1 : 1)),
  }
}

/** Evaluates one posture check on the machines of an identity, whether a policy demands it or not. */
export function testPostureCheck(
  access: Access,
  check: PostureCheck,
  name: string,
  identity: NamedRoleBearer,
): CheckedPosture {
  return describeCheck(check, name, access.evaluatePosture({ identity }))
}

function describeCheck(check: PostureCheck, name: string, evaluation: PostureEvaluation): CheckedPosture {
  const finding = evaluation.evaluate(check)
  const { facts, now } = evaluation
  const { evidence, failsAt } = finding
  return {
    id: check.id,
    name,
    typeId: check.typeId,
    evidence,
    message: explainFinding(check, finding, facts, now),
    failsAt: evidence === 'passing' && failsAt !== Number.POSITIVE_INFINITY ? toIsoTime(failsAt) : null,
    ...describeComparison(check, facts, now),
  }
}

function listReported(machine: MachineState): ReportedState[] {
  const { os, domain, mac } = machine
  const states: { at: Instant; subject: string; value: string }[] = []
  if (os)
    states.push({
      at: os.at,
      subject: 'operating system',
      value: [os.type, os.version, os.build ?? ''].join(' ').trim(),
    })
  if (domain) states.push({ at: domain.at, subject: 'domain', value: domain.domain })
  if (mac) states.push({ at: mac.at, subject: 'network addresses', value: mac.macAddresses.join(', ') })
  for (const process of listProcesses(machine)) {
    const subject = `process ${process.path ?? process.postureCheckId}`
    states.push({ at: process.at, subject, value: process.isRunning ? 'runs' : 'does not run' })
  }
  return states.sort((a, b) => b.at - a.at).map((state) => ({ ...state, at: toIsoTime(state.at) }))
}

function toTime(at: Instant | null): string | null {
  return at === null ? null : toIsoTime(at)
}
