// The measurements of one kind of request each.
import { budgets } from '../budgets.ts'
import type { Need } from '../controller/api.ts'
import type { Measurement } from '../measurement.ts'
import type { Loading } from '../model/network.ts'
import type { RequestFigures, Result } from '../report/results.ts'
import { percentile } from '../report/statistics.ts'
import { changingWorkloads, readingWorkloads } from './administration.ts'
import { clientWorkloads } from './clients.ts'
import { measureWorkload } from './measure.ts'
import { postureWorkloads } from './posture.ts'
import { profiled } from './profiled.ts'
import { signingInWorkloads } from './signing-in.ts'
import { management, type Workload } from './workload.ts'

/** In an order in which no workload changes what a later one finds: reads, sign-ins, changes, new records, posture. */
export const workloads: readonly Workload[] = [
  ...clientWorkloads,
  ...readingWorkloads,
  ...signingInWorkloads,
  ...changingWorkloads,
  ...postureWorkloads,
]

const WHILE_LOADING = 'POST identities, while loading'

const loading: Measurement = {
  section: 'requests',
  name: WHILE_LOADING,
  needs: [management('POST', '/identities')],
  isOnce: true,
  async measure(bench) {
    const { loading } = await bench.loaded()
    // An earlier run has loaded it.
    if (!loading) return []
    return [loadingFigures(loading), ...loading.missing.map(missingPart)]
  },
}

function loadingFigures({ outcome, cpuMicroseconds }: Loading): RequestFigures {
  const { completed, seconds, latencies } = outcome
  return {
    kind: 'requests',
    section: 'requests',
    name: WHILE_LOADING,
    perSecond: completed / seconds,
    p50: percentile(latencies, 0.5),
    p95: percentile(latencies, 0.95),
    p99: percentile(latencies, 0.99),
    cpuMicroseconds: cpuMicroseconds / completed,
    timesFloor: null,
    atMostMicroseconds: budgets.identityWhileLoading.cpuMicroseconds ?? null,
    atMostTimesFloor: null,
    generatorMicroseconds: null,
    generatorCores: null,
    openZitiPerSecond: budgets.identityWhileLoading.openZitiPerSecond ?? null,
  }
}

function missingPart({ path }: Need): Result {
  return { kind: 'not-built-yet', section: 'requests', name: `${path.slice(1)} of the model`, why: `POST ${path}` }
}

export const requestMeasurements: readonly Measurement[] = [
  loading,
  ...workloads.map(
    (workload): Measurement => ({
      section: 'requests',
      name: workload.name,
      needs: workload.needs,
      async measure(bench) {
        const { network } = await bench.loaded()
        const measure = () => measureWorkload(bench, network, workload)
        const { figures } = await (bench.profile === undefined
          ? measure()
          : profiled(bench.profile, network, workload, measure))
        return [figures]
      },
    }),
  ),
]
