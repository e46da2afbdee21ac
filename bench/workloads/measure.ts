// Measures one workload: the controller first, then a bare server that responds to the same requests with as many bytes.
import type { Bench } from '../bench.ts'
import type { PreparedRun, Traffic } from '../generator/generator.ts'
import type { Outcome } from '../generator/plan.ts'
import type { Network } from '../model/network.ts'
import type { RequestFigures } from '../report/results.ts'
import { percentile } from '../report/statistics.ts'
import type { Workload } from './workload.ts'

// Parts of the measured time.
const WARM_UP = 0.25
const FLOOR = 0.25

/** A server whose CPU time can be read. */
interface Measured {
  readonly cpuMicroseconds: number
}

/** What a run took. */
export interface Cost {
  readonly outcome: Outcome
  /** Of the server, for each response. */
  readonly cpuMicroseconds: number
  /** How much of a core the generator took. */
  readonly generatorCores: number
  readonly span: Span
}

/** From when to when a run went, in microseconds of the clock that the system started with. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** What a measurement of a workload brings, and when the controller was measured. */
export interface MeasuredWorkload {
  readonly figures: RequestFigures
  readonly span: Span
}

/** Measures a workload on a network. @throws where a request was refused, or a connection broke */
export async function measureWorkload(bench: Bench, network: Network, workload: Workload): Promise<MeasuredWorkload> {
  const { name, budget, atMostTimesFloor = null, checksPassword = false } = workload
  const traffic = await workload.traffic(network, bench.milliseconds * (1 + WARM_UP))
  const { outcome, cpuMicroseconds, generatorCores, span } = await costOf(
    bench,
    network,
    workload,
    traffic,
    bench.milliseconds,
  )
  const { completed, seconds, bodyBytes, latencies } = outcome
  const floor = await floorOf(bench, workload, traffic, {
    bodyBytes: Math.round(bodyBytes / completed),
    checksPassword,
  })
  const figures: RequestFigures = {
    kind: 'requests',
    section: 'requests',
    name,
    perSecond: completed / seconds,
    p50: percentile(latencies, 0.5),
    p95: percentile(latencies, 0.95),
    p99: percentile(latencies, 0.99),
    cpuMicroseconds,
    timesFloor: cpuMicroseconds / floor,
    atMostMicroseconds: budget?.cpuMicroseconds ?? null,
    atMostTimesFloor,
    generatorCores,
    openZitiPerSecond: budget?.openZitiPerSecond ?? null,
  }
  return { figures, span }
}

/** What the requests of a workload cost the controller. */
export async function costOf(
  { generator }: Bench,
  { controller }: Network,
  { inFlight }: Workload,
  traffic: Traffic,
  milliseconds: number,
): Promise<Cost> {
  const run = await generator.prepareLoop(controller.target, traffic, {
    inFlight,
    warmUpMilliseconds: milliseconds * WARM_UP,
  })
  return measured(controller, run, milliseconds)
}

async function floorOf(
  bench: Bench,
  { inFlight }: Workload,
  traffic: Traffic,
  expectation: { bodyBytes: number; checksPassword: boolean },
): Promise<number> {
  const floor = await bench.floor()
  await floor.respondWith(expectation)
  // Few passwords are checked in a second, and each counts.
  const milliseconds = bench.milliseconds * (expectation.checksPassword ? 1 : FLOOR)
  const run = await bench.generator.prepareLoop(floor.target, traffic, {
    inFlight,
    warmUpMilliseconds: milliseconds * WARM_UP,
  })
  return (await measured(floor, run, milliseconds)).cpuMicroseconds
}

/** Lets a run go and reads what the server took meanwhile. @throws where a request was refused */
async function measured(server: Measured, run: PreparedRun, milliseconds: number): Promise<Cost> {
  const serverBefore = server.cpuMicroseconds
  const ownBefore = process.cpuUsage()
  const from = monotonicMicroseconds()
  const outcome = await run.go(milliseconds)
  const to = monotonicMicroseconds()
  const own = process.cpuUsage(ownBefore)
  const [failure] = outcome.failures
  if (failure) throw new Error(`${failure.times} requests were refused: ${failure.what}`)
  return {
    outcome,
    cpuMicroseconds: (server.cpuMicroseconds - serverBefore) / outcome.completed,
    generatorCores: (own.user + own.system) / 1_000_000 / outcome.seconds,
    span: { from, to },
  }
}

const monotonicMicroseconds = () => Number(process.hrtime.bigint() / 1000n)
