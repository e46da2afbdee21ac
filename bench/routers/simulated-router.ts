// A router as the controller sees it: connects, responds to heartbeats and routes, and counts what it is told.
import { connect, type TLSSocket } from 'node:tls'
import { encodeMessage, MESSAGE_LIMITS, type Message, MessageReader } from '../../server/control-channel/message.ts'
import type { Target } from '../generator/connection.ts'
import type { DialTokens, Release, RouterIdentity, Synchronized } from './swarm-messages.ts'

// The kinds of message and the headers that it reads or writes.
const RESULT = 2
const HEARTBEAT = 5
const ROUTE = 1005
const ROUTE_RESULT = 1022
const CLIENT_HELLO = 20001
const ERROR = 20002
const API_SESSION_ADDED = 20200
const CREATE_CIRCUIT = 20218
const CREATE_CIRCUIT_RESPONSE = 20219
const DATA_STATE = 20500
const DATA_STATE_CHANGE_SET = 20501
const SUBSCRIBE_TO_DATA_MODEL = 20505
const HEARTBEAT_HEADER = 5
const HEARTBEAT_RESPONSE_HEADER = 6
const SYNC_STATE_HEADER = 1014
const SUBSCRIPTION_HEADER = 1026

const FLAG = Buffer.from([1])

/** The headers of the hello. A router of release 2 has a group of connections; here, it has one. */
const HELLO_HEADERS: Readonly<Record<Release, [number, Buffer][]>> = {
  1: [[4, Buffer.from('v1.6.5|0efb60b21134|2025-07-09T14:55:44Z|linux|amd64')]],
  2: [
    [4, Buffer.from('v2.0.3|5c5a42c1b3f9|2026-07-09T14:55:44Z|linux|amd64')],
    [7, Buffer.from('ctrl.default')],
    [9, FLAG],
    [11, FLAG],
    [1002, Buffer.from([2])],
  ],
}

// A subscription of five minutes, with a name and without a model.
const SUBSCRIPTION_BODY = Buffer.from('\x10\xac\x02\x2a\x05bench', 'latin1')

// The whole model is longer than anything that routers send.
const LIMITS = { ...MESSAGE_LIMITS, maxBodyBytes: 2 ** 30 }

// A ClientHello with the version and the host name of the router.
const CLIENT_HELLO_BODY = Buffer.from('\x0a\x06v1.6.5\x12\x0erouter.example', 'latin1')

const EMPTY = Buffer.alloc(0)

export class SimulatedRouter {
  readonly #socket: TLSSocket
  readonly #reader = new MessageReader(LIMITS)
  readonly #waiting = new Map<number, (isSuccess: boolean) => void>()
  #sequence = 1
  #onHello: () => void = () => {}
  #onSynchronized: (parts: number) => void = () => {}
  #parts = 0
  /** The number of announcements of new sessions that it received. */
  announcements = 0
  /** The number of sets of changes of the data model that it received. */
  changes = 0
  /** Settles when its connection has ended. */
  readonly closed: Promise<void>
  #onState: () => void = () => {}
  #onChange: () => void = () => {}

  private constructor(socket: TLSSocket) {
    this.#socket = socket
    this.closed = new Promise((resolve) => socket.on('close', () => resolve()))
    socket.on('data', (chunk: Buffer) => {
      this.#reader.push(chunk)
      for (let message = this.#reader.next(); message; message = this.#reader.next()) this.#take(message)
    })
  }

  /** Connects; resolves when the controller has responded to the hello. */
  static connect(target: Target, { id, credential }: RouterIdentity, release: Release = 1): Promise<SimulatedRouter> {
    return new Promise((resolve, reject) => {
      const options = { ...target, ...credential, rejectUnauthorized: false, ALPNProtocols: ['ziti-ctrl'] }
      const socket = connect(options, () => {
        const router = new SimulatedRouter(socket)
        router.#onHello = () => resolve(router)
        router.#write(0, -1, HELLO_HEADERS[release], Buffer.from(id))
      })
      socket.on('error', reject)
      socket.on('close', () => reject(new Error('the controller ended the connection of a router')))
    })
  }

  /** Introduces itself as an edge router, and waits for all API sessions. */
  synchronize(): Promise<Synchronized> {
    const begun = performance.now()
    this.#parts = 0
    return new Promise((resolve) => {
      this.#onSynchronized = (parts) => resolve({ milliseconds: performance.now() - begun, parts })
      this.#send(CLIENT_HELLO, [], CLIENT_HELLO_BODY)
    })
  }

  /** Subscribes to the data model, and waits for all of it. */
  follow(): Promise<void> {
    return new Promise((resolve) => {
      this.#onState = resolve
      this.#send(SUBSCRIBE_TO_DATA_MODEL, [], SUBSCRIPTION_BODY)
    })
  }

  /** Resolves when it has received so many sets of changes since it subscribed. */
  async awaitChanges(count: number): Promise<void> {
    while (this.changes < count) {
      await new Promise<void>((resolve) => {
        this.#onChange = resolve
      })
    }
  }

  /** Asks for a circuit, as for a client that dials; resolves with whether there is one. */
  dial({ session, apiSession }: DialTokens): Promise<boolean> {
    const headers: [number, Buffer][] = [
      [11, Buffer.from(session)],
      [13, EMPTY],
      [14, Buffer.from(apiSession)],
    ]
    const sequence = this.#send(CREATE_CIRCUIT, headers, EMPTY)
    return new Promise((resolve) => this.#waiting.set(sequence, resolve))
  }

  #take(message: Message): void {
    const { type, headers } = message
    const heartbeat = headers.get(HEARTBEAT_HEADER)
    if (heartbeat) this.#send(HEARTBEAT, [[HEARTBEAT_RESPONSE_HEADER, heartbeat]], EMPTY)
    switch (type) {
      case RESULT:
        this.#onHello()
        break
      case API_SESSION_ADDED:
        this.#takeSessions(headers.get(SYNC_STATE_HEADER))
        break
      case DATA_STATE:
        this.#onState()
        break
      case DATA_STATE_CHANGE_SET:
        // Public keys come without a subscription.
        if (headers.has(SUBSCRIPTION_HEADER)) this.changes += 1
        this.#onChange()
        break
      case ROUTE:
        this.#confirmRoute(message)
        break
      case ERROR:
      case CREATE_CIRCUIT_RESPONSE: {
        const sequence = headers.get(1)?.readInt32LE() ?? 0
        this.#waiting.get(sequence)?.(type === CREATE_CIRCUIT_RESPONSE)
        this.#waiting.delete(sequence)
        break
      }
    }
  }

  #takeSessions(syncState: Buffer | undefined): void {
    this.announcements += 1
    if (!syncState) return
    this.#parts += 1
    // Parts arrive in order.
    if ((JSON.parse(syncState.toString()) as { isLast: boolean }).isLast) this.#onSynchronized(this.#parts)
  }

  /** Its circuit is the first member of the body: one byte of tag, one of length, and the id. */
  #confirmRoute({ sequence, body }: Message): void {
    const circuitId = body.subarray(2, 2 + (body[1] ?? 0))
    const replyFor = Buffer.alloc(4)
    replyFor.writeInt32LE(sequence)
    const headers: [number, Buffer][] = [
      [1, replyFor],
      [1101, Buffer.alloc(4)],
      [1102, Buffer.from([1])],
    ]
    this.#send(ROUTE_RESULT, headers, circuitId)
  }

  #send(type: number, headers: [number, Buffer][], body: Buffer): number {
    const sequence = this.#sequence++
    this.#write(type, sequence, headers, body)
    return sequence
  }

  #write(type: number, sequence: number, headers: [number, Buffer][], body: Buffer): void {
    this.#socket.write(encodeMessage({ type, sequence, headers: new Map(headers), body }))
  }
}
