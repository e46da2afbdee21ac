// The caller behind an API session, and the check that its rights are the same when its transaction runs.
import type { Instant } from '../../foundation/clock.ts'
import { type ControllerError, errors } from '../../foundation/errors.ts'
import type { Change } from '../../storage/changes.ts'
import { ANONYMOUS, type Caller, type WriteContext } from '../../storage/context.ts'
import type { VerifiedToken } from '../../storage/external-tokens.ts'
import type { UncommittedChanges } from '../../storage/uncommitted-changes.ts'
import type { AuthPolicyCache } from '../auth-policies.ts'
import { findProvenSigners, isPartial, type TotpState } from '../sign-in/second-factors.ts'
import type { ExternalSigners } from '../signers/external-signers.ts'
import type { ApiSessions } from './api-sessions.ts'
import type { LiveApiSession } from './live-api-sessions.ts'
import { isAmong, listRevoked } from './session-basis.ts'

/** The projections that determine the rights of a caller. */
interface SessionState {
  readonly apiSessions: ApiSessions
  readonly policies: AuthPolicyCache
  readonly signers: Pick<ExternalSigners, 'directory'>
}

/**
 * Returns the caller of a live session; without a session it is anonymous. The current auth policy of its identity decides
 * whether the session still owes a second factor.
 * @param externalTokens the verified tokens of the request
 */
export function callerFromApiSession(
  { policies, signers }: Pick<SessionState, 'policies' | 'signers'>,
  session: LiveApiSession | undefined,
  externalTokens: readonly VerifiedToken[],
  now: Instant,
): Caller {
  if (!session) return ANONYMOUS
  const { identity } = session
  const provenSigners = findProvenSigners(externalTokens, identity, signers.directory, now)
  const caller: Caller = {
    kind: 'identity',
    identityId: identity.id,
    identityName: identity.name,
    isAdmin: identity.isAdmin,
    apiSessionId: session.id,
    isPartial: isPartial(session, policies.get(identity.authPolicyId), provenSigners),
  }
  return externalTokens.length > 0 ? { ...caller, externalTokens } : caller
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

export function apiSessionUnknownError(): ControllerError {
  return errors.UNAUTHORIZED({ code: 'SESSION_UNKNOWN', message: 'the session is unknown, or has ended' })
}

export function secondFactorRequiredError(): ControllerError {
  return errors.UNAUTHORIZED({ code: 'SECOND_FACTOR_REQUIRED', message: 'the session owes a second factor' })
}

export function permissionDeniedError(message: string): ControllerError {
  return errors.UNAUTHORIZED({ code: 'PERMISSION_DENIED', message })
}
