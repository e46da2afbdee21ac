// The messages of one connected router: each kind is taken to its handler.
import { create, toBinary } from '@bufbuild/protobuf'
import type { Lease } from '../../src/storage/cluster/lease.ts'
import { ContentType } from './content-types.ts'
import { sendRefusal } from './edge-errors.ts'
import { circuitHandlers } from './handlers/circuit-messages.ts'
import { faultHandlers } from './handlers/fault-messages.ts'
import { linkHandlers } from './handlers/link-messages.ts'
import type { MessageHandler, RouterPeer } from './handlers/message-handler.ts'
import { modelHandlers } from './handlers/model-messages.ts'
import { renewalHandlers } from './handlers/renewal-messages.ts'
import { routerHandlers } from './handlers/router-messages.ts'
import { sessionHandlers } from './handlers/session-messages.ts'
import { terminatorHandlers } from './handlers/terminator-messages.ts'
import { tunnelerHandlers } from './handlers/tunneler-messages.ts'
import { encodeBool } from './header-values.ts'
import { PROTOCOL_RELEASES } from './hello.ts'
import type { Message } from './message.ts'
import { Header, ServerHelloSchema } from './messages/edge_pb.ts'

const handlers: ReadonlyMap<number, MessageHandler> = new Map([
  ...routerHandlers,
  ...renewalHandlers,
  ...sessionHandlers,
  ...terminatorHandlers,
  ...tunnelerHandlers,
  ...linkHandlers,
  ...circuitHandlers,
  ...faultHandlers,
  ...modelHandlers,
])

/**
 * Kinds that grant nothing: what routers report of themselves, and of circuits that run. One of several controllers handles them also
 * while it does not know what the others have revoked; all other kinds wait for contact with them.
 */
export const KINDS_THAT_GRANT_NOTHING: ReadonlySet<number> = new Set([
  ...[...linkHandlers, ...faultHandlers].map(([type]) => type),
  ContentType.ROUTE_RESULT,
  ContentType.CIRCUIT_CONFIRMATION,
  ContentType.API_SESSION_HEARTBEAT,
  ContentType.CONNECT_EVENTS,
  ContentType.INSPECT_REQUEST,
])

/** Requests for circuits. */
export const DIAL_KINDS: ReadonlySet<number> = new Set([
  ContentType.CREATE_CIRCUIT_V2_REQUEST,
  ContentType.CREATE_CIRCUIT_FOR_SERVICE_REQUEST,
  ContentType.CREATE_TUNNEL_CIRCUIT_V2_REQUEST,
])

const NO_CONTACT = { reason: 'busy', message: 'the controller has no contact with the other ones' } as const

// Kinds from this number on concern the clients of edge routers.
const FIRST_EDGE_TYPE = 20_000
const typesOfEveryRouter: ReadonlySet<number> = new Set(renewalHandlers.map(([type]) => type))

/** Greets a router that was connected. Edge routers respond with where their clients reach them; others stay silent. */
export function greetRouter({ channel, router }: RouterPeer): void {
  router.syncStatus = 'SYNC_HELLO_WAIT'
  const { hasDataModel } = router.hello
  const version = hasDataModel ? PROTOCOL_RELEASES.grouped : PROTOCOL_RELEASES.single
  const data = { instant: 'true', ...(hasDataModel ? { routerModel: 'true' } : {}) }
  const headers = hasDataModel ? [[Header.RouterDataModel, encodeBool(true)] as const] : []
  channel.send(ContentType.SERVER_HELLO, toBinary(ServerHelloSchema, create(ServerHelloSchema, { version, data })), {
    headers,
  })
}

/**
 * Takes a message to its handler. Kinds that are not known are dropped, because routers do not expect a response to them. So are
 * those of edge routers from other routers, which must not learn the tokens of clients.
 * Rejects with MalformedBodyError, and with what a handler throws.
 */
export function handleRouterMessage(session: RouterPeer, message: Message): Promise<void> {
  const { type } = message
  if (!session.router.isEdge && type >= FIRST_EDGE_TYPE && !typesOfEveryRouter.has(type)) return Promise.resolve()
  const lease = session.controller.cluster?.lease
  if (lease && !lease.isHeld && !KINDS_THAT_GRANT_NOTHING.has(type)) return handleOnContact(lease, session, message)
  // An async function would keep the message, which may be long, until its handler is done.
  return new Promise((resolve) => resolve(handlers.get(type)?.(session, message)))
}

/** A dial is refused if the controller has no contact with the others in time. Routers repeat other requests that get no response. */
async function handleOnContact(lease: Lease, session: RouterPeer, message: Message): Promise<void> {
  const { controller, router, channel } = session
  const { type } = message
  try {
    await lease.waitForContact()
  } catch (error) {
    const fields = { err: error, routerId: router.id }
    controller.aggregatedLog.warn(
      router.id,
      fields,
      'a request of a router was refused without contact with the cluster',
    )
    if (DIAL_KINDS.has(type)) sendRefusal(channel, message, NO_CONTACT)
    return
  }
  await handlers.get(type)?.(session, message)
}
