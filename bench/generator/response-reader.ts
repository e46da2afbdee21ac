// Reads the responses of one HTTP/1.1 connection, one after the other, with as little work as a response allows.

const HEAD_END = Buffer.from('\r\n\r\n')
const LINE_FEED = 0x0a
// Bodies of refusals are kept to be shown; no more of them than says what was wrong.
const FIRST_FAILURE = 400

/** A whole response. */
export interface HttpResponse {
  readonly status: number
  readonly bodyBytes: number
  /** Kept where the reader was told so, and of refusals. */
  readonly body: Buffer | undefined
  /** Of a refusal. */
  readonly retryAfterSeconds: number | undefined
}

/** A body of known length, or one that comes in chunks. */
type Framing = 'sized' | 'chunk-size' | 'chunk-data' | 'chunk-end' | 'trailer'

/** Requests are not pipelined: what arrives belongs to one response. */
export class ResponseReader {
  readonly #keepsBodies: boolean
  #status = 0
  #retryAfterSeconds: number | undefined
  #framing: Framing | undefined
  #remaining = 0
  #bodyBytes = 0
  #unread: Buffer | undefined
  #kept: Buffer[] | undefined

  constructor({ keepsBodies }: { keepsBodies: boolean }) {
    this.#keepsBodies = keepsBodies
  }

  /**
   * Takes the next bytes, and returns the response when they end it. The bytes may be reused by the caller afterwards.
   * @throws where they are not a response that this reader understands
   */
  take(bytes: Buffer): HttpResponse | undefined {
    const rest = this.#framing === undefined ? this.#takeHead(bytes) : bytes
    if (rest === undefined) return undefined
    const isWhole = this.#framing === 'sized' ? this.#takeSized(rest) : this.#takeChunks(rest)
    return isWhole ? this.#finished() : undefined
  }

  /** Takes bytes of the head; returns what follows it once it is whole. */
  #takeHead(bytes: Buffer): Buffer | undefined {
    const head = this.#joined(bytes)
    const end = head.indexOf(HEAD_END)
    if (end === -1) {
      this.#unread = Buffer.from(head)
      return undefined
    }
    this.#readHead(head.toString('latin1', 0, end))
    return head.subarray(end + HEAD_END.length)
  }

  #readHead(head: string): void {
    this.#status = Number(head.slice(9, 12))
    const retryAfter = this.#status < FIRST_FAILURE ? null : /\r\nretry-after: *(\d+)/i.exec(head)
    this.#retryAfterSeconds = retryAfter ? Number(retryAfter[1]) : undefined
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)
    if (length) {
      this.#framing = 'sized'
      this.#remaining = Number(length[1])
    } else if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#framing = 'chunk-size'
    } else {
      throw new Error(`the response has no length: ${head}`)
    }
    if (this.#keepsBodies || this.#status >= FIRST_FAILURE) this.#kept = []
  }

  #takeSized(bytes: Buffer): boolean {
    if (bytes.length > this.#remaining) throw new Error('more bytes arrived than the response has')
    this.#takeBody(bytes)
    return this.#remaining === 0
  }

  #takeBody(bytes: Buffer): void {
    this.#remaining -= bytes.length
    this.#bodyBytes += bytes.length
    if (bytes.length > 0) this.#kept?.push(Buffer.from(bytes))
  }

  /** RFC 9112 §7.1: size in hexadecimal, data, an empty line after each, and a last one of size 0. */
  #takeChunks(bytes: Buffer): boolean {
    let rest = bytes
    while (rest.length > 0) {
      if (this.#framing === 'chunk-data') {
        const part = rest.subarray(0, this.#remaining)
        this.#takeBody(part)
        rest = rest.subarray(part.length)
        if (this.#remaining === 0) this.#framing = 'chunk-end'
        continue
      }
      const joined = this.#joined(rest)
      const end = joined.indexOf(LINE_FEED)
      if (end === -1) {
        this.#unread = Buffer.from(joined)
        return false
      }
      const line = joined.toString('latin1', 0, end).trimEnd()
      rest = joined.subarray(end + 1)
      if (this.#takeLine(line)) return true
    }
    return false
  }

  /** Takes a line between chunks; true for the one that ends the response. */
  #takeLine(line: string): boolean {
    if (this.#framing === 'chunk-end') {
      this.#framing = 'chunk-size'
    } else if (this.#framing === 'chunk-size') {
      this.#remaining = Number.parseInt(line, 16)
      if (Number.isNaN(this.#remaining)) throw new Error(`${JSON.stringify(line)} is not a valid chunk size`)
      this.#framing = this.#remaining === 0 ? 'trailer' : 'chunk-data'
    } else {
      return line === ''
    }
    return false
  }

  #joined(bytes: Buffer): Buffer {
    const unread = this.#unread
    this.#unread = undefined
    return unread ? Buffer.concat([unread, bytes]) : bytes
  }

  #finished(): HttpResponse {
    const response = {
      status: this.#status,
      bodyBytes: this.#bodyBytes,
      body: this.#kept && Buffer.concat(this.#kept),
      retryAfterSeconds: this.#retryAfterSeconds,
    }
    this.#framing = undefined
    this.#bodyBytes = 0
    this.#kept = undefined
    return response
  }
}
