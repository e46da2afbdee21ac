// The sign-in flow as a table: which steps run for which method, in order.

import type { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import type { VerifiedToken } from '../../storage/external-tokens.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { type ClientInfo, createApiSession } from '../api-sessions/create-api-session.ts'
import { AuthenticationError, type Method, methods, SignInRefusedError } from './authentication-methods.ts'
import { recordFailedSignIn } from './failed-sign-ins.ts'
import { type Credentials, SignInAttempt, type SignInParts, type Step } from './sign-in-attempt.ts'
import { awaitCounts } from './steps/await-counts.ts'
import { comparePassword } from './steps/compare-password.ts'
import { findCertificate } from './steps/find-certificate.ts'
import { findUsername } from './steps/find-username.ts'
import { limitRefusedCertificates } from './steps/limit-refused-certificates.ts'
import { limitSignInRate } from './steps/limit-sign-in-rate.ts'
import { rehashPassword } from './steps/rehash-password.ts'
import { requireAllowedMethod } from './steps/require-allowed-method.ts'
import { requireCertificate } from './steps/require-certificate.ts'
import { requireCredentials } from './steps/require-credentials.ts'
import { requireEnabledIdentity } from './steps/require-enabled-identity.ts'
import { requireUnexpiredCertificate } from './steps/require-unexpired-certificate.ts'
import { resolveExternalId } from './steps/resolve-external-id.ts'
import { verifyChain } from './steps/verify-chain.ts'
import { verifyExternalToken } from './steps/verify-external-token.ts'
import { verifyPassword } from './steps/verify-password.ts'
import { verifySecondFactorTokens } from './steps/verify-second-factor-tokens.ts'

// biome-ignore format: it is a table
const table: readonly (readonly [step: Step, ...methods: readonly Method[]])[] = [
  // Identification.
  [requireCredentials,          'password'],
  [requireCertificate,                      'cert'],
  [findUsername,                'password'],
  // Before the chain is built: the fingerprint selects the authority, and chains of unknown clients are costly to check.
  [findCertificate,                         'cert'],
  [limitRefusedCertificates,                'cert'],
  [verifyChain,                             'cert'],
  [resolveExternalId,                       'cert'],
  [limitRefusedCertificates,                'cert'],
  [verifyExternalToken,                             'ext-jwt'],
  // For every username, existing or not, before any other check, so that all refusals take the same time.
  [comparePassword,             'password'],
  // Authorization.
  [requireEnabledIdentity,      'password', 'cert', 'ext-jwt'],
  [requireAllowedMethod,        'password', 'cert', 'ext-jwt'],
  [requireUnexpiredCertificate,             'cert'],
  [verifyPassword,              'password'],
  // Second factors. Every request checks what is still owed: second-factors.ts.
  [verifySecondFactorTokens,    'password', 'cert'],
  // The credential is proven.
  [limitSignInRate,             'password', 'cert', 'ext-jwt'],
  [rehashPassword,              'password'],
  [awaitCounts,                 'password'],
]

/** The steps of each method. */
export const flow = Object.fromEntries(
  methods.map((method) => [method, table.flatMap(([step, ...of]) => (of.includes(method) ? [step] : []))]),
) as unknown as Readonly<Record<Method, readonly Step[]>>

/** The result of a sign-in. */
export interface SignInResult {
  readonly apiSession: Entity<typeof apiSessions>
  /** An extension of the certificate is requested. */
  readonly isExtendRequested: boolean
  /** The tokens of external signers that the request carries, and that its second factors may need. */
  readonly externalTokens: readonly VerifiedToken[]
}

/**
 * Signs a client in. The session may still owe a second factor.
 * @throws INVALID_AUTH for every reason; COULD_NOT_VALIDATE if username or password is missing; SERVER_TOO_MANY_REQUESTS if
 * too many passwords wait to be compared, or the identity signs in too often
 */
export async function signIn(
  parts: SignInParts,
  context: Context,
  method: Method,
  credentials: Credentials,
  clientInfo: ClientInfo,
): Promise<SignInResult> {
  for (let isRepeated = false; ; isRepeated = true) {
    const attempt = new SignInAttempt(parts, context, method, credentials)
    try {
      return await takeSteps(attempt, clientInfo)
    } catch (error) {
      if (!(error instanceof AuthenticationError)) throw error
      // Another sign-in may have stored a stronger hash of the same password. If it is another password, the repetition refuses it.
      if (!isRepeated && method === 'password' && error.reason === 'CREDENTIAL_CHANGED') continue
      const { certificateHolder } = attempt
      if (certificateHolder !== undefined) parts.auth.refusedCertificates.count(certificateHolder, context.clock.now())
      await recordFailedSignIn(parts, attempt, error)
      throw new SignInRefusedError(method, error)
    }
  }
}

/** @throws AuthenticationError if the sign-in is refused */
async function takeSteps(attempt: SignInAttempt, clientInfo: ClientInfo): Promise<SignInResult> {
  for (const step of flow[attempt.method]) {
    const pending = step(attempt)
    if (pending) await pending
  }
  const apiSession = await createApiSession(attempt, clientInfo)
  const { authenticator, externalTokens } = attempt
  return { apiSession, isExtendRequested: authenticator?.isExtendRequested === true, externalTokens }
}
