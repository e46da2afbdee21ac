// The guard of each transaction that its caller still holds the rights that its request was admitted with.
import { findRights, type Rights, type RightsHolder } from '../../definitions/permissions/rights.ts'
import type { TokenSubject } from '../../storage/external-tokens.ts'
import type { Change } from '../../storage/transactions/changes.ts'
import type { IdentityCaller, WriteContext } from '../../storage/transactions/context.ts'
import type { UncommittedChanges } from '../../storage/transactions/uncommitted-changes.ts'
import type { AuthPolicies } from '../auth-policies.ts'
import { isDisabled } from '../disabling.ts'
import type { MachineTokens } from '../machine-tokens/machine-tokens.ts'
import { findProvenSigners, isPartial, type TotpState } from '../sign-in/second-factors.ts'
import type { ExternalSigners } from '../signers/external-signers.ts'
import type { ApiSessions } from './api-sessions.ts'
import { apiSessionUnknownError, permissionDeniedError, secondFactorRequiredError } from './caller-errors.ts'
import type { LiveApiSession } from './live-api-sessions.ts'
import { isAmong, listRevoked } from './session-basis.ts'

type GuardedContext = Pick<WriteContext, 'caller' | 'clock' | 'uncommitted'>

/** The projections that determine the rights of a caller. */
interface SessionState {
  readonly apiSessions: ApiSessions
  readonly machineTokens: MachineTokens
  readonly policies: AuthPolicies
  readonly signers: Pick<ExternalSigners, 'directory'>
}

/**
 * Requires that a caller still holds the rights that its request was admitted with: between that moment and its transaction
 * passwords are hashed, bodies arrive and other transactions commit.
 * @throws UNAUTHORIZED if its session or token ended, its identity is not an administrator any more, or a second factor is owed now
 */
export function requireSameRights(state: SessionState, { caller, clock, uncommitted }: GuardedContext): void {
  if (caller.kind !== 'identity' || caller.isActorOnly) return
  const { policies, signers } = state
  const find = caller.token ? findTokenBasis : findSessionBasis
  const { identity, rights, totp } = find(state, caller, { clock, uncommitted })
  if (caller.isAdmin && !rights.isAdministrator)
    throw permissionDeniedError('the identity is not an administrator any more')
  if (!rights.covers(caller.rights))
    throw permissionDeniedError('the identity does not hold the same permissions any more')
  if (caller.isPartial) return
  const { authPolicyId } = identity
  const policy = policies.getNewest({ uncommitted }, authPolicyId)
  const newestSigners = {
    get: (id: string) => uncommitted.findNewest('external-jwt-signers', id) ?? signers.directory.get(id),
  }
  const provenSigners = findProvenSigners(caller.externalTokens ?? [], identity, newestSigners, clock.now())
  if (isPartial(totp, policy, provenSigners)) throw secondFactorRequiredError()
}

/** The basis of the rights of a caller, with the changes that are not committed yet. */
interface Basis {
  readonly identity: RightsHolder & TokenSubject & { readonly authPolicyId: string }
  readonly rights: Rights
  readonly totp: TotpState
}

/** @throws UNAUTHORIZED if the session has ended */
function findSessionBasis(
  { apiSessions }: SessionState,
  { apiSessionId }: IdentityCaller,
  { uncommitted }: Pick<GuardedContext, 'uncommitted'>,
): Basis {
  const session = apiSessions.get(apiSessionId)
  if (!session) throw apiSessionUnknownError()
  const identity = uncommitted.findNewest('identities', session.identity.id) ?? session.identity
  if (uncommitted.all.some((change) => isRevokedBy(change, session, identity.authPolicyId)))
    throw apiSessionUnknownError()
  return { identity, rights: findRights(identity), totp: findNewestTotp(uncommitted, session) }
}

/** @throws UNAUTHORIZED if the token was revoked or has expired, or its identity is disabled */
function findTokenBasis(
  { machineTokens }: SessionState,
  { apiSessionId: id }: IdentityCaller,
  { clock, uncommitted }: Pick<GuardedContext, 'clock' | 'uncommitted'>,
): Basis {
  const token = machineTokens.get(id)
  if (!token) throw apiSessionUnknownError()
  const identity = uncommitted.findNewest('identities', token.identity.id) ?? token.identity
  const isRevoked = uncommitted.all.some((change) => change.operation === 'delete' && change.id === id)
  // A plan says only what it changes.
  if (isRevoked || isDisabled({ ...token.identity, ...identity }, clock.now())) throw apiSessionUnknownError()
  const { isTotpComplete } = token
  const rights = findRights(identity).intersect(findRights(token))
  return { identity, rights, totp: { owesTotp: false, isTotpComplete } }
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
