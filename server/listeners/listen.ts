// Binds listeners: one server for each, with TLS or without, all with the same application.
import { createHash } from 'node:crypto'
import * as http from 'node:http'
import * as https from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import { storeIntermediates } from '../../src/authentication/sign-in/resumable-clients.ts'
import { TICKET_KEY_LIFETIME_MS } from '../../src/authentication/tokens/ticket-keys.ts'
import type { Controller } from '../../src/controller/controller.ts'
import type { Authority } from '../../src/pki/authority.ts'
import type { ListenerConfig } from '../../src/settings/listener-settings.ts'
import { splitAddress } from '../../src/settings/setting-types.ts'
import type { Config } from '../../src/settings/settings.ts'
import { Connections } from '../connections/connections.ts'
import { getConnection } from '../connections/http-connection.ts'
import { OpenConnections } from '../connections/open-connections.ts'
import { serveInOrder } from '../connections/request-order.ts'
import { SlowReaders } from '../connections/slow-readers.ts'
import { SocketCertificates } from '../connections/socket-certificates.ts'
import { serveUpgrades } from '../connections/upgrades.ts'
import { CONTROL_PROTOCOL, ControlListener } from '../control-channel/control-listener.ts'
import { handleClientError, refuseTunnel, refuseUpgrade } from './client-errors.ts'
import { beginHandshakesInTurn } from './handshakes-in-turn.ts'
import { type ControlServer, RoutersInTurn } from './routers-in-turn.ts'

export interface Listening {
  /** The addresses that are bound now: a port of 0 is the one the system chose. */
  readonly addresses: readonly string[]
  /** Stops taking connections, lets running requests finish for a while, then closes everything. */
  close(): Promise<void>
}

// How long running requests may take to finish at shutdown.
const GRACE_MS = 10_000

// How often connection timeouts are checked: a timeout is late by at most this.
const CHECK_INTERVAL_MS = 1_000

// Connections that wait to be accepted; the kernel allows 4,096 by default. One is accepted in each turn of the event loop, and of those beyond
// the limit the kernel drops the packets: their clients send them again after times that double, so that the last of a crowd wait minutes.
const MAX_BACKLOG = 65_535

// Of OpenSSL, in bytes.
const MAX_CONTEXT_LENGTH = 32

type Server = http.Server | https.Server

/** The parts that follow the connections of HTTP clients. */
interface Clients {
  readonly slowReaders: SlowReaders
  readonly openConnections: OpenConnections
}

// All suites of TLS 1.3, and of TLS 1.2 those with forward secrecy and authenticated encryption.
const CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  ...['ECDSA', 'RSA'].flatMap((signature) =>
    ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].map((aead) => `ECDHE-${signature}-${aead}`),
  ),
].join(':')

/** Binds every configured listener. @throws if an address cannot be bound; then none stays bound, and the app is closed */
export async function listen(app: FastifyInstance, controller: Controller): Promise<Listening> {
  const servers: Server[] = []
  const ofRouters: ControlServer[] = []
  const { cluster, config } = controller
  const { presence } = controller.routers
  const connections = new Connections({
    inAll: config['limits.connections'],
    ofOneAddress: config['limits.connectionsPerAddress'],
  })
  cluster?.nodes.describeBy(() => ({ connections: connections.size }))
  const clients: Clients = {
    slowReaders: new SlowReaders(
      {
        stallMs: config['limits.writeTime'],
        maxBytesPerConnection: config['limits.unsentPerConnection'],
        maxBytes: config['limits.unsent'],
      },
      controller.log,
    ),
    openConnections: new OpenConnections(),
  }
  const closeServers = async () => {
    const closed = servers.filter(({ listening }) => listening).map(closeServer)
    clients.openConnections.close()
    connections.cutSilent()
    const cut = setTimeout(() => connections.cutAll(), GRACE_MS)
    await Promise.all(closed)
    clearTimeout(cut)
  }
  const controlListener = new ControlListener(controller)
  try {
    for (const listener of config.listeners) {
      const server = listener.tls
        ? createTlsServer(app, controller, listener, clients, controlListener)
        : createPlainServer(app, controller, listener, clients)
      const admit = (socket: Socket) => connections.admit(socket)
      if (listener.tls) beginHandshakesInTurn(server, { admit, timeoutMs: config['limits.headerTime'] })
      else server.on('connection', admit)
      servers.push(server)
      // One controller of a cluster at a time binds it.
      if (cluster && listener.shared) ofRouters.push({ server, bind: () => bindListener(server, listener) })
      else await bindListener(server, listener)
    }
  } catch (error) {
    await closeServers()
    await app.close()
    throw error
  }
  clients.slowReaders.start()
  presence?.start().catch((error: unknown) => {
    controller.log.warn({ err: error }, 'the other controllers were not asked which routers are connected to them')
  })
  let routersInTurn: RoutersInTurn | undefined
  if (config.listeners.some(({ apis }) => apis.includes('control'))) {
    controlListener.start()
    if (cluster && presence)
      routersInTurn = new RoutersInTurn({ controller, cluster, presence, controlListener, servers: ofRouters })
    else controlListener.begin()
  }
  return {
    get addresses() {
      return servers.filter(({ listening }) => listening).map(getBoundAddress)
    },
    async close() {
      clients.slowReaders.stop()
      // Streams without an end would hold the connections up.
      controller.events.close()
      // All at once: routers whose connections end would connect again to a server that still listens.
      await Promise.all([routersInTurn?.close(), closeServers(), controlListener.stop()])
      await app.close()
    },
  }
}

function createTlsServer(
  app: FastifyInstance,
  controller: Controller,
  listener: ListenerConfig,
  clients: Clients,
  controlListener: ControlListener,
): https.Server {
  const { authority, config, ticketKeys } = controller
  const getSecureContext = () => ({
    ...toSecureContext(authority),
    ...toSessionOptions(listener),
    ticketKeys: ticketKeys.current,
  })
  const server = https.createServer(
    {
      ...getSecureContext(),
      ...toHttpOptions(config),
      // The handshake accepts any client certificate; the sign-in verifies it. No `ca`, because with one some Node versions
      // return only the leaf.
      requestCert: true,
      rejectUnauthorized: false,
      // The handshake refuses a client that offers only others.
      ALPNProtocols: listener.apis.includes('control') ? ['http/1.1', CONTROL_PROTOCOL] : ['http/1.1'],
      handshakeTimeout: config['limits.headerTime'],
      pauseOnConnect: true,
    },
    serveRequests(app, clients),
  )
  serveUpgrades(server, serveRequests(app, clients), refuseUpgrade)
  handleInvalidInput(server)
  if (listener.apis.includes('control')) divideByProtocol(server, listener, controlListener, clients)
  // Before the server's own listener, which begins to read requests.
  else server.prependListener('secureConnection', (socket: Socket) => watch(socket, listener, clients))
  server.prependListener('secureConnection', (socket: TLSSocket) =>
    storeIntermediates(controller, new SocketCertificates(socket)),
  )
  // Connections that are open keep the certificate that they began with.
  authority.onChange(() => server.setSecureContext(getSecureContext()))
  ticketKeys.onChange(() => server.setTicketKeys(ticketKeys.current))
  return server
}

/** Settings allow it on loopback addresses only, and only for what takes no credentials. */
function createPlainServer(
  app: FastifyInstance,
  { config }: Controller,
  listener: ListenerConfig,
  clients: Clients,
): http.Server {
  const server = http.createServer(toHttpOptions(config), serveRequests(app, clients))
  handleInvalidInput(server)
  server.prependListener('connection', (socket: Socket) => watch(socket, listener, clients))
  return server
}

function toHttpOptions(config: Config): http.ServerOptions {
  return {
    maxHeaderSize: config['limits.header'],
    headersTimeout: Math.min(config['limits.headerTime'], config['limits.requestTime']),
    requestTimeout: config['limits.requestTime'],
    keepAliveTimeout: config['limits.idleTime'],
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
  }
}

function serveRequests(app: FastifyInstance, { slowReaders, openConnections }: Clients): http.RequestListener {
  const serve: http.RequestListener = (request, response) => {
    openConnections.beginResponse(response)
    app.routing(request, response)
  }
  return (request, response) => {
    if (slowReaders.holdRequest(response)) serveInOrder(request, response, serve)
  }
}

function handleInvalidInput(server: Server): void {
  server.on('clientError', handleClientError)
  server.on('connect', refuseTunnel)
}

/** Gives the connections of routers to the control channel, and all others to HTTP, by the protocol of the handshake. */
function divideByProtocol(
  server: https.Server,
  listener: ListenerConfig,
  controlListener: ControlListener,
  clients: Clients,
): void {
  const serveHttp = server.listeners('secureConnection') as ((this: https.Server, socket: TLSSocket) => void)[]
  server.removeAllListeners('secureConnection')
  server.on('secureConnection', (socket) => {
    if (socket.alpnProtocol === CONTROL_PROTOCOL) return controlListener.accept(socket, listener.shared)
    watch(socket, listener, clients)
    for (const serve of serveHttp) serve.call(server, socket)
  })
}

/** The options that a TLS server takes anew if the certificate changes; it keeps nothing of its previous context. */
function toSecureContext({ serverKeyPem, serverChainPem }: Authority) {
  return {
    key: serverKeyPem,
    cert: serverChainPem,
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
  } as const
}

/** Sessions are resumed at listeners with the same APIs only, because routers and clients are judged by different rules. */
function toSessionOptions({ apis }: ListenerConfig) {
  const context = createHash('sha256').update(apis.toSorted().join()).digest('hex')
  return { sessionIdContext: context.slice(0, MAX_CONTEXT_LENGTH), sessionTimeout: TICKET_KEY_LIFETIME_MS / 1000 }
}

function bindListener(server: Server, { address }: ListenerConfig): Promise<void> {
  const { host, port } = splitAddress(address)
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, backlog: MAX_BACKLOG }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function getBoundAddress(server: Server): string {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server is not bound to an address')
  return address.family === 'IPv6' ? `[${address.address}]:${address.port}` : `${address.address}:${address.port}`
}

/** Stops accepting connections. Settles once those that are open are closed, which is left to others. */
function closeServer(server: Server): Promise<void> {
  // `close` calls it, and Node's own destroys connections whose last response still waits to be sent.
  server.closeIdleConnections = () => {}
  return new Promise((resolve) => server.close(() => resolve()))
}

function watch(socket: Socket, listener: ListenerConfig, { slowReaders, openConnections }: Clients): void {
  const connection = getConnection(socket)
  connection.listener = listener
  slowReaders.watch(connection)
  openConnections.watch(connection)
}
