// The channel of one router that was admitted: takes its messages to their handlers, and tells it first what it needs.
import { randomInt } from 'node:crypto'
import type { Controller } from '../../src/controller/controller.ts'
import {
  type ConnectedRouter,
  MAX_SILENCE_MS,
  RouterRejectedError,
} from '../../src/network/routers/connected-routers.ts'
import type { RouterConnection, RouterHello } from '../../src/network/routers/router-connection.ts'
import { findKeptDials } from './absence.ts'
import { encodeAnnouncement, encodeLinkFault } from './announcements.ts'
import { Channel, type CloseReason } from './channel.ts'
import { encodeRoute, encodeUnroute } from './circuit-values.ts'
import type { Connection, ConnectionSource, ConnectionType } from './connection.ts'
import { ContentType } from './content-types.ts'
import type { DialShare, DialsInProgress } from './dials-in-progress.ts'
import { sendRefusal } from './edge-errors.ts'
import { MalformedBodyError, type RouterPeer } from './handlers/message-handler.ts'
import { encodeTerminatorEnd, encodeTerminatorQuestions } from './handlers/terminator-messages.ts'
import { encodeText, HeaderValueError } from './header-values.ts'
import { type ConnectionGroup, encodeHelloResponse, isSameGroup } from './hello.ts'
import type { Message, SkippedMessage } from './message.ts'
import { DIAL_KINDS, greetRouter, handleRouterMessage } from './message-dispatch.ts'
import { Header } from './messages/edge_pb.ts'
import { encodeChangeSet, encodeReplacement, encodeState, encodeStateKeys } from './model-encoding.ts'
import type { Pauses } from './pauses.ts'
import type { WorkInProgress } from './work-in-progress.ts'

/** The parts that all channels share. */
export interface SharedParts {
  readonly controller: Controller
  readonly controllerId: string
  readonly inProgress: WorkInProgress
  readonly dials: DialsInProgress
  readonly pauses: Pauses
}

/** A router that may connect, and the connection that it did it by. */
export interface AdmittedConnection extends ConnectionSource {
  readonly hello: RouterHello
  readonly isEdge: boolean
  /** Undefined for a router that has one connection. */
  readonly group: ConnectionGroup | undefined
  /** Whether its process never was connected: what an earlier process held is gone. Routers of release 1 tell it later. */
  readonly isNewProcess: boolean
}

const REQUEST_TOO_LONG = { reason: 'other', message: 'the request is longer than any may be' } as const

const DIAL_REFUSALS = {
  'too-long': { reason: 'other', message: 'the dial is longer than any may be' },
  busy: { reason: 'busy', message: 'the controller is busy with other dials' },
  old: { reason: 'busy', message: 'the controller could not respond in time' },
} as const

// The number of the first message that the process of a router sends, if it is of release 1.
const FIRST_SEQUENCE = 1

// Replies to requests of an earlier channel must not match those of a new one.
const MAX_FIRST_SEQUENCE = 2 ** 30

export class RouterChannel {
  readonly #parts: SharedParts
  readonly #channel: Channel
  readonly #admitted: AdmittedConnection
  /** The one that it was admitted by. */
  readonly #connection: Connection
  readonly #session: RouterPeer
  readonly #share: DialShare = { count: 0, bytes: 0 }
  readonly #onClose: () => void

  /**
   * Makes the connection that of its router. @param onClose runs once, when the channel has ended
   * @throws RouterRejectedError if another connection of the router is in use
   */
  constructor(parts: SharedParts, admitted: AdmittedConnection, onClose: () => void) {
    const { controller } = parts
    const { hello, isEdge } = admitted
    this.#parts = parts
    this.#admitted = admitted
    this.#onClose = onClose
    this.#channel = new Channel({
      clock: controller.clock,
      firstSequence: randomInt(1, MAX_FIRST_SEQUENCE),
      handlers: {
        onFirstSequence: (sequence) => this.#noteProcess(sequence),
        onMessage: (message) => this.#take(message),
        onSkip: (skipped) => this.#refuseSkipped(skipped),
        onConnectionLost: (type) => this.#recover(type),
        onClose: (reason) => this.#end(reason),
      },
    })
    const keptDials = findKeptDials(controller, hello, admitted.isNewProcess)
    const router = controller.routers.connected.connect(hello, isEdge, createConnection(this.#channel, hello))
    const findWait = () => {
      if (this.#channel.areRequestsOld) return 'on its way'
      return keptDials && controller.clock.monotonic() < keptDials.endAt ? keptDials.place : undefined
    }
    this.#session = { controller, router, channel: this.#channel, findWait }
    this.#connection = this.#channel.add(admitted)
  }

  /** Responds to the hello, greets the router, and reads on. */
  start(): void {
    const { controller, router } = this.#session
    const { type, hello, isEdge, group, isNewProcess } = this.#admitted
    this.#connection.write(encodeHelloResponse(this.#parts.controllerId, group && { type, group }))
    controller.log.info({ routerId: router.id, version: hello.version.version }, 'a router connected')
    controller.routers.controllers.send(router)
    if (isEdge) {
      controller.routers.publicKeys.send(router)
      greetRouter(this.#session)
      controller.fabric.validation.ask(router)
      controller.fabric.endedBinds.endAllOf(router)
      this.#tellMissed()
    }
    controller.fabric.unroutes.sendOwed(router)
    if (isNewProcess) controller.routers.connected.noteRestart(router)
    this.#connection.start()
  }

  /**
   * Adds a further connection.
   * @throws RouterRejectedError if it is not one of the same process, or if the router has one of its type that is in use
   */
  join(source: ConnectionSource, group: ConnectionGroup): void {
    const own = this.#admitted.group
    if (!own || !isSameGroup(own, group))
      throw new RouterRejectedError('the connection belongs to another group than the router, or has another secret')
    const { controller, controllerId } = this.#parts
    // A router replaces a connection that it has lost, though the controller has not noticed. One that is in use was not lost.
    const earlier = this.#channel.getConnection(source.type)
    if (earlier && controller.clock.monotonic() - earlier.lastHeardAt < MAX_SILENCE_MS)
      throw new RouterRejectedError('the router has a connection of this type already')
    const connection = this.#channel.add(source)
    connection.write(encodeHelloResponse(controllerId, { type: source.type, group: own }))
    controller.log.info({ routerId: this.#router.id, type: source.type }, 'a router added a connection')
    connection.start()
    if (earlier) this.#sendAgain()
  }

  #tellMissed(): void {
    const { log, routers } = this.#parts.controller
    const router = this.#router
    this.#parts.inProgress.track(routers.endedSessions.tellMissed(router)).catch((error: unknown) => {
      log.error(
        { err: error, routerId: router.id },
        'a router could not be told which sessions ended while it was away',
      )
    })
  }

  tick(): void {
    this.#channel.tick()
  }

  get #router(): ConnectedRouter {
    return this.#session.router
  }

  #take(message: Message): Promise<void> | undefined {
    // Dials wait for results of routes, which the same router may have to send: reading must not pause for them.
    if (!DIAL_KINDS.has(message.type)) return this.#handle(message)
    if (this.#parts.pauses.areRequestsOld) {
      sendRefusal(this.#channel, message, DIAL_REFUSALS.old)
      return undefined
    }
    const begun = this.#parts.dials.begin(this.#share, message)
    if (begun === 'too-many') this.#channel.close('the router dials more than can be handled')
    else if (typeof begun === 'string') sendRefusal(this.#channel, message, DIAL_REFUSALS[begun])
    else void this.#handle(message).finally(begun)
    return undefined
  }

  #refuseSkipped({ type, sequence }: SkippedMessage): void {
    const { aggregatedLog } = this.#parts.controller
    const routerId = this.#router.id
    aggregatedLog.warn(`${routerId} ${type}`, { routerId, type }, 'a request for a client is longer than any may be')
    sendRefusal(this.#channel, { sequence, headers: new Map() }, REQUEST_TOO_LONG)
  }

  /** The numbers of the messages of a router of release 1 continue when it reconnects: one that begins again is another process. */
  #noteProcess(sequence: number): void {
    const { controller, router } = this.#session
    if (!router.hello.hasDataModel && sequence === FIRST_SEQUENCE) controller.routers.connected.noteRestart(router)
  }

  #handle(message: Message): Promise<void> {
    return this.#reportFailure(message.type, this.#parts.inProgress.track(handleRouterMessage(this.#session, message)))
  }

  async #reportFailure(type: number, work: Promise<void>): Promise<void> {
    try {
      await work
    } catch (error) {
      if (error instanceof MalformedBodyError || error instanceof HeaderValueError) this.#channel.close(error.message)
      else {
        const routerId = this.#router.id
        const fields = { err: error, routerId, type }
        this.#parts.controller.aggregatedLog.error(
          `${routerId} ${type}`,
          fields,
          'a message of a router could not be handled',
        )
      }
    }
  }

  #recover(type: ConnectionType): void {
    this.#parts.controller.log.info({ routerId: this.#router.id, type }, 'a router lost one of its connections')
    this.#sendAgain()
  }

  /** The last messages over a lost connection may not have arrived, and the router does not ask for them. */
  #sendAgain(): void {
    const { log, routers } = this.#parts.controller
    const router = this.#router
    routers.controllers.send(router)
    routers.publicKeys.send(router)
    routers.model.sendAgain(router)
    this.#parts.inProgress.track(routers.sessionSync.sendAll(router)).catch((error: unknown) => {
      log.error({ err: error, routerId: router.id }, 'a router could not be sent the sessions')
    })
  }

  #end(reason: CloseReason): void {
    const { log, routers } = this.#parts.controller
    this.#onClose()
    routers.connected.disconnect(this.#router)
    log.info({ routerId: this.#router.id, reason }, 'a router disconnected')
  }
}

/** Sends what the controller has for a router as messages of its channel. */
function createConnection(channel: Channel, { hasDataModel }: RouterHello): RouterConnection {
  const protocol = hasDataModel ? 'grouped' : 'single'
  return {
    get isSilent() {
      return channel.isSilent
    },
    get lastHeardAt() {
      return channel.lastHeardAt
    },
    announce: (announcement) => {
      const { type, body, headers } = encodeAnnouncement(announcement, protocol)
      channel.send(type, body, { headers })
    },
    sendModel: async ({ state, listKeys, subscriptionId }) => {
      const parts = await encodeState(state)
      const keys = encodeStateKeys(listKeys())
      await channel.sendLong(ContentType.DATA_STATE, [keys, ...parts], encodeSubscription(subscriptionId))
    },
    replaceModel: async ({ state, listKeys }) => {
      const parts = [encodeStateKeys(listKeys()), ...(await encodeState(state))]
      await channel.sendLong(ContentType.VALIDATE_DATA_STATE_REQUEST, encodeReplacement(parts), [])
    },
    sendModelChanges: (set, subscriptionId) => {
      const headers = encodeSubscription(subscriptionId)
      channel.send(ContentType.DATA_STATE_CHANGE_SET, encodeChangeSet(set), { headers })
    },
    waitUntilWritable: () => channel.waitUntilWritable(ContentType.DATA_STATE),
    validateTerminators: (terminators) => {
      for (const body of encodeTerminatorQuestions(terminators, protocol))
        channel.send(ContentType.VALIDATE_TERMINATORS_V2_REQUEST, body)
    },
    endTerminator: (terminatorId) => {
      channel.send(ContentType.CREATE_TERMINATOR_V2_RESPONSE, encodeTerminatorEnd(terminatorId))
    },
    sendRoute: (route) => channel.send(ContentType.ROUTE, encodeRoute(route)),
    sendUnroute: (circuitId, isImmediate) => channel.send(ContentType.UNROUTE, encodeUnroute(circuitId, isImmediate)),
    sendFault: (fault) => channel.send(ContentType.FAULT, encodeLinkFault(fault)),
    setHeadStart: (headStartMs) => channel.setHeadStart(headStartMs),
    close: (reason) => channel.close(reason),
  }
}

/** A router drops what names another subscription than its own. */
function encodeSubscription(id: string | undefined): [number, Buffer][] {
  return id === undefined ? [] : [[Header.RouterDataModelSubscriptionId, encodeText(id)]]
}
