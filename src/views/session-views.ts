// The members of an API session that are not in its row: its token for its owner, and how long it still lives.
import type { ApiSessions } from '../auth/api-sessions.ts'
import { isoTime } from '../clock.ts'
import type { ReadContext } from '../context.ts'
import type { Facts, LiveView } from '../resources/define.ts'

/** The session is shown to itself: with its token, what it still owes, and when it ends. */
export interface OwnSessionView {
  readonly isOwn: true
}

export class SessionViews implements LiveView {
  readonly #sessions: ApiSessions

  constructor(sessions: ApiSessions) {
    this.#sessions = sessions
  }

  async describe(_context: ReadContext, rows: readonly Facts[], view: unknown): Promise<Record<string, unknown>[]> {
    const isOwn = (view as OwnSessionView | undefined)?.isOwn === true
    return rows.map((row) => this.#members(row, isOwn))
  }

  #members(row: Facts, isOwn: boolean): Record<string, unknown> {
    const stored = row.lastActivityAt as number
    const live = this.#sessions.get(row.id)
    const common = {
      authQueries: [],
      cachedLastActivityAt: isoTime(live?.lastActivityAt ?? stored),
      isCertExtendRequested: false,
      isCertKeyRollRequested: false,
    }
    if (!isOwn) return { ...common, token: null }
    return {
      ...common,
      token: this.#sessions.tokenOf(row.id),
      expirationSeconds: Math.floor(this.#sessions.timeout / 1000),
      expiresAt: isoTime(stored + this.#sessions.timeout),
    }
  }
}
