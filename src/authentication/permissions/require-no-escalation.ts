// The guard of each transaction that its caller gains no right, directly or through another identity.
//
// It judges changes and not operations, so that every way to a change is judged alike: an operation, a network file, and what a
// change takes along.
import { isDeepStrictEqual } from 'node:util'
import { findRights, isInExtent, type RightsHolder, type ScopedRecord } from '../../definitions/permissions/rights.ts'
import { authPolicies } from '../../definitions/resources/auth-policies.ts'
import { get } from '../../storage/entities/entities.ts'
import type { Change, ChangeOf, RecordOf } from '../../storage/transactions/changes.ts'
import type { IdentityCaller, WriteContext } from '../../storage/transactions/context.ts'
import { permissionDeniedError } from '../api-sessions/caller-errors.ts'
import { isSignerAllowed } from '../auth-policies.ts'
import { findRightsOf, listAbove, type PrivilegedIdentity } from './privileged-identities.ts'

/**
 * Requires that a caller who does not administer changes only what it may: records within its limit, no identity that holds a right
 * which it lacks, and no authority, signer or auth policy by which such an identity could sign in.
 * @throws UNAUTHORIZED
 */
export async function requireNoEscalation(tx: WriteContext): Promise<void> {
  const { caller } = tx
  if (caller.kind !== 'identity' || caller.isActorOnly) return
  if (caller.token) for (const change of tx.uncommitted.own) requireNoWayIn(caller, change)
  if (caller.isAdmin) return
  for (const change of tx.uncommitted.own) {
    requireWithinLimit(caller, change)
    await requireCovered(tx, caller, change)
  }
}

/** A token is not exchanged for a lasting way in to its own identity, also not by an administrator's. */
function requireNoWayIn({ identityId }: IdentityCaller, change: Change): void {
  if (changesSignIn(change, identityId))
    throw permissionDeniedError('a token does not change how its own identity signs in')
}

function changesSignIn({ resource, id, before, after }: Change, identityId: string): boolean {
  switch (resource) {
    case 'identities':
      if (id !== identityId || !before || !after) return false
      return before.authPolicyId !== after.authPolicyId || before.externalId !== after.externalId
    case 'authenticators':
    case 'enrollments':
    case 'mfa-enrollments':
      return (after ?? before)?.identityId === identityId
    default:
      return false
  }
}

function requireWithinLimit({ limit }: IdentityCaller, { resource, before, after }: Change): void {
  if (!limit?.resources.includes(resource)) return
  const states = [before, after].filter((state) => state !== undefined) as ScopedRecord[]
  if (!states.every((state) => isInExtent(state, limit.scopes)))
    throw permissionDeniedError('a record must have the role attribute or tag by which you own it, before and after')
}

async function requireCovered(tx: WriteContext, caller: IdentityCaller, change: Change): Promise<void> {
  switch (change.resource) {
    case 'identities':
      if (!isReleasedService(tx, change)) requireCoveredIdentity(caller, change)
      return
    case 'api-sessions':
    case 'authenticators':
    case 'mfa-enrollments':
      return requireCoveredOwner(tx, caller, (change.after ?? change.before)?.identityId)
    case 'service-configs':
      if (deletesOne(tx, 'services') || deletesOne(tx, 'configs')) return
      return requireCoveredOwner(tx, caller, (change.after ?? change.before)?.identityId)
    case 'sessions':
      // One that ends with a change of another resource follows from that.
      if (tx.uncommitted.own.some(({ resource }) => resource !== 'sessions')) return
      return requireCoveredOwner(tx, caller, (change.after ?? change.before)?.identityId)
    case 'enrollments': {
      const enrollment = change.after ?? change.before
      // The identity of a router has the id of the router.
      return requireCoveredOwner(tx, caller, enrollment?.identityId ?? enrollment?.edgeRouterId)
    }
    case 'tokens':
      if (change.operation === 'create' && change.after)
        requireCoveredRights(caller.rights.covers(findRights(change.after)))
      return requireCoveredOwner(tx, caller, (change.after ?? change.before)?.identityId)
    case 'auth-policies':
      return requireNoneAbove(tx, caller, async ({ authPolicyId }) => authPolicyId === change.id)
    case 'cas':
      return requireNoneAbove(tx, caller, (identity) => admitsByAuthority(tx, change, identity))
    case 'external-jwt-signers':
      return requireNoneAbove(tx, caller, (identity) => admitsBySigner(tx, change, identity))
  }
}

function requireCoveredIdentity(caller: IdentityCaller, { id, before, after }: ChangeOf<'identities'>) {
  const { rights } = caller
  if (before && !isOwn(caller, id)) requireCoveredRights(rights.covers(findRights(before)))
  if (after && !hasSameRights(before, after)) requireCoveredRights(rights.covers(findRights(after)))
}

function hasSameRights(before: RightsHolder | undefined, after: RightsHolder): boolean {
  return before?.isAdmin === after.isAdmin && isDeepStrictEqual(before.permissions, after.permissions)
}

/** Whether an identity changes only because it hosted a service that is deleted. */
function isReleasedService(tx: WriteContext, { before, after }: ChangeOf<'identities'>): boolean {
  if (!before || !after || !deletesOne(tx, 'services')) return false
  return isDeepStrictEqual(omitHosting(before), omitHosting(after))
}

function deletesOne({ uncommitted }: WriteContext, plural: Change['resource']): boolean {
  return uncommitted.own.some(({ resource, operation }) => resource === plural && operation === 'delete')
}

function omitHosting({
  hostedServices: _services,
  serviceHostingCosts: _costs,
  serviceHostingPrecedences: _precedences,
  updatedAt: _updatedAt,
  ...others
}: RecordOf<'identities'>) {
  return others
}

/** Whether an identity is that of the caller, which holds all of its rights: a token may hold fewer. */
function isOwn({ identityId, token }: IdentityCaller, id: string): boolean {
  return id === identityId && !token
}

/** An identity may change its own, as far as the operation lets it. */
async function requireCoveredOwner(
  tx: WriteContext,
  caller: IdentityCaller,
  id: string | null | undefined,
): Promise<void> {
  if (typeof id !== 'string' || isOwn(caller, id)) return
  // Of an identity that is deleted along, its own change is judged.
  const rights = await findRightsOf(tx.db, id)
  requireCoveredRights(!rights || caller.rights.covers(rights))
}

async function requireNoneAbove(
  { db }: WriteContext,
  { rights, identityId, token }: IdentityCaller,
  isConcerned: (identity: PrivilegedIdentity) => Promise<boolean>,
): Promise<void> {
  const ownId = token ? identityId : undefined
  for (const identity of await listAbove(db, rights, ownId)) requireCoveredRights(!(await isConcerned(identity)))
}

/**
 * Whether an identity could sign in by an authority, before the change or after: by a certificate of it, or by a claim, also if the identity is
 * given its external id later, which no one compares with the authorities that there are.
 */
async function admitsByAuthority(
  tx: WriteContext,
  { id, before, after }: ChangeOf<'cas'>,
  identity: PrivilegedIdentity,
): Promise<boolean> {
  const readsClaim = [before, after].some((authority) => authority && authority.externalIdClaim !== null)
  if (readsClaim && (await get(tx, authPolicies, identity.authPolicyId)).primary.cert.allowed) return true
  const query = tx.db
    .selectFrom('authenticators')
    .select('id')
    .where('identityId', '=', identity.id)
    .where('caId', '=', id)
  return (await query.executeTakeFirst()) !== undefined
}

/** Whether an identity could sign in by tokens of a signer, or needs them as a second factor. */
async function admitsBySigner(
  tx: WriteContext,
  { id }: ChangeOf<'external-jwt-signers'>,
  { authPolicyId }: PrivilegedIdentity,
): Promise<boolean> {
  const policy = await get(tx, authPolicies, authPolicyId)
  return isSignerAllowed(policy, id) || policy.secondary.requireExtJwtSigner === id
}

function requireCoveredRights(isCovered: boolean): void {
  if (!isCovered) throw permissionDeniedError('an identity that this concerns holds a permission that you do not hold')
}
