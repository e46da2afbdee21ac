// The sessions that end if changes are made.

import { identities } from '../../definitions/resources/identities.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import type { RecordChange } from '../../storage/transactions/changes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { Access } from '../access.ts'
import { findRevokedSessions } from '../sessions/revoke-sessions.ts'

/** How many sessions end, by the deletion of what they belong to or with their rights. */
export async function countRevokedSessions(
  access: Access,
  context: Context,
  changes: readonly RecordChange[],
): Promise<number> {
  const sessionIds = new Set<string>()
  for (const [resource, field] of OWNERS) {
    const deletedIds = changes.flatMap((change) => (change.resource === resource && !change.after ? change.id : []))
    if (deletedIds.length === 0) continue
    const owned = context.db.selectFrom('sessions').select('id')
    for (const { id } of await owned.where(isOneOf(context.db, field, deletedIds)).execute()) sessionIds.add(id)
  }
  const isDeletedOwner = ({ resource, after }: RecordChange) => !after && OWNERS.has(resource)
  for (const id of await findRevokedIdentitySessions(access, context, changes)) sessionIds.add(id)
  const others = changes.filter((change) => change.resource !== identities.plural && !isDeletedOwner(change))
  for (const { id } of await findRevokedSessions({ access, db: context.db }, others)) sessionIds.add(id)
  return sessionIds.size
}

/** The resources with whose records sessions end, and the fields of sessions that name these. */
const OWNERS: ReadonlyMap<string, 'identityId' | 'serviceId'> = new Map([
  ['identities', 'identityId'],
  ['services', 'serviceId'],
])

/** The sessions of identities that lose their rights by their own changes: their rows still say what they were. */
async function findRevokedIdentitySessions(
  access: Access,
  context: Context,
  changes: readonly RecordChange[],
): Promise<string[]> {
  const changed = new Map<string, RoleBearer>()
  for (const { resource, id, before, after } of changes) {
    if (resource === 'identities' && before && after) changed.set(id, { id, attributes: after.roleAttributes })
  }
  if (changed.size === 0) return []
  const rows = await context.db
    .selectFrom('sessions')
    .select(['id', 'serviceId', 'type', 'apiSessionId', 'identityId'])
    .where(isOneOf(context.db, 'identityId', [...changed.keys()]))
    .execute()
  return access.withHypothetical(changes, () =>
    rows.flatMap((session) => {
      const identity = changed.get(session.identityId) as RoleBearer
      return access.decide({ ...session, identity }).isAllowed ? [] : session.id
    }),
  )
}
