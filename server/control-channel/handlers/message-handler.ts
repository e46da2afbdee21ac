// The common part of the handlers of routers' messages: the router that they serve, bodies, limits, and refusals.

import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf'
import type { Controller } from '../../../src/controller/controller.ts'
import type { WaitingPlace } from '../../../src/network/circuits/dials.ts'
import type { ConnectedRouter } from '../../../src/network/routers/connected-routers.ts'
import type { Channel } from '../channel.ts'
import { ContentType } from '../content-types.ts'
import type { Message } from '../message.ts'

/** A connected router, and what is needed to serve it. */
export interface RouterPeer {
  readonly controller: Controller
  readonly router: ConnectedRouter
  readonly channel: Channel
  /** Returns the place at which the dials that arrive now may have waited; undefined if they did not. */
  readonly findWait: () => WaitingPlace | undefined
}

/** Handles a message of a kind. Rejects with MalformedBodyError if the router has to lose its connection. */
export type MessageHandler = (session: RouterPeer, message: Message) => void | Promise<void>

/** Handlers by the type of message. */
export type MessageHandlers = readonly (readonly [type: number, handler: MessageHandler])[]

/** A body that is not the protobuf message of its kind. */
export class MalformedBodyError extends Error {
  override readonly name = 'MalformedBodyError'
}

/** A handler of messages whose body is a protobuf message. */
export function withBody<D extends DescMessage>(
  schema: D,
  run: (session: RouterPeer, body: MessageShape<D>, message: Message) => void | Promise<void>,
): MessageHandler {
  return (session, message) => run(session, parseBody(schema, message), message)
}

function parseBody<D extends DescMessage>(schema: D, { type, body }: Message): MessageShape<D> {
  try {
    return fromBinary(schema, body)
  } catch (cause) {
    throw new MalformedBodyError(`a message of type ${type} has a malformed body`, { cause })
  }
}

/** @throws MalformedBodyError if a message has more entries than a router ever sends */
export function requireAtMost(max: number, entries: readonly unknown[], name: string): void {
  if (entries.length > max)
    throw new MalformedBodyError(`a message has ${entries.length} ${name}; at most ${max} are accepted`)
}

/** Refuses a request that this controller does not support, by a reply of the kind that the router expects. */
export const refuseByResult: MessageHandler = ({ channel }, message) =>
  channel.sendResult(message, false, 'not supported')

/** Refuses a request by a message of this type, whose body says why. */
export const refuseByText =
  (type: number): MessageHandler =>
  ({ channel }, message) => {
    channel.send(type, Buffer.from('not supported'), { replyTo: message })
  }

/** Refuses a request of an edge router. */
export const refuseByError = refuseByText(ContentType.ERROR)
