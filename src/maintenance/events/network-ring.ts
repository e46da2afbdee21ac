// The last events of the network, so that a watcher that returns soon misses none. They are in memory only.
import { newId } from '../../foundation/ids.ts'
import type { EventCursor } from './cursor.ts'
import type { StreamedEvent } from './event.ts'

const MAX_EVENTS = 1_000

// Of an id, the characters that two starts have in common with no probability worth naming.
const RUN_LENGTH = 8

export interface NumberedEvent {
  readonly sequence: number
  readonly event: StreamedEvent
}

/** A place in the ring. */
export type RingPlace = Pick<EventCursor, 'run' | 'sequence'>

export class NetworkRing {
  /** Each start of the ring has another one. */
  readonly run = newId().slice(-RUN_LENGTH)
  #sequence = 0
  /** The oldest first. */
  readonly #events: NumberedEvent[] = []

  /** The place behind the newest event. */
  get place(): RingPlace {
    return { run: this.run, sequence: this.#sequence }
  }

  /** The number of the oldest event that is still here, or else of the next one. */
  get firstSequence(): number {
    return this.#events[0]?.sequence ?? this.#sequence + 1
  }

  add(event: StreamedEvent): NumberedEvent {
    const numbered = { sequence: ++this.#sequence, event }
    this.#events.push(numbered)
    if (this.#events.length > MAX_EVENTS) this.#events.shift()
    return numbered
  }

  /** Whether every event after a place is still here. */
  hasAllSince({ run, sequence }: RingPlace): boolean {
    return run === this.run && sequence <= this.#sequence && sequence >= this.#sequence - this.#events.length
  }

  /** The events after a place of this run, as far as they are still here. */
  listSince(sequence: number): readonly NumberedEvent[] {
    return this.#events.filter((numbered) => numbered.sequence > sequence)
  }
}
