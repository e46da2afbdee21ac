// The reply to a request on the direct route.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import { PieceStream } from '../../responses/large-bodies.ts'
import type { ServedReply, ServedRequest } from '../exchange.ts'

/** Returns what to send: the payload, or another one. */
export type OnSend = (request: ServedRequest, reply: ServedReply, payload: unknown) => Promise<unknown>

/** How replies end. */
export interface Endings {
  /** Sends the error envelope of what was thrown. */
  fail(thrown: Error, request: ServedRequest, reply: ServedReply): void
  /** Sees every response before it is sent, as Fastify's hook of this name does. */
  readonly onSend: OnSend | undefined
  /** Called once a response is sent. */
  readonly afterwards: readonly ((request: ServedRequest, reply: ServedReply) => void)[]
}

export class DirectReply implements ServedReply {
  readonly raw: ServerResponse
  statusCode = 200
  readonly #arrivedMs = performance.now()
  readonly #request: ServedRequest
  readonly #endings: Endings
  readonly #headers: OutgoingHttpHeaders = {}

  constructor(raw: ServerResponse, request: ServedRequest, endings: Endings) {
    this.raw = raw
    this.#request = request
    this.#endings = endings
  }

  get elapsedTime(): number {
    return performance.now() - this.#arrivedMs
  }

  code(status: number): this {
    this.statusCode = status
    return this
  }

  header(name: string, value: string | number): this {
    this.#headers[name] = value
    return this
  }

  headers(values: Readonly<Record<string, string>>): this {
    for (const name in values) this.#headers[name] = values[name]
    return this
  }

  getHeader(name: string): unknown {
    return this.#headers[name]
  }

  serializer(): this {
    return this
  }

  hijack(): this {
    this.#complete()
    return this
  }

  send(payload?: unknown): this {
    const { fail, onSend } = this.#endings
    if (payload instanceof Error) fail(payload, this.#request, this)
    else if (onSend) onSend(this.#request, this, payload).then((body) => this.#write(body))
    else this.#write(payload)
    return this
  }

  #write(body: unknown): void {
    const { raw } = this
    // What fails after a response has begun is logged, and must not end the process by a second one.
    if (raw.headersSent) return
    if (body instanceof PieceStream) {
      raw.writeHead(this.statusCode, this.#headers)
      body.writeTo(raw, () => this.#complete())
      return
    }
    if (body instanceof Readable) {
      raw.writeHead(this.statusCode, this.#headers)
      // Closes the connection if the body fails half-way: the client must not take a part of it for all.
      pipeline(body, raw, () => this.#complete())
      return
    }
    const bytes = body as string | Buffer | undefined
    if (bytes !== undefined) this.#headers['content-length'] = Buffer.byteLength(bytes)
    raw.writeHead(this.statusCode, this.#headers)
    raw.end(bytes)
    this.#complete()
  }

  #complete(): void {
    for (const step of this.#endings.afterwards) step(this.#request, this)
  }
}
