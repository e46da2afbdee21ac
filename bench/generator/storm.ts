// The load of a storm: clients that come back at the same moment, as SDKs do. Each connects, signs in, asks for what it needs with the
// session that it was given, and polls from then on until all are back.
import { setTimeout as wait } from 'node:timers/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Target } from './connection.ts'
import { type OpenConnection, openConnection } from './open-connection.ts'
import type { Load, Outcome, Plan, Storm, StormMember } from './plan.ts'
import { RequestSource } from './requests.ts'
import type { HttpResponse } from './response-reader.ts'
import { Tally } from './tally.ts'

/** Stand in the text of requests for what earlier responses gave: the token of the session, and the id of the first service. */
export const TOKEN = '{token}'
// As long as an id, because the head of the request says how long its body is.
export const SERVICE = '{service}'.padEnd(26, '.')

// A client whose connection fails tries again after a random part of a time that doubles.
const FIRST_BACKOFF_MS = 100
const MAX_BACKOFF_MS = 5_000
const PREPARED_AT_ONCE = 8
const BEGUN_TOGETHER = 8
const TOO_MANY_REQUESTS = 429
// As OpenZiti's tunnelers.
const POLL_INTERVAL_MS = 10_000
const WATCH_INTERVAL_MS = 250

/** One member, with what it knows. */
interface Client {
  readonly member: StormMember
  readonly secureContext: SecureContext | undefined
  /** The ticket of its last connection. */
  ticket: Buffer | undefined
}

export class StormLoad implements Load {
  readonly #target: Target
  readonly #storm: Storm
  readonly #clients: readonly Client[]
  readonly #source: RequestSource
  readonly #tally = new Tally()
  readonly #pollLatencies: number[] = []
  #refusedCount = 0
  #maxRetryAfterSeconds = 0
  #failedConnections = 0
  #back = 0
  #isStopped = false

  constructor({ target, requests, countFrom }: Plan, storm: Storm) {
    this.#target = target
    this.#storm = storm
    this.#source = new RequestSource(requests, countFrom)
    this.#clients = storm.members.map((member) => {
      return { member, secureContext: member.credential && createSecureContext(member.credential), ticket: undefined }
    })
  }

  get completed(): number {
    return this.#tally.completed
  }

  /** Lets each client take a ticket, if they are to resume. */
  async prepare(): Promise<number> {
    if (!this.#storm.resumes) return 0
    const left = [...this.#clients]
    const takeTickets = async () => {
      for (let client = left.pop(); client; client = left.pop()) {
        const connection = await this.#connect(client)
        await connection.ask(this.#source.at(client.member.request))
        connection.close()
      }
    }
    await Promise.all(Array.from({ length: PREPARED_AT_ONCE }, takeTickets))
    return 0
  }

  async run(): Promise<Outcome> {
    const begun = performance.now()
    const running: Promise<void>[] = []
    for (const client of this.#clients) {
      running.push(this.#comeBack(client))
      // To begin all in one turn takes seconds, in which none could respond to the controller.
      if (running.length % BEGUN_TOGETHER === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await Promise.all(running)
    return {
      ...this.#tally.outcome((performance.now() - begun) / 1000),
      storm: {
        polls: Float64Array.from(this.#pollLatencies).sort(),
        refusedCount: this.#refusedCount,
        maxRetryAfterSeconds: this.#maxRetryAfterSeconds,
        failedConnections: this.#failedConnections,
      },
    }
  }

  stop(): void {
    this.#isStopped = true
  }

  close(): void {}

  get #isOver(): boolean {
    return this.#isStopped || this.#back === this.#clients.length
  }

  /** Tries until it is back, and then polls until all are. */
  async #comeBack(client: Client): Promise<void> {
    const begun = performance.now()
    let backoffMs = FIRST_BACKOFF_MS
    while (!this.#isStopped) {
      const connection = await this.#connect(client).catch(() => undefined)
      try {
        if (!connection) throw new Error('the connection failed')
        const token = await this.#startSession(client, connection)
        this.#tally.time(performance.now() - begun)
        this.#back += 1
        if (token !== undefined) await this.#poll(connection, token).catch(() => (this.#failedConnections += 1))
        connection.close()
        return
      } catch {
        this.#failedConnections += 1
        connection?.close()
        await wait(Math.random() * backoffMs)
        backoffMs = Math.min(2 * backoffMs, MAX_BACKOFF_MS)
      }
    }
  }

  /** Returns the token of its session, with which it has asked for all that it needs; undefined for a request that begins none. */
  async #startSession({ member }: Client, connection: OpenConnection): Promise<string | undefined> {
    const first = await this.#insist(connection, this.#source.at(member.request))
    const { token } = (readData(first) ?? {}) as { token?: string }
    if (token === undefined) return undefined
    let service: string | undefined
    for (const step of this.#storm.steps) {
      const data = readData(await this.#insist(connection, fill(step, token, service)))
      service ??= (data as readonly { id: string }[])[0]?.id
    }
    return token
  }

  /** Sends a request until it is not told to wait. */
  async #insist(connection: OpenConnection, request: Uint8Array): Promise<HttpResponse> {
    for (;;) {
      const response = await connection.ask(request)
      if (response.status !== TOO_MANY_REQUESTS || this.#isStopped) {
        this.#tally.count(response)
        return response
      }
      const seconds = response.retryAfterSeconds ?? 1
      this.#refusedCount += 1
      this.#maxRetryAfterSeconds = Math.max(this.#maxRetryAfterSeconds, seconds)
      await wait(seconds * 1000)
    }
  }

  async #poll(connection: OpenConnection, token: string): Promise<void> {
    const request = fill(this.#storm.poll, token)
    await this.#rest(Math.random() * POLL_INTERVAL_MS)
    while (!this.#isOver) {
      const begun = performance.now()
      const response = await connection.ask(request)
      this.#pollLatencies.push(performance.now() - begun)
      this.#tally.count(response)
      await this.#rest(POLL_INTERVAL_MS)
    }
  }

  /** Waits for so long, or until all are back. */
  async #rest(milliseconds: number): Promise<void> {
    const end = performance.now() + milliseconds
    for (let left = milliseconds; left > 0 && !this.#isOver; left = end - performance.now())
      await wait(Math.min(left, WATCH_INTERVAL_MS))
  }

  #connect(client: Client): Promise<OpenConnection> {
    const { member, secureContext, ticket } = client
    return openConnection({
      ...{ target: this.#target, secureContext, localAddress: member.address, session: ticket },
      onTicket: (ticket) => {
        if (this.#storm.resumes) client.ticket = ticket
      },
    })
  }
}

function readData({ body }: HttpResponse): unknown {
  return (JSON.parse(body?.toString() ?? '{}') as { data?: unknown }).data
}

function fill(text: string, token: string, service = ''): Buffer {
  return Buffer.from(text.replaceAll(TOKEN, token).replaceAll(SERVICE, service))
}
