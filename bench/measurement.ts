// One thing that is measured.
import type { Bench } from './bench.ts'
import type { Need } from './controller/api.ts'
import type { Result, Section } from './report/results.ts'

export interface Measurement {
  readonly section: Section
  readonly name: string
  /** Operations without which it cannot be made. */
  readonly needs: readonly Need[]
  /** It can be made once in a run only, because it is part of setting up. */
  readonly isOnce?: boolean
  measure(bench: Bench): Promise<Result[]>
}
