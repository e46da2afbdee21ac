// The identities that hold rights: administrators, and those with permissions. They are few, and indexes hold no others.
import { type Kysely, sql } from 'kysely'
import { findRights, type Rights } from '../../definitions/permissions/rights.ts'
import type { Database } from '../../storage/database.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'

/** An identity that holds rights, with the members by which authorities, signers and auth policies let it sign in. */
export interface PrivilegedIdentity {
  readonly id: string
  readonly authPolicyId: string
  readonly rights: Rights
}

const MEMBERS = ['id', 'isAdmin', 'permissions', 'authPolicyId'] as const

const findPrivileged = prepareQuery((db) =>
  db
    .selectFrom('identities')
    .select(MEMBERS)
    // The index of administrators holds no other rows: a parameter in place of the number would not match it.
    .where('isAdmin', '=', sql.lit(1))
    .union(
      db.selectFrom('identities').select(MEMBERS).where('n', 'in', db.selectFrom('identities_permissions').select('n')),
    ),
)

const findRightsRow = prepareQuery((db, id: string) =>
  db.selectFrom('identities').select(['isAdmin', 'permissions']).where('id', '=', id),
)

/** The identities that hold a right which these rights do not cover, and this one, if it holds any. */
export async function listAbove(
  db: Kysely<Database>,
  rights: Rights,
  besidesId?: string,
): Promise<readonly PrivilegedIdentity[]> {
  if (rights.isAdministrator) return []
  const identities = (await findPrivileged(db)).map(({ id, authPolicyId, ...row }) => ({
    ...{ id, authPolicyId },
    rights: readRights(row),
  }))
  return identities.filter((identity) => identity.id === besidesId || !rights.covers(identity.rights))
}

/** The rights of an identity; none if it does not exist. */
export async function findRightsOf(db: Kysely<Database>, identityId: string): Promise<Rights | undefined> {
  const [row] = await findRightsRow(db, identityId)
  return row && readRights(row)
}

/** The rights of an identity, from its columns. */
export function readRights({
  isAdmin,
  permissions,
}: {
  readonly isAdmin: unknown
  readonly permissions: unknown
}): Rights {
  return findRights({ isAdmin: isAdmin === 1, permissions: JSON.parse(String(permissions)) as string[] })
}
