// Tests which sign-in a token of an external signer would be accepted for: every check, with the value that decides it.

import type { Entity } from '../../definitions/resources/define.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { find } from '../../storage/entities/entities.ts'
import { TOKEN_CHECKS, type TokenCheck, TokenError, type VerifiedToken } from '../../storage/external-tokens.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { Contexts } from '../../storage/transactions/contexts.ts'
import type { Auth } from '../auth.ts'
import { isSignerAllowed } from '../auth-policies.ts'
import { findByExternalId } from '../credentials/credentials.ts'
import { isDisabled } from '../disabling.ts'
import type { Signer } from '../signers/signers.ts'

/** The checks of a sign-in by a token, in their order. */
export const SIGN_IN_CHECKS = [...TOKEN_CHECKS, 'identity', 'identity-enabled', 'auth-policy'] as const
type SignInCheck = (typeof SIGN_IN_CHECKS)[number]

/** `skipped`: an earlier check failed. */
export const CHECK_OUTCOMES = ['passed', 'failed', 'skipped'] as const

export interface TokenCheckResult {
  readonly check: SignInCheck
  readonly outcome: (typeof CHECK_OUTCOMES)[number]
  /** The reason for the result; empty if the step was skipped. */
  readonly message: string
}

interface TestParts {
  readonly auth: Pick<Auth, 'signers' | 'policies'>
  readonly contexts: Contexts
}

/** The checks up to the first that fails. */
class TokenCheckReport {
  readonly #messages = new Map<SignInCheck, string>()
  #failure: { readonly check: SignInCheck; readonly message: string } | undefined

  pass(check: SignInCheck, message: string): void {
    this.#messages.set(check, message)
  }

  fail(check: SignInCheck, message: string): void {
    this.#failure = { check, message }
  }

  list(): TokenCheckResult[] {
    return SIGN_IN_CHECKS.map((check) => {
      if (this.#failure?.check === check) return { check, outcome: 'failed', message: this.#failure.message }
      const message = this.#messages.get(check)
      return message === undefined ? { check, outcome: 'skipped', message: '' } : { check, outcome: 'passed', message }
    })
  }
}

/** Tests a token as a sign-in would, without signing in. If its key is unknown, the endpoint of the signer is asked. */
export async function testToken(
  { auth, contexts }: TestParts,
  context: Context,
  signer: Signer,
  token: string,
): Promise<TokenCheckResult[]> {
  const report = new TokenCheckReport()
  const pass = (check: TokenCheck, message: string) => report.pass(check, message)
  try {
    const verifiedToken = await auth.signers.verifier.explain(contexts, signer.id, token, pass)
    await testIdentity(auth, context, signer, verifiedToken, report)
  } catch (error) {
    if (!(error instanceof TokenError)) throw error
    report.fail(error.check, error.message)
  }
  return report.list()
}

async function testIdentity(
  { policies }: TestParts['auth'],
  context: Context,
  signer: Signer,
  token: VerifiedToken,
  report: TokenCheckReport,
): Promise<void> {
  const identity = await findTokenIdentity(context, token)
  const member = token.isExternalId ? 'external id' : 'id'
  if (!identity) return report.fail('identity', `no identity has the ${member} ${JSON.stringify(token.subject)}`)
  report.pass('identity', `${JSON.stringify(token.subject)} is the ${member} of ${identity.name}`)
  if (isDisabled(identity, context.clock.now())) return report.fail('identity-enabled', `${identity.name} is disabled`)
  report.pass('identity-enabled', identity.name)
  const policy = policies.get(identity.authPolicyId)
  if (isSignerAllowed(policy, signer.id)) {
    return report.pass('auth-policy', `auth policy ${policy.name} accepts tokens of ${signer.name}`)
  }
  const refusal = policy.primary.extJwt.allowed ? `tokens of ${signer.name}` : 'external tokens'
  report.fail('auth-policy', `auth policy ${policy.name} does not accept ${refusal} as a first factor`)
}

async function findTokenIdentity(
  context: Context,
  { subject, isExternalId }: VerifiedToken,
): Promise<Entity<typeof identities> | undefined> {
  if (!isExternalId) return find(context, identities, subject)
  const [row] = await findByExternalId(context.db, subject)
  return row && find(context, identities, row.id)
}
