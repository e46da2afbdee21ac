// A duty that one of several controllers has: the database says which one, and that one knows when its time is over.
//
// A row names the controller, and when it last proved itself. It is not an advisory lock, because that lives as long as a session: a
// stopped process would keep it, a pooler would lend the session to others, and a promoted standby would not have it.
import type { Clock } from '../../foundation/clock.ts'
import { newId } from '../../foundation/ids.ts'
import type { Log } from '../../foundation/log.ts'
import { LogConnection, type LogDatabase } from '../postgres/log-connection.ts'
import { isWithin, type Moment, readMoment } from './moment.ts'
import { Pause } from './pause.ts'

/** `fabric`: the connections of routers. `timers`: work by the clock that one controller does for all. */
export const dutyNames = ['fabric', 'timers'] as const
export type DutyName = (typeof dutyNames)[number]

const PROOFS_PER_LEASE = 3
// When others may take a duty, in leases after its last proof: later than its holder gives it up, whose lease began before the proof.
const VACANT_AFTER_LEASES = 4 / 3
const MS_PER_SECOND = 1_000

// A commit, because queries succeed for ever at a primary that lost its standby. A time in the future is one from before the clock of
// the database was set back.
const PROVE = `
  with vacancy as (select make_interval(secs => $4) as after),
  proof as (
    update controller.duties set node = $2, process = $3, proven_at = clock_timestamp() from vacancy
    where name = $1 and $5 and (process = $3 or proven_at not between clock_timestamp() - after and clock_timestamp() + after)
    returning node
  )
  select exists (select from proof) as "isHeld", coalesce((select node from proof), (
    select node from controller.duties, vacancy where name = $1 and proven_at >= clock_timestamp() - after
  )) as holder`

const RELEASE = "update controller.duties set proven_at = '-infinity' where name = $1 and process = $2"

interface DutyParts {
  readonly name: DutyName
  /** The name of this controller among the others. */
  readonly node: string
  readonly database: LogDatabase
  readonly clock: Clock
  readonly log: Log
  /** How long the duty is held after the last proof. The same on all controllers. */
  readonly leaseMs: number
  /** Asked before each proof. While it is not, another controller has the duty. */
  readonly isWanted?: () => boolean
}

export class Duty {
  readonly #parts: DutyParts
  readonly #connection: LogConnection
  /** Tells this process from an earlier one of the same name. */
  readonly #process = newId()
  readonly #acquiredListeners: (() => void)[] = []
  readonly #lostListeners: (() => void)[] = []
  readonly #running: Promise<void>
  /** When the last proof began. */
  #proof: Moment | undefined
  #expiry: NodeJS.Timeout | undefined
  #holder: string | undefined
  #isFailing = false
  #isClosed = false
  readonly #pause = new Pause()

  /** From now on this controller takes the duty if no other one has it. */
  constructor(parts: DutyParts) {
    this.#parts = parts
    this.#connection = new LogConnection({ ...parts.database, responseTimeoutMs: parts.leaseMs })
    this.#running = this.#run()
  }

  get name(): DutyName {
    return this.#parts.name
  }

  get isHeld(): boolean {
    return this.#proof !== undefined && this.#isValid(this.#proof)
  }

  /** The name of the controller that has the duty, as the database said last; undefined if none has, or the database is silent. */
  get holder(): string | undefined {
    return this.#holder
  }

  /** The listener must not throw. */
  onAcquired(listener: () => void): void {
    this.#acquiredListeners.push(listener)
  }

  /** It runs when the lease ends, at the latest. The listener must not throw. */
  onLost(listener: () => void): void {
    this.#lostListeners.push(listener)
  }

  /** Gives the duty up, so that another controller takes it at its next try. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#pause.end()
    const wasHeld = this.isHeld
    this.#lose()
    await this.#running
    if (wasHeld) await this.#release()
    this.#connection.end()
  }

  async #giveUp(): Promise<void> {
    if (!this.#proof) return
    this.#lose()
    await this.#release()
  }

  /** Without it, others wait for the end of the lease. */
  async #release(): Promise<void> {
    const values = [this.#parts.name, this.#process]
    await this.#connection.run((client) => client.query(RELEASE, values)).catch(() => undefined)
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      await this.#prove()
      await this.#pause.wait(this.#parts.leaseMs / PROOFS_PER_LEASE)
      if (!this.isHeld) this.#lose()
    }
  }

  async #prove(): Promise<void> {
    const { name, node, clock, log, leaseMs, isWanted = () => true } = this.#parts
    if (!isWanted()) await this.#giveUp()
    const proof = readMoment(clock)
    const vacantAfter = (leaseMs * VACANT_AFTER_LEASES) / MS_PER_SECOND
    try {
      const { rows } = await this.#connection.run((client) =>
        client.query<{ isHeld: boolean; holder: string | null }>(PROVE, [
          name,
          node,
          this.#process,
          vacantAfter,
          isWanted(),
        ]),
      )
      if (this.#isFailing) log.info({ duty: name }, 'the duties of the cluster can be read again')
      this.#isFailing = false
      this.#holder = rows[0]?.holder ?? undefined
      // The response may be later than the end of the lease that it begins.
      if (rows[0]?.isHeld && this.#isValid(proof) && !this.#isClosed) this.#hold(proof)
      else this.#lose()
    } catch (error) {
      // Logged once, because it goes on until the database is back.
      if (!this.#isFailing && !this.#isClosed) log.error({ err: error, duty: name }, 'a duty could not be proven')
      this.#isFailing = true
      this.#holder = undefined
    }
  }

  #hold(proof: Moment): void {
    const { clock, leaseMs, log, name } = this.#parts
    const hadProof = this.#proof !== undefined
    this.#proof = proof
    clearTimeout(this.#expiry)
    this.#expiry = setTimeout(() => this.#lose(), proof.monotonic + leaseMs - clock.monotonic())
    if (hadProof) return
    log.info({ duty: name }, 'this controller has a duty of the cluster')
    for (const listener of this.#acquiredListeners) listener()
  }

  #isValid(proof: Moment): boolean {
    return isWithin(this.#parts.clock, proof, this.#parts.leaseMs)
  }

  #lose(): void {
    clearTimeout(this.#expiry)
    if (!this.#proof) return
    this.#proof = undefined
    this.#parts.log.info({ duty: this.#parts.name }, 'this controller no longer has a duty of the cluster')
    for (const listener of this.#lostListeners) listener()
  }
}
