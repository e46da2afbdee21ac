// `controller apply`: makes a network as a file describes it.
import { Flags } from '@oclif/core'
import { DUPLICATE_REASON } from '../client/client.ts'
import { type CommandRun, defineConnectedCommand } from '../connected.ts'
import { CommandError, makeUsageError, toExitCode } from '../exit-codes.ts'
import { withProgress } from '../progress.ts'
import { canPrompt } from '../prompts.ts'
import { NetworkFile, toFileLabel } from './network-file.ts'
import { fetchPlan, fileFlags } from './plan.ts'
import { hasChanges, PlanText } from './plan-items.ts'

/** What has been changed after a transaction. */
interface Progress {
  readonly creates: number
  readonly changes: number
  readonly deletes: number
  readonly total: number
  readonly failure: {
    readonly status: number
    readonly code: string
    readonly message: string
    readonly field?: string
    readonly reason?: string
    readonly value?: string
  } | null
}

const NOTHING: Progress = { creates: 0, changes: 0, deletes: 0, total: 0, failure: null }

export const applyNetwork = defineConnectedCommand({
  summary: 'Makes the network as a file describes it, and asks before it does.',
  description: [
    'At most 200 changes are one transaction: all are made, or none. More are several transactions, and the command, run again,',
    'continues after a failure. See docs/network-file.md.',
  ].join('\n'),
  flags: {
    ...fileFlags,
    yes: Flags.boolean({ char: 'y', description: 'Do not ask.' }),
  },
  example: '-f network.yaml --yes',
  async run(run) {
    const { flags, print } = run
    const isPruning = flags.prune === true
    const file = await NetworkFile.read(String(flags.file))
    const digest = await confirmPlan(run, file, isPruning)
    const result = digest === null ? NOTHING : await sendFile(run, file, { isPruning, digest })
    const { creates, changes, deletes } = result
    const sentence =
      result.total === 0
        ? 'Nothing to change.'
        : `Applied ${toFileLabel(String(flags.file))}: ${creates} created, ${changes} changed, ${deletes} deleted.`
    await print({ kind: 'done', sentence, facts: { creates, changes, deletes } })
  },
})

/**
 * Shows the plan, and asks unless --yes is set. Returns its digest, or null if it changes nothing.
 * @throws CommandError if the user declines, or the command cannot ask because it has no terminal
 */
async function confirmPlan(
  { client, flags, notice, confirm }: CommandRun,
  file: NetworkFile,
  isPruning: boolean,
): Promise<string | null> {
  const text = new PlanText()
  for await (const item of fetchPlan(client, file, isPruning)) {
    const lines = text.render(item).replace(/\n$/, '')
    if (lines !== '') notice(lines)
  }
  const { summary } = text
  if (!summary || !hasChanges(summary)) return null
  if (!flags.yes && !canPrompt())
    throw makeUsageError(
      `cannot prompt for the confirmation of ${toFileLabel(String(flags.file))} without a terminal`,
      {
        hint: '--yes',
      },
    )
  if (!flags.yes) await confirm(`Apply ${toFileLabel(String(flags.file))}?`)
  return summary.digest
}

async function sendFile(
  { client, flags }: CommandRun,
  file: NetworkFile,
  { isPruning, digest }: { readonly isPruning: boolean; readonly digest: string },
): Promise<Progress> {
  let last = NOTHING
  const path = `/controller/network/apply?prune=${isPruning}&digest=${digest}`
  const changes = async function* () {
    for await (const item of client.items(path, undefined, { method: 'POST', body: file.sections })) {
      const before = countOf(last)
      last = item as Progress
      for (let count = before; count < countOf(last); count++) yield count
    }
  }
  try {
    for await (const _ of withProgress(changes(), 'changes', flags.output, async () => last.total));
  } catch (error) {
    throw file.locate(error)
  }
  if (last.failure) throw makeFailure(client.target, file, last, last.failure)
  return last
}

function countOf({ creates, changes, deletes }: Progress): number {
  return creates + changes + deletes
}

function makeFailure(
  target: string,
  file: NetworkFile,
  progress: Progress,
  failure: NonNullable<Progress['failure']>,
): CommandError {
  const { status, code, message, reason } = failure
  const mistake = file.describeMistake(failure)
  const cause = mistake ?? `${target}: ${reason ?? message}`
  const exitCode = toExitCode({ status, causeCode: undefined, isDuplicate: reason === DUPLICATE_REASON })
  const text = `${cause}; ${countOf(progress)} of ${progress.total} changes are made`
  const hint = mistake === undefined ? '' : 'correct the file, then '
  return new CommandError(exitCode, code, text, { hint: `${hint}run the command again to continue` })
}
