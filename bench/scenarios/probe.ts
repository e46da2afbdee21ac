// A few clients that go on polling while something else happens, to see whether they notice.
import type { Bench } from '../bench.ts'
import type { Outcome } from '../generator/plan.ts'
import { asClients, enrolledClients } from '../model/clients.ts'
import type { Network } from '../model/network.ts'
import type { Fact } from '../report/results.ts'
import { percentile } from '../report/statistics.ts'
import { poll } from '../workloads/clients.ts'

const POLLING = { inFlight: 2, pauseMilliseconds: 2, warmUpMilliseconds: 100 } as const

export interface Probed<T> {
  readonly result: T
  /** The latencies of the polls with nothing else going on, and meanwhile. */
  readonly alone: Outcome
  readonly meanwhile: Outcome
}

/** Polls alone, then while the work is done. */
export async function probed<T>(bench: Bench, network: Network, work: () => Promise<T>): Promise<Probed<T>> {
  const requests = asClients(await enrolledClients(network), poll)
  const polls = () => bench.probe.prepareLoop(network.controller.target, { requests }, POLLING)
  const alone = await (await polls()).go(bench.milliseconds / 2)
  const run = await polls()
  const polling = run.go()
  const result = await work().finally(() => run.stop())
  return { result, alone, meanwhile: await polling }
}

/** The latencies of the polls as facts. */
export function pollFacts({ alone, meanwhile }: Probed<unknown>, what: string): Fact[] {
  return [
    milliseconds('polls before it, p99', percentile(alone.latencies, 0.99)),
    milliseconds(`polls meanwhile, p50`, percentile(meanwhile.latencies, 0.5)),
    milliseconds(`polls meanwhile, p99`, percentile(meanwhile.latencies, 0.99)),
  ].map((fact) => ({ ...fact, name: `${what}: ${fact.name}` }))
}

export function milliseconds(name: string, value: number, atMost: number | null = null): Fact {
  return { kind: 'fact', section: 'together', name, value, unit: 'ms', atMost }
}
