// A connection of an HTTP client: one object for all that the server notes of it.
import type { X509Certificate } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { AccessToken } from '../../src/authentication/openid-connect/access-tokens.ts'
import type { CertificatePrint } from '../../src/pki/peer-certificates.ts'
import type { ListenerConfig } from '../../src/settings/listener-settings.ts'

/** Limits what waits for clients, see `slow-readers.ts`. */
interface UnsentBytes {
  /**
   * Counts bytes that stay in memory against the limits of a connection until `release` is called.
   * @returns undefined if the connection was cut instead, because the limits leave no room
   */
  hold(connection: HttpConnection, bytes: number): Hold | undefined
}

interface Hold {
  release(): void
}

export class HttpConnection {
  readonly socket: Socket
  /** The listener that accepted it; undefined for requests within the process. */
  listener: ListenerConfig | undefined
  /** The response to the request that came last, until it is closed. */
  latestResponse: ServerResponse | undefined
  /** The response to the request that is run, until it is closed and the whole request has arrived. */
  runningResponse: ServerResponse | undefined
  /** The certificates that were taken from the socket, which does not have them any more. */
  takenCertificates: readonly X509Certificate[] | undefined
  /** The print of the client's own certificate, once a request with a token depended on it. */
  ownPrint: CertificatePrint | undefined
  /** The verified access token of the request that came last, if it had one. */
  lastAccessToken: AccessToken | undefined
  /** The first bytes behind a request that asked for another protocol: from then on, no requests of HTTP are read. */
  bytesBehindUpgrade: Buffer | undefined
  unsent: UnsentBytes | undefined
  /** Bytes of requests under way and of response bodies, which stay in memory until the client has taken them. */
  heldBytes = 0
  /** How many bytes the operating system had taken when the connection was last looked at. */
  takenBytes = 0
  /** When it last took something, or had nothing to take. */
  lastProgressMs = 0

  constructor(socket: Socket) {
    this.socket = socket
  }

  /** Lets go of a response that is closed: it and its request would stay in memory until the next request, on each idle connection. */
  releaseResponse(response: ServerResponse): void {
    if (this.latestResponse === response) this.latestResponse = undefined
    if (this.runningResponse === response && response.req.complete) this.runningResponse = undefined
  }

  /** Counts a response body against the limits, as `UnsentBytes.hold` does. */
  holdBody(bytes: number): Hold | undefined {
    return this.unsent ? this.unsent.hold(this, bytes) : { release() {} }
  }
}

// A property of the socket, because an entry of a WeakMap burdens the garbage collector.
const CONNECTION = Symbol('HTTP connection')

interface HttpSocket extends Duplex {
  [CONNECTION]?: HttpConnection
}

/** The connection of a socket, made at the first call. */
export function getConnection(socket: HttpSocket): HttpConnection {
  socket[CONNECTION] ??= new HttpConnection(socket as Socket)
  return socket[CONNECTION]
}
