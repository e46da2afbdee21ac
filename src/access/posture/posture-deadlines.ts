// When time alone takes access away: the deadlines of MFA and its prompts.
//
// Every controller of a network knows all deadlines, because the commits that lead to them name them; one of them judges those that pass.
import type { Kysely } from 'kysely'
import type { Clock, Instant } from '../../foundation/clock.ts'
import { DeadlineWheel } from '../../policy/posture/deadline-wheel.ts'
import type { Database } from '../../storage/database.ts'
import type { CommitRecorder } from '../../storage/store.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { Contexts } from '../../storage/transactions/contexts.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import { untyped } from '../../storage/untyped.ts'
import type { Decision } from '../decision.ts'

// How many identities one transaction judges again, so that no request waits long for it.
const BATCH = 250

/** Identity → its deadline, by the wall clock. */
type RecordedDeadlines = Readonly<Record<string, Instant>>

/**
 * One deadline per identity: the first moment at which one of its sessions may lose its right, or the verdict on its MFA changes.
 * Whatever judges one of them schedules it, and a deadline that has passed lets all of the identity be judged again, and scheduled.
 */
export class PostureDeadlines implements CommitRecorder, SideEffect {
  readonly kind = 'side effect'
  readonly name = 'posture deadlines'
  readonly #clock: Clock
  /** By the monotonic clock: setting the wall clock ends nothing. */
  readonly #wheel: DeadlineWheel
  /** Up to when time was judged, by the wall clock. */
  #judgedUntil: Instant
  /** The deadlines that the transactions of the next commit lead to. */
  #unrecorded = new Map<string, Instant>()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#wheel = new DeadlineWheel(clock.monotonic())
    this.#judgedUntil = clock.now()
  }

  /** Schedules, with the commit of a transaction, the moment at which a session or a verdict that stays has to be judged again. */
  schedule(identityId: string, { failsAt }: Pick<Decision, 'failsAt'>): void {
    if (failsAt === Number.POSITIVE_INFINITY) return
    this.#unrecorded.set(identityId, Math.min(failsAt, this.#unrecorded.get(identityId) ?? failsAt))
  }

  concerns(): boolean {
    return this.#unrecorded.size > 0
  }

  async record(): Promise<RecordedDeadlines> {
    const deadlines = Object.fromEntries(this.#unrecorded)
    this.#unrecorded = new Map()
    return deadlines
  }

  apply({ changes, recorded }: Commit): void {
    for (const { resource, id, at, ...change } of changes) {
      if (resource !== 'machines' || !('judgedUntil' in change)) continue
      this.#judgedUntil = Math.max(this.#judgedUntil, at)
      this.#wheel.remove(id)
    }
    const deadlines = recorded?.[this.name] as RecordedDeadlines | undefined
    if (!deadlines) return
    const behind = this.#clock.monotonic() - this.#clock.now()
    for (const [identityId, failsAt] of Object.entries(deadlines)) this.#wheel.schedule(identityId, failsAt + behind)
  }

  /** Lets the sessions of an identity be judged at the next turn. */
  #scheduleNow(identityId: string): void {
    this.#wheel.schedule(identityId, this.#clock.monotonic())
  }

  /** Schedules all identities that hold sessions or have passed MFA, so that what was due while no process ran is judged. */
  async restart(db: Kysely<Database>): Promise<void> {
    // Time changes the verdicts of no other checks.
    const timed = untyped(db).selectFrom('posture_checks').select('id').where('typeId', '=', 'MFA')
    if (!(await timed.limit(1).executeTakeFirst())) return
    const holders = db.selectFrom('sessions').select('identityId')
    const proven = db.selectFrom('api_sessions').select('identityId').where('mfaPassedAt', 'is not', null)
    for (const { identityId } of await holders.union(proven).execute()) this.#scheduleNow(identityId)
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
