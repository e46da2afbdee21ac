// Messages about circuits: requests for one, the results of routes, and circuits that carry no data.
import type { CreatedCircuit } from '../../../src/network/circuits/circuit-creation.ts'
import type { DialRequest } from '../../../src/network/circuits/dials.ts'
import { RequestRefusedError } from '../../../src/network/client-requests/request-refused.ts'
import { toReplyTarget } from '../channel.ts'
import { decodeRouteResult } from '../circuit-values.ts'
import { ContentType } from '../content-types.ts'
import { sendRefusal } from '../edge-errors.ts'
import {
  decodeBytesByNumber,
  decodeTexts,
  encodeBytesByNumber,
  encodeText,
  encodeTextByName,
  HeaderValueError,
} from '../header-values.ts'
import type { Message, ReplyTarget } from '../message.ts'
import { CircuitConfirmationSchema } from '../messages/control_pb.ts'
import {
  type MessageHandlers,
  type RouterPeer,
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
  FINGERPRINTS: 12,
  ADDRESS: 12,
  INSTANCE_ID: 13,
  TAGS: 13,
  API_SESSION_TOKEN: 14,
} as const

// A router may report all circuits that it carries; each id has some 35 characters.
const MAX_REPORTED_CIRCUITS = 100_000

// All of a dial is in its headers.
const MAX_DIAL_BODY_BYTES = 4_096

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
]

/** Keeps nothing of the message itself while routers work: its frame may be long, and many dials wait at a time. */
function createCircuit(session: RouterPeer, message: Message): Promise<void> | void {
  const replyTo = toReplyTarget(message)
  try {
    return dial(session, replyTo, parseDial(session, message))
  } catch (error) {
    if (!(error instanceof RequestRefusedError)) throw error
    sendRefusal(session.channel, replyTo, error)
  }
}

/** @throws RequestRefusedError: what a client makes its router send concerns this dial alone */
function parseDial({ router, findWait }: RouterPeer, { headers, body }: Message): DialRequest {
  if (body.length > MAX_DIAL_BODY_BYTES)
    throw new RequestRefusedError('other', `the request has a body of more than ${MAX_DIAL_BODY_BYTES} bytes`)
  const readText = (id: number) => headers.get(id)?.toString() ?? ''
  return {
    routerId: router.id,
    token: readText(CircuitHeader.SESSION_TOKEN),
    apiSessionToken: readText(CircuitHeader.API_SESSION_TOKEN),
    ...parseCollections(headers),
    instanceId: readText(CircuitHeader.INSTANCE_ID),
    mayHaveWaited: findWait(),
  }
}

/** @throws RequestRefusedError */
function parseCollections(headers: Message['headers']): Pick<DialRequest, 'fingerprints' | 'peerData'> {
  const read = (id: number) => headers.get(id) ?? Buffer.alloc(0)
  try {
    return {
      fingerprints: decodeTexts(read(CircuitHeader.FINGERPRINTS)),
      peerData: decodeBytesByNumber(Buffer.from(read(CircuitHeader.PEER_DATA))),
    }
  } catch (error) {
    throw toRefusal('client', error)
  }
}

async function dial(session: RouterPeer, replyTo: ReplyTarget, request: DialRequest): Promise<void> {
  const { controller, channel } = session
  try {
    sendCircuit(session, replyTo, await controller.fabric.dials.dial(request))
  } catch (error) {
    if (error instanceof RequestRefusedError) return sendRefusal(channel, replyTo, error)
    sendRefusal(channel, replyTo, { reason: 'other', message: 'the circuit could not be created' })
    throw new Error('a circuit could not be created', { cause: error })
  }
}

/** @throws RequestRefusedError if the peer data of the host cannot be carried */
function sendCircuit(
  { controller, channel }: RouterPeer,
  replyTo: ReplyTarget,
  { circuit, peerData }: CreatedCircuit,
): void {
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
    throw toRefusal('host', error, circuit.id)
  }
}

/** The refusal of a dial for peer data that a header cannot carry; any other error is returned as it is. */
function toRefusal(sender: 'client' | 'host', error: unknown, circuitId?: string): unknown {
  if (!(error instanceof HeaderValueError)) return error
  return new RequestRefusedError('other', `the peer data of the ${sender} is not accepted: ${error.message}`, circuitId)
}
