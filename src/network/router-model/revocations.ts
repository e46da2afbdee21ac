// Revocations: routers admit clients by tokens that they verify themselves, so they are told whose tokens have lost their right.
//
// An identity that is disabled or deleted is revoked in the transaction that does it, and so is a session by OpenID Connect that is ended
// before its tokens, also if its row is deleted later, because there are many. A revocation stays until the last token that it
// concerns has ended, also if the identity is enabled again: its later tokens are accepted.
import type { SessionTokens } from '../../access/sessions/session-tokens.ts'
import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import { listRevoked } from '../../authentication/api-sessions/session-basis.ts'
import type { SessionLifetime } from '../../authentication/api-sessions/session-lifetime.ts'
import type { Method } from '../../authentication/sign-in/authentication-methods.ts'
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { AuditDetail } from '../../definitions/resources/define.ts'
import { identities } from '../../definitions/resources/identities.ts'
import type { Instant } from '../../foundation/clock.ts'
import { invalidError } from '../../foundation/errors.ts'
import { isId, isUuid } from '../../foundation/ids.ts'
import type { WatchedClock } from '../../foundation/watched-clock.ts'
import { get } from '../../storage/entities/entities.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { Change, TokenRevocation } from '../../storage/transactions/changes.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'

// No token is valid for longer, unless the settings say so.
const MIN_RETENTION_MS = 24 * 60 * 60_000

// Routers judge the end of a token by their own clock.
const CLOCK_TOLERANCE_MS = 60 * 60_000

const MAX_REMOVED_AT_ONCE = 1_000

// A later one replaces an earlier one. Prepared, because a change may delete thousands of identities.
const storeRevocation = prepareQuery((db, id: string, type: string, issuedBefore: number, expiresAt: number) =>
  db
    .insertInto('revocations')
    .values({ id, type, issuedBefore, expiresAt })
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet(({ ref }) => ({
        type: ref('excluded.type'),
        issuedBefore: ref('excluded.issuedBefore'),
        expiresAt: ref('excluded.expiresAt'),
      })),
    ),
)

/** The parts that tell which tokens of ended sessions routers may still admit. */
interface RevokingParts {
  readonly apiSessions: Pick<ApiSessions, 'lifetime' | 'listTokenSessions'>
  /** A router of release 2 has connected, so that some verify tokens. */
  readonly sessionTokens: Pick<SessionTokens, 'areSigned'>
}

/** Runs after the changes of a transaction. */
export async function revokeTokens(parts: RevokingParts, tx: WriteContext): Promise<void> {
  const { own } = tx.uncommitted
  const { apiSessions: sessions, sessionTokens } = parts
  for (const id of new Set(own.filter(losesTokens).map((change) => change.id)))
    await revoke(tx, 'IDENTITY', id, getRetentionMs(sessions.lifetime))
  if (!sessionTokens.areSigned) return
  const now = tx.clock.now()
  const endedIds = own.filter((change) => endsTokens(sessions, change, now)).map(({ id }) => id)
  // Their rows are deleted later; routers would admit them until then.
  const revokedIds = own.flatMap(listRevoked).flatMap((revoked) => sessions.listTokenSessions(tx, revoked))
  const isAudited = own.some((change) => isSessionEnd(change) && change.audit !== 'none')
  await revokeSessions(tx, endedIds, isAudited ? getRetentionMs(sessions.lifetime) : getOwnEndMs(sessions.lifetime))
  await revokeSessions(tx, await listWithTokens(tx, revokedIds), getRetentionMs(sessions.lifetime))
}

/** Returns the ids of sessions whose rows exist, and whose tokens have not all ended. */
async function listWithTokens(tx: WriteContext, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await tx.db
    .selectFrom('api_sessions')
    .select('id')
    .where(isOneOf(tx.db, 'id', ids))
    .where('hasTokens', '=', 1)
    .where('endsAt', '>', tx.clock.now())
    .execute()
  return rows.map(({ id }) => id)
}

/** Revokes the tokens of sessions, unless they were revoked before: a session that has ended has no later ones. */
async function revokeSessions(tx: WriteContext, ids: readonly string[], retentionMs: number): Promise<void> {
  if (ids.length === 0) return
  const earlier = await tx.db
    .selectFrom('revocations')
    .select('id')
    .where(isOneOf(tx.db, 'id', ids))
    .where('type', '=', 'API_SESSION')
    .execute()
  const earlierIds = new Set(earlier.map(({ id }) => id))
  for (const id of ids) if (!earlierIds.has(id)) await revoke(tx, 'API_SESSION', id, retentionMs)
}

interface LifetimePart {
  readonly lifetime: SessionLifetime
}

/** Revokes the tokens of an identity or a session that were issued by now, or a single one. */
async function revoke(
  tx: WriteContext,
  type: RevocationType,
  id: string,
  retentionMs: number,
  audit: AuditDetail = 'none',
): Promise<void> {
  const now = tx.clock.now()
  const expiresAt = now + retentionMs
  const revocation = { type, issuedBefore: now, expiresAt }
  await storeRevocation(tx.db, id, type, revocation.issuedBefore, revocation.expiresAt)
  recordRevocation(tx, id, revocation, audit)
}

/** No token is valid for longer. */
function getRetentionMs({ refreshMs }: SessionLifetime): number {
  return Math.max(MIN_RETENTION_MS, refreshMs)
}

/**
 * How long the revocation of a session is kept that its own client ended, in milliseconds: as long as access tokens last, because routers
 * accept no others. Each client can begin and end such sessions all day, and every router has the revocations of all of them.
 */
function getOwnEndMs(lifetime: SessionLifetime): number {
  return Math.min(lifetime.accessMs + CLOCK_TOLERANCE_MS, getRetentionMs(lifetime))
}

/** A single token, an API session, or all API sessions of an identity. */
export const REVOCATION_TYPES = ['JTI', 'API_SESSION', 'IDENTITY'] as const
export type RevocationType = (typeof REVOCATION_TYPES)[number]

/**
 * Revokes what an administrator names. The API session ends with it, or all API sessions of the identity, however they began; an id of a
 * session that does not exist may be one of another controller's.
 * @throws COULD_NOT_VALIDATE if the id is not one of that type, NOT_FOUND for an identity that does not exist
 */
export async function revokeByAdministrator(
  sessions: ApiSessions,
  context: Context,
  { id, type }: { readonly id: string; readonly type: RevocationType },
): Promise<void> {
  if (type === 'JTI' && !isUuid(id)) throw invalidError('id', 'must be a valid UUID v4', id)
  if (type === 'API_SESSION' && !isUuid(id) && !isId(id))
    throw invalidError('id', 'must be the id of an API session: a ULID, or a UUID v4', id)
  await context.write(async (tx) => {
    if (type === 'IDENTITY') {
      await get(tx, identities, id)
      await sessions.revokeAll(tx, { identityId: id })
    } else if (type === 'API_SESSION') await sessions.revoke(tx, [id])
    await revoke(tx, type, id, getRetentionMs(sessions.lifetime), 'event')
  })
}

/** Returns a revocation; undefined if there is none of this id, or its tokens have all ended. */
export function findRevocation(db: Context['db'], id: string) {
  return db.selectFrom('revocations').selectAll().where('id', '=', id).executeTakeFirst()
}

type SessionEnd = Extract<Change, { readonly resource: 'api-sessions' }>

function isSessionEnd(change: Change): change is SessionEnd {
  return change.resource === apiSessions.plural && change.operation === 'delete'
}

/** Whether a change ends a session whose tokens routers may still admit. Those of one whose time is over have ended, too. */
function endsTokens({ lifetime }: LifetimePart, change: Change, now: Instant): boolean {
  if (!isSessionEnd(change) || !change.before?.hasTokens) return false
  return lifetime.getEnd(change.before, change.before.method as Method | null) > now
}

function losesTokens(change: Change): boolean {
  if (change.resource !== identities.plural) return false
  const { before, after } = change
  if (!after) return true
  return after.disabledAt !== null && after.disabledAt !== (before?.disabledAt ?? null)
}

/**
 * Removes those that concern no token any more. A clock that is ahead for a while ends none of them: their tokens are valid again
 * once it is set back.
 */
export async function removeEndedRevocations(
  context: Context,
  { clock, lifetime }: LifetimePart & { readonly clock: Pick<WatchedClock, 'getEarliest'> },
): Promise<void> {
  const before = clock.getEarliest(getRetentionMs(lifetime))
  const findEnded = (db: Context['db']) =>
    db.selectFrom('revocations').select('id').where('expiresAt', '<=', before).limit(MAX_REMOVED_AT_ONCE).execute()
  if ((await findEnded(context.db)).length === 0) return
  await context.write(async (tx) => {
    for (const { id } of await findEnded(tx.db)) {
      await tx.db.deleteFrom('revocations').where('id', '=', id).execute()
      recordRevocation(tx, id, undefined)
    }
  })
}

function recordRevocation(
  tx: WriteContext,
  id: string,
  after: TokenRevocation | undefined,
  audit: AuditDetail = 'none',
): void {
  const operation = after ? 'create' : 'delete'
  const change = { operation, audit, resource: 'revocations', id, at: tx.clock.now() } as const
  tx.record(after ? { ...change, after } : change)
}
