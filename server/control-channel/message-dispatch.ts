// The messages of one connected router: each kind is taken to its handler.
import { create, toBinary } from '@bufbuild/protobuf'
import { ContentType } from './content-types.ts'
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
  // An async function would keep the message, which may be long, until its handler is done.
  return new Promise((resolve) => resolve(handlers.get(type)?.(session, message)))
}
