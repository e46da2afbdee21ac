// Records that belong to identities: those who hold the permission of the operation see all of them, other identities only their own.

import type { AnyResource, AnyRow } from '../../../src/definitions/resources/define.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import { toResourceNoun } from '../../../src/storage/entities/entities.ts'
import type { Restriction } from '../../../src/storage/lists/lists.ts'
import type { Call } from '../../api/operation.ts'
import { requireRow } from '../../responses/record-responses.ts'

/** Returns the id of the identity whose records the caller may see; undefined if it may see all. */
function findRestrictedIdentityId({ context: { caller }, operation: { access } }: Call): string | undefined {
  if (caller.kind !== 'identity') return undefined
  return 'permission' in access && caller.rights.has(access.permission) ? undefined : caller.identityId
}

/** The restriction of a list to the records that the caller may see. */
export function restrictToOwn(call: Call): readonly Restriction[] {
  const identityId = findRestrictedIdentityId(call)
  return identityId === undefined ? [] : [{ field: 'identityId', equals: identityId }]
}

/** Returns the row that a path names. @throws NOT_FOUND if it does not exist or the caller may not see it */
export async function requireVisibleRow(call: Call, resource: AnyResource): Promise<AnyRow> {
  const row = await requireRow(call.context, resource, call.params.id)
  const identityId = findRestrictedIdentityId(call)
  if (identityId !== undefined && row.identityId !== identityId) throw notFoundError(toResourceNoun(resource), row.id)
  return row
}
