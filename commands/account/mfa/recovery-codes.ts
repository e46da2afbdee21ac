// `controller mfa recovery-codes`: shows your recovery codes, or replaces them.
import { Flags } from '@oclif/core'
import { EITHER_PATH } from '../../client/client.ts'
import { secondFactorFlags } from '../../client/second-factors.ts'
import { makeUsageError } from '../../foundation/exit-codes.ts'
import { defineConnectedCommand } from '../../framework/connected.ts'
import { readRecoveryCodes, renewRecoveryCodes, requireVerifiedMfa, useCode } from './own-mfa.ts'
import { handOverRecoveryCodes, recoveryCodesFileFlag } from './recovery-code-file.ts'

export const mfaRecoveryCodes = defineConnectedCommand({
  summary: 'Shows your recovery codes that are not used yet, or replaces all of them.',
  flags: {
    renew: Flags.boolean({ description: 'Replace all recovery codes with new ones.' }),
    ...secondFactorFlags,
    'recovery-codes-file': recoveryCodesFileFlag,
  },
  example: '--renew --mfa-code 123456 --recovery-codes-file recovery-codes.txt',
  base: EITHER_PATH,
  async run(run) {
    const { client, flags } = run
    const isRenewal = flags.renew === true
    if (flags['recovery-code-file'] !== undefined && !isRenewal)
      throw makeUsageError('--recovery-code-file requires --renew: recovery codes are shown for a code of the app only')
    await requireVerifiedMfa(client)
    const sentence = isRenewal ? 'The recovery codes are replaced.' : 'Your recovery codes that are not used yet.'
    const question = isRenewal ? 'Code of the app, or a recovery code' : 'Code of the app'
    const obtain = (code: string) => (isRenewal ? renewRecoveryCodes(client, code) : readRecoveryCodes(client, code))
    await handOverRecoveryCodes(run, { sentence, facts: { isRenewed: isRenewal } }, () =>
      useCode(client, flags, question, obtain),
    )
  },
})
