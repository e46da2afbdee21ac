// Proves several times in a lease that this controller is in contact with the log: it commits its row, and has applied what the log held then.
import type { Log } from '../../foundation/log.ts'
import type { Store } from '../store.ts'
import type { Lease } from './lease.ts'
import { type ClusterNodes, NodeNameTakenError } from './nodes.ts'
import { Pause } from './pause.ts'

/** How many times in the time of a lease. */
const BEATS_OF_LEASE = 3
// While there is no contact.
const RETRY_MS = 250

export interface HeartbeatParts {
  readonly nodes: ClusterNodes
  readonly lease: Lease
  readonly store: Store
  readonly log: Log
  /** Applies what others have committed by now. */
  readonly catchUp: () => Promise<void>
  /** Stops the process: another one has its name. */
  readonly fail: (error: Error) => void
}

export class Heartbeat {
  readonly #parts: HeartbeatParts
  readonly #running: Promise<void>
  #isClosed = false
  #isFailing = false
  #beating: Promise<void> | undefined
  readonly #pause = new Pause()

  constructor(parts: HeartbeatParts) {
    this.#parts = parts
    this.#running = this.#run()
  }

  /** Beats now, unless it does already. */
  hurry(): void {
    if (!this.#beating) this.#pause.interrupt()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#pause.end()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      this.#beating = this.#beat()
      await this.#beating
      this.#beating = undefined
      this.#parts.lease.notice()
      await this.#pause.wait(this.#chooseInterval())
    }
  }

  /** Returns the time until the next contact, in milliseconds. */
  #chooseInterval(): number {
    const { lease } = this.#parts
    // A contact that took longer than the lease, as if the process was stopped meanwhile, is followed by another one at once.
    return this.#isFailing ? RETRY_MS : lease.isHeld ? lease.durationMs / BEATS_OF_LEASE : 1
  }

  async #beat(): Promise<void> {
    const { nodes, lease, store, log, catchUp, fail } = this.#parts
    const from = lease.now()
    const { position } = store
    try {
      const head = await nodes.report(position, () => lease.now().wall)
      const { headChain } = nodes
      if (store.position < head) await catchUp()
      if (store.position < head) throw new Error(`the log is at ${head}, and this controller at ${store.position}`)
      // A standby that took over may lack commits, or has others by now.
      if (position > head || (store.position === head && store.chain !== headChain))
        throw new Error('the log does not lead on from what this controller has applied')
      lease.renew(from)
      if (this.#isFailing) log.info({}, 'this controller is in contact with the cluster again')
      this.#isFailing = false
    } catch (error) {
      if (error instanceof NodeNameTakenError) fail(error)
      // Logged once, because it goes on until the database is back.
      else if (!this.#isFailing && !this.#isClosed)
        log.warn({ err: error }, 'this controller has no contact with the cluster')
      this.#isFailing = true
    }
  }
}
