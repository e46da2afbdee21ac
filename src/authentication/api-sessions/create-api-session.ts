// The end of a sign-in: stores the API session, if the conditions still hold in its transaction.
import { isDeepStrictEqual } from 'node:util'
import type { apiSessions, PendingTokens, StoredAuthorization } from '../../definitions/resources/api-sessions.ts'
import { authPolicies } from '../../definitions/resources/auth-policies.ts'
import { authenticators } from '../../definitions/resources/authenticators.ts'
import { cas } from '../../definitions/resources/cas.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import { externalJwtSigners } from '../../definitions/resources/external-jwt-signers.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { newId } from '../../foundation/ids.ts'
import { computeFingerprint } from '../../pki/certificates.ts'
import { type EntityStore, find, get } from '../../storage/entities/entities.ts'
import { isStillValid, namesIdentity, type TokenSubject, type VerifiedToken } from '../../storage/external-tokens.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import { endBootstrapTokens } from '../administrators/bootstrap-tokens.ts'
import type { RegisteredAuthority } from '../authorities/registered-authority.ts'
import {
  findSignInIdentity,
  findVerifiedMfa,
  readCredential,
  readIsAuthEnabled,
  type SignInIdentity,
} from '../credentials/credentials.ts'
import { isDisabled } from '../disabling.ts'
import { AuthenticationError, type AuthenticatorMatch } from '../sign-in/authentication-methods.ts'
import { findProvenSigners, isPartial } from '../sign-in/second-factors.ts'
import type { SignInAttempt } from '../sign-in/sign-in-attempt.ts'
import { requireMethodAllowedBy } from '../sign-in/steps/require-allowed-method.ts'
import { readKeys } from '../signers/signers.ts'
import { createActorContext } from './callers.ts'
import { findStoredRequest, signInOverError } from './stored-requests.ts'

/** Information about the client, which it sends with its credentials. */
export interface ClientInfo {
  readonly configTypes?: readonly string[]
  readonly envInfo?: Record<string, unknown>
  readonly sdkInfo?: Record<string, unknown>
  /** The client of OpenID Connect, if it signs in by that. */
  readonly clientId?: string
  /** The authorization request that it signs in to. */
  readonly request?: SignedInRequest
}

/** An authorization request, and what is stored of it besides what the sign-in proves. */
export interface SignedInRequest {
  readonly id: string
  readonly authorization: Omit<StoredAuthorization, 'pending'>
  readonly pending: Omit<PendingTokens, 'externalTokens'>
}

/** Stores the session and returns it. @throws AuthenticationError if a condition has changed since the steps ran */
export async function createApiSession(
  attempt: SignInAttempt,
  clientInfo: ClientInfo,
): Promise<Entity<typeof apiSessions>> {
  const { parts, context, identity, authenticator } = attempt
  if (!authenticator) throw new Error('no step has found the authenticator')
  const configTypes = await resolveConfigTypes(context, clientInfo.configTypes ?? [])
  const id = newId()
  const ownContext = createActorContext(parts.contexts, context, id, identity)
  const { caller, clock, origin } = ownContext
  const signIn = { caller, origin, identityId: identity.id, method: attempt.method, apiSessionId: id }
  const admission = parts.auth.signIns.admit(signIn, clock.now())
  let provenSigners: readonly string[] = []
  const write = ownContext.write(async (tx) => {
    const now = await recheckAdmission(tx, attempt, authenticator)
    if (clientInfo.envInfo || clientInfo.sdkInfo) await storeClientInfo(parts.entities, tx, now.id, clientInfo)
    await updateAuthenticator(tx, attempt, authenticator)
    const { request } = clientInfo
    if (request) await endEarlierSignIn(tx, attempt, request)
    const { isChainProper, method } = attempt
    const newSession = {
      identity: now,
      authenticatorId: authenticator.id,
      caId: attempt.authority?.record.id ?? null,
      certFingerprint: method === 'cert' ? computeFingerprint(attempt.certificate) : null,
      externalId: attempt.externalId ?? (attempt.primaryToken?.isExternalId ? attempt.primaryToken.subject : null),
      signerKey: attempt.primaryToken?.signerKey ?? null,
      clientId: clientInfo.clientId ?? null,
      authorizationRequestId: request?.id ?? null,
      authorization: request
        ? { ...request.authorization, pending: { ...request.pending, externalTokens: attempt.externalTokens } }
        : null,
      ipAddress: context.origin.address ?? '',
      configTypes,
      owesTotp: (await findVerifiedMfa(tx.db, now.id)).length > 0,
      isCertExtendable: method === 'cert' && authenticator.isIssuedByNetwork,
      improperClientCertChain: !isChainProper,
    }
    const apiSession = await parts.auth.apiSessions.insert(tx, newSession, {
      id,
      method,
      audit: admission === 'counted' ? 'none' : 'event',
    })
    provenSigners = findProvenSigners(attempt.externalTokens, now, parts.auth.signers.directory, clock.now())
    const policy = parts.auth.policies.getNewest(tx, now.authPolicyId)
    if (now.isAdmin && !isPartial({ ...newSession, isTotpComplete: false }, policy, provenSigners))
      await endBootstrapTokens(parts.entities, tx)
    return apiSession
  })
  try {
    const apiSession = await write
    const { requireExtJwtSigner } = attempt.policy.secondary
    if (requireExtJwtSigner !== null && provenSigners.includes(requireExtJwtSigner))
      parts.auth.apiSessions.noteShownToken(id)
    return apiSession
  } catch (error) {
    parts.auth.signIns.undo(signIn, admission)
    throw error
  }
}

/** Ends an earlier sign-in of a request, with all that it had passed. @throws UNAUTHORIZED if it has its tokens, or is of another browser */
async function endEarlierSignIn(
  tx: WriteContext,
  { parts }: SignInAttempt,
  { id, pending }: SignedInRequest,
): Promise<void> {
  const earlier = await findStoredRequest(tx.db, id)
  if (!earlier) return
  const { browser } = earlier.authorization.pending ?? {}
  const isOver = earlier.authorization.pending === null || (browser !== undefined && browser !== pending.browser)
  if (isOver) throw signInOverError()
  await parts.auth.apiSessions.revoke(tx, [earlier.apiSessionId], 'none')
}

/**
 * Returns the current identity after checking again that it may sign in. While the password was compared, another request
 * may have disabled or deleted the identity, changed its auth policy, or removed or changed its authenticator or signer.
 */
async function recheckAdmission(
  tx: WriteContext,
  attempt: SignInAttempt,
  match: AuthenticatorMatch,
): Promise<SignInIdentity> {
  const { id: identityId } = attempt.identity
  const now = await findSignInIdentity(tx.db, identityId)
  if (!now || isDisabled(now, tx.clock.now()))
    throw new AuthenticationError('IDENTITY_DISABLED', `identity ${identityId} was disabled meanwhile`)
  if (attempt.primaryToken) await recheckToken(tx, attempt.primaryToken, now)
  else if (attempt.externalId === undefined) await recheckAuthenticator(tx, match)
  else {
    recheckExternalId(attempt.externalId, now)
    await recheckClaim(tx, attempt.authority)
  }
  if (attempt.authority) await recheckAuthority(tx, attempt.authority)
  attempt.identity = now
  requireMethodAllowedBy(await get(tx, authPolicies, now.authPolicyId), attempt)
  return now
}

async function recheckAuthenticator(
  tx: WriteContext,
  { id, passwordHash, fingerprint256 }: AuthenticatorMatch,
): Promise<void> {
  const [row] = await readCredential(tx.db, id)
  if (!row || row.passwordHash !== passwordHash || row.fingerprint256 !== fingerprint256) {
    throw new AuthenticationError('CREDENTIAL_CHANGED', 'the authenticator has changed meanwhile')
  }
}

/** The signer may have been changed, disabled or deleted meanwhile, and the identity may have another external id. */
async function recheckToken(tx: WriteContext, token: VerifiedToken, identity: TokenSubject): Promise<void> {
  const signer = await find(tx, externalJwtSigners, token.signerId)
  const hasKey =
    signer !== undefined && [...readKeys(signer).values()].some((key) => key.fingerprint === token.signerKey)
  if (!hasKey || !isStillValid(token, signer, tx.clock.now()) || !namesIdentity(token, identity)) {
    throw new AuthenticationError('CREDENTIAL_CHANGED', 'the signer or the external id has changed meanwhile')
  }
}

function recheckExternalId(externalId: string, identity: Pick<SignInIdentity, 'externalId'>): void {
  if (identity.externalId !== externalId)
    throw new AuthenticationError('CREDENTIAL_CHANGED', 'the external id has changed meanwhile')
}

async function recheckAuthority(tx: WriteContext, { record }: RegisteredAuthority): Promise<void> {
  const [current] = await readIsAuthEnabled(tx.db, record.id)
  if (current?.isAuthEnabled !== 1)
    throw new AuthenticationError('UNTRUSTED_CERTIFICATE', 'the authority was closed meanwhile')
}

/** The authority may name identities by another part of its certificates now. */
async function recheckClaim(tx: WriteContext, authority: RegisteredAuthority | undefined): Promise<void> {
  const current = authority && (await find(tx, cas, authority.record.id))
  if (current && !isDeepStrictEqual(current.externalIdClaim, authority.record.externalIdClaim))
    throw new AuthenticationError('CREDENTIAL_CHANGED', 'the claim of the authority has changed meanwhile')
}

/** Updates the authenticator after a sign-in: resets failures, stores a stronger hash, records how its chain resolved. */
async function updateAuthenticator(
  tx: WriteContext,
  { method, strongerHash, isChainProper }: SignInAttempt,
  { id, isIssuedByNetwork, lastAuthResolvedToRoot }: AuthenticatorMatch,
): Promise<void> {
  const own = () => tx.db.updateTable('authenticators').where('id', '=', id)
  if (method === 'password') {
    await own().set({ failedAttempts: 0 }).where('failedAttempts', '>', 0).execute()
    if (strongerHash) await own().set({ passwordHash: strongerHash }).execute()
  }
  if (method === 'cert' && isIssuedByNetwork && lastAuthResolvedToRoot !== isChainProper) {
    await own()
      .set({ lastAuthResolvedToRoot: isChainProper ? 1 : 0 })
      .execute()
    tx.record({ operation: 'update', audit: 'none', resource: authenticators.plural, id, at: tx.clock.now() })
  }
}

/** Resolves config types by id or name to ids; `all` means every type; unknown ones are ignored. */
export async function resolveConfigTypes(context: Context, idsOrNames: readonly string[]): Promise<string[]> {
  if (idsOrNames.includes('all')) return ['all']
  if (idsOrNames.length === 0) return []
  const rows = await context.db
    .selectFrom('config_types')
    .select('id')
    .where((eb) => eb.or([isOneOf(context.db, 'id', idsOrNames), isOneOf(context.db, 'name', idsOrNames)]))
    .execute()
  return rows.map(({ id }) => id)
}

/** Stores what the client reports of itself with its identity, if that has changed. */
async function storeClientInfo(
  entities: EntityStore,
  tx: WriteContext,
  identityId: string,
  clientInfo: ClientInfo,
): Promise<void> {
  const identity = await get(tx, identities, identityId)
  const changed = diffClientInfo(identity, clientInfo)
  if (changed) await entities.update(tx, identities, identity, changed, { audit: 'none' })
}

/** Returns the client information that differs from the stored one; undefined if none does. */
export function diffClientInfo(
  identity: Pick<Entity<typeof identities>, 'envInfo' | 'sdkInfo'>,
  { envInfo, sdkInfo }: ClientInfo,
): Record<string, unknown> | undefined {
  const changed: Record<string, unknown> = {}
  if (envInfo && !isEqual(envInfo, identity.envInfo)) changed.envInfo = envInfo
  if (sdkInfo && !isEqual(sdkInfo, identity.sdkInfo)) changed.sdkInfo = sdkInfo
  return Object.keys(changed).length > 0 ? changed : undefined
}

function isEqual(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  const serialize = (record: Readonly<Record<string, unknown>>) => JSON.stringify(Object.entries(record).sort())
  return serialize(a) === serialize(b)
}
