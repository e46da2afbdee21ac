// `controller router map`: draws the routers, the links between them, and how many circuits go over each.
import { Flags } from '@oclif/core'
import type { Client } from '../client/client.ts'
import { defineConnectedCommand } from '../framework/connected.ts'
import { describeRest, type Graph, GraphBuilder } from '../terminal/pictures/graph.ts'

interface NamedReference {
  readonly id: string
  readonly name: string
}

interface RouterRecord extends NamedReference {
  readonly isOnline: boolean
  readonly disabled: boolean
}

interface LinkRecord {
  readonly id: string
  readonly sourceRouter: NamedReference
  readonly destinationRouter: NamedReference
  readonly state: string
  readonly cost: number
  /** Nanoseconds; null until it is measured. */
  readonly sourceLatency: number | null
  readonly destinationLatency: number | null
}

interface CircuitRecord {
  readonly routers: readonly NamedReference[]
  /** The ids of the links. */
  readonly links: readonly string[]
}

const DEFAULT_MAX = 100

export const routerMap = defineConnectedCommand({
  summary: 'Draws the routers, the links between them with latency and cost, and the circuits over them.',
  flags: {
    max: Flags.integer({
      description: `How many routers it draws at most; those with circuits or links come first. Default: ${DEFAULT_MAX}.`,
      min: 1,
      max: 500,
    }),
  },
  draws: 'picture',
  example: '-o svg > routers.svg',
  async run({ client, flags, print }) {
    await print({ kind: 'picture', graph: await drawRouters(client, (flags.max as number | undefined) ?? DEFAULT_MAX) })
  },
})

async function drawRouters(client: Client, max: number): Promise<Graph> {
  // The list of all routers, also of those that serve clients.
  const routers = await collect<RouterRecord>(client, '/transit-routers?sort=name')
  const links = await collect<LinkRecord>(client, '/controller/links')
  const circuits = await collect<CircuitRecord>(client, '/controller/circuits')
  const linksOfRouters = countNames(
    links.flatMap(({ sourceRouter, destinationRouter }) => [sourceRouter.id, destinationRouter.id]),
  )
  const circuitsOfRouters = countNames(circuits.flatMap(({ routers: path }) => path.map(({ id }) => id)))
  const circuitsOfLinks = countNames(circuits.flatMap((circuit) => circuit.links))
  const weigh = ({ id }: RouterRecord) => (circuitsOfRouters.get(id) ?? 0) * 1_000 + (linksOfRouters.get(id) ?? 0)
  const drawnRouters = [...routers].sort((a, b) => weigh(b) - weigh(a) || (a.name < b.name ? -1 : 1)).slice(0, max)
  const graph = new GraphBuilder()
  for (const router of drawnRouters) {
    const count = circuitsOfRouters.get(router.id) ?? 0
    graph.addNode({
      id: router.id,
      kind: 'router',
      label: [router.name, describeState(router), ...(count === 0 ? [] : [countCircuits(count)])],
      isInactive: !router.isOnline,
    })
  }
  const drawnIds = new Set(drawnRouters.map(({ id }) => id))
  for (const link of links) {
    if (!drawnIds.has(link.sourceRouter.id) || !drawnIds.has(link.destinationRouter.id)) continue
    graph.addEdge({
      from: link.sourceRouter.id,
      to: link.destinationRouter.id,
      label: describeLink(link, circuitsOfLinks.get(link.id) ?? 0),
      isRefused: link.state !== 'connected',
    })
  }
  return graph.build({
    title: 'Routers and links',
    isUndirected: true,
    omitted: describeRest(routers.length - drawnRouters.length, 'router', 'routers'),
  })
}

function describeState({ isOnline, disabled }: RouterRecord): string {
  if (disabled) return 'disabled'
  return isOnline ? 'online' : 'offline'
}

function describeLink({ state, cost, sourceLatency, destinationLatency }: LinkRecord, circuitCount: number): string[] {
  const measured = [sourceLatency, destinationLatency].filter((latency) => latency !== null)
  const latency = measured.length === 0 ? [] : [`${(Math.max(...measured) / 1_000_000).toFixed(1)} ms`]
  return [
    ...(state === 'connected' ? [] : [state]),
    [...latency, `cost ${cost}`].join(', '),
    ...(circuitCount === 0 ? [] : [countCircuits(circuitCount)]),
  ]
}

function countCircuits(count: number): string {
  return `${count} ${count === 1 ? 'circuit' : 'circuits'}`
}

/** Name → how often it occurs. */
function countNames(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

async function collect<T>(client: Client, path: string): Promise<T[]> {
  const items: T[] = []
  for await (const item of client.items(`${path}${path.includes('?') ? '&' : '?'}limit=-1`)) items.push(item as T)
  return items
}
