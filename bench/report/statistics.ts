// Percentiles and medians.
import type { Fact, GrowthFigures, RequestFigures, Result } from './results.ts'

/** The value below which a share of the values lie; NaN where there are none. @param sorted in order of size */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  return percentile(
    values.toSorted((a, b) => a - b),
    0.5,
  )
}

/** The median of what several runs of a measurement brought, each figure by itself; what one run could not measure counts. */
export function mediansOf(runs: readonly (readonly Result[])[]): Result[] {
  const [first = [], ...others] = runs
  return first.map((result) => {
    const same = [result, ...others.map((run) => run.find(({ name }) => name === result.name) ?? result)]
    const unmeasured = same.find(({ kind }) => kind === 'failed' || kind === 'not-built-yet')
    return unmeasured ?? middle(result, same)
  })
}

function middle(result: Result, same: readonly Result[]): Result {
  switch (result.kind) {
    case 'requests': {
      const all = same as RequestFigures[]
      const of = (figure: (one: RequestFigures) => number) => median(all.map(figure))
      return {
        ...result,
        perSecond: of(({ perSecond }) => perSecond),
        p50: of(({ p50 }) => p50),
        p95: of(({ p95 }) => p95),
        p99: of(({ p99 }) => p99),
        cpuMicroseconds: of(({ cpuMicroseconds }) => cpuMicroseconds),
        timesFloor: result.timesFloor === null ? null : of(({ timesFloor }) => timesFloor ?? Number.NaN),
        generatorMicroseconds:
          result.generatorMicroseconds === null
            ? null
            : of(({ generatorMicroseconds }) => generatorMicroseconds ?? Number.NaN),
        generatorCores:
          result.generatorCores === null ? null : of(({ generatorCores }) => generatorCores ?? Number.NaN),
      }
    }
    case 'growth': {
      const all = same as GrowthFigures[]
      const of = (at: 0 | 1) => median(all.map(({ cpuMicroseconds }) => cpuMicroseconds[at]))
      return { ...result, cpuMicroseconds: [of(0), of(1)], times: median(all.map(({ times }) => times)) }
    }
    case 'fact':
      return { ...result, value: median((same as Fact[]).map(({ value }) => value)) }
    default:
      return result
  }
}
