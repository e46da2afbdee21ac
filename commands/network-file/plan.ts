// `controller plan`: shows what applying a network file would change, without changing it.
import { Flags } from '@oclif/core'
import type { Client } from '../client/client.ts'
import { defineConnectedCommand } from '../connected.ts'
import { CommandError, EXIT } from '../exit-codes.ts'
import { NetworkFile } from './network-file.ts'
import { hasChanges, type PlanSummary, PlanText } from './plan-items.ts'

export const fileFlags = {
  file: Flags.string({
    char: 'f',
    description: 'The network file; - is stdin.',
    helpValue: 'FILE',
    required: true,
  }),
  prune: Flags.boolean({
    description: 'Also delete records that the file does not name, of the resources that it has a section for.',
  }),
}

export const planNetwork = defineConnectedCommand({
  summary: 'Shows what applying a network file would change, and who would gain or lose access.',
  description: 'Exits with 0 if nothing would change, and with 3 if something would. See docs/network-file.md.',
  flags: fileFlags,
  example: '-f network.yaml',
  async run({ client, flags, print }) {
    const file = await NetworkFile.read(String(flags.file))
    const text = new PlanText()
    let summary: PlanSummary | undefined
    const items = observeSummary(fetchPlan(client, file, flags.prune === true), (item) => {
      summary = item
    })
    if (flags.output === undefined || flags.output === 'table')
      await print({ kind: 'pieces', pieces: renderItems(items, text) })
    else await print({ kind: 'list', name: 'plan', items, columns: [] })
    return summary && hasChanges(summary) ? EXIT.denied : EXIT.done
  },
})

/** The items of the plan; mistakes in the file are named by line and column. */
export async function* fetchPlan(client: Client, file: NetworkFile, isPruning: boolean): AsyncGenerator<unknown> {
  let hasSummary = false
  try {
    const request = { method: 'POST', body: file.sections }
    for await (const item of client.items(`/controller/network/plan?prune=${isPruning}`, undefined, request)) {
      hasSummary = (item as { kind?: string }).kind === 'summary'
      yield item
    }
  } catch (error) {
    throw file.locate(error)
  }
  if (!hasSummary) throw new CommandError(EXIT.failed, 'FAILED', `${client.target}: the plan is incomplete`)
}

/** The items as text for people. */
export async function* renderItems(items: AsyncIterable<unknown>, text: PlanText): AsyncGenerator<string> {
  for await (const item of items) yield text.render(item)
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
