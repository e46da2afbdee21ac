// Measures one workload: the controller and a bare server that responds to the same requests with as many bytes, in turn, so
// that whatever else the machine does affects both.
import type { Bench } from '../bench.ts'
import type { PreparedRun, Traffic } from '../generator/generator.ts'
import type { Outcome } from '../generator/plan.ts'
import type { Network } from '../model/network.ts'
import type { RequestFigures } from '../report/results.ts'
import { median, percentile } from '../report/statistics.ts'
import type { Workload } from './workload.ts'

// Parts of the measured time.
export const WARM_UP = 0.25
const FLOOR = 0.25

// A bare server closes a connection that rests for longer.
const MAX_TURN_MS = 2_000

/** A server whose CPU time can be read. */
interface Measured {
  readonly cpuMicroseconds: number
}

/** The cost of a run. */
export interface Cost {
  readonly outcome: Outcome
  /** Of the server, for each response. */
  readonly cpuMicroseconds: number
  /** The part of a core that the generator took. */
  readonly generatorCores: number
  readonly span: Span
}

/** From when to when a run went, in microseconds of the clock that the system started with. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** The figures of a workload, and the time in which the controller was measured. */
export interface MeasuredWorkload {
  readonly figures: RequestFigures
  readonly span: Span
}

/** Measures a workload on a network. @throws where a request was refused, or a connection broke */
export async function measureWorkload(bench: Bench, network: Network, workload: Workload): Promise<MeasuredWorkload> {
  const { name, budget } = workload
  const traffic = await workload.traffic(network, bench.milliseconds * (1 + WARM_UP))
  const turns = await takeTurns(bench, network, workload, traffic)
  const costs = turns.map(({ controller }) => controller)
  const completed = sumOf(costs, ({ outcome }) => outcome.completed)
  const seconds = sumOf(costs, ({ outcome }) => outcome.seconds)
  const perResponse = (figure: (cost: Cost) => number) => sumOf(costs, figure) / completed
  const latencies = Float64Array.from(costs.flatMap(({ outcome }) => [...outcome.latencies])).sort()
  const figures: RequestFigures = {
    kind: 'requests',
    section: 'requests',
    name,
    perSecond: completed / seconds,
    p50: percentile(latencies, 0.5),
    p95: percentile(latencies, 0.95),
    p99: percentile(latencies, 0.99),
    cpuMicroseconds: perResponse(({ outcome, cpuMicroseconds }) => cpuMicroseconds * outcome.completed),
    generatorMicroseconds: perResponse(({ outcome, generatorCores }) => generatorCores * outcome.seconds * 1_000_000),
    generatorCores: sumOf(costs, ({ outcome, generatorCores }) => generatorCores * outcome.seconds) / seconds,
    timesFloor: median(turns.map(({ controller, floor }) => controller.cpuMicroseconds / floor.cpuMicroseconds)),
    atMostMicroseconds: budget?.cpuMicroseconds ?? null,
    atMostTimesFloor: budget?.timesFloor ?? null,
    openZitiPerSecond: budget?.openZitiPerSecond ?? null,
  }
  return { figures, span: { from: costs[0]?.span.from ?? 0, to: costs.at(-1)?.span.to ?? 0 } }
}

/** Returns what the requests of a workload cost the controller. */
async function costOf(
  { generator }: Bench,
  { controller }: Network,
  { inFlight }: Workload,
  traffic: Traffic,
  milliseconds: number,
): Promise<Cost> {
  const warmUpMilliseconds = milliseconds * WARM_UP
  const run = await generator.prepareLoop(controller.target, traffic, {
    inFlight,
    warmUpMilliseconds,
    staysAwake: true,
  })
  return costOfRun(controller, () => run.go(milliseconds))
}

/** Returns what the requests of a workload cost two controllers that are measured in turn: the medians, in microseconds. */
export async function costsInTurn(
  bench: Bench,
  workload: Workload,
  networks: readonly [Network, Network],
  { turns, milliseconds }: { readonly turns: number; readonly milliseconds: number },
): Promise<[number, number]> {
  const costs: [number[], number[]] = [[], []]
  for (let turn = 0; turn < turns; turn++) {
    for (const [at, network] of networks.entries()) {
      const traffic = await workload.traffic(network, milliseconds * 2)
      const { cpuMicroseconds } = await costOf(bench, network, workload, traffic, milliseconds)
      costs[at as 0 | 1].push(cpuMicroseconds)
    }
  }
  return [median(costs[0]), median(costs[1])]
}

interface Turn {
  readonly controller: Cost
  readonly floor: Cost
}

/** Measures the controller and the bare server in turn, both warm from the first turn on. */
async function takeTurns(bench: Bench, network: Network, workload: Workload, traffic: Traffic): Promise<Turn[]> {
  const { inFlight, checksPassword = false } = workload
  const { controller } = network
  const floor = await bench.floor()
  const count = Math.max(bench.model.floorTurns, Math.ceil(bench.milliseconds / MAX_TURN_MS))
  const milliseconds = bench.milliseconds / count
  // Few passwords are checked in a second, and each counts.
  const floorMilliseconds = milliseconds * (checksPassword ? 1 : FLOOR)
  const warmUpMilliseconds = bench.milliseconds * WARM_UP
  const run = await bench.generator.prepareLoop(controller.target, traffic, {
    inFlight,
    warmUpMilliseconds,
    staysAwake: true,
  })
  await floor.respondWith({ bodyBytes: run.meanBodyBytes, checksPassword })
  // The bare server responds to a request as often as it is sent.
  const floorTraffic = { ...traffic, isOnce: false }
  const floorRun = await floor.generator.prepareLoop(floor.target, floorTraffic, {
    inFlight,
    warmUpMilliseconds: floorMilliseconds,
    staysAwake: true,
  })
  const turns: Turn[] = []
  for (let left = count - 1; left >= 0; left--) {
    const go = (prepared: PreparedRun, time: number) => (left === 0 ? prepared.go(time) : prepared.goPart(time))
    turns.push({
      controller: await costOfRun(controller, () => go(run, milliseconds)),
      floor: await costOfRun(floor, () => go(floorRun, floorMilliseconds)),
    })
  }
  // None is completed in a turn if requests that can be sent once only are used up.
  return turns.filter(({ controller }) => controller.outcome.completed > 0)
}

/** Lets a run go and reads what the server took meanwhile. @throws where a request was refused */
export async function costOfRun(server: Measured, go: () => Promise<Outcome>): Promise<Cost> {
  const serverBefore = server.cpuMicroseconds
  const from = monotonicMicroseconds()
  const outcome = await go()
  const to = monotonicMicroseconds()
  const [failure] = outcome.failures
  if (failure) throw new Error(`${failure.times} requests were refused: ${failure.what}`)
  return {
    outcome,
    cpuMicroseconds: (server.cpuMicroseconds - serverBefore) / outcome.completed,
    generatorCores: outcome.busySeconds / outcome.seconds,
    span: { from, to },
  }
}

function sumOf(costs: readonly Cost[], figure: (cost: Cost) => number): number {
  return costs.reduce((sum, cost) => sum + figure(cost), 0)
}

const monotonicMicroseconds = () => Number(process.hrtime.bigint() / 1000n)
