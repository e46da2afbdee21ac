// Messages about circuits: requests for one, the results of routes, and circuits that carry no data.
import type { CreatedCircuit } from '../../../src/fabric/circuit-creation.ts'
import { RequestRefusedError } from '../../../src/fabric/request-refused.ts'
import { decodeRouteResult } from '../circuit-values.ts'
import { ContentType } from '../content-types.ts'
import { sendRefusal } from '../edge-errors.ts'
import { decodeBytesByNumber, encodeBytesByNumber, encodeText, encodeTextByName } from '../header-values.ts'
import type { Message } from '../message.ts'
import { CircuitConfirmationSchema } from '../messages/control_pb.ts'
import {
  type MessageHandlers,
  type RouterSession,
  refuseByError,
  refuseByText,
  requireAtMost,
  withBody,
} from './message-handler.ts'

/** The headers of a request for a circuit, and of its response. */
const CircuitHeader = {
  PEER_DATA: 10,
  SESSION_TOKEN: 11,
  CIRCUIT_ID: 11,
  ADDRESS: 12,
  INSTANCE_ID: 13,
  TAGS: 13,
  API_SESSION_TOKEN: 14,
} as const

// A router may report all circuits that it carries; each id has some 25 characters.
const MAX_REPORTED_CIRCUITS = 100_000

const NANOSECONDS_PER_MS = 1_000_000n

/** Requests for circuits, and what becomes of them. */
export const circuitHandlers: MessageHandlers = [
  [ContentType.CREATE_CIRCUIT_V2_REQUEST, createCircuit],
  [
    ContentType.ROUTE_RESULT,
    ({ controller, router }, message) => controller.fabric.reports.takeRouteResult(router, decodeRouteResult(message)),
  ],
  [
    ContentType.CIRCUIT_CONFIRMATION,
    withBody(CircuitConfirmationSchema, ({ controller, router }, { circuitIds, idleTimes }) => {
      requireAtMost(MAX_REPORTED_CIRCUITS, circuitIds, 'circuits')
      // A map, because a router may name circuits as members that every object has.
      const times = new Map(Object.entries(idleTimes))
      const reports = circuitIds.map((circuitId) => {
        const idleMs = Number((times.get(circuitId) ?? 0n) / NANOSECONDS_PER_MS)
        return { circuitId, idleMs: Math.max(0, idleMs) }
      })
      return controller.fabric.reports.takeIdleReports(router, reports)
    }),
  ],
  [ContentType.CIRCUIT_REQUEST, refuseByText(ContentType.CIRCUIT_FAILED)],
  [ContentType.CREATE_CIRCUIT, refuseByError],
  [ContentType.CREATE_TUNNEL_CIRCUIT_V2, refuseByError],
]

async function createCircuit(session: RouterSession, message: Message): Promise<void> {
  const { controller, router, channel } = session
  const { headers } = message
  const readText = (id: number) => headers.get(id)?.toString() ?? ''
  const request = {
    routerId: router.id,
    token: readText(CircuitHeader.SESSION_TOKEN),
    apiSessionToken: readText(CircuitHeader.API_SESSION_TOKEN),
    instanceId: readText(CircuitHeader.INSTANCE_ID),
    peerData: decodeBytesByNumber(headers.get(CircuitHeader.PEER_DATA) ?? Buffer.alloc(0)),
  }
  try {
    sendCircuit(session, message, await controller.fabric.dials.dial(request))
  } catch (error) {
    if (error instanceof RequestRefusedError) return sendRefusal(channel, message, error)
    sendRefusal(channel, message, { reason: 'other', message: 'the circuit could not be created' })
    throw new Error('a circuit could not be created', { cause: error })
  }
}

function sendCircuit({ controller, channel }: RouterSession, replyTo: Message, { circuit, peerData }: CreatedCircuit) {
  try {
    const headers = [
      [CircuitHeader.CIRCUIT_ID, encodeText(circuit.id)],
      [CircuitHeader.ADDRESS, encodeText(circuit.ingressAddress)],
      [CircuitHeader.PEER_DATA, encodeBytesByNumber(peerData)],
      [CircuitHeader.TAGS, encodeTextByName(circuit.tags)],
    ] as const
    channel.send(ContentType.CREATE_CIRCUIT_V2_RESPONSE, undefined, { headers, replyTo })
  } catch (error) {
    controller.fabric.circuits.remove(circuit.id, true)
    throw error
  }
}
