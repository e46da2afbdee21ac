// `controller mfa enroll`: sets up your second factor, by a QR code in the terminal.
import { Flags } from '@oclif/core'
import { EITHER_PATH } from '../../client/client.ts'
import { CommandError, EXIT, makeUsageError } from '../../foundation/exit-codes.ts'
import { RequestError } from '../../foundation/request-error.ts'
import { type CommandRun, defineConnectedCommand } from '../../framework/connected.ts'
import { canPrompt } from '../../terminal/prompts.ts'
import { fetchMfa, type Mfa, requestMfaEnrollment, requestMfaVerification, useCode } from './own-mfa.ts'
import { handOverRecoveryCodes, recoveryCodesFileFlag } from './recovery-code-file.ts'

const GO_ON = 'go on with: controller mfa enroll'

export const mfaEnroll = defineConnectedCommand({
  summary: 'Sets up your second factor: codes of an authenticator app on your phone.',
  flags: {
    large: Flags.boolean({ description: 'Draw a large QR code, if the terminal does not draw the small one well.' }),
    'no-qr': Flags.boolean({ description: 'Show the secret and the otpauth URL as text, without a QR code.' }),
    'mfa-code': Flags.string({ description: 'Code of the authenticator app.', helpValue: 'CODE' }),
    'recovery-codes-file': recoveryCodesFileFlag,
  },
  example: '',
  base: EITHER_PATH,
  async run(run) {
    const { client, flags, print, notice } = run
    if (flags.large && flags['no-qr']) throw makeUsageError('--large and --no-qr cannot be combined')
    const enrollment = await continueOrStart(run)
    const { provisioningUrl = '', recoveryCodes = [] } = enrollment
    const isScripted = !canPrompt()
    if (isScripted && flags['mfa-code'] === undefined) {
      const sentence = `${toSetupText(provisioningUrl)}\nThen: controller mfa enroll --mfa-code CODE --recovery-codes-file FILE`
      return print({ kind: 'done', sentence, facts: { isVerified: false, ...toSetup(provisioningUrl) } })
    }
    if (isScripted && flags['recovery-codes-file'] === undefined) {
      throw makeUsageError(
        'missing flag: --recovery-codes-file, because there is no terminal to show the recovery codes',
      )
    }
    if (flags['mfa-code'] === undefined) await showSetup(provisioningUrl, flags, notice)
    const outcome = { sentence: 'Your second factor is set up.', facts: { isVerified: true } }
    await handOverRecoveryCodes(run, outcome, async () => {
      await useCode(client, flags, 'Code of the app', (code) => requestMfaVerification(client, code)).catch(
        explainInterrupt,
      )
      return recoveryCodes
    })
  },
})

/**
 * Returns the enrollment that the session has started, or starts one. One that another session has started is not shown: its
 * secret may be that of another client, and it ends when this session starts its own.
 * @throws CommandError with exit code 6 if there is a verified enrollment, 5 if a code is given before an enrollment is started
 */
async function continueOrStart({ client, flags, notice }: CommandRun): Promise<Mfa> {
  const { target } = client
  const earlier = await fetchMfa(client)
  if (earlier?.isVerified) {
    throw new CommandError(EXIT.conflict, 'MFA_EXISTS', `${target}: you have a second factor already`, {
      hint: 'to set up another one, remove it first: controller mfa remove',
    })
  }
  if (earlier) {
    notice(`Continuing the enrollment that was started ${earlier.createdAt}.`)
    return earlier
  }
  if (flags['mfa-code'] !== undefined) {
    throw new CommandError(
      EXIT.notFound,
      'MFA_NOT_ENROLLED',
      `${target}: there is no enrollment of your session to verify`,
      {
        hint: 'controller mfa enroll, then the code for the secret that it shows',
      },
    )
  }
  await requestMfaEnrollment(client).catch((error) => {
    throw explainRefusedStart(error, target)
  })
  const enrollment = await fetchMfa(client)
  if (enrollment) return enrollment
  const message = `${target}: the enrollment was removed meanwhile, or another session has started one`
  throw new CommandError(EXIT.conflict, 'MFA_NOT_ENROLLED', message, { hint: 'controller mfa enroll' })
}

/** The error of a session that may not set up a factor: it owes a token, or a factor that was removed since. */
function explainRefusedStart(error: unknown, target: string): unknown {
  if (!(error instanceof RequestError && error.causeCode === 'SECOND_FACTOR_REQUIRED')) return error
  const message = `${target}: your session owes another factor, and may not set up this one`
  return new CommandError(EXIT.signInFirst, 'SECOND_FACTOR_REQUIRED', message, { hint: 'controller login' })
}

async function showSetup(url: string, flags: CommandRun['flags'], notice: CommandRun['notice']): Promise<void> {
  const lines = flags['no-qr'] ? undefined : await drawSetup(url, flags.large === true)
  if (!lines) {
    if (!flags['no-qr']) notice('The terminal is too small for the QR code; a larger one, or --large, shows it.')
    return notice(toSetupText(url))
  }
  notice('Scan this with an authenticator app. --no-qr shows it as text, --large draws it larger.')
  process.stderr.write(`${lines.join('\n')}\n`)
}

/** Colors are required, so the lines are not escaped like notices. */
async function drawSetup(url: string, isLarge: boolean): Promise<string[] | undefined> {
  const { renderFittingQrCode, renderQrCode } = await import('../../terminal/qr.ts')
  const { columns = 80, rows = 24 } = process.stderr
  return isLarge ? renderQrCode(url, { isLarge }) : renderFittingQrCode(url, { columns, rows })
}

function toSetup(url: string): { readonly provisioningUrl: string; readonly secret: string } {
  return { provisioningUrl: url, secret: new URL(url).searchParams.get('secret') ?? '' }
}

function toSetupText(url: string): string {
  const { secret } = toSetup(url)
  const groups = secret.match(/.{1,4}/g) ?? []
  return `Enter this in an authenticator app (time-based):\n  secret: ${groups.join(' ')}\n  URL:    ${url}`
}

function explainInterrupt(error: unknown): never {
  if (!(error instanceof CommandError)) throw error
  const { exitCode, code, hint } = error
  if (exitCode === EXIT.interrupted) {
    throw new CommandError(exitCode, code, 'interrupted: your second factor is not set up yet', { hint: GO_ON })
  }
  throw new CommandError(exitCode, code, error.message, { hint: `${hint}; ${GO_ON}` })
}
