// `controller apply`: makes a network as a file describes it.
import { Flags } from '@oclif/core'
import { type CommandRun, defineConnectedCommand } from '../connected.ts'
import { makeUsageError } from '../exit-codes.ts'
import { exitOnInterrupt } from '../interrupts.ts'
import { canPrompt } from '../prompts.ts'
import { NO_CHANGES, sendFile } from './applied-changes.ts'
import { NetworkFile, toFileLabel } from './network-file.ts'
import { fetchPlan, fileFlags } from './plan.ts'
import { hasChanges, PlanText } from './plan-items.ts'

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
    const digest = await exitOnInterrupt('interrupted: nothing was changed', () => confirmPlan(run, file, isPruning))
    const result = digest === null ? NO_CHANGES : await sendFile(run, file, { isPruning, digest })
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
