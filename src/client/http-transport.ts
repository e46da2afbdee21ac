// The transport over HTTPS, which trusts one root certificate only.
import type { X509Certificate } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Agent } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { REQUEST_FAILURES, TRUST_FAILURES } from './request-failures.ts'
import { collectReply, encodeBody, type Request, type Stream, type Transport } from './transport.ts'

/** The controller cannot be reached, its certificate is not trusted, or another program listens at its address. */
export class UnreachableError extends Error {
  readonly url: string
  /** Whether the certificate was rejected. */
  readonly isUntrusted: boolean
  /** Whether what listens there does not speak HTTPS, or not with clients like this one: a router, for example. */
  readonly isForeign: boolean
  /** Whether the name of the host could not be looked up. */
  readonly isUnknownHost: boolean

  constructor(url: string, cause: Error & { code?: string }) {
    const { code = '' } = cause
    const isForeign = FOREIGN_SERVER.test(code)
    super(
      isForeign ? `${url} is not a controller: ${toReason(cause)}` : `${url} cannot be reached: ${toReason(cause)}`,
      {
        cause,
      },
    )
    this.name = 'UnreachableError'
    this.url = url
    this.isUntrusted = TRUST_FAILURES.has(code)
    this.isForeign = isForeign
    this.isUnknownHost = code === 'ENOTFOUND' || code === 'EAI_AGAIN'
  }
}

// Codes of failed handshakes, and of responses that are not HTTP.
const FOREIGN_SERVER = /^(EPROTO$|ERR_SSL_|HPE_)/

function toReason(cause: Error & { code?: string }): string {
  const code = cause.code ?? ''
  if (FOREIGN_SERVER.test(code)) return 'what listens there does not speak HTTPS'
  if (REQUEST_FAILURES[code]) return REQUEST_FAILURES[code]
  return TRUST_FAILURES.has(code) ? 'its certificate was not issued by the expected root' : cause.message
}

const TIMEOUT_MS = 60_000

export interface HttpOptions {
  /** `https://host:port` */
  readonly url: string
  /** The trusted root certificate, as PEM; without it the server's certificate is not verified. */
  readonly rootPem: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** The certificate that the client presents, with its private key. */
  readonly clientCertificate?: ClientCertificate
  /** Called before each response with the certificate of the server on the same connection. */
  readonly onServerCertificate?: (certificate: X509Certificate) => void
}

/** A client certificate, first in its chain, with its private key, both as PEM. */
export interface ClientCertificate {
  readonly certificatePem: string
  readonly keyPem: string
}

/** A transport to the URL, which opens its first connection with the first request. */
export function createHttpTransport(options: HttpOptions): Transport {
  const { url, rootPem, headers: common = {}, clientCertificate, onServerCertificate } = options
  const tlsOptions = {
    ...(rootPem === undefined ? { rejectUnauthorized: false } : { ca: rootPem }),
    ...(clientCertificate ? { cert: clientCertificate.certificatePem, key: clientCertificate.keyPem } : {}),
  }
  let agent: Agent | undefined
  const stream = async (request: Request): Promise<Stream> => {
    const { text, headers } = encodeBody(request)
    // Set explicitly, because Node sends the body of a DELETE without a length.
    const framing = text === undefined ? {} : { 'content-length': String(Buffer.byteLength(text)) }
    // Loaded with the first request, because most errors in a command line are reported before it.
    const https = await import('node:https')
    agent ??= new https.Agent({ ...tlsOptions, keepAlive: true })
    return new Promise((resolve, reject) => {
      const outgoing = https.request(
        new URL(request.path, url),
        {
          method: request.method,
          agent,
          headers: { ...common, ...headers, ...framing },
          timeout: TIMEOUT_MS,
        },
        (incoming) => {
          const certificate = onServerCertificate && (incoming.socket as TLSSocket).getPeerX509Certificate()
          if (certificate) onServerCertificate?.(certificate)
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: streamBody(url, incoming) })
        },
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

/** The body of a response. @throws UnreachableError if it is incomplete */
async function* streamBody(url: string, incoming: IncomingMessage): AsyncIterable<Buffer> {
  try {
    yield* incoming
  } catch (error) {
    throw new UnreachableError(url, error as Error)
  }
}
