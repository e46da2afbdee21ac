// Keeps edge routers informed of sessions: all API sessions when a router connects, and each change from then on.
import type { Kysely } from 'kysely'
import { isSignedToken } from '../../access/sessions/session-tokens.ts'
import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import type { Clock } from '../../foundation/clock.ts'
import { newId } from '../../foundation/ids.ts'
import type { Log } from '../../foundation/log.ts'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { ConnectedRouter, ConnectedRouters } from './connected-routers.ts'
import type { SessionAnnouncement } from './router-connection.ts'
import { PART_SIZE, RouterSessions } from './router-sessions.ts'
import { announceEnded, SessionChanges } from './session-changes.ts'

// Changes of this time are announced together: of a thousand sign-ins a second each waits this long at most. To write to a router costs some
// 40 µs, so that the announcements to many of them would cost more than the sign-ins of a crowd do: the next ones wait for so many times as
// long as the last ones took, and the changes meanwhile share their messages.
const MIN_BATCH_MS = 5
const REST_TIMES = 9
const MAX_BATCH_MS = 250

// Routers that receive all sessions at a time. After a restart of the controller all of them connect at once, and requests are served
// in between.
const MAX_CONCURRENT_SYNCS = 4

// Routers begin to handle all messages at once, so that what brings a session back must not come soon after what removed it. They wait
// five seconds for the session of a client.
const RECONNECT_AFTER_MS = 500

interface SessionSyncParts {
  readonly db: Kysely<Database>
  readonly clock: Clock
  readonly log: Log
  readonly apiSessions: ApiSessions
  readonly connected: ConnectedRouters
  /**
   * Whether this controller is the one of several that tells routers which sessions there are: routers of release 2 take what concerns
   * a session to the controller that told them of it last.
   */
  readonly isLeading: () => boolean
  /** Applies what other controllers have committed by now; undefined if there are none. */
  readonly catchUp: (() => Promise<void>) | undefined
  /** The ids of the identities that are connected to any router, as far as the other controllers know. */
  listConnectedIdentityIds(): readonly string[]
}

export class SessionSync implements SideEffect {
  readonly kind = 'side effect'
  readonly name = 'sessions of routers'
  readonly #db: Kysely<Database>
  readonly #clock: Clock
  readonly #log: Log
  readonly #apiSessions: ApiSessions
  readonly #sessions: RouterSessions
  readonly #connected: ConnectedRouters
  readonly #listConnectedIdentityIds: SessionSyncParts['listConnectedIdentityIds']
  /** The routers that are receiving all API sessions, and whether they asked for them again meanwhile. */
  readonly #running = new Map<ConnectedRouter, { isRepeated: boolean }>()
  #activeSyncs = 0
  /** Resume the routers that wait for their turn, in order. */
  readonly #waitingSyncs: (() => void)[] = []
  #pending = new SessionChanges()
  #isFlushScheduled = false
  /** By the monotonic clock: later announcements wait until then. */
  #restsUntil = 0
  /** Resolves when everything has been announced, what is pending included. */
  #flushed: Promise<void> = Promise.resolve()
  #isClosed = false
  readonly #isLeading: () => boolean
  readonly #catchUp: (() => Promise<void>) | undefined

  constructor(parts: SessionSyncParts) {
    const { db, clock, log, apiSessions, connected, isLeading, catchUp, listConnectedIdentityIds } = parts
    this.#isLeading = isLeading
    this.#catchUp = catchUp
    this.#db = db
    this.#clock = clock
    this.#log = log
    this.#apiSessions = apiSessions
    this.#sessions = new RouterSessions({ db, clock, apiSessions })
    this.#connected = connected
    this.#listConnectedIdentityIds = listConnectedIdentityIds
  }

  /** Everything that routers hold may be stale, so they receive all of it again. */
  async restart(): Promise<void> {
    for (const router of this.#connected.listEdgeRouters()) {
      this.sendAll(router).catch((error: unknown) => {
        this.#log.error({ err: error, routerId: router.id }, 'a router could not be sent the sessions')
      })
    }
  }

  apply({ changes }: Commit): void {
    if (!this.#connected.hasEdgeRouters || this.#isClosed) return
    for (const change of changes) this.#pending.note(change)
    this.#scheduleFlush()
  }

  #scheduleFlush(): void {
    if (this.#pending.isEmpty || this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    this.#flushed = this.#flushAfter(this.#flushed)
  }

  /** Resolves when all changes that were committed before have been sent to the connected routers. */
  async settle(): Promise<void> {
    await this.#flushed
  }

  /** Announces nothing more, and resolves when what has begun is over. Routers receive everything again when they reconnect. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#flushed
  }

  /**
   * Sends all API sessions to a router, in parts, and lets other work run between them. What changes meanwhile is announced
   * in between, and routers merge it. Routers without clients receive none.
   */
  async sendAll(router: ConnectedRouter): Promise<void> {
    if (!router.isEdge) return
    const running = this.#running.get(router)
    if (running) {
      // However often a router asks meanwhile, it receives them once more.
      running.isRepeated = true
      return
    }
    const run = { isRepeated: false }
    this.#running.set(router, run)
    try {
      do {
        run.isRepeated = false
        await this.#sendInTurn(router)
      } while (run.isRepeated)
    } finally {
      this.#running.delete(router)
    }
  }

  async #sendInTurn(router: ConnectedRouter): Promise<void> {
    if (this.#activeSyncs < MAX_CONCURRENT_SYNCS) this.#activeSyncs += 1
    else await new Promise<void>((resume) => this.#waitingSyncs.push(resume))
    try {
      await this.#sendOnce(router)
    } finally {
      // A router that waits takes over the place.
      const resume = this.#waitingSyncs.shift()
      if (resume) resume()
      else this.#activeSyncs -= 1
    }
  }

  async #sendOnce(router: ConnectedRouter): Promise<void> {
    if (this.#connected.get(router.id) !== router) return
    if (!this.#isLeading()) {
      router.syncStatus = 'SYNC_DONE'
      return
    }
    router.syncStatus = 'SYNC_IN_PROGRESS'
    const ids = this.#apiSessions.listIds()
    const syncId = newId()
    const parts = Math.max(1, Math.ceil(ids.length / PART_SIZE))
    for (let sequence = 0; sequence < parts; sequence += 1) {
      if (this.#isClosed || this.#connected.get(router.id) !== router) return
      const apiSessions = await this.#sessions.read(ids.slice(sequence * PART_SIZE, (sequence + 1) * PART_SIZE))
      const part = { id: syncId, sequence, isLast: sequence === parts - 1 }
      router.connection.announce({ kind: 'api-sessions-added', apiSessions, part })
      await new Promise((resolve) => setImmediate(resolve))
    }
    router.syncStatus = 'SYNC_DONE'
  }

  /**
   * Records the activity of the API sessions whose clients are connected to a router, and says which of them have ended. Routers report it
   * to each controller.
   */
  async recordActivity(router: ConnectedRouter, tokens: readonly string[]): Promise<void> {
    if (!this.#isLeading()) return
    const findEnded = (among: readonly string[]) =>
      among.filter((token) => !this.#apiSessions.use(token, this.#clock.now()))
    let endedTokens = findEnded(tokens)
    if (endedTokens.length > 0 && this.#catchUp) {
      // They may have begun at another controller just now.
      await this.#catchUp()
      endedTokens = findEnded(endedTokens)
    }
    if (endedTokens.length > 0)
      router.connection.announce({ kind: 'api-sessions-removed', sessions: endedTokens.map((token) => ({ token })) })
  }

  /**
   * Says which of the service sessions that a router knows have ended.
   * @param names their ids, or the opaque tokens if the router is of release 1
   */
  async validateSessions(router: ConnectedRouter, names: readonly string[]): Promise<void> {
    const column = router.hello.hasDataModel ? 'id' : 'opaqueToken'
    // They may have begun at another controller just now.
    await this.#catchUp?.()
    const rows = await this.#db
      .selectFrom('sessions')
      .select(['id', 'opaqueToken'])
      .where(isOneOf(this.#db, column, names))
      .execute()
    const valid = new Set(rows.map((row) => row[column]))
    // Routers of release 1 do not follow the sessions of signed tokens.
    const ended = names.filter((name) => !valid.has(name) && !isSignedToken(name))
    const sessions = ended.map((name) => (column === 'id' ? { id: name, token: '' } : { token: name }))
    if (ended.length > 0) router.connection.announce({ kind: 'sessions-removed', sessions })
  }

  /**
   * Tells every router which sessions there are, from now on in place of the controller that did it before. Clients that are connected come
   * back, because routers would take their requests to that one until then. Called when this controller begins to lead.
   */
  async takeOver(): Promise<void> {
    for (const router of this.#connected.listEdgeRouters()) {
      await this.sendAll(router)
      // One that has connected just now has not said yet which clients it has.
      const elsewhere = router.hasReportedIdentities ? [] : this.#listConnectedIdentityIds()
      const ofClients = [...new Set([...router.identityIds, ...elsewhere])].flatMap((id) =>
        this.#apiSessions.listOfIdentity(id),
      )
      this.reconnectClients(
        router,
        ofClients.map(({ id }) => id),
      )
    }
  }

  /** Has a router close the connections of API sessions that last: their clients may come back at once. */
  reconnectClients(router: ConnectedRouter, apiSessionIds: readonly string[]): void {
    const lastingIds = apiSessionIds.filter((id) => this.#apiSessions.get(id)?.clientId === null)
    for (const announcement of announceEnded('api-sessions-removed', lastingIds, this.#sessions))
      router.connection.announce(announcement)
    setTimeout(() => {
      for (const id of lastingIds) this.#pending.noteChanged(id)
      if (!this.#isClosed) this.#scheduleFlush()
    }, RECONNECT_AFTER_MS).unref()
  }

  /** Announces what is pending by then. Never before an earlier batch: what one adds the next one may remove. */
  async #flushAfter(earlier: Promise<void>): Promise<void> {
    const restMs = this.#restsUntil - this.#clock.monotonic()
    const batchMs = Math.min(Math.max(MIN_BATCH_MS, restMs), MAX_BATCH_MS)
    await new Promise((resolve) => setTimeout(resolve, batchMs))
    await earlier
    const pending = this.#pending
    this.#pending = new SessionChanges()
    this.#isFlushScheduled = false
    if (this.#isClosed) return
    try {
      const announcements = await pending.toAnnouncements(this.#sessions)
      const begunAt = this.#clock.monotonic()
      for (const announcement of announcements) {
        if (!isRemoval(announcement) && !this.#isLeading()) continue
        for (const { connection } of this.#connected.listEdgeRouters()) connection.announce(announcement)
      }
      // Connections write what they were given in this turn at its end.
      await new Promise<void>((resolve) => process.nextTick(resolve))
      const endedAt = this.#clock.monotonic()
      this.#restsUntil = endedAt + REST_TIMES * (endedAt - begunAt)
    } catch (error) {
      this.#log.error(
        { err: error },
        'routers could not be told about changed sessions; they receive all of them again',
      )
      await this.restart()
    }
  }
}

/** Routers hear from each controller that they are connected to what has ended. */
function isRemoval({ kind }: SessionAnnouncement): boolean {
  return kind === 'api-sessions-removed' || kind === 'sessions-removed'
}
