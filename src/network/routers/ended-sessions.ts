// Ends what clients opened by sessions that have ended, at routers that do not learn it otherwise.
//
// Routers of release 1 do not follow the end of a session whose token is signed, and those of release 2 leave its circuits open if the SDK
// controls their flow. This process ends the circuits that it knows, also at routers that return to it. It does not know those that an
// earlier one created: there, routers close all connections of the client, which may come back at once, because its API session lasts.
//
// The ends, and until when a router that is away has heard of them, are stored. They rest on the times of commits, which no clock sets back.
import { type Kysely, sql, type Transaction } from 'kysely'
import type { SessionTokens } from '../../access/sessions/session-tokens.ts'
import { sessions } from '../../definitions/resources/sessions.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { Log } from '../../foundation/log.ts'
import type { Database } from '../../storage/database.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { CommitRecorder } from '../../storage/store.ts'
import type { Change, Commit, RecordOf } from '../../storage/transactions/changes.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { ConnectedRouter, ConnectedRouters, RouterObserver } from './connected-routers.ts'
import type { SessionSync } from './session-sync.ts'

// The last messages before the end of a connection may not have arrived. Its loss is noticed in less time than this.
const UNCERTAIN_MS = 60_000

interface EndedSessionsParts {
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly db: Kysely<Database>
  readonly log: Log
  readonly sessionSync: Pick<SessionSync, 'reconnectClients'>
  readonly sessionTokens: Pick<SessionTokens, 'areSigned'>
  /** Whether this controller is the one of several that tells routers. */
  readonly isLeading: () => boolean
  createSystemContext(): Context
}

const findAbsence = prepareQuery((db, routerId: string) =>
  db.selectFrom('absent_routers').select('heardUntil').where('routerId', '=', routerId),
)

export class EndedSessions implements SideEffect, RouterObserver, CommitRecorder {
  readonly kind = 'side effect'
  readonly name = 'ended sessions of routers'
  readonly #parts: EndedSessionsParts
  /** The time of the last commit of the processes before: sessions that began by then may have circuits that this one does not know. */
  #startedAfter: Instant | undefined
  /** The time of the last commit when this controller began to lead: by then another one told the routers that it had. */
  #leadingAfter: Instant = 0
  /** The time of the last commit, and when this process followed it by the monotonic clock. */
  #lastAt: Instant = 0
  #followedAt = 0
  /** Router → until when it has heard of ends, or `now` if it is connected and has heard of all. Others are as they are stored. */
  readonly #heardUntil = new Map<string, Instant | 'now'>()

  constructor(parts: EndedSessionsParts) {
    this.#parts = parts
    parts.connected.addObserver(this)
  }

  async restart(db: Kysely<Database>): Promise<void> {
    if (this.#startedAfter !== undefined) {
      for (const router of this.#parts.connected.listEdgeRouters()) await this.#tellSince(router, this.#lastAt)
      return
    }
    const { at } = await db.selectFrom('commit_position').select('at').executeTakeFirstOrThrow()
    this.#lastAt = at
    // Routers of release 1 end a session whose token was opaque, and there was none of release 2.
    this.#startedAfter = this.#parts.sessionTokens.areSigned ? at : 0
  }

  // ---- commits --------------------------------------------------------------------------------------------------------

  concerns(changes: readonly Change[]): boolean {
    return this.#parts.sessionTokens.areSigned && changes.some(isEnd)
  }

  /** Stores the ends, unless the API session has ended too: routers learn that from the list of all that last. */
  async record({ at, changes }: Omit<Commit, 'tables'>, db: Transaction<Database>): Promise<void> {
    const ends = JSON.stringify(listEnded(changes).map(({ apiSessionId, createdAt }) => [apiSessionId, createdAt]))
    await sql`insert into ended_sessions ("apiSessionId", "firstCreatedAt", "endedAt")
      select s.id, min(e.value ->> 1), ${at} from json_each(${ends}) e
      join api_sessions s on s.id = e.value ->> 0 and s."clientId" is null
      group by s.id
      on conflict do update set "firstCreatedAt" = min("firstCreatedAt", excluded."firstCreatedAt"), "endedAt" = excluded."endedAt"`.execute(
      db,
    )
  }

  apply({ at, changes }: Commit): void {
    for (const { resource, operation, id } of changes)
      if (operation === 'delete' && resource === 'edge-routers') this.#heardUntil.delete(id)
    const startedAfter = this.#startedAfter ?? 0
    const clients = new Set(
      listEnded(changes).flatMap(({ apiSessionId, createdAt }) => (createdAt <= startedAfter ? apiSessionId : [])),
    )
    if (clients.size > 0 && this.#parts.isLeading())
      for (const router of this.#parts.connected.listEdgeRouters())
        this.#parts.sessionSync.reconnectClients(router, [...clients])
    this.#lastAt = at
    this.#followedAt = this.#parts.clock.monotonic()
  }

  // ---- routers --------------------------------------------------------------------------------------------------------

  /** Another controller has ended: its circuits go on, and this one does not know them. */
  noteUnknownCircuits(): void {
    if (this.#startedAfter !== undefined && this.#parts.sessionTokens.areSigned) this.#startedAfter = this.#lastAt
  }

  /** Tells routers in place of the controller that did it before, and has those that are connected close what they have not heard of. */
  async takeOver(): Promise<void> {
    this.noteUnknownCircuits()
    this.#leadingAfter = this.#lastAt
    this.#heardUntil.clear()
    for (const router of this.#parts.connected.listEdgeRouters()) await this.tellMissed(router)
  }

  /** Has a router that connected close what it has not heard of. */
  async tellMissed(router: ConnectedRouter): Promise<void> {
    const { db, isLeading, sessionTokens } = this.#parts
    const { id } = router
    if (!isLeading()) return
    if (!sessionTokens.areSigned) {
      this.#heardUntil.set(id, 'now')
      return
    }
    let since = this.#heardUntil.get(id) ?? (await findAbsence(db, id))[0]?.heardUntil
    // Another connection of it was in use until now, or at the end of the process before.
    if (since === 'now') since = this.#getCertainTime()
    since ??= Math.max(this.#startedAfter ?? 0, this.#leadingAfter) - UNCERTAIN_MS
    this.#heardUntil.set(id, since)
    await this.#tellSince(router, since)
  }

  async #tellSince(router: ConnectedRouter, since: Instant): Promise<void> {
    const { db, sessionSync } = this.#parts
    const startedAfter = this.#startedAfter ?? 0
    const rows = await db
      .selectFrom('ended_sessions')
      .select('apiSessionId')
      .where('endedAt', '>', since)
      .where((eb) => eb.or([eb('endedAt', '<=', startedAfter), eb('firstCreatedAt', '<=', startedAfter)]))
      .execute()
    if (rows.length > 0)
      sessionSync.reconnectClients(
        router,
        rows.map(({ apiSessionId }) => apiSessionId),
      )
  }

  /** The time of a commit that has arrived at every router that is connected. */
  #getCertainTime(): Instant {
    const isOver = this.#parts.clock.monotonic() - this.#followedAt >= UNCERTAIN_MS
    return isOver ? this.#lastAt : this.#lastAt - UNCERTAIN_MS
  }

  routerConnected(): void {}

  routerDisconnected({ id, isDeleted }: ConnectedRouter): void {
    const { connected, isLeading, sessionTokens } = this.#parts
    if (!isLeading() || !sessionTokens.areSigned || isDeleted || connected.get(id)) return
    const heard = this.#heardUntil.get(id)
    if (heard === undefined) return
    const heardUntil = heard === 'now' ? this.#getCertainTime() : heard
    this.#heardUntil.set(id, heardUntil)
    this.#write(async ({ db }) => {
      // Unless it was deleted meanwhile.
      await sql`insert into absent_routers ("routerId", "heardUntil") select id, ${heardUntil} from routers where id = ${id}
        on conflict do update set "heardUntil" = excluded."heardUntil"`.execute(db)
    })
  }

  /** Notes which routers have been back for long enough. Called once a second. */
  tick(): void {
    const { clock, connected, isLeading } = this.#parts
    if (!isLeading()) return
    const backBefore = clock.monotonic() - UNCERTAIN_MS
    const backIds: string[] = []
    for (const [id, heard] of this.#heardUntil) {
      const router = heard === 'now' ? undefined : connected.get(id)
      if (router && router.connectedAt <= backBefore) backIds.push(id)
    }
    if (backIds.length === 0) return
    for (const id of backIds) this.#heardUntil.set(id, 'now')
    this.#write(async ({ db }) => {
      await db
        .deleteFrom('absent_routers')
        .where(isOneOf(db, 'routerId', backIds))
        .execute()
    })
  }

  #write(body: (tx: WriteContext) => Promise<void>): void {
    const { createSystemContext, log } = this.#parts
    createSystemContext()
      .write(body)
      .catch((error: unknown) => {
        log.error({ err: error }, 'which routers are away could not be stored')
      })
  }
}

function isEnd({ resource, operation }: Change): boolean {
  return resource === sessions.plural && operation === 'delete'
}

function listEnded(changes: readonly Change[]): Pick<RecordOf<'sessions'>, 'apiSessionId' | 'createdAt'>[] {
  return changes.flatMap((change) =>
    change.resource === sessions.plural && change.operation === 'delete' && change.before ? change.before : [],
  )
}
