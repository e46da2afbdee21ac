// The basis of API sessions (the method, the signer with its key, and the authority that they began by), and which ones a change revokes.
import { isDeepStrictEqual } from 'node:util'
import { describeRules, type SignerRecord } from '../../storage/external-tokens.ts'
import type { RecordChange, RecordOf } from '../../storage/transactions/changes.ts'
import { type AuthPolicy, isMethodAllowed } from '../auth-policies.ts'
import { type Method, methods, toSignerId } from '../sign-in/authentication-methods.ts'
import { readKeys } from '../signers/signers.ts'

type Authority = RecordOf<'cas'>

/** The basis of a session: it is revoked if a change takes part of it away. */
export interface SessionBasis {
  /** How its identity signed in; null for the session of a router. */
  readonly method: Method | null
  /** The signer of the token that it began by, and SHA-256 of the key of that token. */
  readonly signerId: string | null
  readonly signerKey: string | null
  /** The authority of its certificate, if an operator brought that authority. */
  readonly caId: string | null
  /** Whether a claim named the identity, of that certificate or token. */
  readonly isByClaim: boolean
}

/** The sessions that a change revokes. */
export type RevokedSessions =
  /** The sessions that began by tokens of a signer, except by these keys. */
  | { readonly signerId: string; readonly exceptKeys?: readonly string[] }
  /** The sessions that began by certificates of an authority: all of them, or only those whose identity a claim named. */
  | { readonly caId: string; readonly isByClaim?: true }
  /** The sessions of identities with an auth policy that began by a method, except by tokens of these signers. */
  | { readonly authPolicyId: string; readonly method: Method; readonly exceptSigners?: readonly string[] }

/** The basis of a session, from the columns of its row. */
export function toSessionBasis(row: {
  readonly method: string | null
  readonly authenticatorId: string
  readonly signerKey: string | null
  readonly caId: string | null
  /** The external id that named the identity. */
  readonly externalId: string | null
}): SessionBasis {
  const { authenticatorId, signerKey, caId } = row
  const isByClaim = row.externalId !== null
  return { method: row.method as Method | null, signerId: toSignerId(authenticatorId), signerKey, caId, isByClaim }
}

/** @param authPolicyId that of the identity of the session */
export function isAmong(revoked: RevokedSessions, basis: SessionBasis, authPolicyId: string): boolean {
  if ('caId' in revoked) return basis.caId === revoked.caId && (basis.isByClaim || !revoked.isByClaim)
  if ('signerId' in revoked)
    return basis.signerId === revoked.signerId && !revoked.exceptKeys?.includes(basis.signerKey ?? '')
  const isOfPolicy = revoked.authPolicyId === authPolicyId && revoked.method === basis.method
  return isOfPolicy && !revoked.exceptSigners?.includes(basis.signerId ?? '')
}

/** The sessions of any number of identities that a change revokes. */
export function listRevoked(change: RecordChange): readonly RevokedSessions[] {
  switch (change.resource) {
    case 'auth-policies':
      return change.before && change.after ? listForbidden(change.before, change.after) : []
    case 'external-jwt-signers':
      return change.before ? listUnproven(change.before, change.after) : []
    case 'cas':
      return change.before && change.after ? listUnvouched(change.before, change.after) : []
    default:
      return []
  }
}

/** The sessions whose method, or whose signer, the policy allowed before. */
function listForbidden(before: AuthPolicy, after: AuthPolicy): RevokedSessions[] {
  const { id: authPolicyId } = after
  const lostMethods = methods.filter((method) => isMethodAllowed(before, method) && !isMethodAllowed(after, method))
  const { allowedSigners } = after.primary.extJwt
  const isNarrower = allowedSigners.length > 0 && allowedSigners.join() !== before.primary.extJwt.allowedSigners.join()
  return [
    ...lostMethods.map((method) => ({ authPolicyId, method })),
    ...(isNarrower && isMethodAllowed(after, 'ext-jwt')
      ? [{ authPolicyId, method: 'ext-jwt' as const, exceptSigners: allowedSigners }]
      : []),
  ]
}

/** The sessions of an authority that is closed to sign-ins, or whose certificates name identities otherwise now. */
function listUnvouched(before: Authority, after: Authority): RevokedSessions[] {
  const { id: caId } = before
  if (before.isAuthEnabled && !after.isAuthEnabled) return [{ caId }]
  const isSameClaim = isDeepStrictEqual(before.externalIdClaim, after.externalIdClaim)
  return isSameClaim ? [] : [{ caId, isByClaim: true }]
}

/** The sessions of a signer that is gone or disabled, that judges tokens by other rules now, or that does not have the key any more. */
function listUnproven(before: SignerRecord, after: SignerRecord | undefined): RevokedSessions[] {
  const { id: signerId } = before
  if (!after || (before.enabled && !after.enabled) || describeRules(before) !== describeRules(after))
    return [{ signerId }]
  if (before.fetchedKeys === after.fetchedKeys) return []
  const exceptKeys = listKeys(after)
  return listKeys(before).every((key) => exceptKeys.includes(key)) ? [] : [{ signerId, exceptKeys }]
}

function listKeys(signer: SignerRecord): string[] {
  return Array.from(readKeys(signer).values(), ({ fingerprint }) => fingerprint)
}
