// The posture of one identity as a moment decides it, whatever is known of it now: of its machines, or of the person at one of them.
import type { Instant } from '../../foundation/clock.ts'
import type { MachineState, MfaState } from '../../policy/posture/machine-state.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import type { Access } from '../access.ts'
import { type CheckFinding, PostureEvaluation } from '../decision.ts'

/** Either machines, or an API session with its second factor, at a moment. */
export interface PostureMoment {
  readonly machine?: MachineState | undefined
  readonly apiSession?: MfaState | undefined
  readonly now: Instant
}

/** The findings of the posture checks that policies demand of an identity, by check, as far as the moment decides them. */
export function evaluateMoment(
  access: Access,
  identity: RoleBearer,
  { machine, apiSession, now }: PostureMoment,
): Map<string, CheckFinding> {
  const source = {
    ...{ findMachine: () => machine, listApiSessions: () => (apiSession ? [apiSession] : []), now: () => now },
    reportsToRouters: () => false,
    withHypothetical: <T>(_changes: unknown, ask: () => T) => ask(),
  }
  const evaluation = new PostureEvaluation(access.index, source, { identity })
  const findings = access.findPolicies(identity).flatMap((policy) => evaluation.evaluatePolicy(policy).findings)
  const isOfPerson = apiSession !== undefined
  const decided = findings.filter(({ check }) => (check.typeId === 'MFA') === isOfPerson)
  return new Map(decided.map((finding) => [finding.check.id, finding]))
}
