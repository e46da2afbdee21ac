// The requests of the commands for your own second factor, and the code that some of them require.
import type { Client } from '../../client/client.ts'
import { readFlagCode, type SecondFactorFlags } from '../../client/second-factors.ts'
import { normalizeCode } from '../../client/sign-in.ts'
import { CommandError, EXIT } from '../../foundation/exit-codes.ts'
import { RequestError } from '../../foundation/request-error.ts'
import type { ParsedFlags } from '../../framework/connected.ts'
import { canPrompt, promptText } from '../../terminal/prompts.ts'

const MFA_PATH = '/current-identity/mfa'

/** Your MFA enrollment. Until it is verified, it shows its secret and its recovery codes. */
export interface Mfa {
  readonly isVerified: boolean
  readonly createdAt: string
  readonly provisioningUrl?: string
  readonly recoveryCodes?: readonly string[]
}

/** Returns your MFA enrollment, or undefined if there is none. */
export async function fetchMfa(client: Client): Promise<Mfa | undefined> {
  try {
    return (await client.call('GET', MFA_PATH)).data as Mfa
  } catch (error) {
    if (error instanceof RequestError && error.status === 404) return undefined
    throw error
  }
}

export async function requestMfaEnrollment(client: Client): Promise<void> {
  await client.call('POST', MFA_PATH, {})
}

export async function requestMfaVerification(client: Client, code: string): Promise<void> {
  await client.call('POST', `${MFA_PATH}/verify`, { code })
}

/** @param code is not required to remove an enrollment that is not verified */
export async function requestMfaRemoval(client: Client, code: string): Promise<void> {
  await client.call('DELETE', MFA_PATH, undefined, { 'mfa-validation-code': code })
}

export async function readRecoveryCodes(client: Client, code: string): Promise<readonly string[]> {
  const headers = { 'mfa-validation-code': code }
  return ((await client.call('GET', `${MFA_PATH}/recovery-codes`, undefined, headers)).data as Mfa).recoveryCodes ?? []
}

export async function renewRecoveryCodes(client: Client, code: string): Promise<readonly string[]> {
  return ((await client.call('POST', '/controller/mfa/recovery-codes', { code })).data as Mfa).recoveryCodes ?? []
}

/** @throws CommandError with exit code 5 if you have no second factor, or none that is verified */
export async function requireVerifiedMfa(client: Client): Promise<void> {
  if ((await fetchMfa(client))?.isVerified) return
  throw new CommandError(EXIT.notFound, 'MFA_NOT_ENROLLED', `${client.target}: you have no verified second factor`, {
    hint: 'controller mfa enroll',
  })
}

const MAX_PROMPTS = 3

/**
 * Calls `use` with the code of the flags, or with one that the user types; a typed code that is not accepted is asked for again.
 * @throws CommandError with exit code 2 if no code is accepted
 */
export async function useCode<T>(
  client: Client,
  flags: ParsedFlags,
  question: string,
  use: (code: string) => Promise<T>,
): Promise<T> {
  const flagCode = await readFlagCode(flags as SecondFactorFlags)
  for (let at = 1; ; at++) {
    const code = flagCode ?? (await promptText(question, '--mfa-code'))
    try {
      return await use(normalizeCode(code))
    } catch (error) {
      if (!(error instanceof RequestError && error.code === 'MFA_INVALID_TOKEN')) throw error
      if (flagCode !== undefined || !canPrompt() || at === MAX_PROMPTS) throw wrongCodeError(client)
      process.stderr.write('the code is not accepted: enter the next one\n')
    }
  }
}

function wrongCodeError({ target }: Client): CommandError {
  return new CommandError(EXIT.usage, 'MFA_INVALID_TOKEN', `${target}: the code is not accepted`, {
    hint: 'each code can be used once, for half a minute: use the next one; also check the clock of your device',
  })
}
