// `controller node drain`: has a controller give up what it does, and waits until it can be stopped unnoticed. `controller node resume` ends that.
import { setTimeout as delay } from 'node:timers/promises'
import { Flags } from '@oclif/core'
import { toCountText } from '../api/impact.ts'
import type { Client } from '../client/client.ts'
import { EXIT } from '../foundation/exit-codes.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import { escapeControls } from '../terminal/text.ts'

const POLL_MS = 250

interface Node {
  readonly name: string
  readonly state: string
  readonly duties: readonly string[]
  readonly routers: number
  readonly connections: number
}

const nameArgument = requiredArgument({ description: 'The name of the controller: cluster.name in its settings.' })

export const nodeDrain = defineConnectedCommand({
  summary: 'Has a controller give up what it does for all, and waits until it can be stopped without being missed.',
  description:
    'Its health fails, so that load balancers send to the others; connections of clients end after their next response. Requests go on to be served. Its next start ends this, and so does: controller node resume. Exits with 8 if something is left to do at the end of the time.',
  args: { name: nameArgument },
  flags: {
    timeout: Flags.integer({ min: 0, max: 3600, default: 60, description: 'How many seconds to wait.' }),
  },
  example: 'two',
  async run({ client, args: { name = '' }, flags, notice, print }) {
    await client.call('POST', `/controller/nodes/${encodeURIComponent(name)}/drain`)
    const endsAt = performance.now() + (flags.timeout as number) * 1_000
    let lastNotice = ''
    for (;;) {
      const node = await findNode(client, name)
      const isDrained = node === undefined || !['live', 'draining'].includes(node.state)
      if (isDrained || performance.now() >= endsAt) {
        const rest = node ? describeRemainder(node) : ''
        const sentence = isDrained
          ? `${name} is ${node?.state ?? 'gone'}: stop it now, or: controller node resume ${name}`
          : `${name} drains, and still has ${rest}`
        await print({ kind: 'done', sentence: escapeControls(sentence), facts: { name, isDrained, ...node } })
        return isDrained ? EXIT.done : EXIT.tryLater
      }
      const rest = describeRemainder(node)
      if (rest !== lastNotice) notice(escapeControls(`${name} still has ${rest}`))
      lastNotice = rest
      await delay(POLL_MS)
    }
  },
})

export const nodeResume = defineConnectedCommand({
  summary: 'Ends the draining of a controller.',
  args: { name: nameArgument },
  example: 'two',
  async run({ client, args: { name = '' }, print }) {
    const node = await findNode(client, name)
    await client.call('POST', `/controller/nodes/${encodeURIComponent(name)}/resume`)
    const sentence = describeResumption(name, node?.state ?? 'gone')
    await print({
      kind: 'done',
      sentence: escapeControls(sentence),
      facts: { name, wasDraining: isDraining(node?.state) },
    })
  },
})

async function findNode(client: Client, name: string): Promise<Node | undefined> {
  const { data } = await client.call('GET', '/controller/nodes')
  return (data as readonly Node[]).find((node) => node.name === name)
}

const isDraining = (state: string | undefined) => state === 'draining' || state === 'drained'

/** @param state that of the controller before it was told to take up its work again */
export function describeResumption(name: string, state: string): string {
  return isDraining(state) ? `${name} does not drain any more` : `${name} was not draining: it is ${state}`
}

/** Says what a controller that drains has left to give up. */
export function describeRemainder({ duties, routers }: Pick<Node, 'duties' | 'routers'>): string {
  const parts = [...duties.map((duty) => `the duty ${duty}`), ...(routers > 0 ? [toCountText(routers, 'router')] : [])]
  return parts.length > 0 ? parts.join(', ') : 'to notice it'
}
