// When time alone takes access away: the deadlines of MFA and its prompts, and the time that machines have to report after a start.
import type { Kysely } from 'kysely'
import type { Clock, Instant } from '../../foundation/clock.ts'
import { DeadlineWheel } from '../../policy/posture/deadline-wheel.ts'
import type { Contexts } from '../../storage/contexts.ts'
import type { Database } from '../../storage/database.ts'
import type { Access } from '../access.ts'
import type { Decision } from '../decision.ts'
import { recordPostureEvent } from './posture-events.ts'

// How many identities one transaction judges again, so that no request waits long for it.
const BATCH = 250

/** A session whose right is judged. */
interface JudgedSession {
  readonly createdAt: Instant
}

/**
 * One deadline per identity: the first moment at which one of its sessions may lose its right. Whatever judges a session
 * schedules it, and a deadline that has passed lets all sessions of the identity be judged again, and scheduled.
 *
 * After a start, sessions that an earlier process made are not revoked for responses that have not come yet, until they come
 * or the time to settle has passed. New sessions are judged by what was reported.
 */
export class PostureDeadlines {
  readonly #clock: Clock
  readonly #startedAt: Instant
  /** By the monotonic clock, like the deadlines: setting the wall clock ends nothing. */
  readonly #settlesAt: number
  readonly #wheel: DeadlineWheel

  constructor(clock: Clock, startedAt: Instant, settleMs: number) {
    this.#clock = clock
    this.#startedAt = startedAt
    this.#settlesAt = clock.monotonic() + settleMs
    this.#wheel = new DeadlineWheel(clock.monotonic())
  }

  /** Whether a session stays. */
  isKept({ createdAt }: JudgedSession, { isAllowed, evidence }: Decision): boolean {
    return isAllowed || (evidence === 'unknown' && createdAt < this.#startedAt && this.#isSettling())
  }

  /** Schedules the moment at which a session that stays has to be judged again. */
  schedule(identityId: string, { isAllowed, failsAt }: Decision): void {
    if (!isAllowed) this.#wheel.schedule(identityId, this.#settlesAt)
    else if (failsAt !== Number.POSITIVE_INFINITY)
      this.#wheel.schedule(identityId, this.#clock.monotonic() + failsAt - this.#clock.now())
  }

  /** Lets the sessions of an identity be judged at the next turn. */
  scheduleNow(identityId: string): void {
    this.#wheel.schedule(identityId, this.#clock.monotonic())
  }

  /** Schedules all identities that hold sessions, so that what was due while no process ran is judged. */
  async load(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('sessions').select('identityId').distinct().execute()
    for (const { identityId } of rows) this.scheduleNow(identityId)
  }

  /** Revokes the sessions whose deadline has passed without another proof, and tells their identities. */
  async revokeExpired({ contexts, access }: { readonly contexts: Contexts; readonly access: Access }): Promise<void> {
    const system = contexts.create({ kind: 'system' })
    const due = this.#wheel.takeExpired(this.#clock.monotonic())
    for (let at = 0; at < due.length; at += BATCH) {
      const identityIds = due.slice(at, at + BATCH)
      try {
        await system.write(async (tx) => {
          for (const identityId of identityIds) recordPostureEvent(tx, identityId)
        })
        for (const identityId of identityIds) access.updates.stampIdentity(identityId, this.#clock.now())
      } catch (error) {
        // The next turn tries again.
        for (const identityId of due.slice(at)) this.scheduleNow(identityId)
        throw error
      }
    }
  }

  #isSettling(): boolean {
    return this.#clock.monotonic() < this.#settlesAt
  }
}
