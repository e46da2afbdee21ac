// Ranges of integers that are safe in every use of a value: in SQLite, in JSON, added to the time, and in clients.
import { MAX_DURATION_MS } from '../../foundation/clock.ts'

/** For clients with 32-bit integers. */
export const INT32 = { min: -(2 ** 31), max: 2 ** 31 - 1 } as const

/** Minutes that can be added to any time; a negative value means the same as zero. */
export const DURATION_MINUTES = { min: INT32.min, max: MAX_DURATION_MS / 60_000 } as const

export const DURATION_MS = { min: 0, max: MAX_DURATION_MS } as const

/** For counters of the controller. */
export const COUNT = { min: 0, max: Number.MAX_SAFE_INTEGER } as const
