// The verdicts of posture checks that a commit changes: those of the machines of an identity, and of the person at one of them.
//
// Both sides are evaluated from what the commit holds, so that nothing has to be kept of verdicts before.
import type { Access } from '../../access/access.ts'
import { type CheckFinding, PostureEvaluation } from '../../access/decision.ts'
import { MFA_TIMES } from '../../authentication/api-sessions/live-api-sessions.ts'
import { identities } from '../../definitions/resources/identities.ts'
import type { Instant } from '../../foundation/clock.ts'
import { fromStoredMachineState, type MachineState, type MfaState } from '../../policy/posture/machine-state.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import type { Change, SessionIdentity } from '../../storage/transactions/changes.ts'
import type { NetworkEvent } from './event.ts'

/** The identity of an API session, as far as policies select it. */
type SignedInIdentity = Readonly<Pick<SessionIdentity, 'id'>> & { readonly roleAttributes: readonly string[] }

/** The API sessions that live now. */
export interface SessionDirectory {
  listOfIdentity(identityId: string): readonly (MfaState & { readonly identity: SignedInIdentity })[]
}

/** The posture of one identity as far as it is known at a moment. */
interface Moment {
  readonly machine?: MachineState | undefined
  readonly apiSession?: MfaState | undefined
  readonly now: Instant
}

/** The verdicts that a commit changes, as events. An identity that is not signed in has none. */
export function findChangedVerdicts(access: Access, sessions: SessionDirectory, change: Change): NetworkEvent[] {
  const { resource, id, before, after, at: now, operation } = change
  if (operation !== 'update') return []
  if (resource === 'machines') {
    const living = sessions.listOfIdentity(id)
    const bearer = toBearer(living[0]?.identity)
    if (!bearer) return []
    const { judgedUntil } = change
    if (judgedUntil !== undefined)
      return living.flatMap((apiSession) =>
        compare(access, bearer, { apiSession, now: judgedUntil }, { apiSession, now }),
      )
    const toMachine = (stored: typeof after) => (stored ? fromStoredMachineState(stored) : undefined)
    return compare(access, bearer, { machine: toMachine(before), now }, { machine: toMachine(after), now })
  }
  if (resource !== 'api-sessions' || !before || !after || MFA_TIMES.every((time) => before[time] === after[time]))
    return []
  const bearer = toBearer(sessions.listOfIdentity(after.identityId).find((session) => session.id === id)?.identity)
  if (!bearer) return []
  return compare(access, bearer, { apiSession: before, now }, { apiSession: after, now })
}

function toBearer(identity: SignedInIdentity | undefined): RoleBearer | undefined {
  return identity && { id: identity.id, attributes: identity.roleAttributes }
}

function compare(access: Access, bearer: RoleBearer, before: Moment, after: Moment): NetworkEvent[] {
  const findingsBefore = evaluate(access, bearer, before)
  return [...evaluate(access, bearer, after).values()].flatMap((finding) => {
    const { evidence, check } = finding
    return evidence === findingsBefore.get(check.id)?.evidence ? [] : [describe(bearer.id, finding, after)]
  })
}

/** The findings of the posture checks that policies demand of an identity, as far as the moment decides them. */
function evaluate(
  access: Access,
  identity: RoleBearer,
  { machine, apiSession, now }: Moment,
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

function describe(identityId: string, { check, evidence }: CheckFinding, { apiSession }: Moment): NetworkEvent {
  const ofSession = apiSession ? { apiSessionId: apiSession.id } : {}
  return {
    type: evidence === 'passing' ? 'posture-passed' : 'posture-failed',
    resource: identities.plural,
    id: identityId,
    related: [check.id],
    details: { postureCheckId: check.id, checkType: check.typeId, evidence, ...ofSession },
  }
}
