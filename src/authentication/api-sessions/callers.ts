// The caller behind an API session, or behind the token of a machine.
import { findRights, type RightsHolder } from '../../definitions/permissions/rights.ts'
import type { Instant } from '../../foundation/clock.ts'
import type { VerifiedToken } from '../../storage/external-tokens.ts'
import { ANONYMOUS, type Caller, type Context, type IdentityCaller } from '../../storage/transactions/context.ts'
import type { Contexts } from '../../storage/transactions/contexts.ts'
import type { AuthPolicies } from '../auth-policies.ts'
import type { MachineToken, MachineTokens } from '../machine-tokens/machine-tokens.ts'
import { findProvenSigners, isPartial } from '../sign-in/second-factors.ts'
import type { ExternalSigners } from '../signers/external-signers.ts'
import type { ApiSessions } from './api-sessions.ts'
import type { LiveApiSession } from './live-api-sessions.ts'

/** The projections that determine the caller of a session. */
interface AuthState {
  readonly policies: AuthPolicies
  readonly signers: Pick<ExternalSigners, 'directory'>
}

/**
 * Returns the caller of a live session; without a session it is anonymous. The current auth policy of its identity decides
 * whether the session still owes a second factor.
 * @param externalTokens the verified tokens of the request
 * @param accessTokenId that of the access token of the request, if it has one
 */
export function callerFromApiSession(
  { policies, signers }: AuthState,
  session: LiveApiSession | undefined,
  externalTokens: readonly VerifiedToken[],
  now: Instant,
  accessTokenId?: string,
): Caller {
  if (!session) return ANONYMOUS
  const { identity } = session
  const provenSigners = findProvenSigners(externalTokens, identity, signers.directory, now)
  const caller: Caller = {
    kind: 'identity',
    identityId: identity.id,
    identityName: identity.name,
    isAdmin: identity.isAdmin,
    rights: findRights(identity),
    apiSessionId: session.id,
    isPartial: isPartial(session, policies.get(identity.authPolicyId), provenSigners),
  }
  const bearer = accessTokenId === undefined ? caller : { ...caller, accessTokenId }
  return externalTokens.length > 0 ? { ...bearer, externalTokens } : bearer
}

/**
 * Creates the context of what is written because the client of a session has proven a credential or a token: the audit names its identity
 * as the actor, and it takes its turn among the writes of clients.
 */
export function createActorContext(
  contexts: Contexts,
  { origin }: Pick<Context, 'origin'>,
  apiSessionId: string,
  identity: RightsHolder & { readonly id: string; readonly name: string },
): Context {
  const { id: identityId, name: identityName, isAdmin } = identity
  const rights = findRights(identity)
  const actor = { kind: 'identity', identityId, identityName, isAdmin, rights, apiSessionId } as const
  return contexts.create({ ...actor, isPartial: false, isActorOnly: true }, origin)
}

/** Returns the caller of a token: with the rights that the token and its identity both hold now. */
export function callerFromToken(
  { policies, signers }: AuthState,
  machineToken: MachineToken | undefined,
  externalTokens: readonly VerifiedToken[],
  now: Instant,
): Caller {
  if (!machineToken) return ANONYMOUS
  const { id, name, expiresAt, identity, isTotpComplete } = machineToken
  const rights = findRights(identity).intersect(findRights(machineToken))
  const provenSigners = findProvenSigners(externalTokens, identity, signers.directory, now)
  const caller: Caller = {
    kind: 'identity',
    identityId: identity.id,
    identityName: identity.name,
    isAdmin: rights.isAdministrator,
    rights,
    apiSessionId: id,
    token: { id, name, expiresAt },
    isPartial: isPartial({ owesTotp: false, isTotpComplete }, policies.get(identity.authPolicyId), provenSigners),
  }
  return externalTokens.length > 0 ? { ...caller, externalTokens } : caller
}

/** Returns a caller as it is now: its session or token may have ended since, and its rights may be others. */
export function refreshCaller(
  auth: AuthState & { readonly apiSessions: ApiSessions; readonly machineTokens: MachineTokens },
  { token, accessTokenId, apiSessionId, externalTokens = [] }: IdentityCaller,
  now: Instant,
): Caller {
  return token
    ? callerFromToken(auth, auth.machineTokens.get(token.id), externalTokens, now)
    : callerFromApiSession(auth, auth.apiSessions.get(apiSessionId), externalTokens, now, accessTokenId)
}
