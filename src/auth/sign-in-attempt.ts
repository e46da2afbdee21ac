// The state of one sign-in while its steps run: the credentials, and what the steps have found.
import type { X509Certificate } from 'node:crypto'
import type { Context } from '../context.ts'
import type { Entity } from '../resources/define.ts'
import type { identities } from '../resources/identities.ts'
import type { ExternalSigners } from '../signers/external-signers.ts'
import type { VerifiedToken } from '../signers/external-tokens.ts'
import type { ApiSessions } from './api-sessions.ts'
import type { AuthPolicy } from './auth-policies.ts'
import type { AuthenticatorMatch, Method } from './authentication-methods.ts'
import type { RegisteredAuthority } from './authorities/registered-authority.ts'
import type { ClientTrustStore } from './client-trust.ts'
import type { FailedSignInParts } from './failed-sign-ins.ts'
import type { PasswordHasher } from './password-hasher.ts'
import type { SignInRecorder } from './sign-in-recorder.ts'

/** What a client presents to sign in. */
export interface Credentials {
  readonly username?: string
  readonly password?: string
  /** The certificates of the TLS connection in the order sent; the handshake has proven the first. */
  readonly certificates: readonly X509Certificate[]
  /** The bearer tokens of the request, in the order sent; nothing about them is verified. */
  readonly bearerTokens: readonly string[]
}

/** A step of the flow. It stores what it found, or throws: an `AuthenticationError`, or an error that the client caused. */
export type Step = (attempt: SignInAttempt) => void | Promise<void>

/** What signing in works with. */
export interface SignInParts extends FailedSignInParts {
  readonly auth: FailedSignInParts['auth'] & {
    readonly apiSessions: ApiSessions
    readonly passwordHasher: PasswordHasher
    readonly clientTrust: ClientTrustStore
    readonly signIns: SignInRecorder
    readonly signers: ExternalSigners
  }
}

export class SignInAttempt {
  readonly parts: SignInParts
  readonly context: Context
  readonly method: Method
  readonly credentials: Credentials
  /** Undefined if no authenticator matches the credentials. */
  authenticator: AuthenticatorMatch | undefined
  isPasswordCorrect = false
  /** A new hash of the password, if the stored hash has a lower cost. */
  strongerHash: string | undefined
  /** The bearer tokens that were verified, if the method or the auth policy uses them. */
  externalTokens: readonly VerifiedToken[] = []
  /** The one of them by which the identity signs in. */
  primaryToken: VerifiedToken | undefined
  /** The presented certificates alone lead to a root. */
  isChainProper = true
  /** The authority of the certificate, if an operator brought it. */
  authority: RegisteredAuthority | undefined
  /** What the certificate names the identity by, if that identified it instead of an authenticator. */
  externalId: string | undefined
  #identity: Entity<typeof identities> | undefined

  constructor(parts: SignInParts, context: Context, method: Method, credentials: Credentials) {
    this.parts = parts
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
    return this.parts.auth.policies.get(this.identity.authPolicyId)
  }
}
