// Log lines that clients and routers can cause as often as they like: one line a minute of each source, with a count.
import type { Clock } from './clock.ts'
import { EventAggregator } from './event-aggregator.ts'
import type { Log } from './log.ts'

interface Line {
  readonly level: 'info' | 'warn' | 'error'
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
}

const WINDOW_MS = 60_000

// The number of sources with lines of their own a minute; further sources share one line for each message.
const MAX_SOURCES = 500

export class AggregatedLog {
  readonly #clock: Clock
  readonly #log: Log
  readonly #bySource = new EventAggregator<Line>({ windowMs: WINDOW_MS, maxKeys: MAX_SOURCES })
  readonly #byMessage = new EventAggregator<Line>({ windowMs: WINDOW_MS, maxKeys: MAX_SOURCES })

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  info(source: string, fields: Line['fields'], message: string): void {
    this.#add(source, { level: 'info', fields, message })
  }

  warn(source: string, fields: Line['fields'], message: string): void {
    this.#add(source, { level: 'warn', fields, message })
  }

  error(source: string, fields: Line['fields'], message: string): void {
    this.#add(source, { level: 'error', fields, message })
  }

  /** Writes a line if it is the first of its source and message in a minute, and counts it otherwise. */
  #add(source: string, line: Line): void {
    const now = this.#clock.now()
    const { message } = line
    const admission = this.#bySource.admit(`${message} ${source}`, line, now)
    const outcome = admission === 'untracked' ? this.#byMessage.admit(message, line, now) : admission
    if (outcome !== 'counted') this.#log[line.level](line.fields, message)
  }

  /** Writes the counts whose minute is over, or all of them, each with the fields of the latest line. */
  async flush(options?: { readonly isFinal?: boolean }): Promise<void> {
    const write = async ({ level, fields, message }: Line, count: number) =>
      this.#log[level]({ ...fields, count }, message)
    for (const aggregator of [this.#bySource, this.#byMessage])
      await aggregator.flush(this.#clock.now(), write, options)
  }
}
