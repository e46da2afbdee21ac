// Applies what other controllers commit, soon after they have: the log is read at short intervals, and sooner if a request asks for it.
//
// LISTEN and NOTIFY would need a connection that no pooler shares, take a global lock of PostgreSQL at each commit, and cost more than
// reading by the key of the log.
import type { Log } from '../../foundation/log.ts'
import type { Store } from '../store.ts'

const INTERVAL_MS = 25
// However many ask: requests of callers that are not known must not become load of the database.
const MIN_INTERVAL_MS = 5
// While the log is out of reach.
const RETRY_MS = 250

const STOPPING = 'the controller stops'

/** The callers that wait for one reading of the log. */
type Waiting = { readonly resolve: () => void; readonly reject: (error: unknown) => void }[]

export class LogFollower {
  readonly #store: Store
  readonly #log: Log
  readonly #noteFailure: (error: unknown) => void
  readonly #running: Promise<void>
  #isClosed = false
  #isFailing = false
  /** The callers that wait for the next reading. */
  #waiting: Waiting = []
  #readAt = Number.NEGATIVE_INFINITY
  #wake: () => void = () => {}

  /** @param noteFailure takes each error, and must not throw */
  constructor(store: Store, log: Log, noteFailure: (error: unknown) => void = () => {}) {
    this.#store = store
    this.#log = log
    this.#noteFailure = noteFailure
    this.#running = this.#run()
  }

  /** Resolves when what the log holds now is applied: by one reading for all who ask. @throws if the log is out of reach */
  catchUp(): Promise<void> {
    if (this.#isClosed) return Promise.reject(new Error(STOPPING))
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      if (this.#waiting.length === 1) this.#wake()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake()
    await this.#running
    for (const { reject } of this.#waiting.splice(0)) reject(new Error(STOPPING))
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      await this.#pause()
      if (this.#isClosed) return
      await this.#follow()
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const wait = (milliseconds: number) => {
        clearTimeout(timer)
        timer = setTimeout(resolve, milliseconds)
      }
      let timer: NodeJS.Timeout | undefined
      wait(this.#isFailing ? RETRY_MS : INTERVAL_MS)
      this.#wake = () => {
        if (this.#isClosed) wait(0)
        else if (!this.#isFailing) wait(Math.max(0, MIN_INTERVAL_MS - (performance.now() - this.#readAt)))
      }
      if (this.#waiting.length > 0) this.#wake()
    })
  }

  async #follow(): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = []
    this.#readAt = performance.now()
    try {
      await this.#store.catchUp()
      if (this.#isFailing) this.#log.info({}, 'the log of the cluster can be read again')
      this.#isFailing = false
      for (const { resolve } of waiting) resolve()
    } catch (error) {
      // Logged once, because it goes on until the database is back.
      if (!this.#isFailing && !this.#isClosed) this.#log.error({ err: error }, 'the log of the cluster cannot be read')
      this.#isFailing = true
      this.#noteFailure(error)
      for (const { reject } of waiting) reject(error)
    }
  }
}
