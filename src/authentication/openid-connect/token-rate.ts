// The rate at which an identity may have tokens issued, and end their sessions: that is a write, as any other of it.
import type { Context } from '../../storage/transactions/context.ts'
import type { LiveApiSession } from '../api-sessions/live-api-sessions.ts'
import type { OpenIdParts } from './open-id-parts.ts'

/** Counts a use of a code or a token. @throws SERVER_TOO_MANY_REQUESTS */
export function requireTokenRate(
  { auth, clock }: OpenIdParts,
  { origin }: Context,
  { id: identityId, isAdmin }: LiveApiSession['identity'],
): void {
  const address = origin.address ?? ''
  auth.writeLimits.requireRate({ identityId, isAdmin, isPartial: false }, { address, isOwnChange: false }, clock.now())
}
