// The guard of each transaction that its caller still holds the rights that its request was admitted with.
import { findRights } from '../../definitions/permissions/rights.ts'
import type { Change } from '../../storage/transactions/changes.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'
import type { UncommittedChanges } from '../../storage/transactions/uncommitted-changes.ts'
import type { AuthPolicies } from '../auth-policies.ts'
import { findProvenSigners, isPartial, type TotpState } from '../sign-in/second-factors.ts'
import type { ExternalSigners } from '../signers/external-signers.ts'
import type { ApiSessions } from './api-sessions.ts'
import { apiSessionUnknownError, permissionDeniedError, secondFactorRequiredError } from './caller-errors.ts'
import type { LiveApiSession } from './live-api-sessions.ts'
import { isAmong, listRevoked } from './session-basis.ts'

/** The projections that determine the rights of a caller. */
interface SessionState {
  readonly apiSessions: ApiSessions
  readonly policies: AuthPolicies
  readonly signers: Pick<ExternalSigners, 'directory'>
}

/**
 * Requires that a caller still holds the rights that its request was admitted with: between that moment and its transaction
 * passwords are hashed, bodies arrive and other transactions commit.
 * @throws UNAUTHORIZED if its session ended, its identity is not an administrator any more, or a second factor is owed now
 */
export function requireSameRights(
  { apiSessions, policies, signers }: SessionState,
  { caller, clock, uncommitted }: Pick<WriteContext, 'caller' | 'clock' | 'uncommitted'>,
): void {
  if (caller.kind !== 'identity' || caller.isActorOnly) return
  const session = apiSessions.get(caller.apiSessionId)
  if (!session) throw apiSessionUnknownError()
  const identity = uncommitted.findNewest('identities', session.identity.id) ?? session.identity
  if (uncommitted.all.some((change) => isRevokedBy(change, session, identity.authPolicyId)))
    throw apiSessionUnknownError()
  if (caller.isAdmin && !identity.isAdmin) throw permissionDeniedError('the identity is not an administrator any more')
  if (!findRights(identity).covers(caller.rights))
    throw permissionDeniedError('the identity does not hold the same permissions any more')
  if (caller.isPartial) return
  const { authPolicyId } = identity
  const policy = uncommitted.findNewest('auth-policies', authPolicyId) ?? policies.get(authPolicyId)
  const newestSigners = {
    get: (id: string) => uncommitted.findNewest('external-jwt-signers', id) ?? signers.directory.get(id),
  }
  const provenSigners = findProvenSigners(caller.externalTokens ?? [], identity, newestSigners, clock.now())
  if (isPartial(findNewestTotp(uncommitted, session), policy, provenSigners)) throw secondFactorRequiredError()
}

function isRevokedBy(change: Change, { id, basis }: LiveApiSession, authPolicyId: string): boolean {
  if (change.operation === 'delete' && change.id === id) return true
  return listRevoked(change).some((sessions) => isAmong(sessions, basis, authPolicyId))
}

/** The TOTP state of a session after the last change of it: another session may have verified a factor. */
function findNewestTotp(uncommitted: UncommittedChanges, session: LiveApiSession): TotpState {
  const changed = uncommitted.findNewest('api-sessions', session.id)
  return changed ? { owesTotp: changed.owesTotp, isTotpComplete: changed.isMfaComplete } : session
}
