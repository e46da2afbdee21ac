// Restricts the records that callers who do not administer are shown: those that their permission is on, and no way in for an identity that
// holds a right which they lack, nor for the identity of a token.
import type { SqlBool } from 'kysely'
import { findRightsOf, listAbove, readRights } from '../../src/authentication/permissions/privileged-identities.ts'
import { isInExtent, type ScopedRecord } from '../../src/definitions/permissions/rights.ts'
import type { AnyResource, AnyRow } from '../../src/definitions/resources/define.ts'
import { getResource } from '../../src/definitions/resources/index.ts'
import { notFoundError } from '../../src/foundation/errors.ts'
import { findRow, toResourceNoun } from '../../src/storage/entities/entities.ts'
import type { Restriction } from '../../src/storage/lists/lists.ts'
import { sqlText } from '../../src/storage/lists/sql-text.ts'
import type { Concealment } from '../../src/storage/records/presentation.ts'
import type { Caller, Context, IdentityCaller } from '../../src/storage/transactions/context.ts'
import { isOneOf } from '../../src/storage/untyped.ts'
import type { AnyOperation } from '../api/operation.ts'

/** The restrictions of a list to the records that its caller may see. */
export async function restrictToCaller(
  { db, caller }: Pick<Context, 'db' | 'caller'>,
  resource: AnyResource,
): Promise<readonly Restriction[]> {
  if (caller.kind !== 'identity' || caller.isAdmin) return []
  const { limit, rights } = caller
  const restrictions: Restriction[] = limit?.resources.includes(resource.plural) ? [{ scopes: limit.scopes }] : []
  if (resource.wayInOf === undefined) return restrictions
  const others = (await listAbove(db, rights)).flatMap(({ id }) => (id === caller.identityId ? [] : id))
  const ids = caller.token ? [...others, caller.identityId] : others
  const column = `${resource.table}.${resource.wayInOf}`
  const condition = sqlText<SqlBool>`not coalesce(${isOneOf(db, column, ids)}, false)`
  return [...restrictions, { condition, tables: ['identities'], cost: 0 }]
}

/** The members of identities that a caller does not see; undefined if it sees all. */
export function findConcealment(caller: Caller, { waysIn }: AnyResource): Concealment | undefined {
  if (waysIn.length === 0 || caller.kind !== 'identity' || caller.isAdmin) return undefined
  return {
    members: waysIn,
    isOf: ({ id, computedInput: { isAdmin, permissions } }) =>
      id === caller.identityId
        ? caller.token !== undefined
        : !caller.rights.covers(readRights({ isAdmin, permissions })),
  }
}

/**
 * Requires that the caller of an operation may see the record that the path names. Returns undefined if it may see every one.
 * @throws NOT_FOUND, by the promise
 */
export function requireVisibleRecord(context: Context, operation: AnyOperation, id = ''): Promise<void> | undefined {
  const { caller } = context
  if (caller.kind !== 'identity' || caller.isAdmin || !namesRecord(operation)) return undefined
  const { access } = operation
  if ('public' in access || access.records === undefined) return undefined
  const resource = getResource(access.records)
  if (!caller.limit && resource.wayInOf === undefined) return undefined
  return requireVisible(context, caller, resource, id)
}

/** Whether the id in the path of an operation is that of a record that it shows or changes, and not of one that it lists others for. */
function namesRecord({ path, returns }: AnyOperation): boolean {
  return path.includes('/:id') && returns.kind !== 'list'
}

async function requireVisible(context: Context, caller: IdentityCaller, resource: AnyResource, id: string) {
  const { limit, rights, identityId, token } = caller
  const row = await findRow(context, resource, id)
  const ownerId = resource.wayInOf === undefined ? undefined : row?.[resource.wayInOf]
  const isOfOther = typeof ownerId === 'string' && ownerId !== identityId
  const owner = isOfOther ? await findRightsOf(context.db, ownerId) : undefined
  const isShown = owner ? rights.covers(owner) : !token || ownerId !== identityId
  const isVisible = row && (!limit || isInExtent(toScopedRecord(row), limit.scopes)) && isShown
  if (!isVisible) throw notFoundError(toResourceNoun(resource), id)
}

function toScopedRecord({ roleAttributes, tags }: AnyRow): ScopedRecord {
  return {
    roleAttributes: typeof roleAttributes === 'string' ? (JSON.parse(roleAttributes) as string[]) : [],
    tags: JSON.parse(tags) as Record<string, unknown>,
  }
}
