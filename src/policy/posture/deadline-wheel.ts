// A timer wheel: many deadlines, of which one may move at any time, served by one timer.

// How long a slot is: deadlines are served that much late at most, if the wheel is turned as often.
const SLOT_MS = 1_000
// A deadline further away than one turn stays in its slot for several turns.
const SLOTS = 512

/** Deadlines by key, in milliseconds of a clock that only moves forward. A key has one deadline. */
export class DeadlineWheel {
  readonly #slots: Set<string>[] = Array.from({ length: SLOTS }, () => new Set())
  readonly #deadlines = new Map<string, number>()
  /** The slot number up to which the wheel has turned, counted from the beginning of the clock. */
  #turnedTo: number

  constructor(now: number) {
    this.#turnedTo = toSlotNumber(now)
  }

  get size(): number {
    return this.#deadlines.size
  }

  /** Sets the deadline of a key, unless it has an earlier one. */
  schedule(key: string, at: number): void {
    // A deadline that has passed already belongs to the slot that is looked at next.
    const deadline = Math.max(at, this.#turnedTo * SLOT_MS)
    const current = this.#deadlines.get(key)
    if (current !== undefined) {
      if (current <= deadline) return
      this.#slotOf(current).delete(key)
    }
    this.#deadlines.set(key, deadline)
    this.#slotOf(deadline).add(key)
  }

  /** Removes the deadline of a key. */
  remove(key: string): void {
    if (this.#deadlines.has(key)) this.#delete(key)
  }

  /** Removes and returns the keys whose deadlines have passed. */
  takeExpired(now: number): string[] {
    const expired: string[] = []
    const current = toSlotNumber(now)
    // After a whole turn every slot has been looked at.
    for (let slot = Math.max(this.#turnedTo, current - SLOTS + 1); slot <= current; slot++) {
      for (const key of this.#slots[slot % SLOTS] as Set<string>) {
        if ((this.#deadlines.get(key) as number) <= now) expired.push(key)
      }
    }
    for (const key of expired) this.#delete(key)
    this.#turnedTo = current
    return expired
  }

  #delete(key: string): void {
    this.#slotOf(this.#deadlines.get(key) as number).delete(key)
    this.#deadlines.delete(key)
  }

  #slotOf(deadline: number): Set<string> {
    return this.#slots[toSlotNumber(deadline) % SLOTS] as Set<string>
  }
}

function toSlotNumber(milliseconds: number): number {
  return Math.floor(milliseconds / SLOT_MS)
}
