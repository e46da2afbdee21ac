// The end of a sign-in: what was found out becomes a session, if it is still so when the session is stored.
import type { Context, WriteContext } from '../context.ts'
import { newId } from '../ids.ts'
import { authenticators } from '../resources/authenticators.ts'
import type { Entity } from '../resources/define.ts'
import { identities } from '../resources/identities.ts'
import { find, update } from '../store/entities.ts'
import { isOneOf } from '../store/untyped.ts'
import { endBootstrapTokens } from './bootstrap-tokens.ts'
import { readPasswordHash } from './credentials.ts'
import { isDisabled } from './disabling.ts'
import { isPartial } from './second-factors.ts'
import { AuthenticationError, type AuthenticatorMatch, type SignInAttempt } from './sign-in-attempt.ts'
import { requireAllowedMethod } from './steps/require-allowed-method.ts'

/** What a client reports of itself along with its credentials. */
export interface ClientInfo {
  readonly configTypes?: readonly string[]
  readonly envInfo?: Record<string, unknown>
  readonly sdkInfo?: Record<string, unknown>
}

/** Stores the session and returns its id. @throws Refusal where something has changed since the steps ran */
export async function createApiSession(attempt: SignInAttempt, reported: ClientInfo): Promise<string> {
  const { context, identity, authenticator } = attempt
  if (!authenticator) throw new Error('no step has found the authenticator')
  const configTypes = await resolveConfigTypes(context, reported.configTypes ?? [])
  const id = newId()
  const ownContext = asIdentity(attempt, id)
  const { controller, caller, clock, origin } = ownContext
  const signIn = { caller, origin, identityId: identity.id, method: attempt.method, apiSessionId: id }
  const admission = controller.signIns.admit(signIn, clock.now())
  const storing = ownContext.write(async (tx) => {
    const now = await recheckAdmission(tx, attempt, authenticator)
    const info = diffClientInfo(now, reported)
    if (info) await update(tx, identities, now, info, undefined, 'none')
    await updateAuthenticator(tx, attempt, authenticator)
    const { isChainProper, method } = attempt
    const found = {
      identity: now,
      authenticatorId: authenticator.id,
      ipAddress: context.origin.address ?? '',
      configTypes,
      // An identity with a verified TOTP owes it here; nobody can have one yet.
      owesTotp: false,
      isCertExtendable: method === 'cert' && authenticator.isIssuedByNetwork,
      improperClientCertChain: !isChainProper,
    }
    await controller.sessions.insert(tx, found, { id, method, audit: admission === 'counted' ? 'none' : 'event' })
    if (now.isAdmin && !isPartial({ ...found, isTotpComplete: false }, attempt.policy)) await endBootstrapTokens(tx)
  })
  try {
    await storing
  } catch (error) {
    controller.signIns.undo(signIn, admission)
    throw error
  }
  return id

  /** From here on it is the identity that acts: the audit says so. */
  function asIdentity({ context: { controller, origin } }: SignInAttempt, apiSessionId: string): Context {
    const { id: identityId, name: identityName, isAdmin } = identity
    return controller.context(
      { kind: 'identity', identityId, identityName, isAdmin, apiSessionId, isPartial: false, isActorOnly: true },
      origin,
    )
  }
}

/**
 * The identity as it is now. Between comparing a password and storing the session others may have come first: it was
 * disabled, by a lockout too, or deleted; its auth policy is closed to the method; its authenticator is gone, or has
 * another password.
 */
async function recheckAdmission(
  tx: WriteContext,
  attempt: SignInAttempt,
  { id, passwordHash }: AuthenticatorMatch,
): Promise<Entity<typeof identities>> {
  const { id: identityId } = attempt.identity
  const now = await find(tx, identities, identityId)
  if (!now || isDisabled(now, tx.clock.now()))
    throw new AuthenticationError('IDENTITY_DISABLED', `identity ${identityId} was disabled meanwhile`)
  const [row] = await readPasswordHash(tx.db, id)
  if (!row || row.passwordHash !== passwordHash) {
    throw new AuthenticationError('CREDENTIAL_CHANGED', 'the authenticator has changed meanwhile')
  }
  attempt.identity = now
  requireAllowedMethod(attempt)
  return now
}

/** What a sign-in leaves on the authenticator: no failures any more, a stronger hash, how its chain was resolved. */
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

/** Config types by id or name, as ids; `all` stands for every one; what does not exist is passed over. */
export async function resolveConfigTypes(context: Context, wanted: readonly string[]): Promise<string[]> {
  if (wanted.includes('all')) return ['all']
  if (wanted.length === 0) return []
  const rows = await context.db
    .selectFrom('config_types')
    .select('id')
    .where((eb) => eb.or([isOneOf(context.db, 'id', wanted), isOneOf(context.db, 'name', wanted)]))
    .execute()
  return rows.map(({ id }) => id)
}

/** What the client reports, where it is other than what is known. */
function diffClientInfo(
  identity: Entity<typeof identities>,
  { envInfo, sdkInfo }: ClientInfo,
): Record<string, unknown> | undefined {
  const changed: Record<string, unknown> = {}
  if (envInfo && !isSame(envInfo, identity.envInfo)) changed.envInfo = envInfo
  if (sdkInfo && !isSame(sdkInfo, identity.sdkInfo)) changed.sdkInfo = sdkInfo
  return Object.keys(changed).length > 0 ? changed : undefined
}

function isSame(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  const sorted = (record: Readonly<Record<string, unknown>>) => JSON.stringify(Object.entries(record).sort())
  return sorted(a) === sorted(b)
}
