// Three controllers of one network: what a change costs and when the others show it, how long one takes to join, and whether reads cost more.
import { setTimeout as wait } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { bounds } from '../budgets.ts'
import { CLIENT, MANAGEMENT } from '../controller/api.ts'
import { ClusterProcesses } from '../controller/cluster-processes.ts'
import { ADMINISTRATOR, type ControllerProcess } from '../controller/controller-process.ts'
import { Generator } from '../generator/generator.ts'
import { type OpenConnection, openConnection } from '../generator/open-connection.ts'
import { requestBytes } from '../generator/requests.ts'
import type { Measurement } from '../measurement.ts'
import { Network } from '../model/network.ts'
import type { Model } from '../model/sizes.ts'
import type { Fact, Unit } from '../report/results.ts'
import { median, percentile } from '../report/statistics.ts'
import { creations } from '../workloads/administration.ts'
import { costsInTurn } from '../workloads/measure.ts'
import { workloads } from '../workloads/measurements.ts'
import { client, management } from '../workloads/workload.ts'

const NAMES = ['first', 'second', 'third'] as const
const READS = ['GET current-api-session/service-updates', 'GET identities/{id}', 'GET identities?limit=10']
// A part of the time that other measurements take, for each of the turns.
const TURN = 0.25
const TURNS = 5
const DELAY_MS = 1
const CALLERS_OF_EACH = 16
const WARM_UP = 0.25
const MAX_CHANGES = 500
const MAX_PAUSE_MS = 50
const MILLISECONDS_A_SECOND = 1_000
const MICROSECONDS_A_MILLISECOND = 1_000

export function clusterMeasurements({ identities }: Model): readonly Measurement[] {
  return [
    {
      section: 'cluster',
      name: `${identities.toLocaleString('en')} identities`,
      needs: [management('POST', '/identities'), client('GET', '/current-api-session')],
      measure: measureCluster,
    },
  ]
}

async function measureCluster(bench: Bench): Promise<Fact[]> {
  const { network: alone } = await bench.loaded()
  const name = `${alone.model.identities.toLocaleString('en')} identities`
  await alone.controller.stop()
  const cluster = await ClusterProcesses.make(alone.controller, bench.makeDirectory(), NAMES).finally(() =>
    alone.controller.start(),
  )
  try {
    const [first, second, third] = cluster.all as readonly [ControllerProcess, ControllerProcess, ControllerProcess]
    const network = await Network.start({ model: alone.model, controller: first, generator: bench.generator })
    await second.start()
    await third.start()
    const facts = [
      fact('join', median(cluster.joinSeconds), 's', bounds.clusterJoinSeconds),
      ...(await measureReads(bench, alone, network)),
      ...(await measureOneCaller(bench, network)),
      ...(await measureChanges(bench, network, second)),
      ...(await measureEndedSessions(bench, network, second)),
    ]
    cluster.delayMs = DELAY_MS
    facts.push(...(await measureManyCallers(bench, network, cluster)))
    return facts.map((one) => ({ ...one, name: `${name}: ${one.name}` }))
  } finally {
    await cluster.close()
  }
}

async function measureReads(bench: Bench, alone: Network, network: Network): Promise<Fact[]> {
  const networks = [alone, network] as const
  const atRest = await measureRest(bench, networks)
  const facts = [
    fact('at rest, CPU a second', atRest[1] / MICROSECONDS_A_MILLISECOND, 'ms'),
    fact('at rest, one alone', atRest[0] / MICROSECONDS_A_MILLISECOND, 'ms'),
  ]
  for (const workload of workloads.filter(({ name }) => READS.includes(name))) {
    const milliseconds = bench.milliseconds * TURN
    const [before, now] = await costsInTurn(bench, workload, networks, { turns: TURNS, milliseconds })
    facts.push(fact(`${workload.name}, CPU over alone`, now / before, '×', bounds.clusterReadsTimesAlone))
  }
  return facts
}

/** The CPU time of each controller without requests, in microseconds a second. */
async function measureRest(bench: Bench, networks: readonly [Network, Network]): Promise<[number, number]> {
  const readAll = () => networks.map(({ controller }) => controller.cpuMicroseconds) as [number, number]
  const begun = performance.now()
  const before = readAll()
  await wait(bench.milliseconds)
  const after = readAll()
  const seconds = (performance.now() - begun) / MILLISECONDS_A_SECOND
  return [(after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds]
}

async function measureOneCaller(bench: Bench, network: Network): Promise<Fact[]> {
  const { generator, milliseconds } = bench
  const options = { inFlight: 1, warmUpMilliseconds: milliseconds * WARM_UP }
  const run = await generator.prepareLoop(network.controller.target, await creations(network), options)
  const { latencies } = await run.go(milliseconds)
  return [
    fact('new identity, p50', percentile(latencies, 0.5), 'ms', bounds.clusterCreateMilliseconds),
    fact('new identity, p99', percentile(latencies, 0.99), 'ms'),
  ]
}

/** From the response of the first controller until another one shows what it changed. */
async function measureChanges(bench: Bench, network: Network, other: ControllerProcess): Promise<Fact[]> {
  const { api } = network
  const identities = await network.identities()
  const connections = await openBoth(network.controller, other)
  const latencies = await repeat(bench, async (at) => {
    const { id } = identities[at % identities.length] as { id: string }
    const marker = `changed-${at}`
    await ask(connections.first, api.managementRequest('PATCH', `/identities/${id}`, { roleAttributes: [marker] }))
    const read = api.managementRequest('GET', `/identities/${id}`)
    return timeUntil(async () => (await ask(connections.other, read)).includes(marker))
  })
  connections.close()
  return describe('change at another controller', latencies)
}

/** From the sign-out at the first controller until another one refuses the session. */
async function measureEndedSessions(bench: Bench, { controller }: Network, other: ControllerProcess): Promise<Fact[]> {
  const connections = await openBoth(controller, other)
  const path = `${MANAGEMENT}/authenticate?method=password`
  const signIn = requestBytes({ method: 'POST', path, body: ADMINISTRATOR })
  const latencies = await repeat(bench, async () => {
    const { data } = JSON.parse(await ask(connections.first, signIn)) as { data: { token: string } }
    const headers = { 'net-session': data.token }
    const read = requestBytes({ method: 'GET', path: `${CLIENT}/current-api-session`, headers })
    await ask(connections.other, read)
    // It has just asked the log for a session that it did not know.
    await pause()
    await ask(connections.first, requestBytes({ method: 'DELETE', path: `${CLIENT}/current-api-session`, headers }))
    return timeUntil(async () => (await connections.other.ask(read)).status === 401)
  })
  connections.close()
  return describe('session that ended, at another controller', latencies)
}

async function measureManyCallers(
  { milliseconds }: Bench,
  network: Network,
  cluster: ClusterProcesses,
): Promise<Fact[]> {
  const generators = cluster.all.map(() => new Generator())
  try {
    const traffic = await creations(network)
    const runs = await Promise.all(
      cluster.all.map(({ target }, at) =>
        (generators[at] as Generator).prepareLoop(target, traffic, {
          inFlight: CALLERS_OF_EACH,
          warmUpMilliseconds: milliseconds * WARM_UP,
        }),
      ),
    )
    const before = await cluster.readPosition()
    const outcomes = await Promise.all(runs.map((run) => run.go(milliseconds)))
    const commits = (await cluster.readPosition()) - before
    for (const { failures } of outcomes) for (const { what, times } of failures) throw new Error(`${times} × ${what}`)
    const perSecond = outcomes.reduce((sum, { completed, seconds }) => sum + completed / seconds, 0)
    const completed = outcomes.reduce((sum, outcome) => sum + outcome.completed, 0)
    const latencies = Float64Array.from(outcomes.flatMap((one) => [...one.latencies])).sort()
    const delayed = 'with a database 1 ms away'
    return [
      fact(`new identities by all three ${delayed}`, perSecond, '/s'),
      fact(`time for each of them`, 1_000 / perSecond, 'ms', bounds.clusterEachCreateMilliseconds),
      fact('new identities in each commit', completed / commits, ''),
      fact(`new identity of many ${delayed}, p99`, percentile(latencies, 0.99), 'ms'),
    ]
  } finally {
    await Promise.all(generators.map((generator) => generator.close()))
  }
}

async function openBoth(first: ControllerProcess, other: ControllerProcess) {
  const [ofFirst, ofOther] = await Promise.all([
    openConnection({ target: first.target }),
    openConnection({ target: other.target }),
  ])
  const close = () => {
    ofFirst.close()
    ofOther.close()
  }
  return { first: ofFirst, other: ofOther, close }
}

/** The text of a response. @throws if it is a refusal */
async function ask(connection: OpenConnection, request: Buffer): Promise<string> {
  const { status, body } = await connection.ask(request)
  const text = body?.toString() ?? ''
  if (status >= 400) throw new Error(`${status} ${text}`)
  return text
}

/** Measures again and again for the time of a measurement. Returns milliseconds, in order of size. */
async function repeat(bench: Bench, measure: (at: number) => Promise<number>): Promise<Float64Array> {
  const latencies: number[] = []
  const end = performance.now() + bench.milliseconds
  while (latencies.length === 0 || (performance.now() < end && latencies.length < MAX_CHANGES)) {
    // Otherwise each would begin right after the other controller has asked the log.
    await pause()
    latencies.push(await measure(latencies.length))
  }
  return Float64Array.from(latencies).sort()
}

function pause(): Promise<void> {
  return wait(Math.random() * MAX_PAUSE_MS)
}

async function timeUntil(isSo: () => Promise<boolean>): Promise<number> {
  const begun = performance.now()
  while (!(await isSo()));
  return performance.now() - begun
}

function describe(name: string, latencies: Float64Array): Fact[] {
  const { p50, p99 } = bounds.clusterChangeMilliseconds
  return [
    fact(`${name}, p50`, percentile(latencies, 0.5), 'ms', p50),
    fact(`${name}, p99`, percentile(latencies, 0.99), 'ms', p99),
  ]
}

function fact(name: string, value: number, unit: Unit, atMost: number | null = null): Fact {
  return { kind: 'fact', section: 'cluster', name, value, unit, atMost }
}
