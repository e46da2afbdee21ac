// Warnings that routers and unauthenticated clients can cause as often as they like: one line a minute of each source, with a count.
import { EventAggregator } from '../../src/authentication/sign-in/event-aggregator.ts'
import type { Clock } from '../../src/foundation/clock.ts'
import type { Log } from '../../src/foundation/log.ts'

interface Warning {
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
}

const WINDOW_MS = 60_000

// The number of sources with lines of their own a minute; further sources share one line for each message.
const MAX_SOURCES = 500

export class RepeatedWarnings {
  readonly #clock: Clock
  readonly #log: Log
  readonly #bySource = new EventAggregator<Warning>({ windowMs: WINDOW_MS, maxKeys: MAX_SOURCES })
  readonly #byMessage = new EventAggregator<Warning>({ windowMs: WINDOW_MS, maxKeys: MAX_SOURCES })

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** Logs a warning if it is the first of its source and message in a minute, and counts it otherwise. */
  add(source: string, fields: Warning['fields'], message: string): void {
    const now = this.#clock.now()
    const warning = { fields, message }
    const admission = this.#bySource.admit(`${message} ${source}`, warning, now)
    const outcome = admission === 'untracked' ? this.#byMessage.admit(message, warning, now) : admission
    if (outcome !== 'counted') this.#log.warn(fields, message)
  }

  /** Logs the counts whose minute is over, or all of them, each with the fields of the latest warning. */
  async flush(options?: { readonly isFinal?: boolean }): Promise<void> {
    const write = async ({ fields, message }: Warning, count: number) => this.#log.warn({ ...fields, count }, message)
    for (const aggregator of [this.#bySource, this.#byMessage])
      await aggregator.flush(this.#clock.now(), write, options)
  }
}
