// Routers of release 2 that follow the data model: all of it for one and for many, each change, and the log of changes.
import { setTimeout as wait } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { bounds } from '../budgets.ts'
import { MANAGEMENT } from '../controller/api.ts'
import type { Measurement } from '../measurement.ts'
import { enrollRouters } from '../model/connected-routers.ts'
import type { Network } from '../model/network.ts'
import { identityBody } from '../model/records.ts'
import type { Model } from '../model/sizes.ts'
import type { Fact, Unit } from '../report/results.ts'
import { median, percentile } from '../report/statistics.ts'
import { Swarm } from '../routers/swarm.ts'
import type { RouterIdentity } from '../routers/swarm-messages.ts'
import { roleChanges } from '../workloads/administration.ts'
import { type Cost, costOfRun } from '../workloads/measure.ts'
import { management } from '../workloads/workload.ts'
import { pollFacts, probed } from './probe.ts'

const CHANGES_IN_FLIGHT = 8

// The cost of changes is the median of as many measurements, an odd number.
const TURNS = 5

const SINGLE_CHANGES = 50
const SETTLE_MS = 500
const BYTES_A_KILOBYTE = 1_000

/** They are one measurement, because the first router of release 2 changes the network for ever. */
export function routerModelMeasurements({ followingRouters }: Model): readonly Measurement[] {
  return [
    {
      section: 'routers',
      name: nameOf(followingRouters),
      needs: [management('POST', '/edge-routers'), management('PATCH', '/identities/{id}')],
      isOnce: true,
      measure: measureFollowing,
    },
  ]
}

const nameOf = (routers: number) => `${routers} routers that follow the data model`

async function measureFollowing(bench: Bench): Promise<Fact[]> {
  const { network } = await bench.loadedForFollowing()
  const routers = await enrollRouters(network.api, network.model.followingRouters)
  await measureChanges(bench, network)
  const withoutLog = await measureChanges(bench, network)
  const facts = [...(await measureState(network, routers.slice(0, 1)))]
  const withLog = await measureChanges(bench, network)
  const percent = (100 * (withLog.cpuMicroseconds - withoutLog.cpuMicroseconds)) / withoutLog.cpuMicroseconds
  facts.push(
    fact('the log: CPU of a change of roles without it', withoutLog.cpuMicroseconds, 'µs'),
    fact('the log: CPU of it, of that of the change', percent, '%', bounds.modelLogPercent),
  )
  const swarm = new Swarm()
  try {
    facts.push(
      ...(await measureStates(bench, network, swarm, routers)),
      ...(await measureSets(bench, network, swarm, withLog)),
      ...(await measureSingleChanges(network, swarm)),
    )
  } finally {
    swarm.close()
  }
  const name = nameOf(routers.length)
  return facts.map((one) => ({ ...one, name: `${name}: ${one.name}` }))
}

/** The median cost of changes. */
async function measureChanges(bench: Bench, network: Network): Promise<Cost> {
  const costs: Cost[] = []
  for (let turn = 0; turn < TURNS; turn++) {
    const go = await prepareChanges(bench, network)
    costs.push(await costOfRun(network.controller, () => go(bench.milliseconds / TURNS)))
  }
  const middle = median(costs.map(({ cpuMicroseconds }) => cpuMicroseconds))
  return costs.find(({ cpuMicroseconds }) => cpuMicroseconds === middle) as Cost
}

let runs = 0

/** Prepares changes that move identities from team to team, and so out of policies and into others. */
async function prepareChanges({ generator }: Bench, network: Network) {
  const traffic = await roleChanges(network, 2 * ++runs)
  const run = await generator.prepareLoop(network.controller.target, traffic, { inFlight: CHANGES_IN_FLIGHT })
  return (milliseconds: number) => run.go(milliseconds)
}

/** All of the model, for one router. */
async function measureState({ controller }: Network, routers: readonly RouterIdentity[]): Promise<Fact[]> {
  const swarm = new Swarm()
  try {
    await swarm.run({ kind: 'connect', target: controller.target, routers, release: 2 }, 'connected')
    const cpuBefore = controller.cpuMicroseconds
    await swarm.run({ kind: 'follow' }, 'following')
    const milliseconds = (controller.cpuMicroseconds - cpuBefore) / 1_000
    return [fact('everything, for one of them: CPU', milliseconds, 'ms', bounds.modelStateMilliseconds)]
  } finally {
    swarm.close()
    await wait(SETTLE_MS)
  }
}

async function measureStates(
  bench: Bench,
  network: Network,
  swarm: Swarm,
  routers: readonly RouterIdentity[],
): Promise<Fact[]> {
  const { controller } = network
  await swarm.run({ kind: 'connect', target: controller.target, routers, release: 2 }, 'connected')
  const residentBefore = controller.residentBytes
  const together = await probed(bench, network, async () => {
    const begun = performance.now()
    await swarm.run({ kind: 'follow' }, 'following')
    return (performance.now() - begun) / 1_000
  })
  const bytes = (controller.residentBytes - residentBefore) / routers.length
  return [
    fact('all have everything after', together.result, 's'),
    fact('memory that it takes, of a router', bytes / BYTES_A_KILOBYTE, 'KB', bounds.routerKilobytes),
    ...pollFacts(together, 'everything to all of them').map((one) => ({ ...one, section: 'routers' as const })),
  ]
}

/** The CPU time of sets is what changes cost more while routers follow them. */
async function measureSets(bench: Bench, network: Network, swarm: Swarm, alone: Cost): Promise<Fact[]> {
  const { controller } = network
  const go = await prepareChanges(bench, network)
  const countBefore = await countChanges(swarm)
  const cpuBefore = controller.cpuMicroseconds
  const { completed, seconds } = await go(bench.milliseconds)
  await wait(SETTLE_MS)
  const cpu = controller.cpuMicroseconds - cpuBefore
  const sets = (await countChanges(swarm)) - countBefore
  return [
    fact('changes of roles', completed / seconds, '/s'),
    fact('sets to routers', sets / seconds, '/s'),
    fact(
      'CPU of a set to a router',
      (cpu - alone.cpuMicroseconds * completed) / sets,
      'µs',
      bounds.modelChangeMicroseconds,
    ),
  ]
}

const countChanges = async (swarm: Swarm) => (await swarm.run({ kind: 'countChanges' }, 'changes')).count

/** One change after the other, each until all routers have it. */
async function measureSingleChanges(network: Network, swarm: Swarm): Promise<Fact[]> {
  const { api, model } = network
  const [identity] = await network.identities()
  if (!identity) throw new Error('the network has no identities')
  const { id, at } = identity
  const countBefore = (await countChanges(swarm)) / model.followingRouters
  const latencies: number[] = []
  for (let nth = 1; nth <= SINGLE_CHANGES; nth++) {
    const { roleAttributes } = identityBody('', at + 2 * ++runs, model)
    await api.asAdministrator({ method: 'PATCH', path: `${MANAGEMENT}/identities/${id}`, body: { roleAttributes } })
    const respondedAt = performance.now()
    await swarm.run({ kind: 'awaitChanges', count: countBefore + nth }, 'changes')
    latencies.push(performance.now() - respondedAt)
  }
  latencies.sort((a, b) => a - b)
  return [fact('all have a change after, p99', percentile(latencies, 0.99), 'ms', bounds.modelChangeMilliseconds)]
}

function fact(name: string, value: number, unit: Unit, atMost: number | null = null): Fact {
  return { kind: 'fact', section: 'routers', name, value, unit, atMost }
}
