// Requests as the bytes that go over the wire, made before the clock runs.

/** Stands in a body for a number that is another one each time the request is sent. */
export const COUNTER = '#########'

export interface RequestParts {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, or as it is where it is text. */
  readonly body?: unknown
}

/** The bytes of a request. */
export function requestBytes({ method, path, headers = {}, body }: RequestParts): Buffer {
  const isText = typeof body === 'string'
  const text = body === undefined ? '' : isText ? body : JSON.stringify(body)
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: controller',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined || isText ? [] : ['Content-Type: application/json']),
    ...(body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(text)}`]),
  ]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${text}`)
}

/** Many requests in one piece, so that they reach a worker thread without copies of each. */
export interface PackedRequests {
  readonly bytes: Uint8Array
  /** The end of each request. */
  readonly ends: Uint32Array
  /** The position of the counter in each request; 0 if it has none. */
  readonly counters: Uint32Array
}

export function packRequests(requests: readonly Buffer[]): PackedRequests {
  const bytes = new Uint8Array(requests.reduce((sum, { length }) => sum + length, 0))
  const ends = new Uint32Array(requests.length)
  const counters = new Uint32Array(requests.length)
  let start = 0
  requests.forEach((request, at) => {
    bytes.set(request, start)
    start += request.length
    ends[at] = start
    counters[at] = Math.max(0, request.indexOf(COUNTER))
  })
  return { bytes, ends, counters }
}

/** Hands out the requests of a pack. */
export class RequestSource {
  readonly #requests: readonly Buffer[]
  readonly #counters: Uint32Array
  #counted: number

  /** @param countFrom the first number that stands in for a counter */
  constructor({ bytes, ends, counters }: PackedRequests, countFrom: number) {
    const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#requests = Array.from(ends, (end, at) => all.subarray(at === 0 ? 0 : ends[at - 1], end))
    this.#counters = counters
    this.#counted = countFrom
  }

  get size(): number {
    return this.#requests.length
  }

  at(index: number): Buffer {
    const request = this.#requests[index]
    if (!request) throw new Error(`there is no request ${index}`)
    const counter = this.#counters[index]
    if (!counter) return request
    // A copy: the one before may not be encrypted yet.
    const counted = Buffer.from(request)
    counted.write(String(this.#counted++).padStart(COUNTER.length, '0'), counter, 'latin1')
    return counted
  }
}
