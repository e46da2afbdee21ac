// Messages of routers that dial and host services themselves.
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { RequestRefusedError } from '../../../src/network/client-requests/request-refused.ts'
import type { SessionClient } from '../../../src/network/client-requests/session-client.ts'
import type { TunnelerApiSession, TunnelerSession } from '../../../src/network/tunnelers/tunneling.ts'
import { ContentType } from '../content-types.ts'
import { INTERNAL_FAILURE, sendRefusal } from '../edge-errors.ts'
import type { Message } from '../message.ts'
import {
  CreateApiSessionRequestSchema,
  CreateApiSessionResponseSchema,
  type CreateCircuitForServiceRequest,
  CreateCircuitForServiceRequestSchema,
  CreateCircuitForServiceResponseSchema,
  CreateTerminatorResult,
  type CreateTunnelCircuitV2Request,
  CreateTunnelCircuitV2RequestSchema,
  CreateTunnelCircuitV2ResponseSchema,
  type CreateTunnelTerminatorRequest,
  CreateTunnelTerminatorRequestSchema,
  type CreateTunnelTerminatorRequestV2,
  CreateTunnelTerminatorRequestV2Schema,
  CreateTunnelTerminatorResponseSchema,
  CreateTunnelTerminatorResponseV2Schema,
  type EnvInfo,
  type SdkInfo,
  ServicesListSchema,
  UpdateTunnelTerminatorRequestSchema,
} from '../messages/edge_pb.ts'
import { toFailedResult } from '../terminator-results.ts'
import { encodePrecedence, parsePeerData, parsePrecedence } from '../terminator-values.ts'
import { MalformedBodyError, type MessageHandlers, type RouterPeer, withBody } from './message-handler.ts'

// A router sends back what it received.
const MAX_VERSION_BYTES = 50

// Routers renew their API session so long before it ends.
const REFRESH_MARGIN_MS = 10_000

/** Requests of routers with a tunnel listener. Reports of their health checks are dropped, as those of other hosts are. */
export const tunnelerHandlers: MessageHandlers = [
  [
    ContentType.CREATE_API_SESSION_REQUEST,
    withBody(CreateApiSessionRequestSchema, async (session, { envInfo, sdkInfo }, message) => {
      const { controller, router, channel } = session
      // Without a response the router ends its process after 30 seconds, and if it is refused, at once.
      await orRefuse(session, message, async (system) => {
        const client = {
          ...(envInfo ? { envInfo: toEnvInfo(envInfo) } : {}),
          ...(sdkInfo ? { sdkInfo: toSdkInfo(sdkInfo) } : {}),
        }
        const apiSession = await controller.routers.tunneling.openApiSession(system, router.id, client)
        const response = create(CreateApiSessionResponseSchema, describeApiSession(apiSession))
        const body = toBinary(CreateApiSessionResponseSchema, response)
        channel.send(ContentType.CREATE_API_SESSION_RESPONSE, body, { replyTo: message })
      })
    }),
  ],
  [
    ContentType.LIST_SERVICES,
    async (session, { body }) => {
      const { controller, router, channel } = session
      if (body.length > MAX_VERSION_BYTES) throw new MalformedBodyError('the version of the services is too long')
      await orIgnore(session, async (system) => {
        const listed = await controller.routers.tunneling.listServices(system, router.id, body.toString())
        if (!listed) return
        const list = create(ServicesListSchema, {
          lastUpdate: Buffer.from(listed.version),
          services: listed.services.map(({ id, name, permissions, isEncrypted, config, tags }) => ({
            id,
            name,
            permissions: [...permissions],
            encryption: isEncrypted,
            config: Buffer.from(config),
            tags: Buffer.from(tags),
          })),
        })
        // Routers take it for a message of its own, not for a reply.
        channel.send(ContentType.SERVICE_LIST, toBinary(ServicesListSchema, list))
      })
    },
  ],
  [
    ContentType.CREATE_CIRCUIT_FOR_SERVICE_REQUEST,
    withBody(CreateCircuitForServiceRequestSchema, async (session, request, message) => {
      await orRefuse(session, message, async (system) => {
        const { opened, circuit } = await dial(session, system, request)
        const response = create(CreateCircuitForServiceResponseSchema, { ...describeSession(opened), ...circuit })
        const body = toBinary(CreateCircuitForServiceResponseSchema, response)
        session.channel.send(ContentType.CREATE_CIRCUIT_FOR_SERVICE_RESPONSE, body, { replyTo: message })
      })
    }),
  ],
  [
    ContentType.CREATE_TUNNEL_TERMINATOR_REQUEST,
    withBody(CreateTunnelTerminatorRequestSchema, async (session, request, message) => {
      const { serviceName, address, startTime } = request
      // Without a response the router asks again, later and later.
      await orIgnore(session, async (system) => {
        const opened = await host(session, system, { name: serviceName }, request)
        const response = { ...describeSession(opened), terminatorId: address, startTime }
        const body = toBinary(
          CreateTunnelTerminatorResponseSchema,
          create(CreateTunnelTerminatorResponseSchema, response),
        )
        session.channel.send(ContentType.CREATE_TUNNEL_TERMINATOR_RESPONSE, body, { replyTo: message })
      })
    }),
  ],
  [
    ContentType.UPDATE_TUNNEL_TERMINATOR_REQUEST,
    withBody(UpdateTunnelTerminatorRequestSchema, async (session, request, message) => {
      const { controller, router, channel } = session
      const { terminatorId, cost, updateCost, precedence, updatePrecedence } = request
      await orRefuse(session, message, async (system) => {
        await controller.fabric.hosted.update(system, { routerId: router.id }, terminatorId, {
          cost: updateCost ? cost : undefined,
          precedence: updatePrecedence ? parsePrecedence(precedence) : undefined,
        })
        channel.send(ContentType.UPDATE_TUNNEL_TERMINATOR_RESPONSE, undefined, { replyTo: message })
      })
    }),
  ],
  [
    ContentType.REMOVE_TUNNEL_TERMINATOR_REQUEST,
    (session, message) => {
      const { controller, router, channel } = session
      return orRefuse(session, message, async (system) => {
        const count = await controller.fabric.hosted.remove(system, router.id, [message.body.toString()])
        if (count === 0) throw new RequestRefusedError('unknown-terminator', 'the router has no such terminator')
        channel.send(ContentType.REMOVE_TUNNEL_TERMINATOR_RESPONSE, undefined, { replyTo: message })
      })
    },
  ],
  [
    ContentType.CREATE_TUNNEL_TERMINATOR_V2_REQUEST,
    withBody(CreateTunnelTerminatorRequestV2Schema, async (session, request, message) => {
      const { serviceId, address, startTime } = request
      const respond = (outcome: MessageInitShape<typeof CreateTunnelTerminatorResponseV2Schema>) => {
        const response = create(CreateTunnelTerminatorResponseV2Schema, {
          terminatorId: address,
          startTime,
          ...outcome,
        })
        const body = toBinary(CreateTunnelTerminatorResponseV2Schema, response)
        session.channel.send(ContentType.CREATE_TUNNEL_TERMINATOR_V2_RESPONSE, body, { replyTo: message })
      }
      try {
        await host(session, session.controller.contexts.create({ kind: 'system' }), { id: serviceId }, request)
        respond({ result: CreateTerminatorResult.Success })
      } catch (error) {
        const isRefusal = error instanceof RequestRefusedError
        respond(toFailedResult(isRefusal ? error : INTERNAL_FAILURE, session.router))
        if (!isRefusal) throw error
      }
    }),
  ],
  [
    ContentType.CREATE_TUNNEL_CIRCUIT_V2_REQUEST,
    withBody(CreateTunnelCircuitV2RequestSchema, async (session, request, message) => {
      await orRefuse(session, message, async (system) => {
        const { circuit } = await dial(session, system, request)
        const body = toBinary(CreateTunnelCircuitV2ResponseSchema, create(CreateTunnelCircuitV2ResponseSchema, circuit))
        session.channel.send(ContentType.CREATE_TUNNEL_CIRCUIT_V2_RESPONSE, body, { replyTo: message })
      })
    }),
  ],
]

type System = ReturnType<RouterPeer['controller']['contexts']['create']>
type Run = (system: System) => Promise<void>

/**
 * Opens a circuit to a service for the router itself. Policies are checked by its session, because routers do not check them.
 * Returns its session, and the circuit as responses contain it. Rejects with RequestRefusedError.
 */
async function dial(
  { controller, router }: RouterPeer,
  system: System,
  request: CreateCircuitForServiceRequest | CreateTunnelCircuitV2Request,
) {
  const { serviceName, terminatorInstanceId: instanceId } = request
  const peerData = parsePeerData(request.peerData)
  const opened = await controller.routers.tunneling.openSession(system, router.id, { name: serviceName }, 'Dial')
  const client = toSessionClient(router.id, opened)
  const { circuit, peerData: ofHost } = await controller.fabric.dials.dial({ ...client, instanceId, peerData })
  return {
    opened,
    circuit: {
      circuitId: circuit.id,
      address: circuit.ingressAddress,
      peerData: Object.fromEntries(ofHost),
      tags: { ...circuit.tags },
    },
  }
}

/** Creates a terminator of the router itself. Returns the session that it hosts by. Rejects with RequestRefusedError. */
async function host(
  { controller, router }: RouterPeer,
  system: System,
  service: { readonly id: string } | { readonly name: string },
  request: CreateTunnelTerminatorRequest | CreateTunnelTerminatorRequestV2,
): Promise<TunnelerSession> {
  const { fabric, routers } = controller
  const { address, cost, instanceId, instanceSecret } = request
  const opened = await routers.tunneling.openSession(system, router.id, service, 'Bind')
  const precedence = parsePrecedence(request.precedence)
  const hosted = { id: address, binding: 'tunnel', cost, precedence, instanceId, instanceSecret } as const
  const peerData = parsePeerData(request.peerData)
  await fabric.hosted.create(system, toSessionClient(router.id, opened), { ...hosted, peerData })
  fabric.validation.confirm(router, address)
  return opened
}

/** Serves a request; the router is told if it is refused. */
async function orRefuse({ controller, channel }: RouterPeer, message: Message, run: Run): Promise<void> {
  try {
    await run(controller.contexts.create({ kind: 'system' }))
  } catch (error) {
    if (error instanceof RequestRefusedError) return sendRefusal(channel, message, error)
    sendRefusal(channel, message, INTERNAL_FAILURE)
    throw error
  }
}

/** Serves a request to which no response says that it is refused. */
async function orIgnore({ controller, router }: RouterPeer, run: Run): Promise<void> {
  try {
    await run(controller.contexts.create({ kind: 'system' }))
  } catch (error) {
    if (!(error instanceof RequestRefusedError)) throw error
    const fields = { routerId: router.id, reason: error.message }
    controller.aggregatedLog.info(router.id, fields, 'a request of a tunneler was refused')
  }
}

/** A router as the client of its own session. */
function toSessionClient(routerId: string, { token, apiSession }: TunnelerSession): SessionClient {
  return { routerId, token, apiSessionToken: apiSession.token, fingerprints: [] }
}

/** The API session of a router, for that router. */
function describeApiSession({
  id,
  token,
  identity,
  timeoutMs,
}: TunnelerApiSession): MessageInitShape<typeof CreateApiSessionResponseSchema> {
  const { appData, defaultHostingCost, defaultHostingPrecedence } = identity
  const { serviceHostingCosts, serviceHostingPrecedences } = identity
  const precedences = Object.entries(serviceHostingPrecedences).map(
    ([serviceId, precedence]) => [serviceId, encodePrecedence(precedence)] as const,
  )
  return {
    sessionId: id,
    token,
    refreshIntervalSeconds: Math.max(1, Math.floor((timeoutMs - REFRESH_MARGIN_MS) / 1000)),
    identityId: identity.id,
    identityName: identity.name,
    defaultHostingPrecedence: encodePrecedence(defaultHostingPrecedence),
    defaultHostingCost,
    appDataJson: Object.keys(appData).length > 0 ? JSON.stringify(appData) : '',
    servicePrecedences: Object.fromEntries(precedences),
    serviceCosts: { ...serviceHostingCosts },
  }
}

/** A session for the router, with its API session if that is new. A router ends its process without the former. */
function describeSession({ id, token, apiSession }: TunnelerSession) {
  const session = { sessionId: id, token }
  return apiSession.isNew ? { session, apiSession: describeApiSession(apiSession) } : { session }
}

const toEnvInfo = ({ arch, Os, OsRelease, OsVersion, Hostname, Domain }: EnvInfo) =>
  cut({ arch, os: Os, osRelease: OsRelease, osVersion: OsVersion, hostname: Hostname, domain: Domain })

const toSdkInfo = ({ AppId, AppVersion, Branch, Revision, Type, Version }: SdkInfo) =>
  cut({ appId: AppId, appVersion: AppVersion, branch: Branch, revision: Revision, type: Type, version: Version })

// The limit that clients of the API have, too.
const MAX_INFO_LENGTH = 255

/** The members that are not empty, each at most as long as a record may hold it. */
function cut(info: Readonly<Record<string, string>>): Record<string, string> {
  const members = Object.entries(info).filter(([, value]) => value !== '')
  return Object.fromEntries(members.map(([name, value]) => [name, value.slice(0, MAX_INFO_LENGTH)]))
}
