// API sessions as their rows hold them, and as memory does.
import type { Kysely } from 'kysely'
import type { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import type { Instant } from '../../foundation/clock.ts'
import type { Database } from '../../storage/database.ts'
import {
  type ApiSessionIdentity,
  internConfigTypes,
  type LiveApiSession,
  type SessionProgress,
} from './live-api-sessions.ts'
import { type RevokedSessions, toSessionBasis } from './session-basis.ts'

// How many rows are read at once at the start: rows take more memory than live sessions.
const PAGE = 5_000

/** A session, and the key of its row: a later session has a greater one. */
export interface StoredSession {
  readonly n: number
  readonly session: LiveApiSession
}

/** The sessions that were used after `cutoff`, a page at a time. It awaits only its queries. */
export async function* readSessions(db: Kysely<Database>, cutoff: Instant): AsyncGenerator<readonly StoredSession[]> {
  for (let last = 0; ; ) {
    const rows = await queryPage(db, cutoff, last)
    yield rows.map((row) => ({ n: row.n, session: liveSessionFromRow(row) }))
    if (rows.length < PAGE) return
    last = rows.at(-1)?.n ?? last
  }
}

export function toSessionProgress(session: Entity<typeof apiSessions>): SessionProgress {
  const { owesTotp, isMfaComplete, mfaPassedAt, wokenAt, unlockedAt, endsAt } = session
  return { owesTotp, isTotpComplete: isMfaComplete, mfaPassedAt, wokenAt, unlockedAt, endsAt }
}

export function isSameIdentity(some: ApiSessionIdentity, other: ApiSessionIdentity): boolean {
  const values = ({ id, name, isAdmin, permissions, authPolicyId, roleAttributes, externalId }: ApiSessionIdentity) =>
    JSON.stringify([id, name, isAdmin, permissions, authPolicyId, roleAttributes, externalId])
  return values(some) === values(other)
}

/** A change that revoked API sessions whose rows are not all deleted yet. */
export interface StoredRevocation {
  readonly id: string
  readonly newest: number
  readonly of: RevokedSessions
}

export async function queryRevocations(db: Kysely<Database>): Promise<StoredRevocation[]> {
  const rows = await db.selectFrom('api_session_revocations').selectAll().execute()
  return rows.map(({ id, newest, sessions }) => ({ id, newest, of: JSON.parse(sessions) as RevokedSessions }))
}

function queryPage(db: Kysely<Database>, cutoff: Instant, after: number) {
  return db
    .selectFrom('api_sessions as session')
    .innerJoin('identities as identity', 'identity.id', 'session.identityId')
    .select(['session.n', 'session.id', 'tokenHash', 'configTypes', 'session.createdAt', 'lastActivityAt'])
    .select([
      'clientId',
      'method',
      'authenticatorId',
      'signerKey',
      'caId',
      'authenticatedAt',
      'endsAt',
      'session.externalId as claimedId',
    ])
    .select([
      'owesTotp',
      'isMfaComplete',
      'mfaPassedAt',
      'wokenAt',
      'unlockedAt',
      'identityId',
      'name',
      'isAdmin',
      'permissions',
      'authPolicyId',
      'roleAttributes',
      'identity.externalId',
    ])
    .where('lastActivityAt', '>', cutoff)
    .where('session.n', '>', after)
    .orderBy('session.n')
    .limit(PAGE)
    .execute()
}

type LiveRow = Awaited<ReturnType<typeof queryPage>>[number]

function liveSessionFromRow(row: LiveRow): LiveApiSession {
  const { id, tokenHash, identityId, name, authPolicyId, createdAt, lastActivityAt } = row
  return {
    id,
    tokenHash,
    identity: {
      id: identityId,
      name,
      isAdmin: row.isAdmin === 1,
      permissions: JSON.parse(row.permissions) as string[],
      authPolicyId,
      roleAttributes: JSON.parse(row.roleAttributes) as string[],
      externalId: row.externalId,
    },
    clientId: row.clientId,
    createdAt,
    authenticatedAt: row.authenticatedAt,
    basis: toSessionBasis({ ...row, externalId: row.claimedId }),
    configTypes: internConfigTypes(JSON.parse(row.configTypes) as string[]),
    owesTotp: row.owesTotp === 1,
    isTotpComplete: row.isMfaComplete === 1,
    mfaPassedAt: row.mfaPassedAt,
    wokenAt: row.wokenAt,
    unlockedAt: row.unlockedAt,
    endsAt: row.endsAt,
    lastActivityAt,
  }
}
