// A router as the controller sees it: connects by TLS, introduces itself, and sends and receives messages.
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { encodeMessage, MESSAGE_LIMITS, type Message, MessageReader } from '../../../server/control-channel/message.ts'

export interface RouterOptions {
  readonly url: string
  readonly rootPem: string
  /** PEM; without one the router presents no certificate. */
  readonly cert?: string
  readonly key?: string
  /** The protocols that it offers in the handshake; that of routers by default. */
  readonly protocols?: readonly string[]
  /** Whether it responds to heartbeats, as routers do at once. */
  readonly respondsToHeartbeats?: boolean
}

/** The version text of a router of release 1.6.5. */
export const ROUTER_VERSION = 'v1.6.5|0efb60b21134|2025-07-09T14:55:44Z|linux|amd64'

/** The version text of a router of release 2.0.3. */
export const ROUTER_VERSION_2 = 'v2.0.3|5c5a42c1b3f9|2026-07-09T14:55:44Z|linux|amd64'

/** The headers by which a router of release 2 introduces a connection, besides the version. */
export interface GroupedHello {
  readonly type?: 'ctrl.default' | 'ctrl.high'
  /** Whether it begins a group; if it does not say, one that names no group does. */
  readonly isFirst?: boolean
  readonly group?: { readonly id: string; readonly secret: Buffer }
  readonly version?: string
}

/** The headers of a hello of release 2. */
export function groupedHeaders({
  type = 'ctrl.default',
  group,
  isFirst = !group,
  version = ROUTER_VERSION_2,
}: GroupedHello = {}): [number, Buffer][] {
  const flag = Buffer.from([1])
  return [
    [4, Buffer.from(version)],
    [1002, Buffer.from([0b10])],
    [9, flag],
    [7, Buffer.from(type)],
    ...(isFirst ? ([[11, flag]] as [number, Buffer][]) : []),
    ...(group
      ? ([
          [0, Buffer.from(group.id)],
          [10, group.secret],
        ] as [number, Buffer][])
      : []),
  ]
}

/** The group that the response to a hello names. */
export function groupOf({ headers }: Message): { id: string; secret: Buffer } {
  return { id: headers.get(0)!.toString(), secret: headers.get(10)! }
}

export class SimulatedRouter {
  readonly #socket: TLSSocket
  /** Whether it responds to heartbeats, as routers do at once. */
  respondsToHeartbeats: boolean
  #unanswered: Buffer | undefined
  readonly #reader = new MessageReader({ ...MESSAGE_LIMITS, maxBodyBytes: 2 ** 30 })
  readonly received: Message[] = []
  /** Settles when the controller ends the connection, or the router does. */
  readonly closed: Promise<void>
  /** Resolve when a message arrives, or the connection ends. */
  #waiting: (() => void)[] = []
  #sequence = 1
  /** Called with every message; those that it takes are not kept for tests. */
  takeAtOnce: (message: Message) => boolean = () => false

  private constructor(socket: TLSSocket, respondsToHeartbeats: boolean) {
    this.#socket = socket
    this.respondsToHeartbeats = respondsToHeartbeats
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()))
    socket.on('error', () => {})
    socket.on('close', () => this.#wake())
    socket.on('data', (chunk: Buffer) => {
      this.#reader.push(chunk)
      for (let message = this.#reader.next(); message; message = this.#reader.next()) {
        if (!this.takeAtOnce(message)) this.received.push(message)
        const heartbeat = message.headers.get(5)
        if (heartbeat) this.#unanswered ??= heartbeat
        if (this.respondsToHeartbeats) this.respondToHeartbeat()
      }
      this.#wake()
    })
  }

  /** Completes the handshake; nothing is sent. */
  static open(options: RouterOptions): Promise<SimulatedRouter> {
    const { url, rootPem, cert, key, protocols = ['ziti-ctrl'], respondsToHeartbeats = true } = options
    const { hostname, port } = new URL(url)
    return new Promise((resolve, reject) => {
      const socket = connectTls(
        {
          host: hostname,
          port: Number(port),
          ca: rootPem,
          ALPNProtocols: [...protocols],
          ...(cert ? { cert, key } : {}),
        },
        () => resolve(new SimulatedRouter(socket, respondsToHeartbeats)),
      )
      // A small message does not wait for the acknowledgment of the one before, as those of routers do not.
      socket.setNoDelay(true).once('error', reject)
    })
  }

  get protocol(): string | false | null {
    return this.#socket.alpnProtocol
  }

  /** Sends bytes as they are. */
  write(bytes: Buffer): void {
    this.#socket.write(bytes)
  }

  /** Continues the numbers of an earlier connection of the same process. */
  continueFrom(earlier: SimulatedRouter): void {
    this.#sequence = earlier.#sequence
  }

  /** Continues at a number, because the connections of a router number their messages together. */
  continueAt(sequence: number): void {
    this.#sequence = sequence
  }

  /** Introduces itself as the router with this id. */
  introduce(id: string, headers: Iterable<readonly [number, Buffer]> = [[4, Buffer.from(ROUTER_VERSION)]]): void {
    this.write(encodeMessage({ type: 0, sequence: -1, headers: new Map(headers), body: Buffer.from(id) }))
  }

  /** Sends a message and returns its number. */
  send(type: number, body: Uint8Array = Buffer.alloc(0), headers: Iterable<readonly [number, Buffer]> = []): number {
    const sequence = this.#sequence++
    this.write(encodeMessage({ type, sequence, headers: new Map(headers), body: Buffer.from(body) }))
    return sequence
  }

  /** Responds to a heartbeat that has had no response. Returns whether there was one. */
  respondToHeartbeat(): boolean {
    const heartbeat = this.#unanswered
    this.#unanswered = undefined
    if (heartbeat) this.send(5, Buffer.alloc(0), [[6, heartbeat]])
    return heartbeat !== undefined
  }

  /** Resolves when another message has come, also one that was taken at once. @throws if the connection ends */
  async next(): Promise<void> {
    if (this.#socket.destroyed) throw new Error('the connection ended')
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** Reads nothing more, so that what it is sent fills the network. */
  stopReading(): void {
    this.#socket.pause()
  }

  readOn(): void {
    this.#socket.resume()
  }

  /** Resolves with the first message that has not been taken yet and that `matches`. @throws if the connection ends first */
  async take(matches: (message: Message) => boolean): Promise<Message> {
    for (;;) {
      const at = this.received.findIndex(matches)
      if (at >= 0) return this.received.splice(at, 1)[0]!
      if (this.#socket.destroyed) throw new Error('the connection ended before the message came')
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  takeType(type: number): Promise<Message> {
    return this.take((message) => message.type === type)
  }

  takeReply(sequence: number): Promise<Message> {
    return this.take(({ headers }) => headers.get(1)?.readInt32LE() === sequence)
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    this.#socket.destroy()
    await this.closed
  }
}
