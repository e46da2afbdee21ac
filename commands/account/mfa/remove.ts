// `controller mfa remove`: removes your second factor.
import { Flags } from '@oclif/core'
import { EITHER_PATH } from '../../client/client.ts'
import { secondFactorFlags } from '../../client/second-factors.ts'
import { CommandError, EXIT } from '../../foundation/exit-codes.ts'
import { defineConnectedCommand } from '../../framework/connected.ts'
import { fetchMfa, requestMfaRemoval, useCode } from './own-mfa.ts'

export const mfaRemove = defineConnectedCommand({
  summary: 'Removes your second factor, by a code of the app or a recovery code.',
  flags: {
    ...secondFactorFlags,
    yes: Flags.boolean({ char: 'y', description: 'Skip the confirmation.' }),
  },
  example: '--mfa-code 123456 --yes',
  base: EITHER_PATH,
  async run({ client, flags, print, confirm }) {
    const enrollment = await fetchMfa(client)
    if (!enrollment) {
      throw new CommandError(EXIT.notFound, 'MFA_NOT_ENROLLED', `${client.target}: you have no second factor`, {
        hint: 'controller mfa enroll',
      })
    }
    await confirm('Remove your second factor? You sign in without it then, unless your auth policy requires one.')
    const remove = (code: string) => requestMfaRemoval(client, code)
    await (enrollment.isVerified ? useCode(client, flags, 'Code of the app, or a recovery code', remove) : remove(''))
    await print({ kind: 'done', sentence: 'Your second factor is removed.', facts: { isEnrolled: false } })
  },
})
