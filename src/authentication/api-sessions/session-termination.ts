// Deletes API sessions that are over: signed out, revoked, idle, too old, or too many for their identity.
//
// A large number of them is deleted in several transactions, between which others write.
import type { Kysely } from 'kysely'
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import { authPolicies } from '../../definitions/resources/auth-policies.ts'
import type { AuditDetail, Entity } from '../../definitions/resources/define.ts'
import { sessions as serviceSessions } from '../../definitions/resources/sessions.ts'
import type { Instant } from '../../foundation/clock.ts'
import { notFoundError } from '../../foundation/errors.ts'
import type { Database } from '../../storage/database.ts'
import { type EntityStore, get, toResourceNoun } from '../../storage/entities/entities.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { AuthPolicy } from '../auth-policies.ts'
import { CLIENT_IDS } from '../openid-connect/clients.ts'
import { type Method, methods, toSignerId } from '../sign-in/authentication-methods.ts'
import { isPartial } from '../sign-in/second-factors.ts'
import type { LiveApiSessions } from './live-api-sessions.ts'
import type { SessionActivity } from './session-activity.ts'
import type { SessionLifetime } from './session-lifetime.ts'
import { queryRevocations } from './session-rows.ts'

/** How many sessions one transaction deletes, so that no request waits long for it. */
export const MAX_DELETED = 100
/** How many service sessions one transaction deletes, if they may end in several transactions. */
export const MAX_SERVICE_SESSIONS = 400

// More than the transactions that can commit together: their sessions are not in memory yet.
const MAX_UNCOMMITTED = 100

const countSessions = prepareQuery<[identityId: string], { n: number }>((db, identityId) =>
  db
    .selectFrom('api_sessions')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where('identityId', '=', identityId),
)

/** The parts that delete sessions, and the limits that sessions reach. */
interface SessionTerminationParts {
  readonly entities: EntityStore
  readonly lifetime: SessionLifetime
  readonly maxPerIdentity: number
  readonly activity: SessionActivity
  /** How long after its end the row of a session is deleted. */
  readonly graceMs: number
  /** The sessions in memory: each rebuild makes another object. */
  readonly live: () => LiveApiSessions
  /** Whether a request of the session came with the token of a signer that its auth policy requires. */
  readonly hasShownToken: (id: string) => boolean
  /** Removes a session from memory. */
  readonly remove: (id: string) => void
}

export class SessionTermination {
  readonly #entities: EntityStore
  readonly #lifetime: SessionLifetime
  readonly #maxPerIdentity: number
  readonly #activity: SessionActivity
  readonly #graceMs: number
  readonly #live: () => LiveApiSessions
  readonly #hasShownToken: (id: string) => boolean
  readonly #remove: (id: string) => void

  constructor(parts: SessionTerminationParts) {
    const { entities, lifetime, maxPerIdentity, activity, graceMs, live, hasShownToken, remove } = parts
    this.#entities = entities
    this.#lifetime = lifetime
    this.#maxPerIdentity = maxPerIdentity
    this.#activity = activity
    this.#graceMs = graceMs
    this.#live = live
    this.#hasShownToken = hasShownToken
    this.#remove = remove
  }

  /** Ends one session. @throws NOT_FOUND if the session does not exist */
  async end(context: Context, id: string, audit: AuditDetail): Promise<void> {
    if ((await this.#endSome(context, [id], audit)) === 0) throw notFoundError(toResourceNoun(apiSessions), id)
  }

  /** Ends every session. Returns how many. */
  async endAll(context: Context): Promise<number> {
    let count = 0
    for (;;) {
      const rows = await context.db.selectFrom('api_sessions').select('id').limit(MAX_DELETED).execute()
      if (rows.length === 0) return count
      const ids = rows.map(({ id }) => id)
      count += await this.#endSome(context, ids, 'event')
    }
  }

  /**
   * If the identity of a new session has too many sessions, one of the others ends: one that was revoked already, that owes
   * a second factor, or that was least recently used.
   * @param authPolicyId that of the identity
   */
  async endSurplus(
    tx: WriteContext,
    { id: newest, identityId }: Entity<typeof apiSessions>,
    authPolicyId: string,
  ): Promise<void> {
    // Expired sessions are rows until they are deleted, and are not in memory: they do not count.
    if (this.#live().listOfIdentity(identityId).length + MAX_UNCOMMITTED < this.#maxPerIdentity) return
    const [countRow] = await countSessions(tx.db, identityId)
    const surplus = (countRow?.n ?? 0) - this.#maxPerIdentity
    if (surplus <= 0) return
    const policy = await get(tx, authPolicies, authPolicyId)
    const rows = await tx.db
      .selectFrom('api_sessions')
      .select(['id', 'authenticatorId', 'hasTokens', 'lastActivityAt', 'owesTotp', 'isMfaComplete'])
      .where('identityId', '=', identityId)
      .where('id', '!=', newest)
      .execute()
    const uses = rows.map((row) => ({
      id: row.id,
      rank: this.#rankForEnd(row, policy),
      // The activity in memory is newer than that in the table.
      at: this.#live().get(row.id)?.lastActivityAt ?? row.lastActivityAt,
    }))
    const leastRecentlyUsed = uses
      .sort((a, b) => a.rank - b.rank || a.at - b.at || (a.id < b.id ? -1 : 1))
      .slice(0, Math.min(surplus, MAX_DELETED))
    const surplusIds = leastRecentlyUsed.map(({ id }) => id)
    await this.#entities.removeAllIn(tx, apiSessions, surplusIds, 'none')
  }

  /** Of the sessions of an identity that has too many, those with the lowest rank end first. */
  #rankForEnd({ id, authenticatorId, hasTokens, owesTotp, isMfaComplete }: SurplusRow, policy: AuthPolicy): number {
    if (this.#live().isRevoked(id)) return 0
    const { requireExtJwtSigner: signer } = policy.secondary
    // By OpenID Connect, tokens are issued to a client that owes nothing.
    const isProven = hasTokens === 1 || toSignerId(authenticatorId) === signer || this.#hasShownToken(id)
    const totp = { owesTotp: owesTotp === 1, isTotpComplete: isMfaComplete === 1 }
    // A client that knows the password alone must not end those of the owner.
    return isPartial(totp, policy, isProven && signer !== null ? [signer] : []) ? 1 : 2
  }

  /** Deletes the rows of revoked sessions. Returns how many. */
  async deleteRevoked(context: Context): Promise<number> {
    const revocations = await queryRevocations(context.db)
    let count = 0
    for (;;) {
      const ids = this.#live().listRevoked(MAX_DELETED)
      if (ids.length === 0) break
      count += await this.#endSome(context, ids, 'event')
      // Rows that are gone otherwise announce nothing.
      for (const id of ids) this.#remove(id)
    }
    if (revocations.length > 0) {
      const ids = revocations.map(({ id }) => id)
      await context.write(async (tx) => {
        await tx.db
          .deleteFrom('api_session_revocations')
          .where(isOneOf(tx.db, 'id', ids))
          .execute()
      })
    }
    return count
  }

  /** Deletes the sessions that are idle or too old, at a cost that depends on their number. Returns how many. */
  async deleteExpired(context: Context): Promise<number> {
    const now = context.clock.now() - this.#graceMs
    let count = 0
    for (const clientId of [null, ...CLIENT_IDS]) {
      const cutoff = now - this.#lifetime.getTimeoutMs(clientId)
      count += await this.#deleteDue(context, { column: 'lastActivityAt', cutoff, clientId })
    }
    count += await this.#deleteDue(context, { column: 'endsAt', cutoff: now })
    for (const method of methods) {
      const maxAgeMs = this.#lifetime.getMaxAgeMs(method)
      if (maxAgeMs === Number.POSITIVE_INFINITY) continue
      count += await this.#deleteDue(context, { column: 'authenticatedAt', cutoff: now - maxAgeMs, method })
    }
    return count
  }

  async #deleteDue(context: Context, due: Due): Promise<number> {
    const now = context.clock.now()
    let count = 0
    for (let last: DueRow | undefined; ; ) {
      const rows = (await selectDue(context.db, due, last).execute()) as DueRow[]
      const live = rows.flatMap(({ id }) => this.#live().get(id) ?? [])
      const alive = live.filter((session) => this.#lifetime.getEnd(session, session.basis.method) > now)
      // Memory has later times than the rows. With these, the rows are not due any more.
      if (alive.length > 0) await this.#activity.write(context, alive)
      const aliveIds = new Set(alive.map(({ id }) => id))
      const endedIds = rows.flatMap(({ id }) => (aliveIds.has(id) ? [] : id))
      count += await this.#endSome(context, endedIds, 'none')
      if (rows.length < MAX_DELETED) return count
      last = rows.at(-1)
    }
  }

  /**
   * Ends sessions and their service sessions. Returns how many API sessions existed. The service sessions are deleted first,
   * in batches, because they are useless once their API session ends.
   */
  async #endSome(context: Context, ids: readonly string[], audit: AuditDetail): Promise<number> {
    if (ids.length === 0) return 0
    for (;;) {
      const serviceSessionRows = await findServiceSessions(context.db, ids)
      if (serviceSessionRows.length < MAX_SERVICE_SESSIONS) break
      const serviceSessionIds = serviceSessionRows.map(({ id }) => id)
      await context.write((tx) => this.#entities.removeAllIn(tx, serviceSessions, serviceSessionIds))
    }
    return context.write((tx) => this.#entities.removeAllIn(tx, apiSessions, ids, audit))
  }
}

/** The factors of a session, as its row has them. */
interface SurplusRow {
  readonly id: string
  readonly authenticatorId: string
  readonly hasTokens: number
  readonly owesTotp: number
  readonly isMfaComplete: number
}

/** The sessions whose rows say that their time is over. */
interface Due {
  readonly column: 'lastActivityAt' | 'authenticatedAt' | 'endsAt'
  readonly cutoff: Instant
  readonly method?: Method
  /** Only those that began by this client of OpenID Connect, or by none. */
  readonly clientId?: string | null
}

interface DueRow {
  readonly id: string
  readonly n: number
  readonly at: Instant
}

/** The first due sessions after one of them, by an index. */
function selectDue(db: Kysely<Database>, { column, cutoff, method, clientId }: Due, last?: DueRow) {
  const rows = db
    .selectFrom('api_sessions')
    .select(['id', 'n', `${column} as at`])
    .where(column, '<=', cutoff)
    .orderBy(column)
    .orderBy('n')
    .limit(MAX_DELETED)
  const ofClient = clientId === undefined ? rows : rows.where('clientId', clientId === null ? 'is' : '=', clientId)
  const ofMethod = method ? ofClient.where('method', '=', method) : ofClient
  return last ? ofMethod.where((eb) => eb(eb.refTuple(column, 'n'), '>', eb.tuple(last.at, last.n))) : ofMethod
}

/** Returns the first service sessions of API sessions, as many as one transaction deletes. */
export function findServiceSessions(db: Kysely<Database>, apiSessionIds: readonly string[]): Promise<{ id: string }[]> {
  return db
    .selectFrom('sessions')
    .select('id')
    .where(isOneOf(db, 'apiSessionId', apiSessionIds))
    .limit(MAX_SERVICE_SESSIONS)
    .execute()
}
