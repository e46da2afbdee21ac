// `controller plan`: shows what applying network files would change, without changing it.
import { Flags } from '@oclif/core'
import type { PlanSummary } from '../../server/operations/management-api/plan-items.ts'
import type { Client } from '../client/client.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import { colorMarks, hasColors } from '../terminal/colors.ts'
import { isDrawn } from '../terminal/formats.ts'
import { NetworkFiles } from './network-files.ts'
import { hasChanges, PlanText } from './plan-items.ts'
import { drawPlan } from './plan-picture.ts'
import { SavedPlan } from './saved-plan.ts'
import type { SectionSource } from './sections.ts'

export const fileFlag = Flags.string({
  char: 'f',
  description:
    'A network file, or a directory with files whose names end in .yaml or .yml; - is stdin. Can be repeated: all are one network.',
  helpValue: 'FILE',
  multiple: true,
  multipleNonGreedy: true,
})

export const planFlags = {
  prune: Flags.boolean({
    description: 'Also delete records that the files do not name, of the resources that they have a section for.',
  }),
  'show-unlisted': Flags.boolean({
    description: 'Also name the records of the network that the files do not name.',
  }),
}

export const planCommand = defineConnectedCommand({
  summary: 'Shows what applying network files would change, and who would gain or lose access.',
  description: 'Exits with 0 if nothing would change, and with 3 if something would. See docs/network-file.md.',
  flags: {
    file: { ...fileFlag, required: true },
    ...planFlags,
    out: Flags.string({
      description: 'Save the plan to this file: "controller apply --plan PLAN" makes these changes and no others.',
      helpValue: 'PLAN',
    }),
  },
  draws: 'list',
  example: '-f network.yaml',
  async run({ client, flags, print, notice }) {
    const files = await NetworkFiles.read(flags.file as string[])
    const isPruning = flags.prune === true
    let summary: PlanSummary | undefined
    const options = { isPruning, hasUnlisted: flags['show-unlisted'] === true }
    const items = observeSummary(fetchPlan(client, files, options), (item) => {
      summary = item
    })
    if (isDrawn(flags.output)) await print({ kind: 'picture', graph: await drawPlan(items) })
    else if (flags.output === undefined || flags.output === 'table')
      await print({ kind: 'pieces', pieces: toPlanText(items) })
    else await print({ kind: 'list', name: 'plan', items, columns: [] })
    if (flags.out !== undefined && summary) {
      const path = String(flags.out)
      SavedPlan.write(path, { isPruning, digest: summary.digest, sections: files.sections })
      notice(`The plan is saved: ${toCommandLine('apply', ['--plan', path])}`)
    }
    return summary && hasChanges(summary) ? EXIT.denied : EXIT.done
  },
})

interface PlanOptions {
  readonly isPruning: boolean
  readonly hasUnlisted: boolean
}

/** The items of the plan; mistakes are named by their places. */
export async function* fetchPlan(
  client: Client,
  source: SectionSource,
  { isPruning, hasUnlisted }: PlanOptions,
): AsyncGenerator<unknown> {
  let hasSummary = false
  const path = `/controller/network/plan?prune=${isPruning}${hasUnlisted ? '&unlisted=true' : ''}`
  try {
    for await (const item of client.items(path, undefined, { method: 'POST', body: source.sections })) {
      hasSummary = (item as { kind?: string }).kind === 'summary'
      yield item
    }
  } catch (error) {
    throw source.locate(error)
  }
  if (!hasSummary) throw new CommandError(EXIT.failed, 'FAILED', `${client.target}: the plan is incomplete`)
}

/** The plan as text for people: the summary first, which arrives last. */
async function* toPlanText(items: AsyncIterable<unknown>): AsyncGenerator<string> {
  const text = new PlanText()
  for await (const item of items) text.add(item)
  yield hasColors(process.stdout) ? colorMarks(text.render()) : text.render()
}

/** The same items; the summary, which comes last, is also passed on. */
async function* observeSummary(
  items: AsyncIterable<unknown>,
  receive: (summary: PlanSummary) => void,
): AsyncGenerator<unknown> {
  for await (const item of items) {
    if ((item as { kind?: string }).kind === 'summary') receive(item as PlanSummary)
    yield item
  }
}
