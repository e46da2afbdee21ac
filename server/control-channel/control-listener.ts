// Takes the connections of routers: reads the hello, decides whether the router may connect, and serves its channel.
import { randomInt } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import type { Controller } from '../../src/controller.ts'
import { type ConnectedRouter, RouterRejectedError } from '../../src/network/routers/connected-routers.ts'
import type { RouterConnection, RouterHello } from '../../src/network/routers/router-connection.ts'
import { computeFingerprint } from '../../src/pki/certificates.ts'
import { SocketCertificates } from '../connections/socket-certificates.ts'
import { encodeAnnouncement, encodeLinkFault } from './announcements.ts'
import { Channel } from './channel.ts'
import { encodeRoute, encodeUnroute } from './circuit-values.ts'
import { ContentType } from './content-types.ts'
import { type DialShare, DialsInProgress } from './dials-in-progress.ts'
import { sendRefusal } from './edge-errors.ts'
import { MalformedBodyError } from './handlers/message-handler.ts'
import { encodeTerminatorQuestions } from './handlers/terminator-messages.ts'
import { HeaderValueError } from './header-values.ts'
import { encodeHelloResponse, HelloError, parseHello, type ReceivedHello } from './hello.ts'
import { HELLO_LIMITS, MalformedFrameError, type Message, MessageReader } from './message.ts'
import { greetRouter, handleRouterMessage } from './router-session.ts'
import { WorkInProgress } from './work-in-progress.ts'

/** The protocol of TLS (RFC 7301) by which routers ask for the control channel. */
export const CONTROL_PROTOCOL = 'ziti-ctrl'

// The connection of a router that does not introduce itself in this time is closed.
const HELLO_TIMEOUT_MS = 5_000
const KEEP_ALIVE_MS = 15_000
const TICK_MS = 1_000

// They wait for results of routes, which the same router may have to send: reading must not pause for them.
const DIAL_TYPES: ReadonlySet<number> = new Set([
  ContentType.CREATE_CIRCUIT_V2_REQUEST,
  ContentType.CREATE_CIRCUIT_FOR_SERVICE_REQUEST,
])

const DIAL_REFUSALS = {
  'too-long': { reason: 'other', message: 'the dial is longer than any may be' },
  busy: { reason: 'busy', message: 'the controller is busy with other dials' },
} as const

// The number of the first message that the process of a router sends.
const FIRST_SEQUENCE = 1

// Replies to requests of an earlier connection must not match those of a new one.
const MAX_FIRST_SEQUENCE = 2 ** 30

/** A router that may connect, and the connection it did it by. */
interface AdmittedRouter {
  readonly socket: TLSSocket
  /** Holds what followed the hello. */
  readonly reader: MessageReader
  readonly hello: RouterHello
  readonly isEdge: boolean
  readonly controllerId: string
}

export class ControlListener {
  readonly #controller: Controller
  readonly #channels = new Set<Channel>()
  readonly #inProgress = new WorkInProgress()
  readonly #dials = new DialsInProgress()
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(controller: Controller) {
    this.#controller = controller
  }

  start(): void {
    this.#controller.routers.connected.startListening()
    this.#timer = setInterval(() => this.tick(), TICK_MS).unref()
  }

  /** Does the work that is due by the clock. */
  tick(): void {
    for (const channel of this.#channels) channel.tick()
    this.#controller.fabric.tick()
  }

  /** Ends the connections of all routers, and resolves when what they asked for has been handled. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#timer)
    this.#controller.routers.connected.close()
    await this.#inProgress.settle()
  }

  /** Serves a connection whose TLS handshake agreed on the control protocol. A router that is rejected gets no response. */
  accept(socket: TLSSocket): void {
    const address = socket.remoteAddress
    socket.on('error', () => socket.destroy())
    this.#connect(socket).catch((error: unknown) => {
      socket.destroy()
      const isExpected = [RouterRejectedError, HelloError, MalformedFrameError].some((kind) => error instanceof kind)
      if (isExpected) this.#warnOfRejected(address, error as Error)
      else this.#controller.aggregatedLog.error('', { err: error, address }, 'a router could not be connected')
    })
  }

  /** Anyone can cause such a line. What a malformed hello contains makes no line of its own, but the reasons of rejections do. */
  #warnOfRejected(address: string | undefined, error: Error): void {
    const reason = error.message
    const kind = error instanceof RouterRejectedError ? reason : 'malformed'
    this.#controller.aggregatedLog.warn(`${address} ${kind}`, { address, reason }, 'a router was rejected')
  }

  /** @throws RouterRejectedError, HelloError, MalformedFrameError */
  async #connect(socket: TLSSocket): Promise<void> {
    const controllerId = this.#controller.membership.ownId
    if (controllerId === undefined) throw new RouterRejectedError('the controller is not ready yet')
    const reader = new MessageReader(HELLO_LIMITS)
    const received = parseHello(await readFirstMessage(socket, reader))
    if (this.#isStopped) throw new RouterRejectedError('the controller stops')
    await this.#inProgress.track(this.#admit(socket, reader, received, controllerId))
  }

  /** @throws RouterRejectedError */
  async #admit(socket: TLSSocket, reader: MessageReader, received: ReceivedHello, controllerId: string): Promise<void> {
    const { auth, clock, routers, store } = this.#controller
    const leaf = new SocketCertificates(socket).readOwn()
    if (!leaf) throw new RouterRejectedError('the router presented no certificate')
    if (!auth.clientTrust.isOwn(leaf, clock.now()))
      throw new RouterRejectedError('the certificate is not valid now, or another authority issued it')
    const hello: RouterHello = { ...received, fingerprint: computeFingerprint(leaf) }
    const admission = await routers.connected.requireAdmission(store.db, hello)
    if (socket.destroyed) return
    if (this.#isStopped) throw new RouterRejectedError('the controller stops')
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    this.#serve({ socket, reader, hello, isEdge: admission.isEdge, controllerId })
    if (admission.formerFingerprint !== null && admission.fingerprint === hello.fingerprint)
      this.#forgetFormerCertificate(hello.routerId)
  }

  #forgetFormerCertificate(routerId: string): void {
    const { contexts, log, routers } = this.#controller
    const removal = routers.renewal.forgetFormer(contexts.create({ kind: 'system' }), routerId)
    this.#inProgress.track(removal).catch((error: unknown) => {
      log.error({ err: error, routerId }, 'the former certificate of a router still lets it connect')
    })
  }

  /** @throws RouterRejectedError */
  #serve({ socket, reader, hello, isEdge, controllerId }: AdmittedRouter): void {
    const controller = this.#controller
    const { aggregatedLog, clock, fabric, log, routers } = controller
    const routerId = hello.routerId
    let router: ConnectedRouter | undefined
    const share: DialShare = { count: 0, bytes: 0 }
    let isFirst = true
    const channel = new Channel({
      socket,
      clock,
      reader,
      firstSequence: randomInt(1, MAX_FIRST_SEQUENCE),
      handlers: {
        onMessage: (message) => {
          if (isFirst) this.#noteProcess(router, message)
          isFirst = false
          if (!DIAL_TYPES.has(message.type)) return handle(message)
          const begun = this.#dials.begin(share, message)
          if (begun === 'too-many') channel.close('the router dials more than can be handled')
          else if (typeof begun === 'string') sendRefusal(channel, message, DIAL_REFUSALS[begun])
          else void handle(message).finally(begun)
          return undefined
        },
        onClose: (reason) => {
          this.#channels.delete(channel)
          if (router) routers.connected.disconnect(router)
          log.info({ routerId, reason }, 'a router disconnected')
        },
      },
    })
    const handle = (message: Message): Promise<void> => {
      if (!router) return Promise.resolve()
      const session = { controller, router, channel }
      return reportFailure(message.type, this.#inProgress.track(handleRouterMessage(session, message)))
    }
    const reportFailure = async (type: number, work: Promise<void>) => {
      try {
        await work
      } catch (error) {
        if (error instanceof MalformedBodyError || error instanceof HeaderValueError) channel.close(error.message)
        else {
          const fields = { err: error, routerId, type }
          aggregatedLog.error(`${routerId} ${type}`, fields, 'a message of a router could not be handled')
        }
      }
    }
    try {
      router = routers.connected.connect(hello, isEdge, createConnection(channel))
    } catch (error) {
      channel.close('rejected')
      throw error
    }
    this.#channels.add(channel)
    socket.write(encodeHelloResponse(controllerId))
    log.info({ routerId, version: hello.version.version }, 'a router connected')
    if (isEdge) {
      greetRouter({ controller, router, channel })
      fabric.validation.ask(router)
    }
    channel.start()
  }

  /** The numbers of a router's messages continue when it reconnects: one that begins again is another process. */
  #noteProcess(router: ConnectedRouter | undefined, { sequence }: Message): void {
    if (router && sequence === FIRST_SEQUENCE) this.#controller.routers.connected.noteRestart(router)
  }
}

/** Sends what the controller has for a router as messages of its channel. */
function createConnection(channel: Channel): RouterConnection {
  return {
    get lastHeardAt() {
      return channel.lastHeardAt
    },
    announce: (announcement) => {
      const { type, body, headers } = encodeAnnouncement(announcement)
      channel.send(type, body, { headers })
    },
    validateTerminators: (terminators) => {
      channel.send(ContentType.VALIDATE_TERMINATORS_V2_REQUEST, encodeTerminatorQuestions(terminators))
    },
    sendRoute: (route) => channel.send(ContentType.ROUTE, encodeRoute(route)),
    sendUnroute: (circuitId, isImmediate) => channel.send(ContentType.UNROUTE, encodeUnroute(circuitId, isImmediate)),
    sendFault: (fault) => channel.send(ContentType.FAULT, encodeLinkFault(fault)),
    close: (reason) => channel.close(reason),
  }
}

/** Reads the hello, and leaves in the reader what follows it. @throws MalformedFrameError, HelloError if it does not come */
function readFirstMessage(socket: TLSSocket, reader: MessageReader): Promise<Message> {
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void) => {
      clearTimeout(timeout)
      socket.off('data', onData).off('close', onClose).pause()
      finish()
    }
    const onClose = () => settle(() => reject(new HelloError('the connection ended before the hello')))
    const onData = (chunk: Buffer) => {
      reader.push(chunk)
      try {
        const message = reader.next()
        if (message) settle(() => resolve(message))
      } catch (error) {
        settle(() => reject(error))
      }
    }
    const timeout = setTimeout(
      () => settle(() => reject(new HelloError('the router did not introduce itself in time'))),
      HELLO_TIMEOUT_MS,
    )
    socket.on('data', onData).on('close', onClose).resume()
  })
}
