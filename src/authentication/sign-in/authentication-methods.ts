// The ways to sign in, the credential that one leads to, and why one is refused.

import { ControllerError } from '../../foundation/errors.ts'

export const methods = ['password', 'cert', 'ext-jwt'] as const
export type Method = (typeof methods)[number]

/** The id that clients know for the authenticator of an identity that signs in by its external id: none is stored. */
export const EXTERNAL_ID_AUTHENTICATOR = 'internal'

/** The authenticator that matches the credentials. */
export interface AuthenticatorMatch {
  readonly id: string
  readonly identityId: string
  readonly passwordHash: string | null
  readonly fingerprint256: string | null
  /** The authority of a certificate, if an operator brought it. */
  readonly caId: string | null
  readonly isIssuedByNetwork: boolean
  readonly isExtendRequested: boolean
  readonly lastAuthResolvedToRoot: boolean
}

const SIGNER_PREFIX = 'extJwtId:'

/** The authenticator id of sessions that began with a token of a signer; it is not the id of an authenticator record. */
export function toSignerAuthenticatorId(signerId: string): string {
  return SIGNER_PREFIX + signerId
}

/** The signer in such an id; null if it is of an authenticator. */
export function toSignerId(authenticatorId: string): string | null {
  return authenticatorId.startsWith(SIGNER_PREFIX) ? authenticatorId.slice(SIGNER_PREFIX.length) : null
}

/** The members of an authenticator that is not a stored certificate. */
export const NO_CERTIFICATE = {
  fingerprint256: null,
  caId: null,
  isIssuedByNetwork: false,
  isExtendRequested: false,
  lastAuthResolvedToRoot: false,
} as const

/** The reason for which a sign-in is refused, in the audit; refusals of one source with one reason are counted together. */
export type SignInRefusalReason =
  | 'UNKNOWN_CREDENTIAL'
  | 'WRONG_PASSWORD'
  | 'IDENTITY_DISABLED'
  | 'METHOD_NOT_ALLOWED'
  | 'NO_CERTIFICATE'
  | 'TOO_MANY_CERTIFICATES'
  | 'UNTRUSTED_CERTIFICATE'
  | 'EXPIRED_CERTIFICATE'
  | 'NO_TOKEN'
  | 'MALFORMED_TOKEN'
  | 'UNKNOWN_SIGNER'
  | 'SIGNER_DISABLED'
  | 'UNKNOWN_KEY'
  | 'WRONG_SIGNATURE'
  | 'WRONG_AUDIENCE'
  | 'TOKEN_NOT_YET_VALID'
  | 'EXPIRED_TOKEN'
  | 'MISSING_CLAIM'
  | 'SIGNER_NOT_ALLOWED'
  | 'CREDENTIAL_CHANGED'
  | 'WRONG_CODE'
  | 'REUSED_CODE'

/**
 * The sign-in is refused. The response is `INVALID_AUTH` for every reason, so that it does not reveal which identities exist
 * or are locked; the reason is in the log and the audit.
 */
export class AuthenticationError extends Error {
  readonly reason: SignInRefusalReason

  constructor(reason: SignInRefusalReason, detail: string) {
    super(detail)
    this.name = 'AuthenticationError'
    this.reason = reason
  }
}

/** The refusal as its client receives it, with the reason for those that tell more to programs. */
export class SignInRefusedError extends ControllerError {
  readonly reason: SignInRefusalReason

  constructor(method: Method, { message, reason }: AuthenticationError) {
    super('INVALID_AUTH', undefined, { cause: `${method}: ${message}` })
    this.reason = reason
  }
}
