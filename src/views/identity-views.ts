// The members of an identity record that other tables know: credentials, outstanding enrollments, sessions.
import { type DisabledState, isDisabled } from '../auth/disabling.ts'
import { toIsoTime } from '../clock.ts'
import type { ReadContext } from '../context.ts'
import type { ComputedFields, ComputedInput, Derive } from '../resources/define.ts'
import { prepareTypedQuery } from '../store/prepared-queries.ts'
import { isElementOf } from '../store/untyped.ts'

type ByIdentity<V> = ReadonlyMap<string, V>

const authenticatorRows = prepareTypedQuery((db, ids: string) =>
  db
    .selectFrom('authenticators')
    .select(['id', 'identityId', 'method', 'username', 'fingerprint'])
    .where(isElementOf(db, 'identityId', ids))
    .orderBy('id'),
)
const enrollmentRows = prepareTypedQuery((db, ids: string) =>
  db
    .selectFrom('enrollments')
    .select(['id', 'identityId', 'method', 'token', 'expiresAt'])
    .where(isElementOf(db, 'identityId', ids)),
)
const signedInRows = prepareTypedQuery((db, ids: string) =>
  db
    .selectFrom('api_sessions')
    .select('identityId')
    .distinct()
    .where(isElementOf(db, 'identityId', ids)),
)

/** Credentials, outstanding enrollments and sessions of identities. */
export const deriveIdentities: Derive = async (context, rows) => {
  const ids = rows.map(({ id }) => id)
  const wanted = JSON.stringify(ids)
  const authenticators = await authenticatorsOf(context, wanted)
  const enrollments = await enrollmentsOf(context, wanted)
  const signedIn = new Set((await signedInRows(context.db, wanted)).map(({ identityId }) => identityId))
  return ids.map((id) => ({
    hasApiSession: signedIn.has(id),
    isMfaEnabled: false,
    authenticators: authenticators.get(id) ?? {},
    enrollment: enrollments.get(id) ?? {},
    interfaces: null,
  }))
}

/** What is true of identities at the moment. */
export class IdentityFields implements ComputedFields {
  async computeFields(
    { clock, controller }: ReadContext,
    records: readonly ComputedInput[],
  ): Promise<Record<string, unknown>[]> {
    const now = clock.now()
    return records.map((record) => {
      const status = controller.network.connectionOf(record.id)
      return {
        disabled: isDisabled(record as unknown as DisabledState, now),
        hasEdgeRouterConnection: status === 'online',
        edgeRouterConnectionStatus: status,
      }
    })
  }
}

async function authenticatorsOf({ db }: ReadContext, ids: string): Promise<ByIdentity<Record<string, unknown>>> {
  const rows = await authenticatorRows(db, ids)
  const found = new Map<string, Record<string, unknown>>()
  for (const { id, identityId, method, username, fingerprint } of rows) {
    const shown = method === 'cert' ? { fingerprint, id } : { id, username }
    found.set(identityId, { ...found.get(identityId), [method]: shown })
  }
  return found
}

async function enrollmentsOf(
  { db, controller }: ReadContext,
  ids: string,
): Promise<ByIdentity<Record<string, unknown>>> {
  const rows = await enrollmentRows(db, ids)
  const jwts = await Promise.all(rows.map((row) => controller.enrollments.signJwt(row)))
  const found = new Map<string, Record<string, unknown>>()
  for (const [at, { id, identityId, method, token, expiresAt }] of rows.entries()) {
    const shown = { expiresAt: toIsoTime(expiresAt), id, jwt: jwts[at], token }
    if (identityId) found.set(identityId, { ...found.get(identityId), [method]: shown })
  }
  return found
}
