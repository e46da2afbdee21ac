// Takes the connections of routers: reads the hello, decides whether the router may connect, and serves its channel.
import type { TLSSocket } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import type { Controller } from '../../src/controller/controller.ts'
import { RouterRejectedError } from '../../src/network/routers/connected-routers.ts'
import type { RouterHello } from '../../src/network/routers/router-connection.ts'
import { computeFingerprint } from '../../src/pki/certificates.ts'
import { SocketCertificates } from '../connections/socket-certificates.ts'
import type { ConnectionSource } from './connection.ts'
import { DialsInProgress } from './dials-in-progress.ts'
import { type ConnectionGroup, createGroup, HelloError, parseHello, type ReceivedHello } from './hello.ts'
import { introduceControllers } from './introduction.ts'
import { HELLO_LIMITS, MalformedFrameError, type Message, MessageReader } from './message.ts'
import { Pauses } from './pauses.ts'
import { type AdmittedConnection, RouterChannel } from './router-channel.ts'
import { WorkInProgress } from './work-in-progress.ts'

/** The protocol of TLS (RFC 7301) by which routers ask for the control channel. */
export const CONTROL_PROTOCOL = 'ziti-ctrl'

// The connection of a router that does not introduce itself in this time is closed.
const HELLO_TIMEOUT_MS = 5_000
const KEEP_ALIVE_MS = 15_000
const TICK_MS = 1_000

/** A router that has introduced itself. */
interface Arrival {
  readonly socket: TLSSocket
  readonly reader: MessageReader
  readonly received: ReceivedHello
  /** Whether it is connected to one controller at a time. */
  readonly isInTurn: boolean
  /** Whether it is only told where the controllers are. */
  readonly isIntroduced: boolean
  /** The id by which it knows this controller. */
  readonly controllerId: string
}

export class ControlListener {
  readonly #controller: Controller
  /** By router. */
  readonly #channels = new Map<string, RouterChannel>()
  readonly #inProgress = new WorkInProgress()
  readonly #dials = new DialsInProgress()
  #pauses = new Pauses()
  #timer: NodeJS.Timeout | undefined
  #isOpen = false
  /** Whether this controller has the routers that are connected to one at a time. */
  #hasTurn = false
  #wasDraining = false

  constructor(controller: Controller) {
    this.#controller = controller
  }

  /** Takes the routers that are connected to each controller, from now on. */
  start(): void {
    this.#isOpen = true
    this.#pauses = new Pauses()
    this.#timer = setInterval(() => this.tick(), TICK_MS).unref()
    this.#controller.cluster?.lease.onChange((isHeld) => {
      // Routers ask another controller at once, and come back when this one responds again.
      if (!isHeld)
        this.#controller.routers.connected.closeSome(false, 'the controller has no contact with the other ones')
    })
  }

  /** Takes the routers that are connected to one controller at a time, too. */
  begin(): void {
    this.#controller.routers.connected.startListening()
    this.#hasTurn = true
  }

  /** Ends the connections of those, and takes none of them until it begins again. @param reason for the log */
  end(reason: string): void {
    this.#hasTurn = false
    this.#controller.routers.connected.closeSome(true, reason)
  }

  /** Does the work that is due by the clock. */
  tick(): void {
    this.#pauses.tick()
    this.#followDraining()
    for (const channel of this.#channels.values()) channel.tick()
    this.#controller.fabric.tick()
    this.#controller.routers.model.tick()
    this.#controller.routers.silentSources?.tick()
    this.#controller.routers.endedSessions.tick()
  }

  /** Before it is stopped, a controller gives the routers up that are connected to each; another one takes the others. */
  #followDraining(): void {
    const { cluster, fabric, routers } = this.#controller
    const isDraining = cluster?.nodes.isDraining === true
    if (isDraining && !this.#wasDraining) {
      fabric.leaveAll()
      routers.connected.closeSome(false, 'the controller drains')
    }
    this.#wasDraining = isDraining
  }

  /** Ends the connections of all routers, and resolves when what they asked for has been handled. */
  async stop(): Promise<void> {
    const { fabric, routers } = this.#controller
    clearInterval(this.#timer)
    this.#isOpen = false
    this.#hasTurn = false
    fabric.leaveAll()
    routers.connected.close()
    await this.#inProgress.settle()
  }

  /**
   * Serves a connection whose TLS handshake agreed on the control protocol. A router that is rejected gets no response.
   * @param isShared whether it came to the address that leads to all controllers
   */
  accept(socket: TLSSocket, isShared: boolean): void {
    if (!this.#isOpen || (isShared && !this.#hasTurn)) {
      socket.destroy()
      return
    }
    const address = socket.remoteAddress
    socket.on('error', () => socket.destroy())
    this.#connect(socket, isShared).catch((error: unknown) => {
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
  async #connect(socket: TLSSocket, isShared: boolean): Promise<void> {
    const { membership, routers, store } = this.#controller
    const sharedId = await membership.findSharedId(store.db)
    const { ownId } = membership
    if (sharedId === undefined || ownId === undefined) throw new RouterRejectedError('the controller is not ready yet')
    const reader = new MessageReader(HELLO_LIMITS)
    const received = parseHello(await readFirstMessage(socket, reader))
    const isGrouped = received.grouping !== undefined
    const isInTurn = !isGrouped || !routers.controllers.has(ownId) || isShared
    const isIntroduced = isGrouped && isShared && routers.controllers.size > 0
    const arrival = { socket, reader, received, isInTurn, isIntroduced, controllerId: isInTurn ? sharedId : ownId }
    this.#requireTurn(arrival)
    await this.#inProgress.track(this.#admit(arrival))
  }

  /** @throws RouterRejectedError */
  #requireTurn({ isInTurn }: Pick<Arrival, 'isInTurn'>): void {
    if (!this.#isOpen) throw new RouterRejectedError('the controller takes no routers')
    if (this.#controller.cluster?.nodes.isDraining) throw new RouterRejectedError('the controller drains')
    if (!isInTurn || this.#hasTurn) return
    const node = this.#controller.cluster?.nodeOfRouters
    throw new RouterRejectedError(
      node === undefined
        ? 'the controller takes no routers'
        : `the router is connected to one controller at a time, which is ${node}`,
    )
  }

  /** @throws RouterRejectedError */
  async #admit(arrival: Arrival): Promise<void> {
    const { socket, reader, received, isInTurn, controllerId } = arrival
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
      isInTurn,
    }
    await cluster?.lease.waitForContact().catch((cause: unknown) => {
      throw new RouterRejectedError('the controller has no contact with the other ones', { cause })
    })
    const admission = await routers.connected.requireAdmission(store.db, hello)
    // Its clients need tokens that it can verify, and it the key, from its first message on.
    if (hello.hasDataModel) await sessionTokens.beginSigning(contexts.create({ kind: 'system' }))
    if (socket.destroyed) return
    this.#requireTurn(arrival)
    const { announcement } = routers.controllers
    if (arrival.isIntroduced && grouping?.isFirst && announcement) {
      introduceControllers(socket, { type: grouping.type, group: grouping.group ?? createGroup() }, announcement)
      return
    }
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
      pauses: this.#pauses,
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
