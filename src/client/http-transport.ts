// A transport over HTTPS that trusts one root and nothing else.
import type { IncomingMessage } from 'node:http'
import type { Agent } from 'node:https'
import { collectReply, encodeBody, type Request, type Stream, type Transport } from './transport.ts'

/** The controller did not answer, or is not the one that was expected. */
export class UnreachableError extends Error {
  readonly url: string
  /** The certificate did not lead to the pinned root. */
  readonly isUntrusted: boolean

  constructor(url: string, cause: Error & { code?: string }) {
    super(`${url} cannot be reached: ${toReason(cause)}`, { cause })
    this.name = 'Unreachable'
    this.url = url
    this.isUntrusted = TRUST_FAILURES.has(cause.code ?? '')
  }
}

const TRUST_FAILURES = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_SIGNATURE_FAILURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no host of that name',
  ETIMEDOUT: 'it did not answer in time',
  ECONNRESET: 'it closed the connection',
  EHOSTUNREACH: 'there is no way to that host',
  EPROTO: 'what listens there does not speak TLS',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
}

function toReason(cause: Error & { code?: string }): string {
  const code = cause.code ?? ''
  if (REASONS[code]) return REASONS[code]
  return TRUST_FAILURES.has(code) ? 'its certificate does not come from the expected root' : cause.message
}

const TIMEOUT_MS = 60_000

export interface HttpOptions {
  /** `https://host:port` */
  readonly url: string
  /** PEM of the one root that is trusted; without it nothing is checked. */
  readonly rootPem: string | undefined
  readonly headers?: Readonly<Record<string, string>>
}

export function createHttpTransport({ url, rootPem, headers: common = {} }: HttpOptions): Transport {
  const trust = rootPem === undefined ? { rejectUnauthorized: false } : { ca: rootPem }
  let agent: Agent | undefined
  const stream = async (request: Request): Promise<Stream> => {
    const { text, headers } = encodeBody(request)
    // Said by ourselves: Node sends the body of a DELETE without saying where it ends.
    const framing = text === undefined ? {} : { 'content-length': String(Buffer.byteLength(text)) }
    // Loaded for the first request: most of what a command line can get wrong is told before it.
    const https = await import('node:https')
    agent ??= new https.Agent({ ...trust, keepAlive: true })
    return new Promise((resolve, reject) => {
      const outgoing = https.request(
        new URL(request.path, url),
        {
          method: request.method,
          agent,
          headers: { ...common, ...headers, ...framing },
          timeout: TIMEOUT_MS,
        },
        (incoming) =>
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: whole(url, incoming) }),
      )
      outgoing.on('timeout', () => outgoing.destroy(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })))
      outgoing.on('error', (error) => reject(new UnreachableError(url, error)))
      outgoing.end(text)
    })
  }
  return {
    target: url,
    stream,
    send: async (request) => collectReply(await stream(request)),
    close: async () => agent?.destroy(),
  }
}

/** The body of an answer; one that breaks off is no answer. */
async function* whole(url: string, incoming: IncomingMessage): AsyncIterable<Buffer> {
  try {
    yield* incoming
  } catch (error) {
    throw new UnreachableError(url, error as Error)
  }
}
