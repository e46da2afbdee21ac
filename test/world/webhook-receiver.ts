// A receiver of webhooks over real TLS, which notes every attempt and what it has accepted.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { openEndpoint } from './endpoints.ts'

interface Attempt {
  readonly headers: IncomingHttpHeaders
  readonly body: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read any member of an event
  readonly event: any
}

export interface Receiver {
  readonly url: string
  readonly attempts: readonly Attempt[]
  /** The attempts that were responded to with 200. */
  readonly accepted: readonly Attempt[]
  /** Responds in place of 200. */
  respond: ((request: IncomingMessage, response: ServerResponse) => unknown) | undefined
  close(): Promise<void>
}

export async function openReceiver(): Promise<Receiver> {
  const attempts: Attempt[] = []
  const accepted: Attempt[] = []
  const endpoint = await openEndpoint(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    const attempt = { headers: request.headers, body, event: JSON.parse(body) }
    attempts.push(attempt)
    if (receiver.respond) return void receiver.respond(request, response)
    accepted.push(attempt)
    response.end('ok')
  })
  const receiver: Receiver = {
    url: `${endpoint.url}/events`,
    attempts,
    accepted,
    respond: undefined,
    close: () => endpoint.close(),
  }
  return receiver
}
