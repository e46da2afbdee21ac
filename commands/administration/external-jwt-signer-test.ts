// `controller external-jwt-signer test`: says which checks of a sign-in a token passes, and what decides each.
import { Flags } from '@oclif/core'
import type { TokenCheckResult } from '../../src/authentication/sign-in/token-test.ts'
import { resolveId } from '../client/names.ts'
import { loadApiDescription } from '../foundation/description.ts'
import { EXIT } from '../foundation/exit-codes.ts'
import { readSecret } from '../foundation/flag-values.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import { escapeLines } from '../terminal/text.ts'

const MARKS = { passed: '✓', failed: '✗', skipped: '-' } as const

export const externalJwtSignerTest = defineConnectedCommand({
  summary: 'Tests a token of a signer: which checks of a sign-in it passes, and which claim decides.',
  args: { signer: requiredArgument({ description: 'Name or id of the signer.' }) },
  flags: {
    'token-file': Flags.string({
      description: 'File with the token; - is stdin.',
      helpValue: 'FILE',
      required: true,
    }),
  },
  example: 'keycloak --token-file token.jwt',
  async run({ client, args, flags, print }) {
    const { resources } = loadApiDescription()
    const resource = resources['external-jwt-signers']
    const token = (await readSecret('token-file', flags['token-file'] as string)).trim()
    const id = resource ? await resolveId(client, resource, args.signer ?? '') : (args.signer ?? '')
    const path = `/controller/external-jwt-signers/${encodeURIComponent(id)}/test`
    const { data } = await client.call('POST', path, { token })
    const checks = data as readonly TokenCheckResult[]
    const isAccepted = checks.every(({ outcome }) => outcome === 'passed')
    const facts = { signer: id, accepted: isAccepted, checks }
    await print({ kind: 'done', sentence: escapeLines(render(args.signer ?? '', isAccepted, checks)), facts })
    return isAccepted ? EXIT.done : EXIT.denied
  },
})

function render(signer: string, isAccepted: boolean, checks: readonly TokenCheckResult[]): string {
  const width = Math.max(...checks.map(({ check }) => check.length))
  const lines = checks.map(({ check, outcome, message }) => {
    return `  ${MARKS[outcome]} ${check.padEnd(width)}  ${outcome === 'skipped' ? 'not checked' : message}`
  })
  return [`${signer}: the token is ${isAccepted ? 'accepted' : 'rejected'}`, '', ...lines].join('\n')
}
