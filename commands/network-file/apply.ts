// `controller apply`: makes a network as files describe it.
import { Flags } from '@oclif/core'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { exitOnInterrupt } from '../foundation/interrupts.ts'
import { type CommandRun, defineConnectedCommand } from '../framework/connected.ts'
import { canPrompt } from '../terminal/prompts.ts'
import { NO_CHANGES, sendSections } from './applied-changes.ts'
import { NetworkFiles } from './network-files.ts'
import { fetchPlan, fileFlag, planFlags } from './plan.ts'
import { countChanges, hasChanges, PlanText } from './plan-items.ts'
import { SavedPlan } from './saved-plan.ts'
import type { SectionSource } from './sections.ts'

export const applyCommand = defineConnectedCommand({
  summary: 'Makes the network as files describe it, and asks before it does.',
  description: [
    'At most 200 changes are one transaction: all are made, or none. More are several transactions, and the command, run again,',
    'continues after a failure or Ctrl-C. See docs/network-file.md.',
  ].join('\n'),
  flags: {
    file: { ...fileFlag, exclusive: ['plan'] },
    plan: Flags.string({
      description:
        'The changes of this plan, which "controller plan --out" saved; rejected if they would be others now.',
      helpValue: 'PLAN',
    }),
    prune: { ...planFlags.prune, exclusive: ['plan'] },
    'show-unlisted': planFlags['show-unlisted'],
    yes: Flags.boolean({ char: 'y', description: 'Do not ask.' }),
  },
  example: '-f network.yaml --yes',
  async run(run) {
    const { flags, print } = run
    const source = await readSource(flags)
    const isPruning = source instanceof SavedPlan ? source.isPruning : flags.prune === true
    const digest = await exitOnInterrupt('interrupted: nothing was changed', () => confirmPlan(run, source, isPruning))
    const result = digest === null ? NO_CHANGES : await sendSections(run, source, { isPruning, digest })
    const { creates, changes, deletes } = result
    const sentence =
      result.total === 0
        ? 'Nothing to change.'
        : `Applied ${source.label}: ${creates} created, ${changes} changed, ${deletes} deleted.`
    await print({ kind: 'done', sentence, facts: { creates, changes, deletes } })
  },
})

async function readSource({ file, plan }: CommandRun['flags']): Promise<NetworkFiles | SavedPlan> {
  if (plan !== undefined) return SavedPlan.read(String(plan))
  if (file === undefined) throw makeUsageError('missing flag: --file, or --plan with a plan that was saved')
  return NetworkFiles.read(file as string[])
}

/**
 * Shows the plan, and asks unless --yes is set. Returns its digest, or null if it changes nothing.
 * @throws CommandError if the user declines, the command cannot ask because it has no terminal, or a saved plan is not the one that
 * the network would get now
 */
async function confirmPlan(
  { client, flags, notice, confirm }: CommandRun,
  source: SectionSource,
  isPruning: boolean,
): Promise<string | null> {
  const text = new PlanText()
  const options = { isPruning, hasUnlisted: flags['show-unlisted'] === true }
  for await (const item of fetchPlan(client, source, options)) text.add(item)
  notice(text.render().replace(/\n$/, ''))
  const { summary } = text
  if (source instanceof SavedPlan && summary?.digest !== source.digest) throw changedNetworkError(client.target, source)
  if (!summary || !hasChanges(summary)) return null
  if (!flags.yes && !canPrompt())
    throw makeUsageError(`cannot prompt for the confirmation of ${source.label} without a terminal`, { hint: '--yes' })
  if (!flags.yes) await confirm(`Apply ${source.label} (${countChanges(summary)})?`)
  return summary.digest
}

function changedNetworkError(target: string, { label }: SavedPlan): CommandError {
  const message = `${target}: the network has changed since ${label} was saved, which would now do what is shown above`
  return new CommandError(EXIT.conflict, 'NETWORK_CHANGED', message, { hint: 'save a new plan: controller plan --out' })
}
