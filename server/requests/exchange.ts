// A request and its reply, as far as checks, handlers and what follows a response read them: Fastify's own objects, or those
// of the direct route.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { RequestState } from './requests.ts'

export interface ServedRequest {
  /** Unique among the requests of all controllers; error responses and the log name it. */
  readonly id: string
  readonly raw: IncomingMessage
  readonly method: string
  /** The path that is routed, with the query. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly params: unknown
  readonly body: unknown
  /** The peer's address without port. */
  readonly ip: string
  /** No route matches. */
  readonly is404: boolean
  /** Absent if a request is refused before its caller is determined. */
  state: RequestState
}

export interface ServedReply {
  readonly raw: ServerResponse
  readonly statusCode: number
  /** Milliseconds since the request arrived. */
  readonly elapsedTime: number
  code(status: number): ServedReply
  header(name: string, value: string | number): ServedReply
  headers(values: Readonly<Record<string, string>>): ServedReply
  getHeader(name: string): unknown
  /** How Fastify turns the payload into text, which it takes as JSON otherwise. */
  serializer(serialize: (payload: unknown) => string): ServedReply
  /** Sends a body, nothing, or the error envelope of what was thrown. */
  send(payload?: unknown): ServedReply
  /** Leaves the connection to the caller: nothing is sent. */
  hijack(): ServedReply
}
