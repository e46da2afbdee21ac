// API sessions: every live session in memory, and the table that outlives the process.
import type { Kysely } from 'kysely'
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { AuditDetail, Entity } from '../../definitions/resources/define.ts'
import { sessions as serviceSessions } from '../../definitions/resources/sessions.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import { notFoundError } from '../../foundation/errors.ts'
import { newId } from '../../foundation/ids.ts'
import type { Change } from '../../storage/changes.ts'
import type { Context, WriteContext } from '../../storage/context.ts'
import type { Database } from '../../storage/database.ts'
import { type EntityStore, get, newEntity, toResourceNoun } from '../../storage/entities/entities.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { Projection } from '../../storage/projection.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { Method } from '../sign-in/authentication-methods.ts'
import { type ApiSessionTokens, hashToken } from './api-session-tokens.ts'
import {
  type ApiSessionIdentity,
  internConfigTypes,
  type LiveApiSession,
  LiveApiSessions,
  MFA_TIMES,
  type TotpProgress,
} from './live-api-sessions.ts'

/** The result of a sign-in. */
export interface NewApiSession {
  /** The identity, as read in the transaction that stores the session. */
  readonly identity: ApiSessionIdentity
  readonly authenticatorId: string
  /** The authority of the certificate that it began with, if an operator brought that authority. */
  readonly caId?: string | null
  /** SHA-1 of that certificate. */
  readonly certFingerprint?: string | null
  readonly ipAddress: string
  /** Ids of config types, or `all` alone. */
  readonly configTypes: readonly string[]
  readonly owesTotp?: boolean
  readonly isCertExtendable?: boolean
  readonly improperClientCertChain?: boolean
}

/** Selects the sessions of an identity except one, or those that began with an authenticator or a certificate of an authority. */
export type ApiSessionSelection =
  | { readonly identityId: string; readonly except?: string | undefined }
  | { readonly authenticatorId: string }
  | { readonly caId: string }

/** How a new session is stored. */
export interface ApiSessionStart {
  readonly id?: string
  readonly audit?: 'event' | 'none'
  /** How the identity signed in. */
  readonly method?: Method
}

const countSessions = prepareQuery<[identityId: string], { n: number }>((db, identityId) =>
  db
    .selectFrom('api_sessions')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where('identityId', '=', identityId),
)

// More than the transactions that can commit together: their sessions are not in memory yet.
const MAX_UNCOMMITTED = 100

// How many sessions one transaction writes or deletes, so that no request waits long for it.
const BATCH = 250
// How many service sessions one transaction deletes, if they may end in several transactions.
const MAX_SERVICE_SESSIONS = 2_000
// How many rows are read at once at the start: rows take more memory than live sessions.
const PAGE = 5_000

/** What sessions are stored with, and their limits. */
interface Collaborators {
  readonly entities: EntityStore
  readonly tokens: ApiSessionTokens
  readonly clock: Clock
  /** How long a session stays alive without being used, in milliseconds. */
  readonly timeout: number
  readonly maxPerIdentity: number
}

export class ApiSessions implements Projection {
  readonly name = 'API sessions'
  readonly #entities: EntityStore
  readonly #tokens: ApiSessionTokens
  readonly #clock: Clock
  readonly #timeout: number
  readonly #maxPerIdentity: number
  #live = new LiveApiSessions()
  /** Sessions whose last activity is not written yet. */
  #unflushed = new Set<LiveApiSession>()
  /** By how much the MFA times of sessions were shifted since their rows were written, in milliseconds. */
  readonly #unwrittenShifts = new Map<LiveApiSession, number>()
  /** The identities of new sessions until their commit, by the record in the change feed. */
  readonly #newIdentities = new WeakMap<object, ApiSessionIdentity>()

  constructor({ entities, tokens, clock, timeout, maxPerIdentity }: Collaborators) {
    this.#entities = entities
    this.#tokens = tokens
    this.#clock = clock
    this.#timeout = timeout
    this.#maxPerIdentity = maxPerIdentity
  }

  get size(): number {
    return this.#live.size
  }

  /** Takes up every session that was used within the timeout. Memory knows of later uses than the rows do. */
  async rebuild(db: Kysely<Database>): Promise<void> {
    const now = this.#clock.now()
    const live = new LiveApiSessions()
    const used = new Set<LiveApiSession>()
    const isInMemory = this.#live.size > 0
    let last = 0
    for (;;) {
      const rows = await queryLiveRows(db, isInMemory ? 0 : now - this.#timeout, last)
      for (const row of rows) {
        const session = liveSessionFromRow(row)
        const currentSession = this.#live.get(session.id)
        // If the clock was set back since, a session of an earlier process was used later than now.
        const lastActivityAt = Math.min(now, Math.max(session.lastActivityAt, currentSession?.lastActivityAt ?? 0))
        if (lastActivityAt + this.#timeout <= now) continue
        const added = live.add({ ...session, lastActivityAt })
        if (lastActivityAt !== session.lastActivityAt) used.add(added)
      }
      if (rows.length < PAGE) break
      last = rows.at(-1)?.n ?? last
    }
    this.#live = live
    this.#unflushed = used
  }

  /** Compares the sessions, and what memory holds of their identities, with the rows. */
  async findDifferences(db: Kysely<Database>): Promise<string[]> {
    const rows = new Map<string, LiveApiSession>()
    for (let last = 0; ; ) {
      const page = await queryLiveRows(db, 0, last)
      for (const row of page) rows.set(row.id, liveSessionFromRow(row))
      if (page.length < PAGE) break
      last = page.at(-1)?.n ?? last
    }
    const differences: string[] = []
    for (const { id, identity, tokenHash } of this.#live.all()) {
      const row = rows.get(id)
      if (!row) differences.push(`only memory holds the API session ${id}`)
      else if (row.tokenHash !== tokenHash || !isSameIdentity(row.identity, identity))
        differences.push(`the API session ${id} has other rights or another token than its row`)
    }
    return differences
  }

  /** The idle timeout of a session, in milliseconds. */
  get timeout(): number {
    return this.#timeout
  }

  /** The token of the API session, or service session, with this id. */
  deriveToken(id: string): string {
    return this.#tokens.derive(id)
  }

  /** Returns the live session of a token, and records the activity. */
  use(token: string, now: Instant): LiveApiSession | undefined {
    const session = this.#live.findByTokenHash(hashToken(token))
    if (!session || session.lastActivityAt + this.#timeout <= now) return undefined
    session.lastActivityAt = now
    this.#unflushed.add(session)
    return session
  }

  /** Shifts the times of all sessions after the wall clock was set. The next flush updates their rows. */
  followClock(milliseconds: number): void {
    for (const session of this.#live.all()) {
      session.lastActivityAt += milliseconds
      this.#unflushed.add(session)
      for (const time of MFA_TIMES) {
        const before = session[time]
        if (before !== null) session[time] = before + milliseconds
      }
      if (MFA_TIMES.some((time) => session[time] !== null))
        this.#unwrittenShifts.set(session, (this.#unwrittenShifts.get(session) ?? 0) + milliseconds)
    }
  }

  /** Whether an identity has any session. */
  isSignedIn(identityId: string): boolean {
    return this.#live.hasIdentity(identityId)
  }

  /** The ids of all sessions. */
  listIds(): string[] {
    return Array.from(this.#live.all(), ({ id }) => id)
  }

  get(apiSessionId: string): LiveApiSession | undefined {
    return this.#live.get(apiSessionId)
  }

  /** The live sessions of an identity. */
  listOfIdentity(identityId: string): readonly LiveApiSession[] {
    return this.#live.listOfIdentity(identityId)
  }

  // ---- inside transactions --------------------------------------------------------------------------------------------

  /** Stores a new session. If its identity has too many sessions, one ends: that owes TOTP, or was least recently used. */
  async insert(
    tx: WriteContext,
    { identity, ...signIn }: NewApiSession,
    { id = newId(), audit = 'event', method }: ApiSessionStart = {},
  ): Promise<Entity<typeof apiSessions>> {
    const draft = newEntity(tx, apiSessions, {
      owesTotp: false,
      isCertExtendable: false,
      improperClientCertChain: false,
      ...signIn,
      id,
      identityId: identity.id,
      configTypes: [...signIn.configTypes],
      tokenHash: hashToken(this.#tokens.derive(id)),
      isMfaComplete: false,
      mfaPassedAt: null,
      wokenAt: null,
      unlockedAt: null,
      wrongCodeCount: 0,
      lastActivityAt: tx.clock.now(),
    })
    this.#newIdentities.set(draft, identity)
    const details = method === undefined ? {} : { method }
    const session = (await this.#entities.insert(tx, apiSessions, draft, { audit, ...details })) as Entity<
      typeof apiSessions
    >
    await this.#endSurplus(tx, session)
    return session
  }

  async #endSurplus(tx: WriteContext, { id: newest, identityId }: Entity<typeof apiSessions>): Promise<void> {
    // Expired sessions are rows until they are swept, and are not in memory: they do not count.
    if (this.#live.listOfIdentity(identityId).length + MAX_UNCOMMITTED < this.#maxPerIdentity) return
    const [countRow] = await countSessions(tx.db, identityId)
    const surplus = (countRow?.n ?? 0) - this.#maxPerIdentity
    if (surplus <= 0) return
    const rows = await tx.db
      .selectFrom('api_sessions')
      .select(['id', 'lastActivityAt', 'owesTotp', 'isMfaComplete'])
      .where('identityId', '=', identityId)
      .where('id', '!=', newest)
      .execute()
    const uses = rows.map(({ id, lastActivityAt, owesTotp, isMfaComplete }) => ({
      id,
      // Those that owe TOTP end first: a client that knows the password alone must not end those of the owner.
      rank: owesTotp === 1 && isMfaComplete === 0 ? 0 : 1,
      // The activity in memory is newer than that in the table.
      at: this.#live.get(id)?.lastActivityAt ?? lastActivityAt,
    }))
    const leastRecentlyUsed = uses
      .sort((a, b) => a.rank - b.rank || a.at - b.at || (a.id < b.id ? -1 : 1))
      .slice(0, Math.min(surplus, BATCH))
    const surplusIds = leastRecentlyUsed.map(({ id }) => id)
    await this.#entities.removeAllIn(tx, apiSessions, surplusIds, 'none')
  }

  /** Stores that a session passed a TOTP code now. @throws NOT_FOUND if it has ended */
  async completeTotp(tx: WriteContext, id: string): Promise<void> {
    const passed = { owesTotp: true, isMfaComplete: true, mfaPassedAt: tx.clock.now() }
    await this.#entities.update(tx, apiSessions, await get(tx, apiSessions, id), passed)
  }

  /** Makes the sessions of an identity owe TOTP that have not passed it, because another session has verified one. */
  async requireTotp(tx: WriteContext, identityId: string): Promise<void> {
    const rows = await tx.db
      .selectFrom('api_sessions')
      .select('id')
      .where('identityId', '=', identityId)
      .where('owesTotp', '=', 0)
      .where('isMfaComplete', '=', 0)
      .execute()
    for (const { id } of rows) {
      const session = await get(tx, apiSessions, id)
      await this.#entities.update(tx, apiSessions, session, { owesTotp: true }, { audit: 'none' })
    }
  }

  /**
   * Makes the sessions of an identity that passed a code as if there had never been a factor, because it was removed: what the
   * auth policy requires is owed again. A session that never passed one stays partial, because the removal proves nothing.
   */
  async resetTotp(tx: WriteContext, identityId: string): Promise<void> {
    const rows = await tx.db
      .selectFrom('api_sessions')
      .select('id')
      .where('identityId', '=', identityId)
      .where((eb) => eb.or([eb('isMfaComplete', '=', 1), eb('mfaPassedAt', 'is not', null)]))
      .execute()
    for (const { id } of rows) {
      const session = await get(tx, apiSessions, id)
      const initial = { owesTotp: false, isMfaComplete: false, mfaPassedAt: null }
      await this.#entities.update(tx, apiSessions, session, initial, { audit: 'none' })
    }
  }

  /** Revokes the selected sessions. Returns how many. */
  async revokeAll(tx: WriteContext, of: ApiSessionSelection): Promise<number> {
    const all = tx.db.selectFrom('api_sessions').select('id')
    const rows = await ('identityId' in of
      ? all.where('identityId', '=', of.identityId).where('id', '!=', of.except ?? '')
      : 'caId' in of
        ? all.where('caId', '=', of.caId)
        : all.where('authenticatorId', '=', of.authenticatorId)
    ).execute()
    return this.#entities.removeAllIn(
      tx,
      apiSessions,
      rows.map(({ id }) => id),
    )
  }

  /** Ends one session. @throws NOT_FOUND if there is no such session */
  async end(context: Context, id: string, audit: AuditDetail): Promise<void> {
    if ((await this.#endSome(context, [id], audit)) === 0) throw notFoundError(toResourceNoun(apiSessions), id)
  }

  /** Ends every session. Returns how many. */
  async endAll(context: Context): Promise<number> {
    let count = 0
    for (;;) {
      const rows = await context.db.selectFrom('api_sessions').select('id').limit(BATCH).execute()
      if (rows.length === 0) return count
      const ids = rows.map(({ id }) => id)
      count += await this.#endSome(context, ids, 'event')
    }
  }

  /**
   * Ends sessions and their service sessions. Returns how many API sessions existed. The service sessions are deleted first,
   * in batches, because they are useless once their API session ends.
   */
  async #endSome(context: Context, ids: readonly string[], audit: AuditDetail): Promise<number> {
    if (ids.length === 0) return 0
    for (;;) {
      const serviceSessionRows = await context.db
        .selectFrom('sessions')
        .select('id')
        .where(isOneOf(context.db, 'apiSessionId', ids))
        .limit(MAX_SERVICE_SESSIONS)
        .execute()
      if (serviceSessionRows.length < MAX_SERVICE_SESSIONS) break
      const serviceSessionIds = serviceSessionRows.map(({ id }) => id)
      await context.write((tx) => this.#entities.removeAllIn(tx, serviceSessions, serviceSessionIds))
    }
    return context.write((tx) => this.#entities.removeAllIn(tx, apiSessions, ids, audit))
  }

  // ---- background -----------------------------------------------------------------------------------------------------

  /** Writes the last activity of the sessions that were used since the last flush. */
  async flush(context: Context): Promise<void> {
    const sessions = [...this.#unflushed]
    for (let at = 0; at < sessions.length; at += BATCH) await this.#write(context, sessions.slice(at, at + BATCH))
  }

  async #write(context: Context, sessions: readonly LiveApiSession[]): Promise<void> {
    const activities = sessions.map((session) => ({
      session,
      at: session.lastActivityAt,
      shift: this.#unwrittenShifts.get(session),
    }))
    await context.write(async (tx) => {
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
      if (session.lastActivityAt === at) this.#unflushed.delete(session)
      if (this.#unwrittenShifts.get(session) === shift) this.#unwrittenShifts.delete(session)
    }
  }

  /** Deletes expired sessions. Returns how many. */
  async sweep(context: Context): Promise<number> {
    let count = 0
    for (;;) {
      const batch = await this.#sweepBatch(context)
      count += batch.count
      if (batch.isLast) return count
    }
  }

  async #sweepBatch(context: Context): Promise<{ count: number; isLast: boolean }> {
    const cutoff = context.clock.now() - this.#timeout
    const rows = await context.db
      .selectFrom('api_sessions')
      .select('id')
      .where('lastActivityAt', '<=', cutoff)
      .orderBy('lastActivityAt')
      .limit(BATCH)
      .execute()
    const isAlive = (id: string) => (this.#live.get(id)?.lastActivityAt ?? 0) > cutoff
    // A session that is expired only in the table would fill the next batch again.
    const active = rows.flatMap(({ id }) => (isAlive(id) ? (this.#live.get(id) ?? []) : []))
    if (active.length > 0) await this.#write(context, active)
    const idle = rows.filter(({ id }) => !isAlive(id))
    const count = await this.#endSome(
      context,
      idle.map(({ id }) => id),
      'none',
    )
    return { count: count, isLast: rows.length < BATCH }
  }

  /** Applies the changes of a commit: sessions that began or ended, and changed identities. */
  apply(changes: readonly Change[]): void {
    for (const { resource, operation, id, after } of changes) {
      if (resource === 'identities' && after) this.#live.update(after as unknown as ApiSessionIdentity)
      if (resource !== apiSessions.plural) continue
      if (operation === 'create') this.#addCreated(after as unknown as Entity<typeof apiSessions>)
      if (operation === 'update' && after)
        this.#live.updateTotp(id, toTotpProgress(after as unknown as Entity<typeof apiSessions>))
      if (operation === 'delete') this.#remove(id)
    }
  }

  #addCreated(entity: Entity<typeof apiSessions>): void {
    const identity = this.#newIdentities.get(entity)
    if (!identity) return
    const { id, createdAt, configTypes, lastActivityAt } = entity
    this.#live.add({
      id,
      tokenHash: entity.tokenHash,
      identity,
      createdAt,
      configTypes: internConfigTypes(configTypes),
      ...toTotpProgress(entity),
      lastActivityAt,
    })
  }

  #remove(id: string): void {
    this.#tokens.evict(id)
    const session = this.#live.get(id)
    if (!session) return
    this.#unflushed.delete(session)
    this.#unwrittenShifts.delete(session)
    this.#live.remove(id)
  }
}

function toTotpProgress(session: Entity<typeof apiSessions>): TotpProgress {
  const { owesTotp, isMfaComplete, mfaPassedAt, wokenAt, unlockedAt } = session
  return { owesTotp, isTotpComplete: isMfaComplete, mfaPassedAt, wokenAt, unlockedAt }
}

function isSameIdentity(some: ApiSessionIdentity, other: ApiSessionIdentity): boolean {
  const values = ({ id, name, isAdmin, authPolicyId, roleAttributes, externalId }: ApiSessionIdentity) =>
    JSON.stringify([id, name, isAdmin, authPolicyId, roleAttributes, externalId])
  return values(some) === values(other)
}

/** Writes the times of a session that were shifted, unless a row has a newer one. */
async function writeShiftedTimes(tx: WriteContext, session: LiveApiSession, shift: number): Promise<void> {
  for (const time of MFA_TIMES) {
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

function queryLiveRows(db: Kysely<Database>, cutoff: Instant, after: number) {
  return db
    .selectFrom('api_sessions as session')
    .innerJoin('identities as identity', 'identity.id', 'session.identityId')
    .select(['session.n', 'session.id', 'tokenHash', 'configTypes', 'session.createdAt', 'lastActivityAt'])
    .select([
      'owesTotp',
      'isMfaComplete',
      'mfaPassedAt',
      'wokenAt',
      'unlockedAt',
      'identityId',
      'name',
      'isAdmin',
      'authPolicyId',
      'roleAttributes',
      'externalId',
    ])
    .where('lastActivityAt', '>', cutoff)
    .where('session.n', '>', after)
    .orderBy('session.n')
    .limit(PAGE)
    .execute()
}

type LiveRow = Awaited<ReturnType<typeof queryLiveRows>>[number]

function liveSessionFromRow(row: LiveRow): LiveApiSession {
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
      externalId: row.externalId,
    },
    createdAt,
    configTypes: internConfigTypes(JSON.parse(row.configTypes) as string[]),
    owesTotp: row.owesTotp === 1,
    isTotpComplete: row.isMfaComplete === 1,
    mfaPassedAt: row.mfaPassedAt,
    wokenAt: row.wokenAt,
    unlockedAt: row.unlockedAt,
    lastActivityAt,
  }
}
