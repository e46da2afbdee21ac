// What measurements bring.

export const sections = ['requests', 'together', 'growth', 'start', 'routers'] as const
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
  /** How much more that is than a bare server takes for the same number of bytes, measured right after. */
  readonly timesFloor: number | null
  readonly atMostMicroseconds: number | null
  /** For what has no budget of its own, because nearly all of it is work that cannot be avoided. */
  readonly atMostTimesFloor: number | null
  /** How much of one core the load generator took. */
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

export type Unit = 'µs' | 'ms' | 's' | 'KB' | 'MB' | '/s'

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

/** Whether a result keeps its bound; undefined where it has none. */
export function isMet(result: Result): boolean | undefined {
  switch (result.kind) {
    case 'requests': {
      const { cpuMicroseconds, atMostMicroseconds, timesFloor, atMostTimesFloor } = result
      if (atMostMicroseconds !== null) return cpuMicroseconds <= atMostMicroseconds
      return timesFloor !== null && atMostTimesFloor !== null ? timesFloor <= atMostTimesFloor : undefined
    }
    case 'growth':
      return result.times <= result.atMostTimes
    case 'fact':
      return result.atMost === null ? undefined : result.value <= result.atMost
    default:
      return undefined
  }
}

/** A run as `--json` keeps it. */
export interface Report {
  readonly format: 1
  readonly at: string
  readonly machine: {
    readonly system: string
    readonly cpu: string
    readonly cores: number
    readonly node: string
  }
  readonly model: string
  readonly seconds: number
  readonly repeat: number
  /** How many cores were busy with anything else meanwhile. */
  readonly othersCores: number
  readonly results: readonly Result[]
}
