// One sign-in on its way through the steps: what was presented, and what the steps have found of it.
import type { X509Certificate } from 'node:crypto'
import type { Context } from '../context.ts'
import type { Entity } from '../resources/define.ts'
import type { identities } from '../resources/identities.ts'
import type { AuthPolicy } from './auth-policies.ts'

export const methods = ['password', 'cert', 'ext-jwt'] as const
export type Method = (typeof methods)[number]

/** What a caller presents. */
export interface Credentials {
  readonly username?: string
  readonly password?: string
  /** The certificates of the TLS connection as they were sent, the proven leaf first. */
  readonly certificates: readonly X509Certificate[]
}

/** The stored credential that what was presented leads to. */
export interface AuthenticatorMatch {
  readonly id: string
  readonly identityId: string
  readonly passwordHash: string | null
  readonly isIssuedByNetwork: boolean
  readonly isExtendRequested: boolean
  readonly lastAuthResolvedToRoot: boolean
}

/** One check. It notes what it found, or throws: a `Refusal`, or an error that is the caller's own doing. */
export type Step = (attempt: SignInAttempt) => void | Promise<void>

/** Why a sign-in is refused, as the audit has it: equal refusals of one source are counted together. */
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
 * The sign-in comes to nothing. The caller is told `INVALID_AUTH` whatever the reason: who exists, is locked or may not
 * is for the log alone.
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
  /** Undefined where nothing is known by what was presented. */
  authenticator: AuthenticatorMatch | undefined
  isPasswordRight = false
  /** The password anew, where its stored hash was made at a lower cost. */
  strongerHash: string | undefined
  /** The chain leads to a root by what was sent alone. */
  isChainProper = true
  #identity: Entity<typeof identities> | undefined

  constructor(context: Context, method: Method, presented: Credentials) {
    this.context = context
    this.method = method
    this.credentials = presented
  }

  set identity(identity: Entity<typeof identities>) {
    this.#identity = identity
  }

  /** Whose credential it is, from the step on that finds it. */
  get identity(): Entity<typeof identities> {
    if (!this.#identity) throw new Error('no step has found the identity yet')
    return this.#identity
  }

  get policy(): AuthPolicy {
    return this.context.controller.authPolicies.get(this.identity.authPolicyId)
  }
}
