// When time alone takes access away: the deadlines of MFA and its prompts.
import type { Kysely } from 'kysely'
import type { Clock, Instant } from '../../foundation/clock.ts'
import { DeadlineWheel } from '../../policy/posture/deadline-wheel.ts'
import type { Database } from '../../storage/database.ts'
import type { Contexts } from '../../storage/transactions/contexts.ts'
import type { Decision } from '../decision.ts'

// How many identities one transaction judges again, so that no request waits long for it.
const BATCH = 250

/**
 * One deadline per identity: the first moment at which one of its sessions may lose its right. Whatever judges a session
 * schedules it, and a deadline that has passed lets all sessions of the identity be judged again, and scheduled.
 */
export class PostureDeadlines {
  readonly #clock: Clock
  /** By the monotonic clock: setting the wall clock ends nothing. */
  readonly #wheel: DeadlineWheel
  /** Up to when time was judged, by the wall clock. */
  #judgedUntil: Instant

  constructor(clock: Clock) {
    this.#clock = clock
    this.#wheel = new DeadlineWheel(clock.monotonic())
    this.#judgedUntil = clock.now()
  }

  /** Schedules the moment at which a session that stays has to be judged again. */
  schedule(identityId: string, { failsAt }: Decision): void {
    if (failsAt !== Number.POSITIVE_INFINITY)
      this.#wheel.schedule(identityId, this.#clock.monotonic() + failsAt - this.#clock.now())
  }

  /** Lets the sessions of an identity be judged at the next turn. */
  #scheduleNow(identityId: string): void {
    this.#wheel.schedule(identityId, this.#clock.monotonic())
  }

  /** Schedules all identities that hold sessions, so that what was due while no process ran is judged. */
  async load(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('sessions').select('identityId').distinct().execute()
    for (const { identityId } of rows) this.#scheduleNow(identityId)
  }

  /** Revokes the sessions whose deadline has passed without another proof, and tells their identities. */
  async revokeExpired(contexts: Contexts): Promise<void> {
    const system = contexts.create({ kind: 'system' })
    const due = this.#wheel.takeExpired(this.#clock.monotonic())
    const judgedUntil = this.#judgedUntil
    this.#judgedUntil = this.#clock.now()
    for (let at = 0; at < due.length; at += BATCH) {
      const identityIds = due.slice(at, at + BATCH)
      try {
        await system.write(async (tx) => {
          const expiry = { operation: 'update', audit: 'none', resource: 'machines', at: tx.clock.now() } as const
          for (const id of identityIds) tx.record({ ...expiry, id, judgedUntil })
        })
      } catch (error) {
        // The next turn tries again.
        for (const identityId of due.slice(at)) this.#scheduleNow(identityId)
        throw error
      }
    }
  }
}
