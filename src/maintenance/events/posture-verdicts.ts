// The verdicts of posture checks that a commit changes: those of the machines of an identity, and of the person at one of them.
//
// Both sides are evaluated from what the commit holds, so that nothing has to be kept of verdicts before.
import type { Access } from '../../access/access.ts'
import type { CheckFinding } from '../../access/decision.ts'
import { evaluateMoment, type PostureMoment } from '../../access/posture/posture-moment.ts'
import type { SessionDirectory, SignedInIdentity } from '../../access/posture/schedule-verdicts.ts'
import { hasOtherMfa } from '../../authentication/api-sessions/live-api-sessions.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { fromStoredMachineState } from '../../policy/posture/machine-state.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import type { Change } from '../../storage/transactions/changes.ts'
import type { NetworkEvent } from './event.ts'

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
  if (resource !== 'api-sessions' || !before || !after || !hasOtherMfa(before, after)) return []
  const bearer = toBearer(sessions.listOfIdentity(after.identityId).find((session) => session.id === id)?.identity)
  if (!bearer) return []
  return compare(access, bearer, { apiSession: before, now }, { apiSession: after, now })
}

function toBearer(identity: SignedInIdentity | undefined): RoleBearer | undefined {
  return identity && { id: identity.id, attributes: identity.roleAttributes }
}

function compare(access: Access, bearer: RoleBearer, before: PostureMoment, after: PostureMoment): NetworkEvent[] {
  const findingsBefore = evaluateMoment(access, bearer, before)
  return [...evaluateMoment(access, bearer, after).values()].flatMap((finding) => {
    const { evidence, check } = finding
    return evidence === findingsBefore.get(check.id)?.evidence ? [] : [describe(bearer.id, finding, after)]
  })
}

function describe(identityId: string, { check, evidence }: CheckFinding, { apiSession }: PostureMoment): NetworkEvent {
  const ofSession = apiSession ? { apiSessionId: apiSession.id } : {}
  return {
    type: evidence === 'passing' ? 'posture-passed' : 'posture-failed',
    resource: identities.plural,
    id: identityId,
    related: [check.id],
    details: { postureCheckId: check.id, checkType: check.typeId, evidence, ...ofSession },
  }
}
