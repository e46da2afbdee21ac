// `controller pki rotate`: replaces the intermediate or the root of the controller.
import { Flags } from '@oclif/core'
import type { Client } from '../client/client.ts'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { RequestError } from '../foundation/request-error.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { type CommandRun, defineConnectedCommand } from '../framework/connected.ts'

export const pkiRotate = defineConnectedCommand({
  summary: 'Replaces the intermediate or the root of the controller.',
  args: {
    authority: requiredArgument({ description: 'The authority to replace.', options: ['intermediate', 'root'] }),
  },
  flags: {
    finish: Flags.boolean({
      description: 'Ends the replacement of the root: clients that know only the previous root must enroll again.',
    }),
    force: Flags.boolean({
      description: 'With --finish: also if identities or routers have not fetched the new root.',
      dependsOn: ['finish'],
    }),
    yes: Flags.boolean({ char: 'y', description: 'Do not ask for confirmation.' }),
  },
  example: 'intermediate --yes',
  async run(run) {
    const { args, flags } = run
    if (args.authority === 'root') return flags.finish ? finishRootRotation(run) : rotateRoot(run)
    if (flags.finish) throw makeUsageError('--finish is for the root only', { field: 'finish' })
    return rotateIntermediate(run)
  },
})

async function rotateIntermediate({ client, confirm, print }: CommandRun): Promise<void> {
  await confirm('Replace the intermediate? Certificates that it issued remain valid.')
  await client.call('POST', '/controller/pki/rotate-intermediate')
  const sentence = 'The intermediate was replaced. No client has to do anything.'
  await print({ kind: 'done', sentence, facts: { rotated: 'intermediate' } })
}

async function rotateRoot({ client, confirm, print }: CommandRun): Promise<void> {
  await confirm('Replace the root? Clients trust the controller by either root until you finish the replacement.')
  await client.call('POST', '/controller/pki/rotate-root')
  const missing = await countMissingReceipts(client)
  const sentence = [
    `The root was replaced. Clients trust the new one through the previous one; ${missing} have not fetched it yet.`,
    'Next: controller pki missing-root, and controller pki rotate root --finish once it is empty',
  ].join('\n')
  await print({ kind: 'done', sentence, facts: { rotated: 'root', totalMissing: missing } })
}

async function finishRootRotation({ client, flags, confirm, print }: CommandRun): Promise<void> {
  const missing = await countMissingReceipts(client)
  const isForced = flags.force === true
  if (missing > 0 && isForced) {
    await confirm(`${missing} have not fetched the new root and must enroll again. Finish the replacement?`)
  }
  try {
    await client.call('POST', '/controller/pki/finish-root-rotation', { force: isForced })
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== 'ROOT_BUNDLE_NOT_FETCHED') throw error
    throw await describeMissingReceipts(client, missing)
  }
  const sentence = 'The previous root is no longer trusted. Certificates that it issued can still sign in.'
  await print({ kind: 'done', sentence, facts: { finished: 'root', totalMissing: missing } })
}

async function countMissingReceipts(client: Client): Promise<number> {
  const { data } = await client.call('GET', '/controller/pki/status')
  return (data as { totalMissing: number }).totalMissing
}

// More than that do not fit on a screen.
const MAX_SHOWN = 20

async function describeMissingReceipts(client: Client, total: number): Promise<CommandError> {
  const { data } = await client.call('GET', '/controller/pki/missing-root')
  const holders = data as readonly { kind: string; name: string; remedy: string }[]
  const lines = holders.slice(0, MAX_SHOWN).map(({ kind, name, remedy }) => `  ${kind} ${name}: ${remedy}`)
  if (total > MAX_SHOWN) lines.push(`  and ${total - MAX_SHOWN} more`)
  const message = [`${client.target}: some have not fetched the new root:`, ...lines].join('\n')
  return new CommandError(EXIT.conflict, 'ROOT_BUNDLE_NOT_FETCHED', message, {
    hint: 'the command beside each, or --force: then they must enroll again',
  })
}
