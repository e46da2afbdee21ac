// Makes a token for a machine: for an identity that can use it, with rights that it holds, by one who may vouch for its second factor.

import { findRights } from '../../definitions/permissions/rights.ts'
import { authPolicies } from '../../definitions/resources/auth-policies.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { tokens } from '../../definitions/resources/tokens.ts'
import type { Instant } from '../../foundation/clock.ts'
import { errors, invalidError } from '../../foundation/errors.ts'
import { type EntityStore, find, get, newEntity } from '../../storage/entities/entities.ts'
import type { Context, ReadContext, WriteContext } from '../../storage/transactions/context.ts'
import type { ApiSessions } from '../api-sessions/api-sessions.ts'
import { permissionDeniedError } from '../api-sessions/caller-errors.ts'
import { isDisabled } from '../disabling.ts'
import { requireNoRouter } from '../router-identities.ts'
import { hashSecret, newTokenSecret } from './token-secrets.ts'

const MAX_AGE_MS = 366 * 24 * 60 * 60_000

/** All tokens are in memory. */
const MAX_OF_IDENTITY = 100

type Token = Entity<typeof tokens>
type Identity = Entity<typeof identities>

interface IssueParts {
  readonly entities: EntityStore
  readonly auth: { readonly apiSessions: ApiSessions }
}

/**
 * Returns a new token with its secret, which is not stored. That its maker holds the rights of the identity, and at least
 * those of the token, is required of every transaction. @throws COULD_NOT_VALIDATE, UNAUTHORIZED
 */
export async function issueToken(
  { entities, auth }: IssueParts,
  context: Context,
  values: Partial<Token>,
): Promise<Pick<Token, 'id' | 'expiresAt'> & { readonly secret: string }> {
  const secret = newTokenSecret()
  const isTotpComplete = vouchesForTotp(auth.apiSessions, context, values.identityId)
  const token = newEntity(context, tokens, { ...values, secretHash: hashSecret(secret) ?? '', isTotpComplete })
  await context.write(async (tx) => {
    const identity = await find(tx, identities, token.identityId)
    if (!identity) throw invalidError('identityId', 'does not exist', token.identityId)
    await requireUsableIdentity(tx, identity)
    requireHeldRights(identity, token)
    requireExpiry(tx, token.expiresAt)
    await requireCapacity(tx, identity.id)
    const { secondary } = await get(tx, authPolicies, identity.authPolicyId)
    if (secondary.requireTotp && !isTotpComplete)
      throw permissionDeniedError('its auth policy requires TOTP: its own session has to pass it, or an administrator')
    const { id, name, isAdmin, permissions, authPolicyId, roleAttributes, externalId } = identity
    const holder = { id, name, isAdmin, permissions, authPolicyId, roleAttributes, externalId }
    await entities.insert(tx, tokens, token, { identity: holder })
  })
  return { id: token.id, expiresAt: token.expiresAt, secret }
}

/** Whether a caller has passed TOTP in place of the machine, or administers. */
function vouchesForTotp(apiSessions: ApiSessions, { caller }: ReadContext, identityId: string | undefined): boolean {
  if (caller.kind !== 'identity') return caller.kind !== 'anonymous'
  if (caller.isAdmin) return true
  const session = apiSessions.get(caller.apiSessionId)
  return session !== undefined && session.identity.id === identityId && session.isTotpComplete
}

async function requireUsableIdentity(tx: WriteContext, identity: Identity): Promise<void> {
  const { id } = identity
  await requireNoRouter(tx, id)
  if (isDisabled(identity, tx.clock.now())) throw invalidError('identityId', 'is disabled', id)
}

/** More rights would be without effect. */
function requireHeldRights(identity: Identity, token: Token): void {
  const holdings = findRights(identity)
  if (token.isAdmin && !holdings.isAdministrator)
    throw invalidError('isAdmin', 'is more than the identity may', token.isAdmin)
  const excess = token.permissions.find((word) => !holdings.covers(findRights({ isAdmin: false, permissions: [word] })))
  if (excess !== undefined) throw invalidError('permissions', 'has an entry that the identity does not hold', excess)
}

function requireExpiry({ clock, caller }: WriteContext, expiresAt: Instant): void {
  const now = clock.now()
  if (expiresAt <= now) throw invalidError('expiresAt', 'must be in the future', new Date(expiresAt).toISOString())
  const latest = Math.min(now + MAX_AGE_MS, (caller.kind === 'identity' && caller.token?.expiresAt) || Infinity)
  if (expiresAt > latest)
    throw invalidError(
      'expiresAt',
      `must be at most ${new Date(latest).toISOString()}`,
      new Date(expiresAt).toISOString(),
    )
}

async function requireCapacity({ db }: WriteContext, identityId: string): Promise<void> {
  const { count } = await db
    .selectFrom('tokens')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('identityId', '=', identityId)
    .executeTakeFirstOrThrow()
  if (count >= MAX_OF_IDENTITY)
    throw errors.COULD_NOT_VALIDATE({ message: `an identity may have ${MAX_OF_IDENTITY} tokens` })
}
