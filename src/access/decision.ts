// The one access decision: whether an identity may dial or host a service, by its policies and the posture of its machine.
import type { PolicyIndex, PolicyType } from '../policy/policy-index.ts'
import type { IndexedPolicy } from '../policy/policy-table.ts'
import type { RoleBearer } from '../policy/role-selector.ts'
import type { Evidence, LiveState, PostureFinding } from './live-state.ts'

/** Whose machine it is, and by which API session; without one, what holds for every API session of the identity. */
export interface PostureSubject {
  readonly identityId: string
  readonly apiSessionId?: string | undefined
}

interface CheckFinding extends PostureFinding {
  readonly postureCheckId: string
}

/** A policy, what its posture checks find, and what that amounts to. */
export interface EvaluatedPolicy {
  readonly policy: IndexedPolicy
  readonly findings: readonly CheckFinding[]
  readonly evidence: Evidence
}

/** The parts of the policy index that a decision reads. */
type GrantIndex = Pick<PolicyIndex, 'findServicePolicies' | 'filterGrantingService' | 'listRequiredPostureChecks'>

/** The live state that a decision reads. */
type DecidingState = Pick<LiveState, 'posture'>

export interface AccessQuestion {
  readonly identity: RoleBearer
  readonly serviceId: string
  readonly type: PolicyType
  readonly apiSessionId?: string | undefined
}

export interface Decision {
  /** Whether a policy of the type links the identity with the service: this is what makes a service visible. */
  readonly isGranted: boolean
  /** Whether one of these policies has only posture checks that pass: this is what opens a session, and keeps it. */
  readonly isAllowed: boolean
  /** The policies that link the two. */
  readonly policies: readonly EvaluatedPolicy[]
}

/** Decides whether an identity may dial, or host, a service. One policy whose posture checks all pass is enough. */
export function decide(
  index: GrantIndex,
  live: DecidingState,
  { identity, serviceId, type, apiSessionId }: AccessQuestion,
): Decision {
  const granting = index.filterGrantingService(index.findServicePolicies(identity, type), serviceId)
  const policies = granting.map((policy) =>
    evaluatePolicy(index, live, policy, { identityId: identity.id, apiSessionId }),
  )
  return {
    isGranted: policies.length > 0,
    isAllowed: policies.some(({ evidence }) => evidence === 'passing'),
    policies,
  }
}

const NO_FINDINGS: readonly CheckFinding[] = []

/** Evaluates the posture checks of a policy for a machine. A policy without checks passes. */
export function evaluatePolicy(
  index: Pick<GrantIndex, 'listRequiredPostureChecks'>,
  { posture }: DecidingState,
  policy: IndexedPolicy,
  { identityId, apiSessionId }: PostureSubject,
): EvaluatedPolicy {
  const checks = index.listRequiredPostureChecks(policy)
  if (checks.length === 0) return { policy, findings: NO_FINDINGS, evidence: 'passing' }
  const findings = checks.map((postureCheckId) => ({
    postureCheckId,
    ...posture.find(postureCheckId, identityId, apiSessionId),
  }))
  return { policy, findings, evidence: combineEvidence(findings) }
}

/** All must pass. If one fails, the others cannot help, whether they are known or not. */
function combineEvidence(findings: readonly PostureFinding[]): Evidence {
  if (findings.every(({ evidence }) => evidence === 'passing')) return 'passing'
  return findings.some(({ evidence }) => evidence === 'failing') ? 'failing' : 'unknown'
}
