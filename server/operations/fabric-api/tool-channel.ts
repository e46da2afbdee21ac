// The channel of OpenZiti's tools over a WebSocket: each of its messages is a frame of the control channel. It streams events, and
// refuses all else.
import type { Readable } from 'node:stream'
import { create, toBinary } from '@bufbuild/protobuf'
import type { WebSocket } from 'ws'
import type { EventType } from '../../../src/definitions/resources/event-types.ts'
import { ControllerError } from '../../../src/foundation/errors.ts'
import type { Log } from '../../../src/foundation/log.ts'
import type { EventFeed } from '../../../src/maintenance/events/event-feed.ts'
import { readUntilCut, type WatcherRight } from '../../../src/maintenance/events/watcher.ts'
import { ChannelHeader, ContentType } from '../../control-channel/content-types.ts'
import { encodeBool, encodeInt32 } from '../../control-channel/header-values.ts'
import {
  encodeMessage,
  HELLO_LIMITS,
  MalformedFrameError,
  type Message,
  type MessageHeaders,
  MessageReader,
} from '../../control-channel/message.ts'
import { ValidationResponseSchema } from '../../control-channel/messages/management_pb.ts'
import { findEventTypes, KEEP_ALIVE, TOOL_EVENT_TYPES, toolForm } from './tool-events.ts'

/** A tool asks for events as soon as it is connected. */
const MAX_SILENCE_MS = 30_000

/** Status codes of RFC 6455, with which a connection is closed. */
const CloseCode = { GOING_AWAY: 1001, PROTOCOL_ERROR: 1002, POLICY_VIOLATION: 1008 } as const

/** A tool that leaves more responses unread than this is disconnected. Events are sent no faster than it reads. */
const MAX_UNREAD_BYTES = 256 * 1024

const REFUSAL = 'this controller streams events here, and nothing else'

/** The responses to requests for validations, of which tools take no other. */
const VALIDATION_RESPONSES: ReadonlyMap<number, number> = new Map([
  [ContentType.VALIDATE_TERMINATORS_REQUEST, ContentType.VALIDATE_TERMINATORS_RESPONSE],
  [ContentType.VALIDATE_ROUTER_LINKS_REQUEST, ContentType.VALIDATE_ROUTER_LINKS_RESPONSE],
  [ContentType.VALIDATE_SDK_TERMINATORS_REQUEST, ContentType.VALIDATE_SDK_TERMINATORS_RESPONSE],
  [ContentType.VALIDATE_DATA_MODEL_REQUEST, ContentType.VALIDATE_DATA_MODEL_RESPONSE],
  [ContentType.VALIDATE_IDENTITY_CONNECTIONS_REQUEST, ContentType.VALIDATE_IDENTITY_CONNECTIONS_RESPONSE],
  [ContentType.VALIDATE_TUNNEL_TERMINATORS_REQUEST, ContentType.VALIDATE_TUNNEL_TERMINATORS_RESPONSE],
  [ContentType.VALIDATE_CIRCUITS_REQUEST, ContentType.VALIDATE_CIRCUITS_RESPONSE],
  [ContentType.VALIDATE_CONTROLLER_DIALERS_REQUEST, ContentType.VALIDATE_CONTROLLER_DIALERS_RESPONSE],
])

const LIMITS = { ...HELLO_LIMITS, maxBodyBytes: 16_384 }

interface ToolChannelParts {
  readonly events: EventFeed
  readonly log: Log
  readonly right: WatcherRight
  /** The id of this controller. */
  readonly sourceId: string
}

export class ToolChannel {
  readonly #socket: WebSocket
  readonly #parts: ToolChannelParts
  readonly #silence: NodeJS.Timeout
  readonly #streams = new Set<Readable>()
  #sequence = 0

  constructor(socket: WebSocket, parts: ToolChannelParts) {
    this.#socket = socket
    this.#parts = parts
    this.#silence = setTimeout(() => socket.close(CloseCode.POLICY_VIOLATION, 'nothing was asked for'), MAX_SILENCE_MS)
    this.#silence.unref()
    socket.on('error', () => socket.terminate())
    socket.on('message', (bytes: Buffer, isBinary) => this.#receive(bytes, isBinary))
    socket.once('close', () => {
      clearTimeout(this.#silence)
      for (const stream of this.#streams) stream.destroy()
    })
  }

  #receive(bytes: Buffer, isBinary: boolean): void {
    try {
      const reader = new MessageReader(LIMITS)
      reader.push(bytes)
      const message = isBinary ? reader.next() : undefined
      if (message) this.#take(message)
      else this.#socket.close(CloseCode.PROTOCOL_ERROR, 'not a message')
    } catch (error) {
      if (!(error instanceof MalformedFrameError)) throw error
      this.#socket.close(CloseCode.PROTOCOL_ERROR, 'not a message')
    }
  }

  #take(message: Message): void {
    const { type, headers } = message
    const heartbeat = headers.get(ChannelHeader.HEARTBEAT)
    if (heartbeat) this.#send(ContentType.HEARTBEAT, new Map([[ChannelHeader.HEARTBEAT_RESPONSE, heartbeat]]))
    if (type === ContentType.STREAM_EVENTS_REQUEST) this.#beginStream(message).catch((error) => this.#fail(error))
    else if (type === ContentType.PING) this.#sendResult(message, true, '')
    else if (type !== ContentType.HEARTBEAT && !headers.has(ChannelHeader.REPLY_FOR)) this.#refuse(message)
  }

  #refuse(message: Message): void {
    const responseType = VALIDATION_RESPONSES.get(message.type)
    if (responseType !== undefined) {
      const response = create(ValidationResponseSchema, { success: false, message: REFUSAL })
      const headers = new Map([[ChannelHeader.REPLY_FOR, encodeInt32(message.sequence)]])
      this.#send(responseType, headers, Buffer.from(toBinary(ValidationResponseSchema, response)))
    } else if (message.type === ContentType.STREAM_TRACES_REQUEST) {
      // Tools wait for traces and for the end of the connection, not for a response.
      this.#socket.close(CloseCode.POLICY_VIOLATION, REFUSAL)
    } else this.#sendResult(message, false, REFUSAL)
  }

  #fail(error: unknown): void {
    this.#parts.log.error({ err: error }, 'events cannot be sent to a tool')
    this.#socket.terminate()
  }

  async #beginStream(request: Message): Promise<void> {
    const types = readSubscriptions(request.body)
    if (typeof types === 'string') return this.#sendResult(request, false, types)
    const { events, right, sourceId } = this.#parts
    let stream: Readable
    try {
      stream = await events.watch(right, { types }, undefined, toolForm(sourceId))
    } catch (error) {
      if (!(error instanceof ControllerError)) throw error
      return this.#sendResult(request, false, error.message)
    }
    clearTimeout(this.#silence)
    this.#streams.add(stream)
    this.#sendResult(request, true, 'success')
    await this.#pass(stream)
    this.#socket.close(CloseCode.GOING_AWAY, 'the stream has ended')
  }

  /** Sends the events of a stream, no faster than the tool reads, until the stream ends or is cut. */
  async #pass(stream: Readable): Promise<void> {
    for await (const bytes of readUntilCut<Buffer>(stream)) {
      if (this.#socket.readyState !== this.#socket.OPEN) return
      await new Promise((resolve) => {
        if (bytes === KEEP_ALIVE) this.#socket.ping(undefined, false, resolve)
        else this.#socket.send(bytes, { binary: true }, resolve)
      })
    }
  }

  #sendResult(request: Message, isSuccess: boolean, text: string): void {
    const headers = new Map([
      [ChannelHeader.REPLY_FOR, encodeInt32(request.sequence)],
      [ChannelHeader.RESULT_SUCCESS, encodeBool(isSuccess)],
    ])
    this.#send(ContentType.RESULT, headers, Buffer.from(text))
  }

  #send(type: number, headers: MessageHeaders, body: Buffer = KEEP_ALIVE): void {
    const message = encodeMessage({ type, sequence: ++this.#sequence, headers, body })
    if (this.#socket.bufferedAmount > MAX_UNREAD_BYTES) this.#socket.terminate()
    else this.#socket.send(message, { binary: true })
  }
}

/** The types of events that a request subscribes to, or a sentence on why it is refused. */
function readSubscriptions(body: Buffer): readonly EventType[] | string {
  let request: { format?: unknown; subscriptions?: unknown } | null
  try {
    request = JSON.parse(body.toString()) as typeof request
  } catch {
    return 'the request is not JSON'
  }
  const { format, subscriptions } = request ?? {}
  if (format !== 'json') return 'events are sent in the format json only'
  if (!Array.isArray(subscriptions)) return 'the request subscribes to nothing'
  const types = subscriptions.map((subscription: { type?: unknown } | null) => findEventTypes(subscription?.type))
  if (types.includes(undefined)) return `there are no events of that type; the types are ${TOOL_EVENT_TYPES.join(', ')}`
  return types.flatMap((some = []) => some)
}
