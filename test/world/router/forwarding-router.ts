// A router that forwards: keeps tables as routes tell it, reaches hosts, and dials for clients.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { Message } from '../../../server/control-channel/message.ts'
import {
  CircuitConfirmationSchema,
  DestType,
  FaultSchema,
  type FaultSubject,
  type Route,
  RouteSchema,
  type Unroute,
  UnrouteSchema,
} from '../../../server/control-channel/messages/control_pb.ts'
import { ClientHelloSchema } from '../../../server/control-channel/messages/edge_pb.ts'
import type { EnrolledRouter } from './enrolled-router.ts'
import { groupedHeaders, groupOf, SimulatedRouter } from './simulated-router.ts'

/** The router's response to a route: it succeeds, fails with a code, or sends nothing. */
export type RouteReply = 'success' | 'silence' | { readonly code: number; readonly text: string }

/** The tokens that a client dials by. */
export interface ClientTokens {
  readonly token: string
  readonly apiSessionToken: string
}

export interface DialOptions {
  readonly peerData?: ReadonlyMap<number, Buffer>
  readonly instanceId?: string
  /** SHA-1 of the certificates that the client presented. */
  readonly fingerprints?: readonly string[]
  /** Routers send none. */
  readonly body?: Buffer
}

/** The response to a dial. */
export interface DialResponse {
  readonly type: number
  readonly text: string
  readonly code: number | undefined
  readonly circuitId: string
  readonly address: string
  readonly peerData: ReadonlyMap<number, Buffer>
  readonly tags: Readonly<Record<string, string>>
}

export class ForwardingRouter {
  readonly id: string
  readonly wire: SimulatedRouter
  /** Circuit → address → where data from it goes. */
  readonly tables: Map<string, Map<string, Route['forwards'][number]>>
  /** The response to its hello. */
  hello!: Message
  /** All routes that arrived, in order. */
  readonly routes: Route[] = []
  readonly unroutes: Unroute[] = []
  readonly faults: { subject: FaultSubject; id: string; iteration: number }[] = []
  /** The response to the next routes. */
  reply: (route: Route) => RouteReply = () => 'success'
  /** Data of its hosts for the opening of a circuit: header id → value. */
  hostData: ReadonlyMap<number, Buffer> = new Map()
  /** Results that were withheld, and can be sent later. */
  readonly withheld: Message[] = []

  private constructor(id: string, wire: SimulatedRouter, tables: ForwardingRouter['tables']) {
    this.tables = tables
    this.id = id
    this.wire = wire
    wire.takeAtOnce = (message) => this.#take(message)
  }

  /**
   * Connects an edge router.
   * @param earlier the connection of the same process that it continues
   * @param tables those that it shares with its connections to other controllers
   */
  static async connect(
    address: { url: string; rootPem: string },
    enrolled: EnrolledRouter,
    earlier?: ForwardingRouter,
    release: 1 | 2 = 1,
    tables: ForwardingRouter['tables'] = new Map(),
  ): Promise<ForwardingRouter> {
    const wire = await SimulatedRouter.open({ ...address, ...enrolled })
    if (earlier) wire.continueFrom(earlier.wire)
    const router = new ForwardingRouter(enrolled.id, wire, tables)
    for (const [id, table] of earlier?.tables ?? []) router.tables.set(id, table)
    const group = earlier && release === 2 ? { group: groupOf(earlier.hello), isFirst: true } : {}
    wire.introduce(enrolled.id, release === 2 ? groupedHeaders(group) : undefined)
    router.hello = await wire.takeType(2)
    const version = release === 2 ? 'v2.0.3' : 'v1.6.5'
    wire.send(20001, toBinary(ClientHelloSchema, create(ClientHelloSchema, { version })))
    await wire.takeReply(wire.send(1))
    return router
  }

  #take(message: Message): boolean {
    if (message.type === 1005) this.#takeRoute(message)
    else if (message.type === 1006) this.#takeUnroute(fromBinary(UnrouteSchema, message.body))
    else if (message.type === 1004) this.faults.push(fromBinary(FaultSchema, message.body))
    else return false
    return true
  }

  #takeRoute(message: Message): void {
    const route = fromBinary(RouteSchema, message.body)
    this.routes.push(route)
    const reply = this.reply(route)
    if (reply === 'silence') {
      this.withheld.push(message)
      return
    }
    if (reply === 'success') this.applyRoute(route)
    this.sendResult(message, reply)
  }

  applyRoute({ circuitId, forwards }: Route): void {
    const table = this.tables.get(circuitId) ?? new Map()
    for (const forward of forwards) table.set(forward.srcAddress, forward)
    this.tables.set(circuitId, table)
  }

  #takeUnroute(unroute: Unroute): void {
    this.unroutes.push(unroute)
    this.tables.delete(unroute.circuitId)
  }

  /** Sends the result of a route. */
  sendResult(message: Message, reply: Exclude<RouteReply, 'silence'> = 'success'): void {
    const { circuitId, attempt, egress } = fromBinary(RouteSchema, message.body)
    const headers: [number, Buffer][] = [
      [1, int32(message.sequence)],
      [1101, int32(attempt)],
    ]
    if (reply === 'success') headers.push([1102, Buffer.from([1])], ...(egress ? this.hostData : []))
    else headers.push([1103, Buffer.from(reply.text)], [1104, Buffer.from([reply.code])])
    this.wire.send(1022, Buffer.from(circuitId), headers)
  }

  /** Hands on the dial of a client. Returns the number of the request. */
  sendDial(
    { token, apiSessionToken }: ClientTokens,
    { peerData = new Map(), instanceId = '', fingerprints = [], body = Buffer.alloc(0) }: DialOptions = {},
  ): number {
    return this.wire.send(20218, body, [
      [10, encodeMap(peerData)],
      [11, Buffer.from(token)],
      [12, encodeList(fingerprints)],
      [13, Buffer.from(instanceId)],
      [14, Buffer.from(apiSessionToken)],
    ])
  }

  /** Hands on the dial of a client, and resolves with the response. */
  async dial(tokens: ClientTokens, options?: DialOptions): Promise<DialResponse> {
    return this.takeDialResponse(this.sendDial(tokens, options))
  }

  async takeDialResponse(sequence: number): Promise<DialResponse> {
    const { type, headers, body } = await this.wire.takeReply(sequence)
    const isError = type === 20002
    return {
      type,
      text: body.toString(),
      code: headers.get(1014)?.readUInt32LE(),
      circuitId: (isError ? headers.get(1026) : headers.get(11))?.toString() ?? '',
      address: headers.get(12)?.toString() ?? '',
      peerData: new Map(decodeEntries(headers.get(10)).map(([id, value]) => [id.readUInt32LE(), value])),
      tags: Object.fromEntries(decodeNamed(headers.get(13))),
    }
  }

  sendFault(subject: FaultSubject, id: string, iteration = 0): void {
    this.wire.send(1004, toBinary(FaultSchema, create(FaultSchema, { subject, id, iteration })))
  }

  /** Reports circuits that carry no data: circuit → milliseconds. */
  reportIdle(idleMs: Readonly<Record<string, number>>): void {
    const idleTimes = Object.fromEntries(Object.entries(idleMs).map(([id, ms]) => [id, BigInt(ms) * 1_000_000n]))
    const message = create(CircuitConfirmationSchema, { circuitIds: Object.keys(idleMs), idleTimes })
    this.wire.send(1034, toBinary(CircuitConfirmationSchema, message))
  }

  /** Resolves once the controller has handled everything that was sent before. */
  async settle(): Promise<void> {
    await this.wire.takeReply(this.wire.send(1))
  }
}

/** Ends of links: link → the two routers that it joins. */
export type Links = ReadonlyMap<string, readonly [ForwardingRouter, ForwardingRouter]>

/**
 * Follows data through tables, address by address, from a router where it enters. Returns the addresses that it passes; the last
 * one is where it leaves. @throws if a router does not know where data goes, or sends it to the wrong kind of place
 */
export function trace(entry: ForwardingRouter, circuitId: string, from: string, links: Links = new Map()): string[] {
  const passed = [from]
  let router = entry
  for (let address = from; ; ) {
    const forward = router.tables.get(circuitId)?.get(address)
    if (!forward) throw new Error(`router ${router.id} does not know where data from ${address} goes`)
    address = forward.dstAddress
    passed.push(address)
    if (forward.dstType !== DestType.Link) return passed
    const ends = links.get(address)
    if (!ends) throw new Error(`${address} is not a link`)
    if (passed.length > 50) throw new Error('the data goes in a circle')
    router = ends[0] === router ? ends[1] : ends[0]
  }
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function encodeMap(map: ReadonlyMap<number, Buffer>): Buffer {
  if (map.size === 0) return Buffer.alloc(0)
  return Buffer.concat([int32(map.size), ...[...map].flatMap(([id, value]) => [int32(id), int32(value.length), value])])
}

function encodeList(texts: readonly string[]): Buffer {
  return Buffer.concat([int32(texts.length), ...texts.flatMap((text) => [int32(text.length), Buffer.from(text)])])
}

function decodeEntries(bytes: Buffer | undefined): [Buffer, Buffer][] {
  const entries: [Buffer, Buffer][] = []
  if (!bytes || bytes.length === 0) return entries
  let offset = 4
  while (offset < bytes.length) {
    const length = bytes.readUInt32LE(offset + 4)
    entries.push([bytes.subarray(offset, offset + 4), bytes.subarray(offset + 8, offset + 8 + length)])
    offset += 8 + length
  }
  return entries
}

function decodeNamed(bytes: Buffer | undefined): [string, string][] {
  const texts: string[] = []
  for (let offset = 4; bytes && offset < bytes.length; ) {
    const length = bytes.readUInt32LE(offset)
    texts.push(bytes.subarray(offset + 4, offset + 4 + length).toString())
    offset += 4 + length
  }
  return texts.flatMap((name, at) => (at % 2 === 0 ? [[name, texts[at + 1]!] as [string, string]] : []))
}
