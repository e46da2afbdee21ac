// Schedules when time alone changes the verdict of an MFA check on an API session, which its events tell, whether it has a session or not.
//
// Only the identity of the API session is looked at: its policies, as they are when MFA is passed or time is judged again.
import { hasOtherMfa } from '../../authentication/api-sessions/live-api-sessions.ts'
import type { MfaState } from '../../policy/posture/machine-state.ts'
import type { SessionIdentity } from '../../storage/transactions/changes.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'
import type { Access } from '../access.ts'
import type { PostureDeadlines } from './posture-deadlines.ts'
import { evaluateMoment, type PostureMoment } from './posture-moment.ts'

/** The identity of an API session, as far as policies select it. */
export type SignedInIdentity = Readonly<Pick<SessionIdentity, 'id'>> & { readonly roleAttributes: readonly string[] }

/** The API sessions that live now. */
export interface SessionDirectory {
  listOfIdentity(identityId: string): readonly (MfaState & { readonly identity: SignedInIdentity })[]
}

interface VerdictParts {
  readonly access: Access
  readonly apiSessions: SessionDirectory
  readonly deadlines: PostureDeadlines
}

/** Runs after the changes of a transaction. */
export async function scheduleVerdicts(parts: VerdictParts, tx: WriteContext): Promise<void> {
  const { access, apiSessions } = parts
  if (!access.index.hasPostureChecks) return
  for (const change of tx.uncommitted.own) {
    if (change.resource === 'api-sessions' && hasOtherMfa(change.before, change.after)) {
      const { id, at: now, after: apiSession } = change
      const living =
        apiSession && apiSessions.listOfIdentity(apiSession.identityId).find((session) => session.id === id)
      if (living) schedule(parts, living.identity, { apiSession, now })
    } else if (change.resource === 'machines' && 'judgedUntil' in change) {
      const { id, at: now } = change
      for (const apiSession of apiSessions.listOfIdentity(id)) schedule(parts, apiSession.identity, { apiSession, now })
    }
  }
}

function schedule({ access, deadlines }: VerdictParts, identity: SignedInIdentity, moment: PostureMoment): void {
  const { id, roleAttributes: attributes } = identity
  for (const finding of evaluateMoment(access, { id, attributes }, moment).values())
    if (finding.evidence === 'passing') deadlines.schedule(id, finding)
}
