// Prepared queries by which sign-ins look up stored credentials.
import { type Kysely, sql } from 'kysely'
import type { Database } from '../../storage/database.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { ApiSessionIdentity } from '../api-sessions/live-api-sessions.ts'
import type { DisabledState } from '../disabling.ts'

/** Finds the authenticator of a folded username. */
export const findByUsername = prepareQuery((db, foldedUsername: string) =>
  db
    .selectFrom('authenticators')
    .select(['id', 'identityId', 'passwordHash', 'fingerprint256'])
    .where('foldedUsername', '=', foldedUsername),
)

/** Finds the authenticator of a certificate, by the SHA-256 of its DER. */
export const findByCertificate = prepareQuery((db, fingerprint256: string) =>
  db
    .selectFrom('authenticators')
    .select(['id', 'identityId', 'caId', 'isIssuedByNetwork', 'isExtendRequested', 'lastAuthResolvedToRoot'])
    .where('fingerprint256', '=', fingerprint256),
)

/** Lists the ids of the authenticators that an identity has by one method. */
export const listAuthenticatorIds = prepareQuery((db, identityId: string, method: 'cert' | 'updb') =>
  db.selectFrom('authenticators').select('id').where('identityId', '=', identityId).where('method', '=', method),
)

/** The members of an identity that a sign-in needs. */
export interface SignInIdentity extends ApiSessionIdentity, DisabledState {}

const selectIdentity = prepareQuery((db, id: string) =>
  db
    .selectFrom('identities')
    .select(['id', 'name', 'isAdmin', 'permissions', 'authPolicyId', 'roleAttributes'])
    .select(['externalId', 'disabledAt', 'disabledUntil'])
    .where('id', '=', id),
)

/** Reads what a sign-in needs of an identity; undefined if there is none. */
export async function findSignInIdentity(
  db: Kysely<Database>,
  identityId: string,
): Promise<SignInIdentity | undefined> {
  const [row] = await selectIdentity(db, identityId)
  if (!row) return undefined
  const { id, name, authPolicyId, externalId, disabledAt, disabledUntil } = row
  const roleAttributes = JSON.parse(row.roleAttributes) as string[]
  return {
    ...{ id, name, authPolicyId, roleAttributes, externalId, disabledAt, disabledUntil },
    isAdmin: row.isAdmin === 1,
    permissions: JSON.parse(row.permissions) as string[],
  }
}

/** Reads the password hash and the fingerprint of an authenticator: what a sign-in compares with what the client presents. */
export const readCredential = prepareQuery((db, id: string) =>
  db.selectFrom('authenticators').select(['passwordHash', 'fingerprint256']).where('id', '=', id),
)

/** Finds the MFA enrollment of an identity, if it is verified. */
export const findVerifiedMfa = prepareQuery((db, identityId: string) =>
  db
    .selectFrom('mfa_enrollments')
    .select('id')
    .where('identityId', '=', identityId)
    .where('isVerified', '=', sql.lit(1)),
)

/** Finds the identity of an external id. */
export const findByExternalId = prepareQuery((db, externalId: string) =>
  db.selectFrom('identities').select(['id', 'authPolicyId']).where('externalId', '=', externalId),
)

/** Reads the auth policy of an identity. */
export const readAuthPolicyId = prepareQuery((db, id: string) =>
  db.selectFrom('identities').select(['id', 'authPolicyId']).where('id', '=', id),
)

/** Reads whether identities may sign in by certificates of an authority that an operator brought. */
export const readIsAuthEnabled = prepareQuery((db, caId: string) =>
  db.selectFrom('cas').select('isAuthEnabled').where('id', '=', caId),
)
