// A load generator in a thread of its own, as the main thread sees it.
import { Worker } from 'node:worker_threads'
import type { Credential, Target } from './connection.ts'
import type { Crowd, FromWorker, Outcome, Plan, Storm, ToWorker } from './plan.ts'
import { packRequests } from './requests.ts'

/** The requests of a run, and how they are sent. */
export interface Traffic {
  readonly requests: readonly Buffer[]
  /** Each request can be completed once only. */
  readonly isOnce?: boolean
  readonly connectsEachTime?: boolean
  readonly credentials?: readonly Credential[]
}

export interface LoopOptions {
  readonly inFlight: number
  readonly warmUpMilliseconds?: number
  readonly pauseMilliseconds?: number
  readonly staysAwake?: boolean
}

/** Connected and warm; nothing has counted yet. */
export interface PreparedRun {
  /** Of the responses of the warm-up; 0 if there was none. */
  readonly meanBodyBytes: number
  /** Runs for a time, else until the requests are used up or `stop` is called. @throws where a connection breaks */
  go(milliseconds?: number): Promise<Outcome>
  /** The same for one part of several: the connections stay open. `go` runs the last one. */
  goPart(milliseconds: number): Promise<Outcome>
  stop(): void
}

// Each run counts from here on by itself, so that no two send the same number.
const NUMBERS_EACH_RUN = 1_000_000

let runs = 0

export class Generator {
  readonly #worker = new Worker(new URL('./worker.js', import.meta.url))
  #onProgress: ((completed: number) => void) | undefined

  /** Steady callers on the target. */
  prepareLoop(target: Target, traffic: Traffic, options: LoopOptions): Promise<PreparedRun> {
    const { requests, isOnce = false, connectsEachTime = false, credentials = [] } = traffic
    const { inFlight, warmUpMilliseconds = 0, pauseMilliseconds = 0, staysAwake = false } = options
    return this.#prepare(target, requests, {
      kind: 'closed-loop',
      inFlight,
      isOnce,
      connectsEachTime,
      credentials,
      pauseMilliseconds,
      warmUpMilliseconds,
      staysAwake,
    })
  }

  /** Members that all come at once. */
  prepareCrowd(target: Target, requests: readonly Buffer[], members: Crowd['members']): Promise<PreparedRun> {
    return this.#prepare(target, requests, { kind: 'crowd', members })
  }

  /** Clients that come back at the same moment. */
  prepareStorm(target: Target, requests: readonly Buffer[], storm: Omit<Storm, 'kind'>): Promise<PreparedRun> {
    return this.#prepare(target, requests, { kind: 'storm', ...storm })
  }

  /** Sends each request once and is done. @throws where one is refused */
  async sendAll(
    target: Target,
    requests: readonly Buffer[],
    { inFlight, onProgress }: { inFlight: number; onProgress?: (completed: number) => void },
  ): Promise<Outcome> {
    const run = await this.prepareLoop(target, { requests, isOnce: true }, { inFlight })
    this.#onProgress = onProgress
    const outcome = await run.go()
    this.#onProgress = undefined
    const [failure] = outcome.failures
    if (failure) throw new Error(`${failure.times} requests were refused: ${failure.what}`)
    return outcome
  }

  async close(): Promise<void> {
    await this.#worker.terminate()
  }

  async #prepare(target: Target, requests: readonly Buffer[], load: Plan['load']): Promise<PreparedRun> {
    const run = ++runs
    const plan: Plan = { target, requests: packRequests(requests), countFrom: run * NUMBERS_EACH_RUN, load }
    const { meanBodyBytes } = await this.#told({ run, kind: 'prepare', plan }, 'ready')
    const go = async (milliseconds: number | undefined, isLast: boolean) =>
      (await this.#told({ run, kind: 'go', milliseconds, isLast }, 'done')).outcome
    return {
      meanBodyBytes,
      go: (milliseconds) => go(milliseconds, true),
      goPart: (milliseconds) => go(milliseconds, false),
      stop: () => this.#worker.postMessage({ run, kind: 'stop' } satisfies ToWorker),
    }
  }

  /** Tells the worker something and waits for its word that it is done. @throws what went wrong there */
  #told<K extends 'ready' | 'done'>(message: ToWorker, word: K): Promise<Extract<FromWorker, { kind: K }>> {
    return new Promise((resolve, reject) => {
      const listen = (reply: FromWorker) => {
        if (reply.kind === 'progress') return this.#onProgress?.(reply.completed)
        this.#worker.off('message', listen)
        if (reply.kind === word) resolve(reply as Extract<FromWorker, { kind: K }>)
        else reject(new Error(reply.kind === 'failed' ? reply.message : `the generator said ${reply.kind}`))
      }
      this.#worker.on('message', listen)
      this.#worker.postMessage(message)
    })
  }
}
