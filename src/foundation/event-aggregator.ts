// Aggregates repeated audit events: the first of a window is recorded at once, the others are counted into one record.
import type { Instant } from './clock.ts'

export interface AggregatorOptions<E> {
  readonly windowMs: number
  /** How many keys are tracked at a time; an event with another key is not aggregated. */
  readonly maxKeys: number
  /** Returns the event that represents two counted events of one key; defaults to the later one. */
  readonly combine?: (earlier: E, later: E) => E
}

/**
 * The outcome for an event. `first`: its key was not tracked, so the caller records it. `counted`: a later record includes
 * it in its count. `untracked`: its key was not tracked, but too many keys are tracked already.
 */
export type Admission = 'first' | 'counted' | 'untracked'

interface CountWindow<E> {
  startedAt: Instant
  /** The number of events that have no record yet; `event` represents them. */
  count: number
  event: E | undefined
}

// How many counts are written at once, so that other writers get their turn.
const MAX_CONCURRENT_WRITES = 50

/**
 * Holds counts in memory. A crash loses the counts since the last flush, at most one window of each key; the first event of
 * each key is never held here.
 */
export class EventAggregator<E> {
  readonly #options: AggregatorOptions<E>
  readonly #windows = new Map<string, CountWindow<E>>()

  constructor(options: AggregatorOptions<E>) {
    this.#options = options
  }

  /** The number of tracked keys. */
  get size(): number {
    return this.#windows.size
  }

  admit(key: string, event: E, now: Instant): Admission {
    const window = this.#windows.get(key)
    // A window with a count stays open until it is flushed, so that its count is not lost.
    if (window && (window.event !== undefined || !this.#isOver(window, now))) {
      this.#count(window, event, 1)
      return 'counted'
    }
    if (!window && this.#windows.size >= this.#options.maxKeys) return 'untracked'
    this.#windows.set(key, { startedAt: now, count: 0, event: undefined })
    return 'first'
  }

  /** Reverts the admission of an event that failed. After a `first`, the next event of the key is the first. */
  undo(key: string, admission: Admission): void {
    const window = this.#windows.get(key)
    if (!window || admission === 'untracked') return
    if (admission === 'counted' && window.count > 0) window.count -= 1
    if (window.count === 0) window.event = undefined
    if (admission === 'first' && window.event === undefined) this.#windows.delete(key)
  }

  /**
   * Writes the counts of the windows that are over, or of all windows with `isFinal`. Each record begins a new window. A count
   * that cannot be written stays.
   * @throws what `write` throws
   */
  async flush(
    now: Instant,
    write: (event: E, count: number) => Promise<void>,
    { isFinal = false } = {},
  ): Promise<void> {
    const openWindows: CountWindow<E>[] = []
    for (const [key, window] of this.#windows) {
      if (!isFinal && !this.#isOver(window, now)) continue
      if (window.event === undefined) this.#windows.delete(key)
      else openWindows.push(window)
    }
    for (let at = 0; at < openWindows.length; at += MAX_CONCURRENT_WRITES) {
      const batch = openWindows.slice(at, at + MAX_CONCURRENT_WRITES)
      await Promise.all(batch.map((window) => this.#flushWindow(window, now, write)))
    }
  }

  async #flushWindow(window: CountWindow<E>, now: Instant, write: (event: E, count: number) => Promise<void>) {
    const { event, count, startedAt } = window
    if (event === undefined) return
    Object.assign(window, { startedAt: now, count: 0, event: undefined })
    try {
      await write(event, count)
    } catch (error) {
      this.#count(window, event, count)
      window.startedAt = startedAt
      throw error
    }
  }

  #count(window: CountWindow<E>, event: E, count: number): void {
    const { combine } = this.#options
    window.event = window.event !== undefined && combine ? combine(window.event, event) : event
    window.count += count
  }

  /** Whether a window has ended; a clock that was set back ends it too. */
  #isOver({ startedAt }: CountWindow<E>, now: Instant): boolean {
    return now < startedAt || now - startedAt >= this.#options.windowMs
  }
}
