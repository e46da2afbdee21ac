// Presents the second factors that a session owes after a sign-in.
import { Flags } from '@oclif/core'
import type { Transport } from '../../src/client/transport.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { readSecret } from '../foundation/flag-values.ts'
import { RequestError } from '../foundation/request-error.ts'
import { toTimeText } from '../foundation/times.ts'
import { canPrompt, promptText } from '../terminal/prompts.ts'
import type { Client } from './client.ts'
import { readExpiry } from './external-jwt.ts'
import { type ApiSession, findOwedToken, hasVerifiedMfa, owesCode, PartialSession } from './sign-in.ts'

export interface SecondFactorFlags {
  readonly 'mfa-code'?: string | undefined
  readonly 'recovery-code-file'?: string | undefined
}

/**
 * The flags for a code of the second factor. A recovery code is valid until it is used, so it is not an argument, which other
 * accounts of the machine could read.
 */
export const secondFactorFlags = {
  'mfa-code': Flags.string({
    description: 'Code of the authenticator app, if a second factor is required.',
    helpValue: 'CODE',
    exclusive: ['recovery-code-file'],
  }),
  'recovery-code-file': Flags.string({
    description: 'File with a recovery code, instead of a code of the app; - is stdin. The code can be used once.',
    helpValue: 'FILE',
  }),
}

/** The code that the flags provide; undefined if they provide none. */
export async function readFlagCode(flags: SecondFactorFlags): Promise<string | undefined> {
  const { 'mfa-code': code, 'recovery-code-file': file } = flags
  return code ?? (file === undefined ? undefined : readSecret('recovery-code-file', file))
}

/** The session after its second factors. */
export interface FactorResult {
  readonly session: ApiSession
  /** Whether it owes a factor that the identity has not set up. The session may set it up, and nothing else. */
  readonly mustEnrollMfa: boolean
}

/**
 * Presents the second factors that the session owes, and ends the session if that fails.
 * @param jwt the external JWT that comes with every request of the transport
 * @throws CommandError with exit code 4 if a code is not accepted, or a token is missing
 */
export async function presentSecondFactors(
  transport: Transport,
  session: ApiSession,
  flags: SecondFactorFlags,
  jwt?: string,
): Promise<FactorResult> {
  const partial = new PartialSession(transport, session)
  try {
    if (!owesCode(session)) return { session: await requireToken(session, transport.target, jwt), mustEnrollMfa: false }
    // A session that owes a token, too, may not set the factor up.
    if (!(await partial.hasVerifiedMfa()))
      return { session: await requireToken(session, transport.target, jwt), mustEnrollMfa: true }
    await presentCode(partial, flags, transport.target)
    return { session: await requireToken(await partial.read(), transport.target, jwt), mustEnrollMfa: false }
  } catch (error) {
    await partial.end()
    throw error
  }
}

const MAX_PROMPTS = 3

async function presentCode(partial: PartialSession, flags: SecondFactorFlags, url: string): Promise<void> {
  const flagCode = await readFlagCode(flags)
  for (let at = 1; at <= MAX_PROMPTS; at++) {
    const code = flagCode ?? (await promptText('Code of the second factor, or a recovery code', '--mfa-code'))
    if (await partial.presentCode(code)) return
    if (flagCode !== undefined || !canPrompt()) break
    if (at < MAX_PROMPTS) process.stderr.write('the code is not accepted: enter the next one\n')
  }
  throw new CommandError(
    EXIT.signInFirst,
    'MFA_INVALID_TOKEN',
    `${url}: the code of the second factor is not accepted`,
    {
      hint:
        flags['recovery-code-file'] === undefined
          ? 'each code can be used once, for half a minute: use the next one, or --recovery-code-file'
          : 'each recovery code can be used once: use another one, or a code of the app with --mfa-code',
    },
  )
}

/** @throws CommandError with exit code 4 if the session owes an external JWT */
async function requireToken(session: ApiSession, url: string, jwt: string | undefined): Promise<ApiSession> {
  const query = findOwedToken(session)
  if (!query) return session
  if (jwt !== undefined) throw await explainRejectedJwt(jwt, url)
  const source = query.httpUrl ? `, issued by ${query.httpUrl}` : ''
  const message = `${url}: your auth policy requires a JWT of an external signer as second factor${source}`
  throw new CommandError(EXIT.signInFirst, 'SECOND_FACTOR_REQUIRED', message, { hint: '--ext-jwt-file FILE' })
}

/** The error for an external JWT that the controller did not accept as second factor. */
async function explainRejectedJwt(jwt: string, url: string): Promise<CommandError> {
  const expiresAt = await readExpiry(jwt)
  const isExpired = expiresAt !== undefined && Date.parse(expiresAt) <= Date.now()
  const reason = isExpired ? `expired ${toTimeText(expiresAt)}, at ${expiresAt}` : 'is not accepted'
  return new CommandError(
    EXIT.signInFirst,
    'SECOND_FACTOR_REQUIRED',
    `${url}: the JWT of the second factor ${reason}`,
    {
      hint: isExpired
        ? 'obtain a new one from its issuer'
        : 'an administrator finds out why: controller external-jwt-signer test SIGNER --token-file FILE',
    },
  )
}

/**
 * The error of a request whose session owes a factor that the identity has not set up: signing in again would not help. Every
 * other error is returned as it is.
 * @param hint the command that sets the factor up
 * @param readJwt reads the external JWT that came with the request
 */
export async function explainOwedFactor(
  error: unknown,
  client: Client,
  hint: string,
  readJwt: () => Promise<string | undefined>,
): Promise<unknown> {
  if (!(error instanceof RequestError && error.causeCode === 'SECOND_FACTOR_REQUIRED')) return error
  try {
    const session = (await client.call('GET', '/current-api-session')).data as ApiSession
    const jwt = findOwedToken(session) && (await readJwt())
    if (jwt !== undefined) return await explainRejectedJwt(jwt, client.target)
    if (!owesCode(session) || (await hasVerifiedMfa(client))) return error
  } catch {
    return error
  }
  return mustEnrollError(client.target, hint)
}

/** The error for a session that owes a factor which the identity has not set up. */
export function mustEnrollError(url: string, hint: string): CommandError {
  const message = `${url}: your auth policy requires a second factor, which you have not set up yet`
  return new CommandError(EXIT.signInFirst, 'SECOND_FACTOR_REQUIRED', message, { hint })
}
