// Moments by both clocks: the monotonic one stands still while a machine is suspended, and the other one may be set.
import type { Clock, Instant } from '../../foundation/clock.ts'

export interface Moment {
  readonly monotonic: number
  readonly wall: Instant
}

export function readMoment(clock: Clock): Moment {
  return { monotonic: clock.monotonic(), wall: clock.now() }
}

/** Whether less time than that has passed since a moment, by both clocks. */
export function isWithin(clock: Clock, { monotonic, wall }: Moment, durationMs: number): boolean {
  return clock.monotonic() - monotonic < durationMs && clock.now() - wall < durationMs
}
