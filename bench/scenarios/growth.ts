// The cost of requests in a small and in a large network, side by side: two controllers that differ in their number of
// identities alone, measured in turn, so that whatever else the machine does hits both.
import type { Bench } from '../bench.ts'
import { bounds } from '../budgets.ts'
import type { Measurement } from '../measurement.ts'
import type { Network } from '../model/network.ts'
import type { Model } from '../model/sizes.ts'
import { median } from '../report/statistics.ts'
import { costOf } from '../workloads/measure.ts'
import { workloads } from '../workloads/measurements.ts'
import type { Workload } from '../workloads/workload.ts'

// Each turn takes this part of the time that other measurements take.
const TURN = 0.25

export function growthMeasurements({ growth: sizes }: Model): readonly Measurement[] {
  const flat = workloads.filter(({ isFlat }) => isFlat)
  return flat.map((workload) => ({
    section: 'growth',
    name: workload.name,
    needs: workload.needs,
    async measure(bench) {
      const cpuMicroseconds = await compare(bench, workload, sizes)
      const [few, many] = cpuMicroseconds
      const { name } = workload
      return [
        {
          kind: 'growth',
          section: 'growth',
          name,
          sizes,
          cpuMicroseconds,
          times: many / few,
          atMostTimes: workload.atMostGrowth ?? bounds.growth,
        },
      ]
    },
  }))
}

async function compare(bench: Bench, workload: Workload, sizes: Model['growth']): Promise<[number, number]> {
  const networks: Network[] = []
  for (const size of sizes) networks.push((await bench.loadedWith(size)).network)
  const costs: [number[], number[]] = [[], []]
  for (let turn = 0; turn < bench.model.growthTurns; turn++) {
    for (const [at, network] of networks.entries()) {
      const milliseconds = bench.milliseconds * TURN
      const traffic = await workload.traffic(network, milliseconds * 2)
      const { cpuMicroseconds } = await costOf(bench, network, workload, traffic, milliseconds)
      costs[at as 0 | 1].push(cpuMicroseconds)
    }
  }
  return [median(costs[0]), median(costs[1])]
}
