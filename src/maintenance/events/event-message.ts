// A message of a stream of events, and the forms in which watchers receive it.
import { parseCursor } from './cursor.ts'

export class EventMessage {
  /** The place behind it, from which a watcher goes on. */
  readonly cursor: string
  /** Empty for a message that only has a cursor. */
  readonly type: string
  /** JSON text. */
  readonly data: string
  #serverSent: Buffer | undefined

  constructor(cursor: string, type = '', data = '') {
    this.cursor = cursor
    this.type = type
    this.data = data
  }

  /** As a message of an event stream (HTML, Server-sent events), rendered once for all watchers. The data has no line breaks. */
  get serverSent(): Buffer {
    const { cursor, type, data } = this
    this.#serverSent ??= Buffer.from(
      type === '' ? `:\nid: ${cursor}\n\n` : `id: ${cursor}\nevent: ${type}\ndata: ${data}\n\n`,
    )
    return this.#serverSent
  }

  /** The same whenever the event is sent again, as far as it is audited or this process still runs. */
  get eventId(): string {
    const { n, mark, run, sequence } = parseCursor(this.cursor)
    return this.data.startsWith(`{"type":"${this.type}","audit":`) ? `${n}-${mark}` : `${run}-${sequence}-${n}`
  }
}

/** How a watcher receives messages. */
export interface MessageForm {
  /** Whether its stream is one of objects instead of bytes. */
  readonly isOfObjects: boolean
  /** How much may wait for a watcher that follows what happens now, in bytes or objects. */
  readonly maxUnsent: number
  /** Undefined for a message that it does not receive. */
  encode(message: EventMessage): Buffer | EventMessage | undefined
}

export const serverSentForm: MessageForm = {
  isOfObjects: false,
  maxUnsent: 256 * 1024,
  encode: ({ serverSent }) => serverSent,
}

/** For code that passes events on by itself. */
export const objectForm: MessageForm = { isOfObjects: true, maxUnsent: 50, encode: (message) => message }
