// Routes, their results and faults, as messages hold them.
import { create, toBinary } from '@bufbuild/protobuf'
import {
  type Forward,
  isPeerDataTooLong,
  type PeerData,
  ROUTE_FAILURE_KINDS,
  type Route,
  type RouteResult,
  type RouteTrace,
} from '../../src/network/routers/router-connection.ts'
import type { TraceChannel } from '../../src/storage/transactions/changes.ts'
import { decodeUint32 } from './header-values.ts'
import type { Message } from './message.ts'
import { DestType, RouteSchema, UnrouteSchema } from './messages/control_pb.ts'

const NANOSECONDS_PER_MS = 1_000_000n

const DESTINATIONS: Readonly<Record<Forward['toKind'], DestType>> = {
  client: DestType.Start,
  terminator: DestType.End,
  link: DestType.Link,
}

/** Renders the body of a route. */
export function encodeRoute({ circuitId, attempt, forwards, egress, timeoutMs, tags, trace }: Route): Uint8Array {
  const message = create(RouteSchema, {
    circuitId,
    attempt,
    forwards: forwards.map(({ from, to, toKind }) => ({
      srcAddress: from,
      dstAddress: to,
      dstType: DESTINATIONS[toKind],
    })),
    timeout: BigInt(Math.ceil(timeoutMs)) * NANOSECONDS_PER_MS,
    tags,
    ...(trace ? { context: toContext(trace) } : {}),
    ...(egress ? { egress: { ...egress, peerData: Object.fromEntries(egress.peerData) } } : {}),
  })
  return toBinary(RouteSchema, message)
}

const CHANNEL_BITS: Readonly<Record<TraceChannel, number>> = { selectPath: 1, establishPath: 2 }

function toContext({ channels, fields }: RouteTrace) {
  return { fields, channelMask: channels.reduce((mask, channel) => mask | CHANNEL_BITS[channel], 0) }
}

/** Renders the body of the message that ends a circuit. */
export function encodeUnroute(circuitId: string, isImmediate: boolean): Uint8Array {
  return toBinary(UnrouteSchema, create(UnrouteSchema, { circuitId, now: isImmediate }))
}

/** The headers of a route's result. */
const ResultHeader = { ATTEMPT: 1101, SUCCESS: 1102, ERROR: 1103, ERROR_CODE: 1104 } as const

// The addresses of the connection to the terminator, which are not the client's concern.
const TERMINATOR_ADDRESSES: readonly number[] = [1110, 1111]

// Headers below are those of the channel.
const MIN_PEER_DATA_ID = 1000

const MAX_ERROR_LENGTH = 500

/** Reads the result of a route. One that does not say which attempt it concerns is a failure. */
export function decodeRouteResult({ headers, body }: Message): RouteResult {
  const circuitId = body.toString()
  const attempt = headers.get(ResultHeader.ATTEMPT)
  // The headers of a host may replace those of its router: that must not cost the router its connection.
  if (attempt?.length !== 4) {
    const failure = { kind: 'generic', message: 'the result of the route does not name its attempt' } as const
    return { circuitId, attempt: undefined, failure, peerData: new Map() }
  }
  const peerData: PeerData = new Map([...headers].filter(([id]) => isPeerData(id)))
  if (isPeerDataTooLong(peerData)) {
    const failure = { kind: 'generic', message: 'the peer data of the host are too long' } as const
    // Without its attempt: the router has to drop its part.
    return { circuitId, attempt: undefined, failure, peerData: new Map() }
  }
  const isSuccess = headers.has(ResultHeader.SUCCESS)
  return {
    circuitId,
    attempt: decodeUint32(attempt),
    failure: isSuccess
      ? undefined
      : {
          kind: ROUTE_FAILURE_KINDS[headers.get(ResultHeader.ERROR_CODE)?.[0] ?? 0] ?? 'generic',
          message: headers.get(ResultHeader.ERROR)?.toString().slice(0, MAX_ERROR_LENGTH) ?? '',
        },
    // Copied, because they wait for other routers, and the message may be long.
    peerData: new Map([...peerData].map(([id, value]) => [id, Buffer.from(value)])),
  }
}

function isPeerData(id: number): boolean {
  const isOfResult = (Object.values(ResultHeader) as number[]).includes(id)
  return id >= MIN_PEER_DATA_ID && !isOfResult && !TERMINATOR_ADDRESSES.includes(id)
}
