// The state of a request that the server keeps besides that of Fastify.
import type { X509Certificate } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import type { FastifyContextConfig } from 'fastify'
import type { EncodedCertificate } from '../../src/pki/certificates.ts'
import { MAX_PRESENTED_CERTIFICATES } from '../../src/pki/chains.ts'
import { parseCertificate } from '../../src/pki/parsed-certificates.ts'
import type { PeerCertificates } from '../../src/pki/peer-certificates.ts'
import type { Api, Dialect, ListenerApi, ListenerConfig } from '../../src/settings/config.ts'
import type { Caller } from '../../src/storage/context.ts'
import type { AnyOperation } from '../operations/operation.ts'

/** Filled by the hooks, in their order. */
export interface RequestState {
  /** The configuration of the matched route, because `routeOptions` makes an object of all options at each access. */
  readonly route: FastifyContextConfig
  readonly dialect: Dialect
  caller: Caller
  query: Readonly<Record<string, unknown>>
  /** Of the content types of the operation, the one that the client prefers. */
  contentType: string
}

declare module 'fastify' {
  interface FastifyRequest {
    state: RequestState
  }
  interface FastifyContextConfig {
    /** What the route does; absent where no route matched. */
    operation?: AnyOperation
    /** The API that the route belongs to; routes at the root belong to none. */
    api?: Api | undefined
    /** What a listener must carry for the route; undefined for routes that every listener has. */
    listenerApi?: ListenerApi | undefined
  }
}

// A property, because a WeakMap with an entry for each request costs the garbage collector more than the request itself.
const LISTENER = Symbol('listener')

interface ReceivedMessage extends IncomingMessage {
  [LISTENER]?: ListenerConfig
}

/** Notes by which listener a request came in. */
export function setListener(message: ReceivedMessage, listener: ListenerConfig): void {
  message[LISTENER] = listener
}

export function getListener(message: ReceivedMessage): ListenerConfig | undefined {
  return message[LISTENER]
}

/**
 * Whether the listener that a request came in by carries an API. What belongs to no API is on all of them with TLS: without it,
 * nothing tells a client which controller sends it.
 */
export function isServed(message: IncomingMessage, api: ListenerApi | undefined): boolean {
  const listener = getListener(message)
  return listener === undefined || (api === undefined ? listener.tls : listener.apis.includes(api))
}

const BEARER = 'Bearer '
// Clients send at most one token for the first factor, and one for the second.
const MAX_BEARER_TOKENS = 2

/**
 * The bearer tokens of a request, in the order sent. Read from the raw headers, because Node.js keeps only the first of several
 * `Authorization` headers.
 */
export function readBearerTokens({ headers, rawHeaders }: IncomingMessage): string[] {
  if (headers.authorization === undefined) return []
  const tokens: string[] = []
  for (let at = 0; at < rawHeaders.length && tokens.length < MAX_BEARER_TOKENS; at += 2) {
    const value = rawHeaders[at + 1] ?? ''
    if (rawHeaders[at]?.toLowerCase() === 'authorization' && value.startsWith(BEARER)) {
      tokens.push(value.slice(BEARER.length))
    }
  }
  return tokens
}

// OpenSSL's result of a path that ends at its first certificate: none of the others is its issuer.
const NO_ISSUER_PRESENTED = 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'
// OpenSSL's result of a longer path that has no other fault but that it ends at no authority that OpenSSL knows: it knows none.
const ISSUER_PRESENTED = 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'

// What OpenSSL allocates for a certificate; see parsed-certificates.ts.
const CERTIFICATE_BYTES = 8_000
/** How much memory may be lost to `getPeerX509Certificate` as long as the process runs, by known clients and by others. */
const lossBudgets = { known: 8 * 1024 * 1024, unknown: 8 * 1024 * 1024 }
/** What was taken from connections, which do not have it any more. */
const takenCertificates = new WeakMap<TLSSocket, readonly X509Certificate[]>()

/**
 * The certificates of the client of a connection. They are read by `getPeerX509Certificate` only if nothing else helps: it takes the
 * other certificates from the connection and does not free them, so that any client could fill the memory.
 */
export class SocketCertificates implements PeerCertificates {
  readonly #socket: TLSSocket
  #own: EncodedCertificate | undefined
  #all: readonly X509Certificate[] | undefined

  constructor(socket: TLSSocket) {
    this.#socket = socket
  }

  get own(): EncodedCertificate | undefined {
    if (!this.#own) {
      // Without `true`, it reads one certificate only.
      const raw = this.#socket.getPeerCertificate?.()?.raw
      this.#own = raw && { raw }
    }
    return this.#own
  }

  get isIssuerPresented(): boolean {
    return (this.#socket.authorizationError as unknown) === ISSUER_PRESENTED
  }

  readOwn(): X509Certificate | undefined {
    return this.own && parseCertificate(this.own.raw)
  }

  readAll(): readonly X509Certificate[] {
    this.#all ??= this.#readAll()
    return this.#all
  }

  readEvery(isKnown: boolean): readonly X509Certificate[] | undefined {
    const earlierCertificates = takenCertificates.get(this.#socket)
    if (earlierCertificates) return earlierCertificates
    const share = isKnown ? 'known' : 'unknown'
    if (lossBudgets[share] <= 0) return undefined
    const certificates: X509Certificate[] = []
    let next = this.#socket.getPeerX509Certificate?.()
    for (let count = 0; next; count++) {
      if (count <= MAX_PRESENTED_CERTIFICATES) certificates.push(parseCertificate(next.raw))
      if (count > 0) lossBudgets[share] -= CERTIFICATE_BYTES + next.raw.length
      next = next.issuerCertificate
    }
    takenCertificates.set(this.#socket, certificates)
    return certificates
  }

  #readAll(): readonly X509Certificate[] {
    const earlierCertificates = takenCertificates.get(this.#socket)
    if (earlierCertificates) return earlierCertificates
    if ((this.#socket.authorizationError as unknown) === NO_ISSUER_PRESENTED) {
      const own = this.readOwn()
      return own ? [own] : []
    }
    const certificates: X509Certificate[] = []
    let next: DetailedPeerCertificate | undefined = this.#socket.getPeerCertificate?.(true)
    // One more than is accepted, so that too many are told from as many as are allowed.
    while (next?.raw && certificates.length <= MAX_PRESENTED_CERTIFICATES) {
      certificates.push(parseCertificate(next.raw))
      // A certificate that names itself as its issuer ends the path.
      next = next.issuerCertificate === next ? undefined : next.issuerCertificate
    }
    return certificates
  }
}
