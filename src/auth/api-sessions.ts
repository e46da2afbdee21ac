// Who is signed in: sessions as they are used, kept in memory beside the table that outlives the process.
import type { Instant } from '../clock.ts'
import type { Context, WriteContext } from '../context.ts'
import { newId } from '../ids.ts'
import { apiSessions } from '../resources/api-sessions.ts'
import type { Entity } from '../resources/define.ts'
import type { Change } from '../store/changes.ts'
import { insert, newEntity, removeIn } from '../store/entities.ts'
import { type SessionTokens, tokenHash } from './session-tokens.ts'

/** A session that was used since the start of this process. */
export interface LiveSession {
  readonly id: string
  readonly identityId: string
  readonly authenticatorId: string
  readonly createdAt: Instant
  readonly ipAddress: string
  readonly configTypes: readonly string[]
  readonly isMfaRequired: boolean
  readonly isMfaComplete: boolean
  readonly isCertExtendable: boolean
  readonly improperClientCertChain: boolean
  /** As it was last written, and as it really is. */
  storedActivityAt: Instant
  lastActivityAt: Instant
  identity: SessionIdentity
}

/** What every request needs to know of the identity behind it. */
export interface SessionIdentity {
  readonly name: string
  readonly isAdmin: boolean
  readonly authPolicyId: string
}

/** What a sign-in found out. */
export interface NewSession {
  readonly identityId: string
  readonly authenticatorId: string
  readonly ipAddress: string
  readonly configTypes: readonly string[]
  readonly isMfaRequired?: boolean
  readonly isCertExtendable?: boolean
  readonly improperClientCertChain?: boolean
}

// How many overdue sessions one transaction takes away.
const SWEEP_BATCH = 500

export class ApiSessions {
  readonly #tokens: SessionTokens
  readonly #timeout: number
  readonly #byHash = new Map<string, LiveSession>()
  readonly #byId = new Map<string, { hash: string; session: LiveSession }>()
  readonly #byIdentity = new Map<string, Set<LiveSession>>()

  constructor(tokens: SessionTokens, timeout: number) {
    this.#tokens = tokens
    this.#timeout = timeout
  }

  /** How long a session stays alive without being used, in milliseconds. */
  get timeout(): number {
    return this.#timeout
  }

  tokenOf(apiSessionId: string): string {
    return this.#tokens.of(apiSessionId)
  }

  /** The session behind a token, if it is alive; using it counts as activity. */
  async use(context: Context, token: string): Promise<LiveSession | undefined> {
    const hash = tokenHash(token)
    const session = this.#byHash.get(hash) ?? (await this.#load(context, hash))
    const now = context.clock.now()
    if (!session || session.lastActivityAt + this.#timeout <= now) return undefined
    session.lastActivityAt = now
    return session
  }

  get(apiSessionId: string): LiveSession | undefined {
    return this.#byId.get(apiSessionId)?.session
  }

  /** Stores a new session; part of the transaction of a sign-in. */
  async insert(tx: WriteContext, found: NewSession): Promise<Entity<typeof apiSessions>> {
    const id = newId()
    const values = { isMfaRequired: false, isCertExtendable: false, improperClientCertChain: false, ...found }
    const draft = newEntity(tx, apiSessions, {
      ...values,
      id,
      configTypes: [...found.configTypes],
      tokenHash: tokenHash(this.#tokens.of(id)),
      isMfaComplete: false,
      lastActivityAt: tx.clock.now(),
    })
    return (await insert(tx, apiSessions, draft, undefined, 'event')) as Entity<typeof apiSessions>
  }

  /** Writes what memory knows of activity, for the sessions that were used since the last time. */
  async flush(context: Context): Promise<void> {
    const used = [...this.#byHash.values()].filter((session) => session.lastActivityAt > session.storedActivityAt)
    if (used.length === 0) return
    await context.write(async (tx) => {
      for (const { id, lastActivityAt } of used) {
        await tx.db
          .updateTable('api_sessions')
          .set({ lastActivityAt, updatedAt: lastActivityAt })
          .where('id', '=', id)
          .execute()
      }
    })
    for (const session of used) session.storedActivityAt = session.lastActivityAt
  }

  /** Takes away the sessions that were idle for too long. Returns how many went. */
  async sweep(context: Context): Promise<number> {
    const overdue = context.clock.now() - this.#timeout
    const rows = await context.db
      .selectFrom('api_sessions')
      .select(['id', 'tokenHash'])
      .where('lastActivityAt', '<=', overdue)
      .limit(SWEEP_BATCH)
      .execute()
    const gone = rows.filter((row) => (this.#byHash.get(row.tokenHash)?.lastActivityAt ?? 0) <= overdue)
    if (gone.length === 0) return 0
    await context.write(async (tx) => {
      for (const { id } of gone) {
        const isThere = await tx.db.selectFrom('api_sessions').select('id').where('id', '=', id).executeTakeFirst()
        if (isThere) await removeIn(tx, apiSessions, id, 'none')
      }
    })
    return gone.length
  }

  /** Follows what commits changed: ended sessions, and identities that are others now. */
  follow(changes: readonly Change[]): void {
    for (const { resource, operation, id, after } of changes) {
      if (resource === 'api-sessions' && operation === 'delete') this.#forget(id)
      if (resource === 'identities' && after) {
        for (const session of this.#byIdentity.get(id) ?? []) session.identity = sessionIdentity(after)
      }
    }
  }

  #forget(apiSessionId: string): void {
    const known = this.#byId.get(apiSessionId)
    if (!known) return
    this.#byId.delete(apiSessionId)
    this.#byHash.delete(known.hash)
    const ofIdentity = this.#byIdentity.get(known.session.identityId)
    ofIdentity?.delete(known.session)
    if (ofIdentity?.size === 0) this.#byIdentity.delete(known.session.identityId)
  }

  async #load({ db }: Context, hash: string): Promise<LiveSession | undefined> {
    const row = await db
      .selectFrom('api_sessions')
      .innerJoin('identities', 'identities.id', 'api_sessions.identityId')
      .selectAll('api_sessions')
      .select(['identities.name', 'identities.isAdmin', 'identities.authPolicyId'])
      .where('tokenHash', '=', hash)
      .executeTakeFirst()
    if (!row) return undefined
    const session: LiveSession = {
      id: row.id,
      identityId: row.identityId,
      authenticatorId: row.authenticatorId,
      createdAt: row.createdAt,
      ipAddress: row.ipAddress,
      configTypes: JSON.parse(row.configTypes) as string[],
      isMfaRequired: row.isMfaRequired === 1,
      isMfaComplete: row.isMfaComplete === 1,
      isCertExtendable: row.isCertExtendable === 1,
      improperClientCertChain: row.improperClientCertChain === 1,
      storedActivityAt: row.lastActivityAt,
      lastActivityAt: row.lastActivityAt,
      identity: { name: row.name, isAdmin: row.isAdmin === 1, authPolicyId: row.authPolicyId },
    }
    this.#byHash.set(hash, session)
    this.#byId.set(session.id, { hash, session })
    const ofIdentity = this.#byIdentity.get(session.identityId) ?? new Set()
    this.#byIdentity.set(session.identityId, ofIdentity.add(session))
    return session
  }
}

function sessionIdentity(identity: Readonly<Record<string, unknown>>): SessionIdentity {
  const { name, isAdmin, authPolicyId } = identity as unknown as SessionIdentity
  return { name, isAdmin, authPolicyId }
}
