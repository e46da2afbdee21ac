// The messages of one connected router: each kind is taken to the part of the controller that it concerns.
import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf'
import type { Controller } from '../../src/controller.ts'
import type { ConnectedRouter } from '../../src/routers/connected-routers.ts'
import type { Channel } from './channel.ts'
import { ContentType } from './content-types.ts'
import { describeEdge } from './edge-description.ts'
import { PROTOCOL_RELEASE } from './hello.ts'
import type { Message } from './message.ts'
import { InspectResponseSchema, RouterInterfacesUpdateSchema, VerifyRouterSchema } from './messages/control_pb.ts'
import {
  ApiSessionHeartbeatSchema,
  ClientHelloSchema,
  ConnectEventsSchema,
  RequestClientReSyncSchema,
  ServerHelloSchema,
  ValidateSessionsRequestSchema,
} from './messages/edge_pb.ts'

/** A connected router, and what is needed to serve it. */
export interface RouterSession {
  readonly controller: Controller
  readonly router: ConnectedRouter
  readonly channel: Channel
}

// Routers report at most ten thousand sessions in a message, and far fewer of anything else.
const MAX_ENTRIES = 10_000
const MAX_INTERFACES = 256
const MAX_INTERFACE_BYTES = 64 * 1024
const MAX_REASON_LENGTH = 200

type Handler = (session: RouterSession, message: Message) => void | Promise<void>

/** A body that is not the protobuf message of its kind. */
export class MalformedBodyError extends Error {
  override readonly name = 'MalformedBodyError'
}

/** Greets a router that was connected. Edge routers respond with where their clients reach them; others stay silent. */
export function greetRouter({ channel, router }: RouterSession): void {
  router.syncStatus = 'SYNC_HELLO_WAIT'
  const hello = create(ServerHelloSchema, { version: PROTOCOL_RELEASE, data: { instant: 'true' } })
  channel.send(ContentType.SERVER_HELLO, toBinary(ServerHelloSchema, hello))
}

/**
 * Takes a message to its handler. Kinds that are not known are dropped, because routers do not expect a response to them.
 * @throws MalformedBodyError, and what a handler throws
 */
export async function handleRouterMessage(session: RouterSession, message: Message): Promise<void> {
  await handlers.get(message.type)?.(session, message)
}

/** A handler of messages whose body is a protobuf message. */
function withBody<D extends DescMessage>(
  schema: D,
  run: (session: RouterSession, body: MessageShape<D>, message: Message) => void | Promise<void>,
): Handler {
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
function requireAtMost(max: number, entries: readonly unknown[], name: string): void {
  if (entries.length > max)
    throw new MalformedBodyError(`a message has ${entries.length} ${name}; at most ${max} are accepted`)
}

/** Refuses a request that this controller does not support, by a reply of the kind that the router expects. */
const refuseByResult: Handler = ({ channel }, message) => channel.sendResult(message, false, 'not supported')
const refuseByText =
  (type: number): Handler =>
  ({ channel }, message) => {
    channel.send(type, Buffer.from('not supported'), { replyTo: message })
  }
const refuseByError = refuseByText(ContentType.ERROR)

const handlers: ReadonlyMap<number, Handler> = new Map<number, Handler>([
  [
    ContentType.CLIENT_HELLO,
    withBody(ClientHelloSchema, async ({ controller, router }, hello) => {
      router.describeEdge(describeEdge(hello))
      await controller.routers.sessionSync.sendAll(router)
    }),
  ],
  [
    ContentType.REQUEST_CLIENT_RESYNC,
    withBody(RequestClientReSyncSchema, async ({ controller, router }, { reason }) => {
      const excerpt = reason.slice(0, MAX_REASON_LENGTH)
      controller.log.warn({ routerId: router.id, reason: excerpt }, 'a router asks for all API sessions again')
      await controller.routers.sessionSync.sendAll(router)
    }),
  ],
  [
    ContentType.API_SESSION_HEARTBEAT,
    withBody(ApiSessionHeartbeatSchema, ({ controller, router }, { tokens }) => {
      requireAtMost(MAX_ENTRIES, tokens, 'tokens')
      controller.routers.sessionSync.recordActivity(router, tokens)
    }),
  ],
  [
    ContentType.VALIDATE_SESSIONS,
    withBody(ValidateSessionsRequestSchema, async ({ controller, router }, { sessionTokens }) => {
      requireAtMost(MAX_ENTRIES, sessionTokens, 'tokens')
      await controller.routers.sessionSync.validateSessions(router, sessionTokens)
    }),
  ],
  [
    ContentType.UPDATE_ROUTER_INTERFACES,
    withBody(RouterInterfacesUpdateSchema, async ({ controller, router, channel }, { interfaces }, message) => {
      requireAtMost(MAX_INTERFACES, interfaces, 'interfaces')
      if (message.body.length > MAX_INTERFACE_BYTES) throw new MalformedBodyError('the interfaces are too long')
      const reported = interfaces.map(({ name, hardwareAddress, mtu, index, flags, addresses }) => ({
        name,
        hardwareAddress,
        mtu: Number(mtu),
        index: Number(index),
        flags: Number(flags),
        addresses,
      }))
      const system = controller.contexts.create({ kind: 'system' })
      await controller.routers.provisioner.storeInterfaces(system, router.id, reported)
      channel.sendResult(message, true)
    }),
  ],
  [
    ContentType.CONNECT_EVENTS,
    withBody(ConnectEventsSchema, ({ controller, router }, { events, fullState }) => {
      requireAtMost(MAX_ENTRIES, events, 'identities')
      // An identity that has no session is not connected, whatever a router says.
      const { apiSessions } = controller.auth
      const ofKnownIdentities = events.filter(({ identityId }) => apiSessions.isSignedIn(identityId))
      controller.routers.connected.reportIdentities(router, ofKnownIdentities, fullState)
    }),
  ],
  [
    ContentType.VERIFY_ROUTER,
    withBody(VerifyRouterSchema, async ({ controller, channel }, { routerId, fingerprints }, message) => {
      const { connected } = controller.routers
      const isVerified = await connected.isAdmitted(controller.store.db, routerId, fingerprints)
      channel.sendResult(message, isVerified, isVerified ? '' : 'the router is not known by these certificates')
    }),
  ],
  [
    ContentType.INSPECT_REQUEST,
    ({ channel }, message) => {
      const response = create(InspectResponseSchema, { success: true })
      channel.send(ContentType.INSPECT_RESPONSE, toBinary(InspectResponseSchema, response), { replyTo: message })
    },
  ],
  [ContentType.CREATE_TERMINATOR, refuseByResult],
  [ContentType.REMOVE_TERMINATOR, refuseByResult],
  [ContentType.UPDATE_TERMINATOR, refuseByResult],
  [ContentType.QUIESCE_ROUTER, refuseByResult],
  [ContentType.DEQUIESCE_ROUTER, refuseByResult],
  [ContentType.DECOMMISSION_ROUTER, refuseByResult],
  [ContentType.CIRCUIT_REQUEST, refuseByText(ContentType.CIRCUIT_FAILED)],
  [ContentType.CREATE_CIRCUIT, refuseByError],
  [ContentType.CREATE_EDGE_TERMINATOR, refuseByError],
  [ContentType.REMOVE_EDGE_TERMINATOR, refuseByError],
  [ContentType.CREATE_TUNNEL_CIRCUIT_V2, refuseByError],
])
