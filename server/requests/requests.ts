// The state of a request that the server keeps besides that of Fastify.
import type { IncomingMessage } from 'node:http'
import type { FastifyContextConfig } from 'fastify'
import type { AccessToken, TokenFault } from '../../src/authentication/openid-connect/access-tokens.ts'
import type { Api, Dialect, ListenerApi, ListenerConfig } from '../../src/settings/listener-settings.ts'
import type { Caller } from '../../src/storage/transactions/context.ts'
import type { AnyOperation } from '../api/operation.ts'
import { getConnection } from '../connections/http-connection.ts'

/** Filled by the hooks, in their order. */
export interface RequestState {
  /** The configuration of the matched route, because `routeOptions` makes an object of all options at each access. */
  readonly route: FastifyContextConfig
  dialect: Dialect
  caller: Caller
  /** The access token of its session, if it is used by such. */
  accessToken?: AccessToken | undefined
  /** The reason for which none of its bearer tokens is accepted as one. */
  tokenFault?: TokenFault
  query: Readonly<Record<string, unknown>>
  /** Of the content types of the operation, the one that the client prefers. */
  contentType: string
}

declare module 'fastify' {
  interface FastifyRequest {
    state: RequestState
  }
  interface FastifyContextConfig {
    /** The operation of the route; absent if no route matched. */
    operation?: AnyOperation
    /** The API that the route belongs to; routes at the root belong to none. */
    api?: Api | undefined
    /** The API that a listener must carry for the route; undefined for routes that every listener has. */
    listenerApi?: ListenerApi | undefined
  }
}

/** The listener by which a request came in. */
export function getListener({ socket }: IncomingMessage): ListenerConfig | undefined {
  return getConnection(socket).listener
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
