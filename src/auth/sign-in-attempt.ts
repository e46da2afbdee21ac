// The state of one sign-in while its steps run: the credentials, and what the steps have found.
import type { X509Certificate } from 'node:crypto'
import type { Context } from '../context.ts'
import type { Entity } from '../resources/define.ts'
import type { identities } from '../resources/identities.ts'
import type { AuthPolicy } from './auth-policies.ts'

export const methods = ['password', 'cert', 'ext-jwt'] as const
export type Method = (typeof methods)[number]

/** What a client presents to sign in. */
export interface Credentials {
  readonly username?: string
  readonly password?: string
  /** The certificates of the TLS connection in the order sent; the handshake has proven the first. */
  readonly certificates: readonly X509Certificate[]
}

/** The authenticator that matches the credentials. */
export interface AuthenticatorMatch {
  readonly id: string
  readonly identityId: string
  readonly passwordHash: string | null
  readonly isIssuedByNetwork: boolean
  readonly isExtendRequested: boolean
  readonly lastAuthResolvedToRoot: boolean
}

/** A step of the flow. It stores what it found, or throws: an `AuthenticationError`, or an error that the client caused. */
export type Step = (attempt: SignInAttempt) => void | Promise<void>

/** Why a sign-in is refused, in the audit; refusals of one source with one reason are counted together. */
export type RefusalReason =
  | 'UNKNOWN_CREDENTIAL'
  | 'WRONG_PASSWORD'
  | 'IDENTITY_DISABLED'
  | 'METHOD_NOT_ALLOWED'
  | 'NO_CERTIFICATE'
  | 'TOO_MANY_CERTIFICATES'
  | 'UNTRUSTED_CERTIFICATE'
  | 'EXPIRED_CERTIFICATE'
  | 'UNKNOWN_SIGNER'
  | 'UNSATISFIABLE_POLICY'
  | 'CREDENTIAL_CHANGED'

/**
 * The sign-in is refused. The response is `INVALID_AUTH` for every reason, so that it does not reveal which identities exist
 * or are locked; the reason is in the log and the audit.
 */
export class AuthenticationError extends Error {
  readonly reason: RefusalReason

  constructor(reason: RefusalReason, detail: string) {
    super(detail)
    this.name = 'Refusal'
    this.reason = reason
  }
}

export class SignInAttempt {
  readonly context: Context
  readonly method: Method
  readonly credentials: Credentials
  /** Undefined if no authenticator matches the credentials. */
  authenticator: AuthenticatorMatch | undefined
  isPasswordCorrect = false
  /** A new hash of the password, if the stored hash has a lower cost. */
  strongerHash: string | undefined
  /** The presented certificates alone lead to a root. */
  isChainProper = true
  #identity: Entity<typeof identities> | undefined

  constructor(context: Context, method: Method, credentials: Credentials) {
    this.context = context
    this.method = method
    this.credentials = credentials
  }

  set identity(identity: Entity<typeof identities>) {
    this.#identity = identity
  }

  /** The identity of the credential; set by the step that finds it. */
  get identity(): Entity<typeof identities> {
    if (!this.#identity) throw new Error('no step has found the identity yet')
    return this.#identity
  }

  get policy(): AuthPolicy {
    return this.context.controller.authPolicies.get(this.identity.authPolicyId)
  }
}
