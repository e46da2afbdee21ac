// The load of steady callers: each sends its next request when the last one is completed.
import { createSecureContext, type SecureContext } from 'node:tls'
import { Connection, type ConnectionEvents } from './connection.ts'
import type { ClosedLoop, Load, Outcome, Plan } from './plan.ts'
import { RequestSource } from './requests.ts'
import type { HttpResponse } from './response-reader.ts'
import { Tally } from './tally.ts'
import { Wakefulness } from './wakefulness.ts'

// A server that completed so many requests is warm; slow requests are not waited for longer than this many times.
const WARM_REQUESTS = 1_000
const MAX_WARM_UPS = 4

export class ClosedLoopLoad implements Load {
  readonly #plan: Plan
  readonly #loop: ClosedLoop
  readonly #source: RequestSource
  readonly #contexts: readonly SecureContext[]
  readonly #tally = new Tally()
  readonly #wakefulness: Wakefulness | undefined
  readonly #callers: Caller[] = []
  #next = 0
  #deadline = Number.POSITIVE_INFINITY

  constructor(plan: Plan, loop: ClosedLoop) {
    this.#plan = plan
    this.#loop = loop
    this.#source = new RequestSource(plan.requests, plan.countFrom)
    this.#contexts = loop.credentials.map(createSecureContext)
    this.#wakefulness = loop.staysAwake ? new Wakefulness() : undefined
  }

  get completed(): number {
    return this.#tally.completed
  }

  async prepare(): Promise<number> {
    for (let at = 0; at < this.#loop.inFlight; at++) this.#callers.push(this.#caller())
    if (!this.#loop.connectsEachTime) await Promise.all(this.#callers.map((caller) => caller.connect()))
    await this.#warmUp()
    return this.#tally.meanBodyBytes
  }

  /** For its time; where the machine is slow for longer, because the server's runtime compiles what ran often enough. */
  async #warmUp(): Promise<void> {
    const { warmUpMilliseconds, isOnce } = this.#loop
    if (warmUpMilliseconds === 0) return
    const most = isOnce ? 1 : MAX_WARM_UPS
    for (let turn = 0; turn < most && this.#tally.completed < WARM_REQUESTS; turn++) {
      await this.#drive(warmUpMilliseconds)
    }
  }

  async run(milliseconds: number | undefined): Promise<Outcome> {
    this.#tally.reset()
    this.#wakefulness?.takeIdleSeconds()
    const begun = performance.now()
    await this.#drive(milliseconds)
    const outcome = this.#tally.outcome((performance.now() - begun) / 1000)
    const idleSeconds = this.#wakefulness?.takeIdleSeconds() ?? 0
    return { ...outcome, busySeconds: outcome.busySeconds - idleSeconds }
  }

  stop(): void {
    this.#deadline = 0
  }

  close(): void {
    for (const caller of this.#callers) caller.close()
  }

  async #drive(milliseconds: number | undefined): Promise<void> {
    this.#deadline = milliseconds === undefined ? Number.POSITIVE_INFINITY : performance.now() + milliseconds
    await Promise.all(this.#callers.map((caller) => caller.callUntilOver()))
  }

  #caller(): Caller {
    const { connectsEachTime, pauseMilliseconds } = this.#loop
    return new Caller({
      connectsEachTime,
      pauseMilliseconds,
      tally: this.#tally,
      wakefulness: this.#wakefulness,
      open: (secureContext, events) => new Connection({ target: this.#plan.target, secureContext }, events),
      nextRequest: () => this.#nextRequest(),
    })
  }

  /** Returns the next request and its credential; undefined when the run is over. */
  #nextRequest(): Next | undefined {
    if (performance.now() >= this.#deadline) return undefined
    if (this.#next >= this.#source.size) {
      if (this.#loop.isOnce) return undefined
      this.#next = 0
    }
    const at = this.#next++
    return { request: this.#source.at(at), secureContext: this.#contexts[at % this.#contexts.length] }
  }
}

interface Next {
  readonly request: Buffer
  readonly secureContext: SecureContext | undefined
}

interface CallerOptions {
  readonly connectsEachTime: boolean
  readonly pauseMilliseconds: number
  readonly tally: Tally
  readonly wakefulness: Wakefulness | undefined
  open(secureContext: SecureContext | undefined, events: ConnectionEvents): Connection
  nextRequest(): Next | undefined
}

/** One of the callers, with its connection. */
class Caller {
  readonly #options: CallerOptions
  #connection: Connection | undefined
  #begunAt = 0
  #onOver = () => {}
  #onFailure = (_: Error) => {}

  constructor(options: CallerOptions) {
    this.#options = options
  }

  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#onFailure = reject
      this.#open(undefined, resolve)
    })
  }

  callUntilOver(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#onOver = resolve
      this.#onFailure = reject
      this.#call()
    })
  }

  close(): void {
    this.#connection?.close()
  }

  #open(secureContext: SecureContext | undefined, onOpen: () => void): void {
    this.#connection = this.#options.open(secureContext, {
      onOpen,
      onResponse: (response) => this.#onResponse(response),
      onFailure: (error) => {
        this.#connection = undefined
        this.#onFailure(error)
      },
    })
  }

  #call(): void {
    const next = this.#options.nextRequest()
    if (!next) {
      this.#onOver()
      return
    }
    const send = () => this.#connection?.send(next.request)
    this.#begunAt = performance.now()
    // One that was idle for long has been closed.
    if (this.#options.connectsEachTime || !this.#connection) this.#open(next.secureContext, send)
    else send()
  }

  #onResponse(response: HttpResponse): void {
    const { tally, wakefulness, connectsEachTime, pauseMilliseconds } = this.#options
    wakefulness?.noteResponse()
    if (tally.count(response)) tally.time(performance.now() - this.#begunAt)
    if (connectsEachTime) this.#connection?.close()
    if (pauseMilliseconds > 0) setTimeout(() => this.#call(), pauseMilliseconds)
    else this.#call()
  }
}
