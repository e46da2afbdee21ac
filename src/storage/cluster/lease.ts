// The lease of a controller among several: how long after its last contact with the log it may grant rights.
import type { Clock } from '../../foundation/clock.ts'
import { type ControllerError, errors } from '../../foundation/errors.ts'
import { isWithin, type Moment, readMoment } from './moment.ts'

/** How long what grants a right waits for contact, before it is refused: commands of OpenZiti give up after five seconds. */
const MAX_WAIT_MS = 4_000
const RETRY_AFTER_SECONDS = 2

export interface LeaseParts {
  readonly clock: Clock
  readonly durationMs: number
  /** Asks for contact at once. */
  readonly seekContact: () => void
}

export class Lease {
  readonly durationMs: number
  readonly #clock: Clock
  readonly #seekContact: () => void
  readonly #waiting = new Set<() => void>()
  readonly #listeners: ((isHeld: boolean) => void)[] = []
  #proof: Moment | undefined
  #wasHeld = false
  #heldSince: number | undefined
  #refused = 0

  constructor({ clock, durationMs, seekContact }: LeaseParts) {
    this.durationMs = durationMs
    this.#clock = clock
    this.#seekContact = seekContact
  }

  /** Whether all that others committed before the lease is applied here, so that rights may be granted. */
  get isHeld(): boolean {
    return this.#proof !== undefined && isWithin(this.#clock, this.#proof, this.durationMs)
  }

  /** For how long the lease has been held without a gap, in milliseconds. */
  get heldMs(): number {
    return this.isHeld && this.#heldSince !== undefined ? this.#clock.monotonic() - this.#heldSince : 0
  }

  /** How long ago the last contact began. */
  get silentMs(): number {
    return this.#proof ? this.#clock.monotonic() - this.#proof.monotonic : Number.POSITIVE_INFINITY
  }

  /** How many times contact was waited for in vain. */
  get refused(): number {
    return this.#refused
  }

  now(): Moment {
    return readMoment(this.#clock)
  }

  /** Rights may be granted again, counted from the moment at which the proof of contact began. */
  renew(from: Moment): void {
    if (!this.isHeld) this.#heldSince = from.monotonic
    this.#proof = from
    if (this.isHeld) for (const resume of this.#waiting) resume()
    this.notice()
  }

  /** Tells listeners if the lease was lost or gained since the last call. */
  notice(): void {
    const { isHeld } = this
    if (isHeld === this.#wasHeld) return
    this.#wasHeld = isHeld
    for (const listener of this.#listeners) listener(isHeld)
  }

  /** The listener is told soon after each change. What is granted depends on `isHeld` at its moment. */
  onChange(listener: (isHeld: boolean) => void): void {
    this.#listeners.push(listener)
  }

  /** Resolves while the lease is held, or once it is again. @throws STORAGE_UNAVAILABLE if it is not in time */
  waitForContact(): Promise<void> {
    if (this.isHeld) return Promise.resolve()
    this.#seekContact()
    return new Promise((resolve, reject) => {
      const settle = () => {
        clearTimeout(timer)
        this.#waiting.delete(settle)
        resolve()
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(settle)
        reject(this.refusal())
      }, MAX_WAIT_MS)
      this.#waiting.add(settle)
    })
  }

  /** The error for what is refused because the lease is not held. */
  refusal(): ControllerError {
    this.#refused += 1
    const cause = `no contact with the log of the cluster for ${Math.round(this.silentMs)} ms`
    return errors.STORAGE_UNAVAILABLE(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
}
