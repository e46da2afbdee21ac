// Signing in, as a table: which checks run for which method, in their order.
import type { Context } from '../context.ts'
import { errors } from '../errors.ts'
import { type ClientInfo, createApiSession } from './create-api-session.ts'
import { recordFailedSignIn } from './failed-sign-ins.ts'
import {
  AuthenticationError,
  type Credentials,
  type Method,
  methods,
  SignInAttempt,
  type Step,
} from './sign-in-attempt.ts'
import { comparePassword } from './steps/compare-password.ts'
import { findCertificate } from './steps/find-certificate.ts'
import { findUsername } from './steps/find-username.ts'
import { limitSignInRate } from './steps/limit-sign-in-rate.ts'
import { rehashPassword } from './steps/rehash-password.ts'
import { requireAllowedMethod } from './steps/require-allowed-method.ts'
import { requireCertificate } from './steps/require-certificate.ts'
import { requireCredentials } from './steps/require-credentials.ts'
import { requireEnabledIdentity } from './steps/require-enabled-identity.ts'
import { requirePossibleSecondFactors } from './steps/require-possible-second-factors.ts'
import { requireUnexpiredCertificate } from './steps/require-unexpired-certificate.ts'
import { verifyChain } from './steps/verify-chain.ts'
import { verifyExternalToken } from './steps/verify-external-token.ts'
import { verifyPassword } from './steps/verify-password.ts'

// biome-ignore format: it is a table
const table: readonly (readonly [step: Step, ...methods: readonly Method[]])[] = [
  // Who is it?
  [requireCredentials,       'password'],
  [requireCertificate,                   'cert'],
  [findUsername,         'password'],
  // Before its chain is built: the fingerprint says which authority to check, and anybody can send what is costly to check.
  [findCertificate,                  'cert'],
  [verifyChain,                      'cert'],
  [verifyExternalToken,                             'ext-jwt'],
  // For every username, known or not, before anything is said of it: all refusals take as long.
  [comparePassword,      'password'],
  // May it?
  [requireEnabledIdentity,       'password', 'cert', 'ext-jwt'],
  [requireAllowedMethod,         'password', 'cert', 'ext-jwt'],
  [requireUnexpiredCertificate,                     'cert'],
  [verifyPassword,         'password'],
  // Is that enough? What is still owed then is asked of every request: second-factors.ts.
  [requirePossibleSecondFactors, 'password', 'cert', 'ext-jwt'],
  [limitSignInRate,           'password', 'cert', 'ext-jwt'],
  [rehashPassword,      'password'],
]

/** The checks of each method. */
export const flow = Object.fromEntries(
  methods.map((method) => [method, table.flatMap(([step, ...of]) => (of.includes(method) ? [step] : []))]),
) as unknown as Readonly<Record<Method, readonly Step[]>>

/** What a sign-in gives. */
export interface SignInResult {
  readonly apiSessionId: string
  /** It was by a certificate whose holder is asked to extend it. */
  readonly isExtendRequested: boolean
}

/**
 * Signs in, into a session that may still owe a second factor.
 * @throws INVALID_AUTH whatever the reason; COULD_NOT_VALIDATE where username or password is missing;
 * SERVER_TOO_MANY_REQUESTS where too many passwords wait to be compared, or the identity signs in too often
 */
export async function signIn(
  context: Context,
  method: Method,
  presented: Credentials,
  reported: ClientInfo,
): Promise<SignInResult> {
  const attempt = new SignInAttempt(context, method, presented)
  try {
    for (const step of flow[method]) {
      const running = step(attempt)
      if (running) await running
    }
    const apiSessionId = await createApiSession(attempt, reported)
    return { apiSessionId, isExtendRequested: attempt.authenticator?.isExtendRequested === true }
  } catch (error) {
    if (!(error instanceof AuthenticationError)) throw error
    await recordFailedSignIn(attempt, error)
    throw errors.INVALID_AUTH(undefined, { cause: `${method}: ${error.message}` })
  }
}
