// Ends statements that cost too much. A statement of SQLite cannot be interrupted from outside, but it calls back for each
// record that a filter reads (`SqlDialect.guard`), and the callback throws.
import type { SqliteDatabase } from './connection.ts'

/** The statement was ended by the guard. */
export class CostExceededError extends Error {
  constructor() {
    super('the statement cost more than it may')
    this.name = 'CostExceededError'
  }
}

// To read the clock costs as much as a cheap test, so it is not read for each record. What a filter may cost for so many records
// is a few milliseconds.
const RECORDS_PER_CLOCK_READ = 16

export class CostGuard {
  #unitsLeft = Number.POSITIVE_INFINITY
  #deadline = Number.POSITIVE_INFINITY
  #records = 0

  /** Adds the function that guarded statements call. */
  install(connection: SqliteDatabase): void {
    connection.function('spend', (units) => {
      this.#unitsLeft -= units as number
      if (this.#unitsLeft < 0 || this.#isTimeUp()) throw new CostExceededError()
      return 1
    })
  }

  #isTimeUp(): boolean {
    this.#records += 1
    return this.#records % RECORDS_PER_CLOCK_READ === 0 && performance.now() > this.#deadline
  }

  /** Runs statements whose total cost is limited to this many units. @throws CostExceededError */
  withinUnits<T>(units: number, run: () => T): T {
    this.#unitsLeft = units
    try {
      return run()
    } finally {
      this.#unitsLeft = Number.POSITIVE_INFINITY
    }
  }

  /** Runs statements whose total time is limited. @throws CostExceededError */
  withinTime<T>(timeoutMs: number, run: () => T): T {
    this.#deadline = performance.now() + timeoutMs
    try {
      return run()
    } finally {
      this.#deadline = Number.POSITIVE_INFINITY
    }
  }
}
