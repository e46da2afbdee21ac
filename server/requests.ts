// What the server knows of a request beside what Fastify does.
import type { X509Certificate } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { Api, Dialect, ListenerConfig } from '../src/config.ts'
import type { Caller } from '../src/context.ts'
import { MAX_PRESENTED_CERTIFICATES } from '../src/pki/chains.ts'
import type { AnyOperation } from './operation.ts'

/** Filled by the hooks, in their order. */
export interface RequestState {
  dialect: Dialect
  caller: Caller
  query: Readonly<Record<string, unknown>>
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
  }
}

const listeners = new WeakMap<IncomingMessage, ListenerConfig>()

/** Notes by which listener a request came in. */
export function setListener(message: IncomingMessage, listener: ListenerConfig): void {
  listeners.set(message, listener)
}

export function getListener(message: IncomingMessage): ListenerConfig | undefined {
  return listeners.get(message)
}

/** Whether the listener that a request came in by carries an API; what belongs to no API is on all of them. */
export function isServed(message: IncomingMessage, api: Api | undefined): boolean {
  return api === undefined || (getListener(message)?.apis.includes(api) ?? true)
}

/**
 * The certificates of the TLS peer as they were sent. `issuerCertificate` of a peer's certificate is in fact the next one
 * in its list, whatever its order; that is undocumented, and a test with a shuffled list stands for it.
 */
export function readPeerCertificates(message: IncomingMessage): X509Certificate[] {
  const socket = message.socket as TLSSocket
  const found: X509Certificate[] = []
  let next = socket.getPeerX509Certificate?.()
  // One more than is accepted, so that too many are told from as many as are allowed.
  while (
    next &&
    found.length <= MAX_PRESENTED_CERTIFICATES &&
    !found.some((known) => known.fingerprint256 === next?.fingerprint256)
  ) {
    found.push(next)
    next = next.issuerCertificate
  }
  return found
}
