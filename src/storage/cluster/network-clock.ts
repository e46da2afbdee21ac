// The time of a network with several controllers: that of their database, so that they agree on it whatever their own clocks show.
//
// It goes on by the monotonic clock between the contacts with the database. That a clock of one machine is set or wrong therefore ends no
// session, and moves none of the times that all of them store. Only the clock of the database can be set for all.
import type { Clock, Instant } from '../../foundation/clock.ts'

// The time of a response that is on its way for long says little, and clocks differ by some milliseconds anyway.
const MIN_DIFFERENCE_MS = 250

/** How far the clock of the database is ahead of that of this machine, and how long it took to ask. */
export interface ClockOffset {
  readonly offsetMs: number
  readonly roundTripMs: number
}

export class NetworkClock implements Clock {
  readonly #clock: Clock
  /** The time of the database when the monotonic clock read zero; undefined before the first contact. */
  #origin: number | undefined

  /** @param clock the clock of this machine */
  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): Instant {
    return this.#origin === undefined ? this.#clock.now() : Math.floor(this.#origin + this.#clock.monotonic())
  }

  monotonic(): number {
    return this.#clock.monotonic()
  }

  /** Follows the clock of the database, unless it differs no more than the question took. Called at once after the response. */
  follow({ offsetMs, roundTripMs }: ClockOffset): void {
    const origin = this.#clock.now() + offsetMs - this.#clock.monotonic()
    const minDifferenceMs = Math.max(MIN_DIFFERENCE_MS, roundTripMs)
    if (this.#origin === undefined || Math.abs(origin - this.#origin) >= minDifferenceMs) this.#origin = origin
  }
}
