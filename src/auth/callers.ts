// The caller behind an API session: made from what memory knows now, and required to be the same when its change is written.
import type { Caller } from '../context.ts'
import { type ControllerError, errors } from '../errors.ts'
import type { Change } from '../store/changes.ts'
import type { ApiSessions } from './api-sessions.ts'
import type { AuthPolicy, AuthPolicyCache } from './auth-policies.ts'
import type { LiveSession, SessionIdentity } from './live-sessions.ts'
import { isPartial } from './second-factors.ts'

/** What is known of sessions and of what their identities owe. */
interface Known {
  readonly sessions: ApiSessions
  readonly authPolicies: AuthPolicyCache
}

/** The caller behind a live session. What it owes is asked of its auth policy, as that is now. */
export function callerFromSession({ authPolicies }: Pick<Known, 'authPolicies'>, session: LiveSession): Caller {
  const { identity } = session
  return {
    kind: 'identity',
    identityId: identity.id,
    identityName: identity.name,
    isAdmin: identity.isAdmin,
    apiSessionId: session.id,
    isPartial: isPartial(session, authPolicies.get(identity.authPolicyId)),
  }
}

/** The caller as the actor of what the controller writes down of it, also if its session has ended since. */
export function toActor(caller: Caller): Caller {
  return caller.kind === 'identity' ? { ...caller, isActorOnly: true } : caller
}

/**
 * Requires that a caller still holds the rights that its request was admitted with. Passwords are hashed, bodies arrive and
 * other transactions commit between that moment and its own transaction.
 * @param earlier changes that commit together with the transaction, and that memory does not know yet
 * @throws UNAUTHORIZED if its session ended, its identity is no administrator any more, or a second factor is owed now
 */
export function requireSameRights({ sessions, authPolicies }: Known, caller: Caller, earlier: readonly Change[]): void {
  if (caller.kind !== 'identity' || caller.isActorOnly) return
  const session = sessions.get(caller.apiSessionId)
  if (!session || earlier.some(({ operation, id }) => operation === 'delete' && id === session.id)) {
    throw sessionUnknownError()
  }
  const identity = newest<SessionIdentity>(earlier, 'identities', session.identity.id) ?? session.identity
  if (caller.isAdmin && !identity.isAdmin) throw permissionDeniedError('the identity is no administrator any more')
  if (caller.isPartial) return
  const { authPolicyId } = identity
  const policy = newest<AuthPolicy>(earlier, 'auth-policies', authPolicyId) ?? authPolicies.get(authPolicyId)
  if (isPartial(session, policy)) throw secondFactorRequiredError()
}

/** The record as the last of the changes left it; undefined if none concerns it. */
function newest<T>(changes: readonly Change[], resource: string, id: string): T | undefined {
  return changes.findLast((change) => change.resource === resource && change.id === id)?.after as T | undefined
}

export function sessionUnknownError(): ControllerError {
  return errors.UNAUTHORIZED({ code: 'SESSION_UNKNOWN', message: 'the session is unknown, or has ended' })
}

export function secondFactorRequiredError(): ControllerError {
  return errors.UNAUTHORIZED({ code: 'SECOND_FACTOR_REQUIRED', message: 'the session owes a second factor' })
}

export function permissionDeniedError(message: string): ControllerError {
  return errors.UNAUTHORIZED({ code: 'PERMISSION_DENIED', message })
}
