// The viewer of services: the identity decides permissions, and the sign-in decides what its machine has proved.
import type { ApiSessions } from '../authentication/api-sessions/api-sessions.ts'
import type { RoleBearer } from '../policy/role-selector.ts'
import type { ReadContext } from '../storage/transactions/context.ts'
import { findRoleBearerOfSession } from './role-bearers.ts'

/** The identity and sign-in whose permissions, configuration and posture services are shown with. */
export interface Viewer {
  readonly identity: RoleBearer
  readonly isAdmin: boolean
  /** The sign-in; without one, what holds for every sign-in of the identity. */
  readonly apiSessionId?: string
}

/** Returns the caller as a viewer. The controller's operator has no identity, and administers. */
export async function getViewer(
  apiSessions: ApiSessions,
  context: Pick<ReadContext, 'db' | 'caller'>,
): Promise<Viewer> {
  const { caller } = context
  if (caller.kind !== 'identity') return { identity: { id: '', attributes: [] }, isAdmin: true }
  const { isAdmin, apiSessionId } = caller
  return { identity: await findRoleBearerOfSession(apiSessions, context, caller), isAdmin, apiSessionId }
}
