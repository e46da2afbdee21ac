// Ends the API sessions that tokens are of. Their tokens end with them.

import type { Context } from '../../storage/transactions/context.ts'
import type { Contexts } from '../../storage/transactions/contexts.ts'
import type { ApiSessions } from '../api-sessions/api-sessions.ts'

interface EndParts {
  readonly auth: { readonly apiSessions: ApiSessions }
  readonly contexts: Contexts
}

/** Ends a session, unless it has ended. */
export async function endSession(parts: EndParts, { origin }: Pick<Context, 'origin'>, id: string): Promise<void> {
  const { auth, contexts } = parts
  await contexts.create({ kind: 'system' }, origin).write((tx) => auth.apiSessions.revoke(tx, [id]))
}
