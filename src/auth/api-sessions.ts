// Who is signed in: every live session in memory, beside the table that outlives the process.
import type { Kysely } from 'kysely'
import type { Clock, Instant } from '../clock.ts'
import type { Context, WriteContext } from '../context.ts'
import { notFoundError } from '../errors.ts'
import { newId } from '../ids.ts'
import { apiSessions } from '../resources/api-sessions.ts'
import type { AuditDetail, Entity } from '../resources/define.ts'
import { sessions as serviceSessions } from '../resources/sessions.ts'
import type { Change } from '../store/changes.ts'
import type { Database } from '../store/database.ts'
import { insert, newEntity, removeAllIn, toResourceNoun } from '../store/entities.ts'
import { prepareTypedQuery } from '../store/prepared-queries.ts'
import type { Projection } from '../store/projection.ts'
import { isOneOf } from '../store/untyped.ts'
import { internConfigTypes, type LiveSession, LiveSessions, type SessionIdentity } from './live-sessions.ts'
import { hashToken, type SessionTokens } from './session-tokens.ts'
import type { Method } from './sign-in-attempt.ts'

/** What a sign-in found out. */
export interface NewSession {
  /** The identity as the transaction sees it that stores the session. */
  readonly identity: SessionIdentity
  readonly authenticatorId: string
  readonly ipAddress: string
  /** Ids of config types, or `all` alone. */
  readonly configTypes: readonly string[]
  readonly owesTotp?: boolean
  readonly isCertExtendable?: boolean
  readonly improperClientCertChain?: boolean
}

/** Which sessions: those of an identity except one, or those that began with one of its authenticators. */
export type SessionSelection =
  | { readonly identityId: string; readonly except?: string | undefined }
  | { readonly authenticatorId: string }

/** How a session is stored that a sign-in begins. */
export interface SessionStart {
  readonly id?: string
  readonly audit?: 'event' | 'none'
  /** How the identity signed in. */
  readonly method?: Method
}

const sessionCount = prepareTypedQuery<[identityId: string], { n: number }>((db, identityId) =>
  db
    .selectFrom('api_sessions')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where('identityId', '=', identityId),
)

// How many sessions one transaction writes or takes away, so that no request waits long behind it.
const BATCH = 250
// How many sessions for services one transaction takes away, if they may end one after the other.
const MAX_OPENED = 2_000
// How many are read at once when the process starts: rows take more memory than what becomes of them.
const PAGE = 5_000

export class ApiSessions implements Projection {
  readonly name = 'API sessions'
  readonly #tokens: SessionTokens
  readonly #timeout: number
  readonly #clock: Clock
  #live = new LiveSessions()
  /** Those whose activity is not written yet. */
  #used = new Set<LiveSession>()
  /** The identities of new sessions until their commit, by the record that the commit announces. */
  readonly #made = new WeakMap<object, SessionIdentity>()

  /** @param timeout how long a session stays alive without being used, in milliseconds */
  constructor(tokens: SessionTokens, timeout: number, clock: Clock) {
    this.#tokens = tokens
    this.#timeout = timeout
    this.#clock = clock
  }

  /** Takes up every session that was used within the timeout. Memory knows of later uses than the rows do. */
  async rebuild(db: Kysely<Database>): Promise<void> {
    const now = this.#clock.now()
    const live = new LiveSessions()
    const used = new Set<LiveSession>()
    const isInMemory = this.#live.size > 0
    let last = 0
    for (;;) {
      const rows = await queryLiveRows(db, isInMemory ? 0 : now - this.#timeout, last)
      for (const row of rows) {
        const session = liveSessionFromRow(row)
        const known = this.#live.get(session.id)
        // If the clock was set back since, a session of an earlier process was used later than now.
        const lastActivityAt = Math.min(now, Math.max(session.lastActivityAt, known?.lastActivityAt ?? 0))
        if (lastActivityAt + this.#timeout <= now) continue
        const added = live.add({ ...session, lastActivityAt })
        if (lastActivityAt !== session.lastActivityAt) used.add(added)
      }
      if (rows.length < PAGE) break
      last = rows.at(-1)?.n ?? last
    }
    this.#live = live
    this.#used = used
  }

  /** How long a session stays alive without being used, in milliseconds. */
  get timeout(): number {
    return this.#timeout
  }

  deriveToken(apiSessionId: string): string {
    return this.#tokens.derive(apiSessionId)
  }

  /** The session behind a token, if it is alive; using it counts as activity. */
  use(token: string, now: Instant): LiveSession | undefined {
    const session = this.#live.findByTokenHash(hashToken(token))
    if (!session || session.lastActivityAt + this.#timeout <= now) return undefined
    session.lastActivityAt = now
    this.#used.add(session)
    return session
  }

  /** The wall clock was set by so much: sessions stay as old as they are. Their rows follow with the next flush. */
  followClock(milliseconds: number): void {
    for (const session of this.#live.all()) {
      session.lastActivityAt += milliseconds
      this.#used.add(session)
    }
  }

  get(apiSessionId: string): LiveSession | undefined {
    return this.#live.get(apiSessionId)
  }

  // ---- inside transactions --------------------------------------------------------------------------------------------

  /** Stores a new session, and ends the one that was unused for the longest time if its identity has too many. */
  async insert(
    tx: WriteContext,
    { identity, ...found }: NewSession,
    { id = newId(), audit = 'event', method }: SessionStart = {},
  ): Promise<Entity<typeof apiSessions>> {
    const draft = newEntity(tx, apiSessions, {
      owesTotp: false,
      isCertExtendable: false,
      improperClientCertChain: false,
      ...found,
      id,
      identityId: identity.id,
      configTypes: [...found.configTypes],
      tokenHash: hashToken(this.#tokens.derive(id)),
      isMfaComplete: false,
      lastActivityAt: tx.clock.now(),
    })
    this.#made.set(draft, identity)
    const details = method === undefined ? {} : { method }
    const session = (await insert(tx, apiSessions, draft, undefined, audit, details)) as Entity<typeof apiSessions>
    await this.#endSurplus(tx, session)
    return session
  }

  async #endSurplus(tx: WriteContext, { id: newest, identityId }: Entity<typeof apiSessions>): Promise<void> {
    const [counted] = await sessionCount(tx.db, identityId)
    const surplus = (counted?.n ?? 0) - tx.controller.config['limits.sessionsPerIdentity']
    if (surplus <= 0) return
    const rows = await tx.db
      .selectFrom('api_sessions')
      .select(['id', 'lastActivityAt'])
      .where('identityId', '=', identityId)
      .where('id', '!=', newest)
      .execute()
    // Memory knows of later uses than the table does.
    const used = rows.map(({ id, lastActivityAt }) => ({
      id,
      at: this.#live.get(id)?.lastActivityAt ?? lastActivityAt,
    }))
    const unused = used.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1)).slice(0, Math.min(surplus, BATCH))
    const unusedIds = unused.map(({ id }) => id)
    await removeAllIn(tx, apiSessions, unusedIds, 'none')
  }

  /** Ends sessions along with what they came from. Returns how many. */
  async revokeAll(tx: WriteContext, of: SessionSelection): Promise<number> {
    const all = tx.db.selectFrom('api_sessions').select('id')
    const rows = await ('identityId' in of
      ? all.where('identityId', '=', of.identityId).where('id', '!=', of.except ?? '')
      : all.where('authenticatorId', '=', of.authenticatorId)
    ).execute()
    return removeAllIn(
      tx,
      apiSessions,
      rows.map(({ id }) => id),
    )
  }

  /** Ends one session. @throws NOT_FOUND */
  async end(context: Context, id: string, audit: AuditDetail): Promise<void> {
    if ((await this.#endSome(context, [id], audit)) === 0) throw notFoundError(toResourceNoun(apiSessions), id)
  }

  /**
   * Ends sessions, and what clients opened with them. Returns how many of them existed. The sessions for services go first,
   * some in each transaction: they are worth nothing once their API session ends.
   */
  async #endSome(context: Context, ids: readonly string[], audit: AuditDetail): Promise<number> {
    if (ids.length === 0) return 0
    for (;;) {
      const opened = await context.db
        .selectFrom('sessions')
        .select('id')
        .where(isOneOf(context.db, 'apiSessionId', ids))
        .limit(MAX_OPENED)
        .execute()
      if (opened.length < MAX_OPENED) break
      const openedIds = opened.map(({ id }) => id)
      await context.write((tx) => removeAllIn(tx, serviceSessions, openedIds))
    }
    return context.write((tx) => removeAllIn(tx, apiSessions, ids, audit))
  }

  // ---- background -----------------------------------------------------------------------------------------------------

  /** Writes what memory knows of activity, for the sessions that were used since the last time. */
  async flush(context: Context): Promise<void> {
    const used = [...this.#used]
    for (let at = 0; at < used.length; at += BATCH) await this.#write(context, used.slice(at, at + BATCH))
  }

  async #write(context: Context, sessions: readonly LiveSession[]): Promise<void> {
    const known = sessions.map((session) => ({ session, at: session.lastActivityAt }))
    await context.write(async (tx) => {
      for (const { session, at } of known) {
        await tx.db
          .updateTable('api_sessions')
          .set({ lastActivityAt: at, updatedAt: at })
          .where('id', '=', session.id)
          .execute()
        tx.record({ operation: 'update', audit: 'none', resource: apiSessions.plural, id: session.id, at })
      }
    })
    for (const { session, at } of known) if (session.lastActivityAt === at) this.#used.delete(session)
  }

  /** Takes away the sessions that were idle for too long. Returns how many went. */
  async sweep(context: Context): Promise<number> {
    let gone = 0
    for (;;) {
      const swept = await this.#sweepBatch(context)
      gone += swept.gone
      if (swept.isLast) return gone
    }
  }

  async #sweepBatch(context: Context): Promise<{ gone: number; isLast: boolean }> {
    const overdue = context.clock.now() - this.#timeout
    const rows = await context.db
      .selectFrom('api_sessions')
      .select('id')
      .where('lastActivityAt', '<=', overdue)
      .orderBy('lastActivityAt')
      .limit(BATCH)
      .execute()
    const isAlive = (id: string) => (this.#live.get(id)?.lastActivityAt ?? 0) > overdue
    // What only looks overdue in the table would stand in the way of the next batch.
    const active = rows.flatMap(({ id }) => (isAlive(id) ? (this.#live.get(id) ?? []) : []))
    if (active.length > 0) await this.#write(context, active)
    const idle = rows.filter(({ id }) => !isAlive(id))
    const gone = await this.#endSome(
      context,
      idle.map(({ id }) => id),
      'none',
    )
    return { gone, isLast: rows.length < BATCH }
  }

  /** Follows what commits changed: sessions that began and ended, and identities that are others now. */
  apply(changes: readonly Change[]): void {
    for (const { resource, operation, id, after } of changes) {
      if (resource === 'identities' && after) this.#live.update(after as unknown as SessionIdentity)
      if (resource !== apiSessions.plural) continue
      if (operation === 'create') this.#begin(after as unknown as Entity<typeof apiSessions>)
      if (operation === 'delete') this.#remove(id)
    }
  }

  #begin(entity: Entity<typeof apiSessions>): void {
    const identity = this.#made.get(entity)
    if (!identity) return
    const { id, createdAt, configTypes, owesTotp, isMfaComplete: isTotpComplete, lastActivityAt } = entity
    this.#live.add({
      id,
      tokenHash: entity.tokenHash,
      identity,
      createdAt,
      configTypes: internConfigTypes(configTypes),
      owesTotp,
      isTotpComplete,
      lastActivityAt,
    })
  }

  #remove(id: string): void {
    const session = this.#live.get(id)
    if (!session) return
    this.#used.delete(session)
    this.#live.remove(id)
  }
}

function queryLiveRows(db: Kysely<Database>, overdue: Instant, after: number) {
  return db
    .selectFrom('api_sessions as session')
    .innerJoin('identities as identity', 'identity.id', 'session.identityId')
    .select(['session.n', 'session.id', 'tokenHash', 'configTypes', 'session.createdAt', 'lastActivityAt'])
    .select(['owesTotp', 'isMfaComplete', 'identityId', 'name', 'isAdmin', 'authPolicyId', 'roleAttributes'])
    .where('lastActivityAt', '>', overdue)
    .where('session.n', '>', after)
    .orderBy('session.n')
    .limit(PAGE)
    .execute()
}

type LiveRow = Awaited<ReturnType<typeof queryLiveRows>>[number]

function liveSessionFromRow(row: LiveRow): LiveSession {
  const { id, tokenHash, identityId, name, authPolicyId, createdAt, lastActivityAt } = row
  return {
    id,
    tokenHash,
    identity: {
      id: identityId,
      name,
      isAdmin: row.isAdmin === 1,
      authPolicyId,
      roleAttributes: JSON.parse(row.roleAttributes) as string[],
    },
    createdAt,
    configTypes: internConfigTypes(JSON.parse(row.configTypes) as string[]),
    owesTotp: row.owesTotp === 1,
    isTotpComplete: row.isMfaComplete === 1,
    lastActivityAt,
  }
}
