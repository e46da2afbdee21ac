// Sends a request on both routes of the server, the direct one and Fastify's, and compares the responses.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { expect, vi } from 'vitest'
import { DirectRoute } from '../../server/requests/direct/direct-route.ts'

const serve = vi.spyOn(DirectRoute.prototype, 'serve')

export interface Seen {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Sent {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer | undefined
}

/** A slash at the end means nothing to Fastify, and is not for the direct route. */
export const toPathOfFastify = (path: string) => path.replace(/\/?(?=\?|$)/, '/')

/** Whether the latest request was served on the direct route. */
export const wasDirect = (): boolean => serve.mock.results.at(-1)?.value

/** The latest request that has reached the server. */
export const latestRequest = (): IncomingMessage | undefined => serve.mock.lastCall?.[0]

export class BothRoutes {
  readonly #url: string
  readonly #agent: Agent

  constructor({ url, rootPem }: { url: string; rootPem: string }) {
    this.#url = url
    this.#agent = new Agent({ keepAlive: true, ca: rootPem, maxSockets: 1 })
  }

  close(): void {
    this.#agent.destroy()
  }

  /** Sends a request on both routes, and expects the same responses. Returns that of the direct route, if it serves the request. */
  async expectSame(sent: Sent): Promise<Seen & { readonly isDirect: boolean }> {
    const title = `${sent.method} ${sent.path} ${String(sent.body).slice(0, 80)}`
    const direct = await this.send(sent)
    const isDirect = wasDirect()
    const byFastify = await this.send({ ...sent, path: toPathOfFastify(sent.path) })
    expect(wasDirect(), title).toBe(false)
    expect(toComparable(direct, sent.path), title).toEqual(toComparable(byFastify, sent.path))
    return { ...direct, isDirect }
  }

  send({ method, path, headers = {}, body }: Sent): Promise<Seen> {
    return new Promise((resolve, reject) => {
      const options = { agent: this.#agent, method, headers: { ...headers } }
      const request = httpsRequest(new URL(path, this.#url), options, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (piece: string) => {
          text += piece
        })
        response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }))
      })
      request.on('error', reject)
      request.end(body)
    })
  }
}

/** What a response says, without what differs between any two responses. */
export function toComparable({ status, headers, text }: Seen, path: string) {
  const { date, ...others } = headers
  const comparableText = text
    .replace(/"requestId":"[^"]*"/, '"requestId":""')
    .replaceAll(toPathOfFastify(path), path)
    // Of a record that was created.
    .replace(/("id":"|\/)[0-9A-Z]{26}(?=")/g, '$1')
  return { status, headers: { ...others, 'content-length': '' }, text: comparableText }
}
