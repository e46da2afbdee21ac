// A mixed load at three controllers of one network that lasts, with routers at each, while one of them is killed again and again: whether
// memory or descriptors grow, an acknowledged change is lost, or their rows differ at the end.
import { setTimeout as wait } from 'node:timers/promises'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { openForReading } from '../../src/storage/sqlite/connection.ts'
import { digestRows, listDifferentTables, type RowDigests } from '../../src/storage/sqlite/row-digest.ts'
import type { Bench } from '../bench.ts'
import { bounds } from '../budgets.ts'
import { Api } from '../controller/api.ts'
import { ClusterProcesses } from '../controller/cluster-processes.ts'
import type { ControllerProcess } from '../controller/controller-process.ts'
import type { MemoryFigures } from '../controller/inside.ts'
import type { Measurement } from '../measurement.ts'
import { enrolledClients } from '../model/clients.ts'
import { enrollRouters } from '../model/connected-routers.ts'
import { Network } from '../model/network.ts'
import type { Fact } from '../report/results.ts'
import { median } from '../report/statistics.ts'
import { Swarm } from '../routers/swarm.ts'
import { LastingCallers } from './lasting-callers.ts'
import { fact, MINUTE_MS, memoryFacts, mixedRequests, SIGNING_IN } from './soak.ts'

const NAMES = ['first', 'second', 'third'] as const
const ROUTERS = 10
// A kill each ten minutes; in a shorter run, as many as it has parts.
const KILL_INTERVAL_MS = 10 * MINUTE_MS
const MIN_KILLS = 2
const DOWN_MS = 2_000
const SAMPLES_A_KILL = 8
// From the last change until all have it, many times over.
const SETTLE_MS = 2_000

interface Sample extends MemoryFigures {
  readonly descriptors: number
}

/** @param minutes how long the load lasts */
export function clusterSoakMeasurement(minutes: number): Measurement {
  const name = `${minutes} minutes of mixed load at three controllers`
  return {
    section: 'soak',
    name,
    needs: [],
    isOnce: true,
    async measure(bench) {
      const { network: alone } = await bench.loaded()
      await alone.controller.stop()
      const cluster = await ClusterProcesses.make(alone.controller, bench.makeDirectory(), NAMES)
      const swarm = new Swarm()
      try {
        const facts = await soak(bench, alone, cluster, swarm, minutes * MINUTE_MS)
        return facts.map((one) => ({ ...one, name: `${name}: ${one.name}` }))
      } finally {
        swarm.close()
        await cluster.close()
      }
    },
  }
}

async function soak(
  bench: Bench,
  { model }: Network,
  cluster: ClusterProcesses,
  swarm: Swarm,
  milliseconds: number,
): Promise<Fact[]> {
  const [first, ...others] = cluster.all as readonly [ControllerProcess, ...ControllerProcess[]]
  const network = await Network.start({ model, controller: first, generator: bench.generator })
  const requests = await mixedRequests(network)
  const credentials = (await enrolledClients(network)).slice(-SIGNING_IN).map(({ credential }) => credential)
  const routers = await enrollRouters(network.api, ROUTERS)
  await first.stop()
  for (const controller of cluster.all) await controller.startObserved()
  await network.api.signIn()
  const targets = cluster.all.map(({ target }) => target)
  await swarm.run({ kind: 'stay', targets, routers }, 'connected')
  const callers = new LastingCallers(targets, network.api, { requests, credentials })
  const killing = killInTurn(bench, first, others, milliseconds).finally(() => callers.stop())
  const [samples] = await Promise.all([killing, callers.run()])
  await wait(SETTLE_MS)
  const { count: connected } = await swarm.run({ kind: 'countConnections' }, 'connections')
  const losses = (await Promise.all(targets.map((target) => callers.listLosses(new Api(target))))).flat()
  if (losses.length > 0)
    throw new Error(`${losses.length} acknowledged changes were lost: ${losses.slice(0, 3).join('; ')}`)
  for (const controller of cluster.all) await controller.stop()
  const different = await findDifferences(cluster.all)
  if (different.length > 0) throw new Error(`the rows of controllers differ: ${different.join(', ')}`)
  const { completed, unanswered, acknowledged } = callers
  return [
    fact('requests', completed / (milliseconds / 1_000), '/s'),
    fact('changes that were acknowledged, and none of them lost', acknowledged, ''),
    fact('requests without a response, most of them to one that was killed', unanswered, ''),
    fact('kills', samples.kills, ''),
    fact(`connections of ${ROUTERS} routers at the end`, connected, ''),
    ...[first, ...others].flatMap((_, at) =>
      memoryFacts(samples.of[at] as Sample[])
        // The others begin anew each time that they are killed, so that their growth says nothing.
        .filter(({ atMost }) => at === 0 || atMost === null)
        .map((one) => ({ ...one, name: `${NAMES[at]}: ${one.name}` })),
    ),
    descriptorGrowth(samples.of[0] as Sample[]),
  ]
}

/** Kills the others in turn, and reads the memory of all meanwhile. The first one is never killed, so that its memory can be compared. */
async function killInTurn(
  bench: Bench,
  first: ControllerProcess,
  others: readonly ControllerProcess[],
  milliseconds: number,
): Promise<{ of: Sample[][]; kills: number }> {
  const kills = Math.max(MIN_KILLS, Math.floor(milliseconds / KILL_INTERVAL_MS))
  const of: Sample[][] = [first, ...others].map(() => [])
  for (let at = 0; at < kills; at++) {
    for (let sample = 0; sample < SAMPLES_A_KILL; sample++) {
      bench.progress.share('soaking', at * SAMPLES_A_KILL + sample, kills * SAMPLES_A_KILL)
      await wait(milliseconds / kills / SAMPLES_A_KILL)
      for (const [index, controller] of [first, ...others].entries())
        of[index]?.push({ ...(await controller.readMemory()), descriptors: controller.descriptors })
    }
    const victim = others[at % others.length] as ControllerProcess
    victim.kill()
    await wait(DOWN_MS)
    await victim.startObserved()
  }
  bench.progress.clear()
  return { of, kills }
}

/** The tables whose rows differ once each has followed the log to its end, which every command on a directory does. */
async function findDifferences(controllers: readonly ControllerProcess[]): Promise<string[]> {
  const digests: RowDigests[] = []
  for (const controller of controllers) {
    await controller.run('identity list', ['--offline', '--limit', '1'])
    const connection = openForReading(getDataPaths(controller.data).database)
    try {
      digests.push(digestRows(connection))
    } finally {
      connection.close()
    }
  }
  const [first, ...others] = digests as [RowDigests, ...RowDigests[]]
  return others.flatMap((other) => listDifferentTables(first, other))
}

function descriptorGrowth(samples: readonly Sample[]): Fact {
  const third = Math.ceil(samples.length / 3)
  const middle = (part: readonly Sample[]) => median(part.map(({ descriptors }) => descriptors))
  const percent = 100 * (middle(samples.slice(-third)) / middle(samples.slice(0, third)) - 1)
  return fact('first: files and connections: growth', percent, '%', bounds.descriptorGrowthPercent)
}
