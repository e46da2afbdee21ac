// Ends the API sessions that tokens are of. Their tokens end with them.

import type { Context } from '../../storage/transactions/context.ts'
import type { Contexts } from '../../storage/transactions/contexts.ts'
import type { ApiSessions } from '../api-sessions/api-sessions.ts'
import type { AuthorizationRequests } from './authorization-requests.ts'

interface EndParts {
  readonly auth: { readonly apiSessions: ApiSessions }
  readonly contexts: Contexts
}

/** Ends a session, unless it has ended. */
export async function endSession(parts: EndParts, { origin }: Pick<Context, 'origin'>, id: string): Promise<void> {
  const { auth, contexts } = parts
  await contexts.create({ kind: 'system' }, origin).write((tx) => auth.apiSessions.revoke(tx, [id]))
}

/** Ends the sessions of sign-ins whose client did not come for its tokens. */
export async function endAbandoned(
  parts: EndParts & { readonly openIdConnect: { readonly requests: AuthorizationRequests } },
): Promise<void> {
  const { auth, contexts, openIdConnect } = parts
  const ids = openIdConnect.requests.takeAbandoned()
  if (ids.length > 0) await contexts.create({ kind: 'system' }).write((tx) => auth.apiSessions.revoke(tx, ids))
}
