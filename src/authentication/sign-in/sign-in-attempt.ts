// The state of one sign-in while its steps run: the credentials, and what the steps have found.
import type { X509Certificate } from 'node:crypto'
import type { PeerCertificates } from '../../pki/peer-certificates.ts'
import type { VerifiedToken } from '../../storage/external-tokens.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { ApiSessions } from '../api-sessions/api-sessions.ts'
import type { AuthPolicy } from '../auth-policies.ts'
import type { ExternalIdClaim } from '../authorities/external-id-claim.ts'
import type { RegisteredAuthority } from '../authorities/registered-authority.ts'
import type { SignInIdentity } from '../credentials/credentials.ts'
import type { PasswordHasher } from '../credentials/password-hasher.ts'
import type { ExternalSigners } from '../signers/external-signers.ts'
import { type AuthenticatorMatch, EXTERNAL_ID_AUTHENTICATOR, type Method } from './authentication-methods.ts'
import type { ClientTrustStore } from './client-trust.ts'
import type { FailedSignInParts } from './failed-sign-ins.ts'
import type { PresentedIssuers } from './presented-issuers.ts'
import type { RefusedCertificateLimit } from './refused-certificates.ts'
import type { SignInRecorder } from './sign-in-recorder.ts'

/** The credentials that a client presents to sign in. */
export interface Credentials {
  readonly username?: string
  readonly password?: string
  /** The certificates of the TLS client. */
  readonly peer: PeerCertificates
  /** The bearer tokens of the request, in the order sent; nothing about them is verified. */
  readonly bearerTokens: readonly string[]
}

/** A step of the flow. It stores what it found, or throws: an `AuthenticationError`, or an error that the client caused. */
export type Step = (attempt: SignInAttempt) => void | Promise<void>

/** The parts that sign identities in. */
export interface SignInParts extends FailedSignInParts {
  readonly auth: FailedSignInParts['auth'] & {
    readonly apiSessions: ApiSessions
    readonly passwordHasher: PasswordHasher
    readonly clientTrust: ClientTrustStore
    readonly presentedIssuers: PresentedIssuers
    readonly refusedCertificates: RefusedCertificateLimit
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
  /** The place of the identity's name in the certificate, if its authority has a claim and it is that of a TLS client. */
  claim: ExternalIdClaim | null = null
  /** The external id in the certificate, if that identified the identity instead of an authenticator. */
  externalId: string | undefined
  #identity: SignInIdentity | undefined
  #certificate: X509Certificate | undefined

  constructor(parts: SignInParts, context: Context, method: Method, credentials: Credentials) {
    this.parts = parts
    this.context = context
    this.method = method
    this.credentials = credentials
  }

  set identity(identity: SignInIdentity) {
    this.#identity = identity
  }

  /** The identity of the credential; set by the step that finds it. */
  get identity(): SignInIdentity {
    if (!this.#identity) throw new Error('no step has found the identity yet')
    return this.#identity
  }

  /** The client's own certificate; a step has required it. */
  get certificate(): X509Certificate {
    this.#certificate ??= this.credentials.peer.readOwn()
    if (!this.#certificate) throw new Error('no step has required a certificate')
    return this.#certificate
  }

  /** The id of the authenticator of the certificate, or of the identity that a claim names; undefined if neither is known. */
  get certificateHolder(): string | undefined {
    const { authenticator, method } = this
    if (method !== 'cert' || !authenticator) return undefined
    return authenticator.id === EXTERNAL_ID_AUTHENTICATOR ? authenticator.identityId : authenticator.id
  }

  get policy(): AuthPolicy {
    return this.parts.auth.policies.get(this.identity.authPolicyId)
  }
}
