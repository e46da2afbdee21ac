// The members of an identity record that other tables know: credentials, outstanding enrollments, sessions.
import { type Disablable, isDisabled } from '../auth/authenticate.ts'
import { isoTime } from '../clock.ts'
import type { Context } from '../context.ts'
import type { AnyRow, RecordView } from '../resources/define.ts'
import { isOneOf } from '../store/untyped.ts'

type ByIdentity<V> = ReadonlyMap<string, V>

export class IdentityViews implements RecordView {
  async describe(context: Context, rows: readonly AnyRow[]): Promise<Record<string, unknown>[]> {
    const ids = rows.map(({ id }) => id)
    const authenticators = await authenticatorsOf(context, ids)
    const enrollments = await enrollmentsOf(context, ids)
    const signedIn = await signedInAmong(context, ids)
    const now = context.clock.now()
    return rows.map((row) => ({
      disabled: isDisabled(row as unknown as Disablable, now),
      hasApiSession: signedIn.has(row.id),
      hasEdgeRouterConnection: false,
      edgeRouterConnectionStatus: 'offline',
      isMfaEnabled: false,
      authenticators: authenticators.get(row.id) ?? {},
      enrollment: enrollments.get(row.id) ?? {},
      interfaces: null,
    }))
  }
}

async function authenticatorsOf({ db }: Context, ids: readonly string[]): Promise<ByIdentity<Record<string, unknown>>> {
  const rows = await db
    .selectFrom('authenticators')
    .select(['id', 'identityId', 'method', 'username', 'fingerprint'])
    .where(isOneOf(db, 'identityId', ids))
    .orderBy('id')
    .execute()
  const found = new Map<string, Record<string, unknown>>()
  for (const { id, identityId, method, username, fingerprint } of rows) {
    const shown = method === 'cert' ? { fingerprint, id } : { id, username }
    found.set(identityId, { ...found.get(identityId), [method]: shown })
  }
  return found
}

async function enrollmentsOf({ db }: Context, ids: readonly string[]): Promise<ByIdentity<Record<string, unknown>>> {
  const rows = await db
    .selectFrom('enrollments')
    .select(['id', 'identityId', 'method', 'token', 'jwt', 'expiresAt'])
    .where(isOneOf(db, 'identityId', ids))
    .execute()
  const found = new Map<string, Record<string, unknown>>()
  for (const { id, identityId, method, token, jwt, expiresAt } of rows) {
    found.set(identityId, { ...found.get(identityId), [method]: { expiresAt: isoTime(expiresAt), id, jwt, token } })
  }
  return found
}

async function signedInAmong({ db }: Context, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('api_sessions')
    .select('identityId')
    .distinct()
    .where(isOneOf(db, 'identityId', ids))
    .execute()
  return new Set(rows.map(({ identityId }) => identityId))
}
