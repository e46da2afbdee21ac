// The share of the commit in a write: time and CPU, on a disk and in memory.
import { setTimeout as wait } from 'node:timers/promises'
import type { Bench, Loaded } from '../bench.ts'
import { storageOf } from '../controller/storage.ts'
import type { Measurement } from '../measurement.ts'
import type { Network } from '../model/network.ts'
import { NotBuiltYet } from '../not-built-yet.ts'
import type { Fact } from '../report/results.ts'
import { changingWorkloads } from '../workloads/administration.ts'
import { costOfRun, WARM_UP } from '../workloads/measure.ts'
import type { Workload } from '../workloads/workload.ts'

const SETTLE_MS = 200

const places: readonly { readonly name: string; find(bench: Bench): Promise<Loaded> }[] = [
  { name: 'on disk', find: onDisk },
  { name: 'on tmpfs', find: (bench) => bench.loadedOnTmpfs() },
]

/** The same writes in both places: what a disk adds is time, not CPU. */
export const writeMeasurements: readonly Measurement[] = places.flatMap(({ name: place, find }) =>
  changingWorkloads.map((workload): Measurement => {
    const name = `${workload.name}, ${place}`
    return {
      section: 'writes',
      name,
      needs: workload.needs,
      async measure(bench) {
        const { network } = await find(bench)
        await observe(network)
        return measureWrites(bench, network, workload, name)
      },
    }
  }),
)

async function onDisk(bench: Bench): Promise<Loaded> {
  const loaded = await bench.loaded()
  if (storageOf(loaded.network.controller.directory) === 'disk') return loaded
  throw new NotBuiltYet('the directory for temporary files (TMPDIR) is not on a disk')
}

/** Restarts the controller if its commits are not observed yet. */
async function observe({ controller }: Network): Promise<void> {
  if (controller.isObserved) return
  await controller.stop()
  await controller.startObserved()
}

async function measureWrites(bench: Bench, network: Network, workload: Workload, name: string): Promise<Fact[]> {
  const { controller } = network
  const { inFlight, budget } = workload
  const traffic = await workload.traffic(network, bench.milliseconds * (1 + WARM_UP))
  // A controller that was restarted has served nothing yet.
  const warmUpMilliseconds = bench.milliseconds
  const run = await bench.generator.prepareLoop(controller.target, traffic, { inFlight, warmUpMilliseconds })
  const before = await controller.readCommits()
  const { outcome, cpuMicroseconds } = await costOfRun(controller, () => run.go(bench.milliseconds))
  await wait(SETTLE_MS)
  const after = await controller.readCommits()
  const commits = after.count - before.count
  const ofCommits = (after.cpuMicroseconds - before.cpuMicroseconds) / outcome.completed
  const milliseconds = after.milliseconds - before.milliseconds
  const fact = (what: string, value: number, unit: Fact['unit'], atMost: number | null = null): Fact => ({
    ...{ kind: 'fact', section: 'writes', name: `${name}: ${what}`, value, unit, atMost },
  })
  return [
    fact('CPU of a request', cpuMicroseconds, 'µs', budget?.cpuMicroseconds ?? null),
    fact('CPU of its share of a commit', ofCommits, 'µs'),
    fact('requests in a commit', outcome.completed / commits, '×'),
    fact('time of a commit', milliseconds / commits, 'ms'),
    fact('share of all time in commits', (100 * milliseconds) / (outcome.seconds * 1_000), '%'),
    fact('per second', outcome.completed / outcome.seconds, '/s'),
  ]
}
