// Ends the API sessions that tokens are of. Their tokens end with them.

import type { Context } from '../../storage/transactions/context.ts'
import type { Contexts } from '../../storage/transactions/contexts.ts'
import type { ApiSessions } from '../api-sessions/api-sessions.ts'
import { createActorContext } from '../api-sessions/callers.ts'

interface EndParts {
  readonly auth: { readonly apiSessions: ApiSessions }
  readonly contexts: Contexts
}

/** Ends a session by the wish of its client, unless it has ended. As any sign-out, that is not audited. */
export function endSession(parts: EndParts, context: Pick<Context, 'origin'>, id: string): Promise<void> {
  return end(parts, context, id, 'none')
}

/** Ends a session whose code was used twice, unless it has ended: that is an event of the audit. */
export function endStolenSession(parts: EndParts, context: Pick<Context, 'origin'>, id: string): Promise<void> {
  return end(parts, context, id, 'event')
}

async function end(
  { auth, contexts }: EndParts,
  context: Pick<Context, 'origin'>,
  id: string,
  audit: 'event' | 'none',
): Promise<void> {
  const session = auth.apiSessions.get(id)
  if (!session) return
  const ownContext = createActorContext(contexts, context, id, session.identity)
  await ownContext.write((tx) => auth.apiSessions.revoke(tx, [id], audit))
}
