// When sessions were last used, and by how much their times were shifted: in memory, and written from time to time.
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { type LiveApiSession, MFA_TIMES } from './live-api-sessions.ts'

/** The times of a session that shift when the clock is set, besides its last activity. */
const SHIFTED_TIMES = [...MFA_TIMES, 'authenticatedAt', 'endsAt'] as const

// How many sessions one transaction writes, so that no request waits long for it.
const BATCH = 250

export class SessionActivity {
  /** Sessions whose last activity is not written yet. */
  #unwritten = new Set<LiveApiSession>()
  /** Of these, sessions that other controllers will soon take for ended. */
  #urgent = new Set<LiveApiSession>()
  /** Session → by how much its times were shifted since its row was written, in milliseconds. */
  readonly #unwrittenShifts = new Map<string, number>()

  /** Notes that a session was used. */
  add(session: LiveApiSession): void {
    this.#unwritten.add(session)
  }

  /** Notes that a session was used which other controllers will soon take for ended. */
  addUrgent(session: LiveApiSession): void {
    this.#unwritten.add(session)
    this.#urgent.add(session)
  }

  /** Notes that the last activity of a session is in its row. */
  noteWritten(session: LiveApiSession): void {
    this.#urgent.delete(session)
    if (!this.#unwrittenShifts.has(session.id)) this.#unwritten.delete(session)
  }

  /** Shifts the times of a session. */
  shift(session: LiveApiSession, milliseconds: number): void {
    session.lastActivityAt += milliseconds
    for (const time of SHIFTED_TIMES) {
      const before = session[time]
      if (before !== null) session[time] = before + milliseconds
    }
    this.#unwritten.add(session)
    this.#unwrittenShifts.set(session.id, (this.#unwrittenShifts.get(session.id) ?? 0) + milliseconds)
  }

  remove(session: LiveApiSession): void {
    this.#unwritten.delete(session)
    this.#urgent.delete(session)
    this.#unwrittenShifts.delete(session.id)
  }

  /** Shifts the times of a session as its row has them, as far as the row does not know it. */
  shiftStored(stored: LiveApiSession, current: LiveApiSession | undefined): LiveApiSession {
    const shift = this.#unwrittenShifts.get(stored.id)
    if (!current || shift === undefined) return stored
    const shifted = { ...stored }
    for (const time of SHIFTED_TIMES) {
      const before = stored[time]
      // A row may have a newer time, which needs no shift.
      if (before !== null && current[time] === before + shift) shifted[time] = before + shift
    }
    return shifted
  }

  /** Replaces the sessions in memory: those whose times are to be written, and all others that exist. */
  replace(sessions: Set<LiveApiSession>, exists: (id: string) => boolean): void {
    this.#unwritten = sessions
    this.#urgent = new Set()
    for (const id of this.#unwrittenShifts.keys()) if (!exists(id)) this.#unwrittenShifts.delete(id)
  }

  /** Writes what was noted since the last flush. */
  flush(context: Context): Promise<void> {
    return this.#writeAll(context, [...this.#unwritten])
  }

  /** Writes what other controllers have to know soon. */
  flushUrgent(context: Context): Promise<void> {
    return this.#writeAll(context, [...this.#urgent])
  }

  async #writeAll(context: Context, sessions: readonly LiveApiSession[]): Promise<void> {
    for (let at = 0; at < sessions.length; at += BATCH) await this.write(context, sessions.slice(at, at + BATCH))
  }

  /** Writes the times of some sessions. */
  async write(context: Context, sessions: readonly LiveApiSession[]): Promise<void> {
    let activities: { session: LiveApiSession; at: number; shift: number | undefined }[] = []
    await context.write(async (tx) => {
      // Not before, because another controller may have written a later activity meanwhile.
      activities = sessions.map((session) => ({
        session,
        at: session.lastActivityAt,
        shift: this.#unwrittenShifts.get(session.id),
      }))
      for (const { session, at, shift } of activities) {
        await tx.db
          .updateTable('api_sessions')
          .set({ lastActivityAt: at, updatedAt: at })
          .where('id', '=', session.id)
          .execute()
        if (shift !== undefined) await writeShiftedTimes(tx, session, shift)
        tx.record({ operation: 'update', audit: 'none', resource: apiSessions.plural, id: session.id, at })
      }
    })
    for (const { session, at, shift } of activities) {
      this.#urgent.delete(session)
      if (session.lastActivityAt === at) this.#unwritten.delete(session)
      if (this.#unwrittenShifts.get(session.id) === shift) this.#unwrittenShifts.delete(session.id)
    }
  }
}

/** Writes the times of a session that were shifted, unless a row has a newer one. */
async function writeShiftedTimes(tx: WriteContext, session: LiveApiSession, shift: number): Promise<void> {
  for (const time of SHIFTED_TIMES) {
    const shifted = session[time]
    if (shifted === null) continue
    await tx.db
      .updateTable('api_sessions')
      .set(time, shifted)
      .where('id', '=', session.id)
      .where(time, '=', shifted - shift)
      .execute()
  }
}
