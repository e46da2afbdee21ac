// Detects that the wall clock is set while the process runs, because it then diverges from the monotonic clock.
//
// Each read of the time compares the two. A clock that is set expires nothing: the last-use times of sessions are shifted
// by the same amount (`onStep`), the age of audit records is measured by the monotonic clock, and revocations of tokens last until
// they have ended by each setting of the clock (`getEarliest`). Time that passes while no process runs is measured by the wall
// clock alone, and counts as zero if that clock went backwards. Each jump causes an error in the log and an audit record.
import type { Clock, Instant } from './clock.ts'

// The system regularly corrects its clock by less than this.
const MIN_STEP_MS = 1_000
const MIN_JUMP_MS = 10 * 60_000
// More jumps need not be reported if the clock jumps all the time.
const MAX_UNREPORTED = 100
const MAX_FORMER_OFFSETS = 100

/** The wall clock was set by more than ten minutes, or the process started before a time that was stored earlier. */
export interface ClockJump {
  /** The time that the wall clock would show if it had not been set, or the latest stored time. */
  readonly from: Instant
  /** The time that the wall clock shows. */
  readonly to: Instant
}

/** Called with the milliseconds by which the wall clock was set, before any caller sees the new time. */
export type StepListener = (milliseconds: number) => void

/** How the wall clock was set before a step. */
interface FormerOffset {
  /** Wall clock minus monotonic clock. */
  readonly offset: number
  /** When it was set otherwise, by the monotonic clock. */
  readonly endedAt: number
}

export class WatchedClock implements Clock {
  readonly #clock: Clock
  readonly #listeners = new Set<StepListener>()
  #unreported: ClockJump[] = []
  /** Wall clock minus monotonic clock at the last step. */
  #offset: number
  /** The sum of the steps that are not part of a jump yet: ten steps of two minutes are a jump, too. */
  #drift = 0
  /** The oldest first. */
  #formerOffsets: FormerOffset[] = []

  constructor(clock: Clock) {
    this.#clock = clock
    this.#offset = clock.now() - clock.monotonic()
  }

  now(): Instant {
    const now = this.#clock.now()
    const step = Math.round(now - this.#clock.monotonic() - this.#offset)
    if (Math.abs(step) >= MIN_STEP_MS) this.#follow(step, now)
    return now
  }

  monotonic(): number {
    return this.#clock.monotonic()
  }

  /**
   * Returns the earliest time that the wall clock would show now, if it had kept one of the settings that it had within these
   * milliseconds. Times that were computed by any of them are not reached too early.
   */
  getEarliest(withinMs: number): Instant {
    const now = this.now()
    const monotonic = this.monotonic()
    const former = this.#formerOffsets.filter(({ endedAt }) => endedAt > monotonic - withinMs)
    return Math.min(now, ...former.map(({ offset }) => Math.floor(offset + monotonic)))
  }

  onStep(listener: StepListener): void {
    this.#listeners.add(listener)
  }

  /** Records a jump that happened while the process did not run. */
  noteJump(jump: ClockJump): void {
    if (this.#unreported.length < MAX_UNREPORTED) this.#unreported.push(jump)
  }

  /** Returns the jumps since the last call. */
  takeJumps(): readonly ClockJump[] {
    this.now()
    const jumps = this.#unreported
    this.#unreported = []
    return jumps
  }

  #follow(step: number, now: Instant): void {
    this.#addFormer({ offset: this.#offset, endedAt: this.#clock.monotonic() })
    this.#offset += step
    this.#drift += step
    for (const listener of this.#listeners) listener(step)
    if (Math.abs(this.#drift) <= MIN_JUMP_MS) return
    this.noteJump({ from: now - this.#drift, to: now })
    this.#drift = 0
  }

  #addFormer(former: FormerOffset): void {
    this.#formerOffsets.push(former)
    if (this.#formerOffsets.length <= MAX_FORMER_OFFSETS) return
    const [oldest, next, ...others] = this.#formerOffsets as [FormerOffset, FormerOffset, ...FormerOffset[]]
    this.#formerOffsets = [{ offset: Math.min(oldest.offset, next.offset), endedAt: next.endedAt }, ...others]
  }
}
