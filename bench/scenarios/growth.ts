// The cost of requests in a small and in a large network, side by side: two controllers that differ in their number of
// identities alone, measured in turn, so that whatever else the machine does hits both.
import type { Bench } from '../bench.ts'
import { bounds } from '../budgets.ts'
import type { Measurement } from '../measurement.ts'
import type { Model } from '../model/sizes.ts'
import { costsInTurn } from '../workloads/measure.ts'
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
  const [few, many] = sizes
  const networks = [(await bench.loadedWith(few)).network, (await bench.loadedWith(many)).network] as const
  return costsInTurn(bench, workload, networks, {
    turns: bench.model.growthTurns,
    milliseconds: bench.milliseconds * TURN,
  })
}
