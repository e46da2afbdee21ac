// Sends requests over one connection that is kept, and shows the responses as they arrive, with all of their headers.
import type { IncomingHttpHeaders } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'

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

export class KeptConnection {
  readonly #url: string
  readonly #agent: Agent

  /** @param holder the client certificate that it presents */
  constructor(
    { url, rootPem }: { url: string; rootPem: string },
    holder: { readonly cert?: string; readonly key?: string } = {},
  ) {
    this.#url = url
    this.#agent = new Agent({ keepAlive: true, ca: rootPem, maxSockets: 1, ...holder })
  }

  close(): void {
    this.#agent.destroy()
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
