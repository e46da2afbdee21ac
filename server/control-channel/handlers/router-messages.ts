// Messages by which routers describe themselves, and check on each other.
import { create, toBinary } from '@bufbuild/protobuf'
import type { RouterInterface } from '../../../src/definitions/resources/routers.ts'
import { ControllerError } from '../../../src/foundation/errors.ts'
import { ContentType } from '../content-types.ts'
import { describeEdge } from '../edge-description.ts'
import type { Message } from '../message.ts'
import { InspectResponseSchema, RouterInterfacesUpdateSchema, VerifyRouterSchema } from '../messages/control_pb.ts'
import { ClientHelloSchema } from '../messages/edge_pb.ts'
import {
  MalformedBodyError,
  type MessageHandlers,
  type RouterPeer,
  refuseByResult,
  requireAtMost,
  withBody,
} from './message-handler.ts'

const MAX_INTERFACES = 256
const MAX_INTERFACE_BYTES = 64 * 1024

/** The messages of routers about themselves, and their questions about others. */
export const routerHandlers: MessageHandlers = [
  [
    ContentType.CLIENT_HELLO,
    withBody(ClientHelloSchema, async ({ controller, router }, hello) => {
      router.describeEdge(describeEdge(hello))
      await controller.routers.sessionSync.sendAll(router)
    }),
  ],
  [
    ContentType.UPDATE_ROUTER_INTERFACES,
    withBody(RouterInterfacesUpdateSchema, async (session, { interfaces }, message) => {
      requireAtMost(MAX_INTERFACES, interfaces, 'interfaces')
      if (message.body.length > MAX_INTERFACE_BYTES) throw new MalformedBodyError('the interfaces are too long')
      const reported = interfaces.map(({ name, hardwareAddress, mtu, index, flags, addresses }) => ({
        name,
        hardwareAddress,
        mtu: Number(mtu),
        index: Number(index),
        ...readInterfaceFlags(flags),
        addresses,
      }))
      await storeInterfaces(session, reported, message)
    }),
  ],
  [
    ContentType.VERIFY_ROUTER,
    withBody(VerifyRouterSchema, async ({ controller, channel }, { routerId, fingerprints }, message) => {
      const { connected } = controller.routers
      // Routers before 2.0 send the whole chain that the other one presented, but a handshake proves the key of the leaf only.
      const [leaf] = fingerprints
      const isVerified = leaf !== undefined && (await connected.isAdmitted(controller.store.db, routerId, leaf))
      channel.sendResult(
        message,
        isVerified,
        isVerified ? '' : 'the router is not known by the certificate that it presented',
      )
    }),
  ],
  [ContentType.REQUEST_CLUSTER_MEMBERS, ({ controller, router }) => controller.routers.controllers.send(router)],
  [
    ContentType.INSPECT_REQUEST,
    ({ channel }, message) => {
      const response = create(InspectResponseSchema, { success: true })
      channel.send(ContentType.INSPECT_RESPONSE, toBinary(InspectResponseSchema, response), { replyTo: message })
    },
  ],
  [ContentType.QUIESCE_ROUTER, refuseByResult],
  [ContentType.DEQUIESCE_ROUTER, refuseByResult],
  [ContentType.DECOMMISSION_ROUTER, refuseByResult],
]

/** Stores what a router reports of its interfaces. The router is refused if too many writes wait. */
async function storeInterfaces(
  { controller, router, channel }: RouterPeer,
  interfaces: readonly RouterInterface[],
  message: Message,
): Promise<void> {
  const system = controller.contexts.create({ kind: 'system' })
  try {
    await controller.routers.provisioner.storeInterfaces(system, router.id, interfaces)
  } catch (error) {
    if (!(error instanceof ControllerError && error.code === 'SERVER_TOO_MANY_REQUESTS')) throw error
    const text = 'the interfaces of a router were not stored: too many writes wait'
    controller.aggregatedLog.warn(router.id, { routerId: router.id }, text)
    channel.sendResult(message, false, error.message)
    return
  }
  channel.sendResult(message, true)
}

// The bits of an interface's flags, as routers report them on any operating system.
const INTERFACE_FLAGS = { isUp: 1n, isBroadcast: 2n, isLoopback: 4n, isMulticast: 16n, isRunning: 32n } as const

function readInterfaceFlags(flags: bigint) {
  const has = (flag: bigint) => (flags & flag) !== 0n
  return {
    isUp: has(INTERFACE_FLAGS.isUp),
    isBroadcast: has(INTERFACE_FLAGS.isBroadcast),
    isLoopback: has(INTERFACE_FLAGS.isLoopback),
    isMulticast: has(INTERFACE_FLAGS.isMulticast),
    isRunning: has(INTERFACE_FLAGS.isRunning),
  }
}
