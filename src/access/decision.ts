// The one access decision: whether an identity may dial or host a service, by its policies and the posture of its machine.
//
// It opens sessions, keeps or revokes them, and explains them: lists, advice, impact, `who` and `what` read the same
// decision. Visibility follows from the grant alone.
import type { Instant } from '../foundation/clock.ts'
import type { PolicyIndex, PolicyType } from '../policy/policy-index.ts'
import type { IndexedPolicy } from '../policy/policy-table.ts'
import { combineFindings, type Evidence, evaluateCheck, type PostureFinding } from '../policy/posture/evaluate-check.ts'
import type { MachineState, MfaState, PostureFacts } from '../policy/posture/machine-state.ts'
import type { PostureCheck } from '../policy/posture/posture-checks.ts'
import type { RoleBearer } from '../policy/role-selector.ts'
import type { RecordChange } from '../storage/transactions/changes.ts'

/** The identity whose machine is judged, and its API session; without one, the result holds for every API session of the identity. */
export interface PostureSubject {
  readonly identity: RoleBearer
  readonly apiSessionId?: string | undefined
}

/** The source from which decisions read the posture of machines. */
export interface PostureSource {
  /** The report of the machines of an identity; undefined if they reported nothing. */
  findMachine(identityId: string): MachineState | undefined
  /** The API session, or without its id all those of the identity. */
  listApiSessions(identityId: string, apiSessionId?: string): readonly MfaState[]
  /** Whether the client of an API session reports its machine to routers, which judge it: those that began by OpenID Connect do. */
  reportsToRouters(apiSessionId: string): boolean
  now(): Instant
  /** The result of `ask` as if these changes had been applied. `ask` must not wait for anything. */
  withHypothetical<T>(changes: readonly RecordChange[], ask: () => T): T
}

export interface CheckFinding extends PostureFinding {
  readonly check: PostureCheck
}

/** A policy, what its posture checks find, and what that amounts to. */
export interface EvaluatedPolicy extends PostureFinding {
  readonly policy: IndexedPolicy
  readonly findings: readonly CheckFinding[]
}

/** The parts of the policy index that a decision reads. */
type GrantIndex = Pick<PolicyIndex, 'findServicePolicies' | 'filterGrantingService' | 'listRequiredPostureChecks'>

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
  /** The result of the policy that comes closest. */
  readonly evidence: Evidence
  /** If it is allowed: the first instant at which it is not, if nothing else happens; Infinity if time changes nothing. */
  readonly failsAt: Instant
  /** The policies that link the two, with the findings that count. */
  readonly policies: readonly EvaluatedPolicy[]
}

/**
 * Decides whether an identity may dial, or host, a service. One policy whose posture checks all pass is enough. Of a machine that is
 * reported to routers, the controller knows nothing: it judges the second factor of that API session alone, and the router the rest.
 */
export function decide(index: GrantIndex, source: PostureSource, question: AccessQuestion): Decision {
  const { identity, serviceId, type, apiSessionId } = question
  const granting = index.filterGrantingService(index.findServicePolicies(identity, type), serviceId)
  const evaluation = new PostureEvaluation(index, source, question)
  const evaluated = granting.map((policy) => evaluation.evaluatePolicy(policy))
  const demandsPosture = evaluated.some(({ findings }) => findings.length > 0)
  const isJudgedByRouters = demandsPosture && apiSessionId !== undefined && source.reportsToRouters(apiSessionId)
  const policies = isJudgedByRouters ? evaluated.map(withoutMachine) : evaluated
  return { isGranted: policies.length > 0, ...combinePolicies(policies), policies }
}

/** A policy with its findings of the person at the machine alone. */
function withoutMachine({ policy, findings }: EvaluatedPolicy): EvaluatedPolicy {
  const ofPerson = findings.filter(({ check }) => check.typeId === 'MFA')
  return { policy, findings: ofPerson, ...combineFindings(ofPerson) }
}

/** One policy is enough: the one that passes for the longest time. */
function combinePolicies(policies: readonly EvaluatedPolicy[]): Pick<Decision, 'isAllowed' | 'evidence' | 'failsAt'> {
  let failsAt = Number.NEGATIVE_INFINITY
  let isUnknown = false
  for (const policy of policies) {
    if (policy.evidence === 'passing') failsAt = Math.max(failsAt, policy.failsAt)
    if (policy.evidence === 'unknown') isUnknown = true
  }
  const isAllowed = failsAt !== Number.NEGATIVE_INFINITY
  return { isAllowed, failsAt, evidence: isAllowed ? 'passing' : isUnknown ? 'unknown' : 'failing' }
}

/** The evaluation of posture checks for one subject at one moment; each check is evaluated once. */
export class PostureEvaluation {
  readonly #index: Pick<GrantIndex, 'findServicePolicies' | 'listRequiredPostureChecks'>
  readonly #source: PostureSource
  readonly #subject: PostureSubject
  readonly #findings = new Map<string, CheckFinding>()
  #facts: PostureFacts | undefined
  #now: Instant = 0

  constructor(
    index: Pick<GrantIndex, 'findServicePolicies' | 'listRequiredPostureChecks'>,
    source: PostureSource,
    subject: PostureSubject,
  ) {
    this.#index = index
    this.#source = source
    this.#subject = subject
  }

  /** Evaluates the posture checks of a policy. A policy without checks passes. */
  evaluatePolicy(policy: IndexedPolicy): EvaluatedPolicy {
    const findings = this.#index.listRequiredPostureChecks(policy).map((check) => this.evaluate(check))
    return { policy, findings, ...combineFindings(findings) }
  }

  evaluate(check: PostureCheck): CheckFinding {
    let finding = this.#findings.get(check.id)
    if (!finding) {
      finding = { check, ...evaluateCheck(check, this.facts, this.#now) }
      this.#findings.set(check.id, finding)
    }
    return finding
  }

  /** The facts that the checks are evaluated against. */
  get facts(): PostureFacts {
    if (!this.#facts) {
      const { identity, apiSessionId } = this.#subject
      this.#now = this.#source.now()
      const apiSessions = this.#source.listApiSessions(identity.id, apiSessionId)
      this.#facts = {
        machine: this.#source.findMachine(identity.id),
        apiSessions,
        strictestMfaTimeoutMs: apiSessions.some(({ mfaPassedAt }) => mfaPassedAt !== null)
          ? this.#findStrictestMfaTimeout()
          : Number.POSITIVE_INFINITY,
      }
    }
    return this.#facts
  }

  /** The moment of the evaluation. */
  get now(): Instant {
    return this.facts && this.#now
  }

  /** The shortest timeout among the MFA checks of all policies of the identity: MFA that timed out has done so for all. */
  #findStrictestMfaTimeout(): number {
    let strictest = Number.POSITIVE_INFINITY
    for (const policy of this.#index.findServicePolicies(this.#subject.identity)) {
      for (const check of this.#index.listRequiredPostureChecks(policy)) {
        if (check.typeId === 'MFA') strictest = Math.min(strictest, check.timeoutMs)
      }
    }
    return strictest
  }
}
