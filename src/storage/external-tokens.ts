// The result of the verification of an external JWT: what the token proves, or why it is rejected.

import type { Entity } from '../definitions/resources/define.ts'
import type { externalJwtSigners } from '../definitions/resources/external-jwt-signers.ts'
import type { Instant } from '../foundation/clock.ts'

export type SignerRecord = Entity<typeof externalJwtSigners>

/** A token that passed every check, as far as its use depends on it. It holds no part of the token itself but one claim. */
export interface VerifiedToken {
  readonly signerId: string
  /** The rules of the signer that the token passed. It is not valid any more once they have changed. */
  readonly signerRules: string
  /** SHA-256 of the key that it is signed by. */
  readonly signerKey: string
  /** The value of the claim that names the identity. */
  readonly subject: string
  /** Whether the claim is an external id; otherwise it is the id of an identity. */
  readonly isExternalId: boolean
  /** Its `exp`, with the leeway added. */
  readonly validUntil: Instant
}

/** The checks of a token, in their order: of its form, its header, its signer, its signature and its claims. */
export const TOKEN_CHECKS = [
  'format',
  'kid',
  'issuer',
  'signer-enabled',
  'key',
  'signature',
  'audience',
  'not-before',
  'expiration',
  'identity-claim',
] as const
export type TokenCheck = (typeof TOKEN_CHECKS)[number]

/** A token fails a check. The message is for the log and for administrators. */
export class TokenError extends Error {
  override readonly name = 'TokenError'
  readonly check: TokenCheck

  constructor(check: TokenCheck, message: string, options?: ErrorOptions) {
    super(message, options)
    this.check = check
  }
}

/** The ids by which tokens name an identity. */
export interface TokenSubject {
  readonly id: string
  readonly externalId: string | null
}

/** Whether the token names the identity. */
export function namesIdentity({ subject, isExternalId }: VerifiedToken, { id, externalId }: TokenSubject): boolean {
  return isExternalId ? subject === externalId : subject === id
}

/** The rules by which a signer's tokens are checked, as text that two signers share only if they accept the same tokens. */
export function describeRules(signer: SignerRecord): string {
  const { id, issuer, audience, certPem, kid, jwksEndpoint, claimsProperty, useExternalId } = signer
  return JSON.stringify([id, issuer, audience, certPem, kid, jwksEndpoint, claimsProperty, useExternalId])
}

/** Whether a token that was verified earlier is still valid: not expired, and its signer enabled and unchanged. */
export function isStillValid(token: VerifiedToken, signer: SignerRecord | undefined, now: Instant): boolean {
  return isStillTrusted(token, signer) && now < token.validUntil
}

/** Whether the signer of a token that was verified earlier is enabled and unchanged. */
export function isStillTrusted({ signerRules }: VerifiedToken, signer: SignerRecord | undefined): boolean {
  return signer?.enabled === true && describeRules(signer) === signerRules
}
