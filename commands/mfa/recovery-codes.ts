// `controller mfa recovery-codes`: shows your recovery codes, or replaces them.
import { Flags } from '@oclif/core'
import { EITHER_PATH } from '../client/client.ts'
import { defineConnectedCommand } from '../connected.ts'
import { makeUsageError } from '../exit-codes.ts'
import {
  codeFlag,
  readRecoveryCodes,
  renewRecoveryCodes,
  requireOneCode,
  requireVerifiedMfa,
  useCode,
} from './own-mfa.ts'
import { handOverRecoveryCodes, recoveryCodesFileFlag } from './recovery-code-file.ts'

export const mfaRecoveryCodes = defineConnectedCommand({
  summary: 'Shows your recovery codes that are not used yet, or replaces all of them.',
  flags: {
    renew: Flags.boolean({ description: 'Replace all recovery codes with new ones.' }),
    'mfa-code': codeFlag,
    'recovery-code': Flags.string({
      description: 'Recovery code, instead of a code of the app, with --renew.',
      helpValue: 'CODE',
    }),
    'recovery-codes-file': recoveryCodesFileFlag,
  },
  example: '--renew --mfa-code 123456 --recovery-codes-file recovery-codes.txt',
  base: EITHER_PATH,
  async run(run) {
    const { client, flags } = run
    const isRenewal = flags.renew === true
    requireOneCode(flags)
    if (flags['recovery-code'] !== undefined && !isRenewal)
      throw makeUsageError('--recovery-code requires --renew: recovery codes are shown for a code of the app only')
    await requireVerifiedMfa(client)
    const sentence = isRenewal ? 'The recovery codes are replaced.' : 'Your recovery codes that are not used yet.'
    const question = isRenewal ? 'Code of the app, or a recovery code' : 'Code of the app'
    const obtain = (code: string) => (isRenewal ? renewRecoveryCodes(client, code) : readRecoveryCodes(client, code))
    await handOverRecoveryCodes(run, { sentence, facts: { isRenewed: isRenewal } }, () =>
      useCode(client, flags, question, obtain),
    )
  },
})
