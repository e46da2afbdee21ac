// A request on the direct route.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { ServedRequest } from '../exchange.ts'
import type { RequestState } from '../requests.ts'

export class DirectRequest implements ServedRequest {
  readonly id: string
  readonly raw: IncomingMessage
  readonly url: string
  readonly params: Readonly<Record<string, string>>
  /** Set once the body has arrived. */
  body: unknown
  readonly is404 = false
  state: RequestState

  constructor(
    id: string,
    raw: IncomingMessage,
    url: string,
    params: Readonly<Record<string, string>>,
    state: RequestState,
  ) {
    this.id = id
    this.raw = raw
    this.url = url
    this.params = params
    this.state = state
  }

  get method(): string {
    return this.raw.method as string
  }

  get headers(): IncomingHttpHeaders {
    return this.raw.headers
  }

  get ip(): string {
    return this.raw.socket.remoteAddress as string
  }
}
