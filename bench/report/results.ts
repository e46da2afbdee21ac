// The results of measurements.

export const sections = [
  'requests',
  'start',
  'writes',
  'together',
  'growth',
  'adoption',
  'routers',
  'storm',
  'cluster',
  'soak',
] as const
export type Section = (typeof sections)[number]

interface Named {
  readonly section: Section
  readonly name: string
}

/** One kind of request, over and over. */
export interface RequestFigures extends Named {
  readonly kind: 'requests'
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p95: number
  readonly p99: number
  /** Of the server, for each request. */
  readonly cpuMicroseconds: number
  readonly atMostMicroseconds: number | null
  /** The CPU time, divided by that which a bare server takes for the same number of bytes, measured in turn with it. */
  readonly timesFloor: number | null
  readonly atMostTimesFloor: number | null
  /** Of the load generator, for each request. */
  readonly generatorMicroseconds: number | null
  /** The part of one core that the load generator took. */
  readonly generatorCores: number | null
  readonly openZitiPerSecond: number | null
}

/** One kind of request in a small and in a large network. */
export interface GrowthFigures extends Named {
  readonly kind: 'growth'
  /** Numbers of identities. */
  readonly sizes: readonly [number, number]
  readonly cpuMicroseconds: readonly [number, number]
  readonly times: number
  readonly atMostTimes: number
}

export type Unit = 'µs' | 'ms' | 's' | 'KB' | 'MB' | '/s' | '%' | '×' | ''

/** One number about something that happens as a whole. */
export interface Fact extends Named {
  readonly kind: 'fact'
  readonly value: number
  readonly unit: Unit
  readonly atMost: number | null
}

/** Nothing was measured, and why. */
export interface Unmeasured extends Named {
  readonly kind: 'not-built-yet' | 'failed'
  readonly why: string
}

export type Result = RequestFigures | GrowthFigures | Fact | Unmeasured

/** Whether a request keeps its budget of CPU time; undefined where it has none. */
export function isWithinBudget({ cpuMicroseconds, atMostMicroseconds }: RequestFigures): boolean | undefined {
  return atMostMicroseconds === null ? undefined : cpuMicroseconds <= atMostMicroseconds
}

/** Whether a request keeps its ratio to the bare server; undefined where it has none. */
export function isNearFloor({ timesFloor, atMostTimesFloor }: RequestFigures): boolean | undefined {
  return timesFloor === null || atMostTimesFloor === null ? undefined : timesFloor <= atMostTimesFloor
}

/** Whether a result keeps all its bounds; undefined where it has none. */
export function isMet(result: Result): boolean | undefined {
  switch (result.kind) {
    case 'requests': {
      const verdicts = [isWithinBudget(result), isNearFloor(result)].filter((verdict) => verdict !== undefined)
      return verdicts.length === 0 ? undefined : verdicts.every((verdict) => verdict)
    }
    case 'growth':
      return result.times <= result.atMostTimes
    case 'fact':
      return result.atMost === null ? undefined : result.value <= result.atMost
    default:
      return undefined
  }
}

/** A result has failed if one of its figures is infinite or not a number, because nothing was completed. */
export function failUnmeasured(result: Result): Result {
  const unmeasured = Object.entries(result).find(([, figure]) =>
    [figure].flat().some((value) => typeof value === 'number' && !Number.isFinite(value)),
  )
  if (!unmeasured) return result
  const { section, name } = result
  return { kind: 'failed', section, name, why: `nothing was completed: ${unmeasured[0]} is ${unmeasured[1]}` }
}

/** A run as `--json` keeps it. */
export interface Report {
  readonly format: 1
  readonly at: string
  /** Of the controller that was measured. */
  readonly version: string
  readonly machine: {
    readonly system: string
    readonly cpu: string
    readonly cores: number
    readonly memoryMegabytes: number
    readonly node: string
    /** The storage of the data directories: tmpfs, or disk. */
    readonly storage: string
  }
  readonly model: string
  readonly seconds: number
  readonly repeat: number
  /** The number of cores that other processes kept busy meanwhile. */
  readonly othersCores: number
  readonly results: readonly Result[]
}
