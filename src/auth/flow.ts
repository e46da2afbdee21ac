// Signing in, as a table: which checks run for which method, in their order.
import type { Context } from '../context.ts'
import { errors } from '../errors.ts'
import { Attempt, type Method, methods, type Presented, Refusal, type Step } from './attempt.ts'
import { openSession, type Reported } from './open-session.ts'
import { recordRefusal } from './refusals.ts'
import { allowedExpiry } from './steps/allowed-expiry.ts'
import { allowedMethod } from './steps/allowed-method.ts'
import { certificateSent } from './steps/certificate-sent.ts'
import { credentialsSent } from './steps/credentials-sent.ts'
import { enabledIdentity } from './steps/enabled-identity.ts'
import { externalToken } from './steps/external-token.ts'
import { knownCertificate } from './steps/known-certificate.ts'
import { knownUsername } from './steps/known-username.ts'
import { limitedRate } from './steps/limited-rate.ts'
import { passwordCompared } from './steps/password-compared.ts'
import { passwordRehashed } from './steps/password-rehashed.ts'
import { possibleSecondFactors } from './steps/possible-second-factors.ts'
import { rightPassword } from './steps/right-password.ts'
import { trustedChain } from './steps/trusted-chain.ts'

// biome-ignore format: it is a table
const table: readonly (readonly [step: Step, ...methods: readonly Method[]])[] = [
  // Who is it?
  [credentialsSent,       'password'],
  [certificateSent,                   'cert'],
  [knownUsername,         'password'],
  // Before its chain is built: the fingerprint says which authority to check, and anybody can send what is costly to check.
  [knownCertificate,                  'cert'],
  [trustedChain,                      'cert'],
  [externalToken,                             'ext-jwt'],
  // For every username, known or not, before anything is said of it: all refusals take as long.
  [passwordCompared,      'password'],
  // May it?
  [enabledIdentity,       'password', 'cert', 'ext-jwt'],
  [allowedMethod,         'password', 'cert', 'ext-jwt'],
  [allowedExpiry,                     'cert'],
  [rightPassword,         'password'],
  // Is that enough? What is still owed then is asked of every request: second-factors.ts.
  [possibleSecondFactors, 'password', 'cert', 'ext-jwt'],
  [limitedRate,           'password', 'cert', 'ext-jwt'],
  [passwordRehashed,      'password'],
]

/** The checks of each method. */
export const flow = Object.fromEntries(
  methods.map((method) => [method, table.flatMap(([step, ...of]) => (of.includes(method) ? [step] : []))]),
) as unknown as Readonly<Record<Method, readonly Step[]>>

/** What a sign-in gives. */
export interface SignedIn {
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
  presented: Presented,
  reported: Reported,
): Promise<SignedIn> {
  const attempt = new Attempt(context, method, presented)
  try {
    for (const step of flow[method]) {
      const running = step(attempt)
      if (running) await running
    }
    const apiSessionId = await openSession(attempt, reported)
    return { apiSessionId, isExtendRequested: attempt.authenticator?.isExtendRequested === true }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    await recordRefusal(attempt, error)
    throw errors.INVALID_AUTH(undefined, { cause: `${method}: ${error.message}` })
  }
}
