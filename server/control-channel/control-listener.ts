// Takes the connections of routers: reads the hello, decides whether the router may connect, and serves its channel.
import type { TLSSocket } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import type { Controller } from '../../src/controller.ts'
import { RouterRejectedError } from '../../src/network/routers/connected-routers.ts'
import type { RouterHello } from '../../src/network/routers/router-connection.ts'
import { computeFingerprint } from '../../src/pki/certificates.ts'
import { SocketCertificates } from '../connections/socket-certificates.ts'
import type { ConnectionSource } from './connection.ts'
import { DialsInProgress } from './dials-in-progress.ts'
import { type ConnectionGroup, createGroup, HelloError, parseHello, type ReceivedHello } from './hello.ts'
import { HELLO_LIMITS, MalformedFrameError, type Message, MessageReader } from './message.ts'
import { type AdmittedConnection, RouterChannel } from './router-channel.ts'
import { WorkInProgress } from './work-in-progress.ts'

/** The protocol of TLS (RFC 7301) by which routers ask for the control channel. */
export const CONTROL_PROTOCOL = 'ziti-ctrl'

// The connection of a router that does not introduce itself in this time is closed.
const HELLO_TIMEOUT_MS = 5_000
const KEEP_ALIVE_MS = 15_000
const TICK_MS = 1_000

export class ControlListener {
  readonly #controller: Controller
  /** By router. */
  readonly #channels = new Map<string, RouterChannel>()
  readonly #inProgress = new WorkInProgress()
  readonly #dials = new DialsInProgress()
  #timer: NodeJS.Timeout | undefined
  #isServing = false

  constructor(controller: Controller) {
    this.#controller = controller
  }

  start(): void {
    this.#timer = setInterval(() => this.tick(), TICK_MS).unref()
  }

  /** Takes routers from now on. */
  begin(): void {
    this.#controller.routers.connected.startListening()
    this.#isServing = true
  }

  /** Ends the connections of all routers, and takes none until it begins again. @param reason for the log */
  end(reason: string): void {
    this.#isServing = false
    this.#controller.routers.connected.close(reason)
  }

  /** Does the work that is due by the clock. */
  tick(): void {
    for (const channel of this.#channels.values()) channel.tick()
    this.#controller.fabric.tick()
    this.#controller.routers.model.tick()
    this.#controller.routers.endedSessions.tick()
  }

  /** Ends the connections of all routers, and resolves when what they asked for has been handled. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.end('the controller stops')
    await this.#inProgress.settle()
  }

  /** Serves a connection whose TLS handshake agreed on the control protocol. A router that is rejected gets no response. */
  accept(socket: TLSSocket): void {
    if (!this.#isServing) {
      socket.destroy()
      return
    }
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
    const controllerId = await this.#controller.membership.findIdForRouters(this.#controller.store.db)
    if (controllerId === undefined) throw new RouterRejectedError('the controller is not ready yet')
    const reader = new MessageReader(HELLO_LIMITS)
    const received = parseHello(await readFirstMessage(socket, reader))
    if (!this.#isServing) throw new RouterRejectedError('the controller takes no routers')
    await this.#inProgress.track(this.#admit(socket, reader, received, controllerId))
  }

  /** @throws RouterRejectedError */
  async #admit(socket: TLSSocket, reader: MessageReader, received: ReceivedHello, controllerId: string): Promise<void> {
    const { auth, clock, cluster, contexts, routers, sessionTokens, store } = this.#controller
    const leaf = new SocketCertificates(socket).readOwn()
    if (!leaf) throw new RouterRejectedError('the router presented no certificate')
    if (!auth.clientTrust.isOwn(leaf, clock.now()))
      throw new RouterRejectedError('the certificate is not valid now, or another authority issued it')
    const { grouping, ...described } = received
    const hello: RouterHello = {
      ...described,
      fingerprint: computeFingerprint(leaf),
      hasDataModel: grouping !== undefined,
    }
    await cluster?.lease.waitForContact().catch((cause: unknown) => {
      throw new RouterRejectedError('the controller has no contact with the other ones', { cause })
    })
    const admission = await routers.connected.requireAdmission(store.db, hello)
    // Its clients need tokens that it can verify, and it the key, from its first message on.
    if (hello.hasDataModel) await sessionTokens.beginSigning(contexts.create({ kind: 'system' }))
    if (socket.destroyed) return
    if (!this.#isServing) throw new RouterRejectedError('the controller takes no routers')
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    const source = { socket, reader, type: grouping?.type ?? 'ctrl.default' }
    if (grouping && !grouping.isFirst) this.#join(hello.routerId, source, grouping.group)
    else {
      const group = grouping && (grouping.group ?? createGroup())
      const isNewProcess = grouping !== undefined && grouping.group === undefined
      this.#serve({ ...source, hello, isEdge: admission.isEdge, group, isNewProcess }, controllerId)
      if (!isDeepStrictEqual(admission.lastVersion, hello.version)) this.#storeVersion(hello)
    }
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

  #storeVersion({ routerId, version }: RouterHello): void {
    const { aggregatedLog, contexts, routers } = this.#controller
    const storing = routers.provisioner.storeVersion(contexts.create({ kind: 'system' }), routerId, version)
    this.#inProgress.track(storing).catch((error: unknown) => {
      aggregatedLog.error(routerId, { err: error, routerId }, 'the version of a router was not stored')
    })
  }

  /** @throws RouterRejectedError */
  #serve(admitted: AdmittedConnection, controllerId: string): void {
    const { routerId } = admitted.hello
    const parts = {
      controller: this.#controller,
      controllerId,
      inProgress: this.#inProgress,
      dials: this.#dials,
    }
    const channel = new RouterChannel(parts, admitted, () => {
      if (this.#channels.get(routerId) === channel) this.#channels.delete(routerId)
    })
    this.#channels.set(routerId, channel)
    channel.start()
  }

  /** @throws RouterRejectedError */
  #join(routerId: string, source: ConnectionSource, group: ConnectionGroup): void {
    const channel = this.#channels.get(routerId)
    if (!channel) throw new RouterRejectedError('the connection belongs to a group that is not connected')
    channel.join(source, group)
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
