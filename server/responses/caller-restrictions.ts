// Restricts the records that callers who do not administer are shown: those that their permission is on, and no way in for an identity that
// holds a right which they lack, nor for the identity of a token.
import type { SqlBool } from 'kysely'
import { findRightsOf, listAbove, readRights } from '../../src/authentication/permissions/privileged-identities.ts'
import { isInExtent, type ScopedRecord } from '../../src/definitions/permissions/rights.ts'
import type { AnyResource, AnyRow } from '../../src/definitions/resources/define.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { getResource } from '../../src/definitions/resources/index.ts'
import { routers } from '../../src/definitions/resources/routers.ts'
import { notFoundError } from '../../src/foundation/errors.ts'
import { findRow, toResourceNoun } from '../../src/storage/entities/entities.ts'
import type { Restriction } from '../../src/storage/lists/lists.ts'
import { sqlText } from '../../src/storage/lists/sql-text.ts'
import type { Concealment } from '../../src/storage/records/presentation.ts'
import type { CachedRecord } from '../../src/storage/records/render-records.ts'
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
  const ofIdentities: Restriction = { condition, tables: ['identities'], cost: 0 }
  return [...restrictions, ofIdentities, ...(mayEnrollRouters(caller) ? [] : [EXCEPT_OF_ROUTERS])]
}

/** Of enrollments: those of identities. */
const EXCEPT_OF_ROUTERS: Restriction = {
  condition: sqlText<SqlBool>`${sqlText.ref('enrollments.identityId')} is not null`,
  tables: [],
  cost: 0,
}

/** The members of identities and routers that a caller does not see; undefined if it sees all. */
export function findConcealment(
  caller: Caller,
  { waysIn, plural, table }: AnyResource,
  only: readonly string[] | undefined,
): Concealment | undefined {
  if (!waysIn || caller.kind !== 'identity' || caller.isAdmin) return undefined
  if (only && !only.some((name) => name in waysIn)) return undefined
  if (plural === identities.plural) return { members: waysIn, isOf: (record) => isIdentityAbove(caller, record) }
  return table === routers.table && mayEnrollRouters(caller) ? undefined : { members: waysIn, isOf: () => true }
}

function isIdentityAbove({ identityId, rights, token }: IdentityCaller, { id, computedInput }: CachedRecord): boolean {
  if (id === identityId) return token !== undefined
  const { isAdmin, permissions } = computedInput
  return !rights.covers(readRights({ isAdmin, permissions }))
}

/** Whether a caller could enroll each router that its request shows, without the token of another's enrollment. */
function mayEnrollRouters({ rights, limit }: IdentityCaller): boolean {
  return ENROLLING_ROUTERS.some((right) => rights.isHeldOn(right, limit?.scopes ?? 'all'))
}

const ENROLLING_ROUTERS = [`${routers.name}.create`, `${routers.name}.update`]

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
  const { limit } = caller
  const row = await findRow(context, resource, id)
  const isInLimit = row && (!limit || isInExtent(toScopedRecord(row), limit.scopes))
  const isVisible =
    isInLimit && (resource.wayInOf === undefined || (await seesWayIn(context, caller, row[resource.wayInOf])))
  if (!isVisible) throw notFoundError(toResourceNoun(resource), id)
}

/** @param ownerId the identity that the record lets in; of a router's enrollment, none */
async function seesWayIn({ db }: Context, caller: IdentityCaller, ownerId: unknown): Promise<boolean> {
  if (typeof ownerId !== 'string') return mayEnrollRouters(caller)
  if (ownerId === caller.identityId) return caller.token === undefined
  const owner = await findRightsOf(db, ownerId)
  return owner === undefined || caller.rights.covers(owner)
}

function toScopedRecord({ roleAttributes, tags }: AnyRow): ScopedRecord {
  return {
    roleAttributes: typeof roleAttributes === 'string' ? (JSON.parse(roleAttributes) as string[]) : [],
    tags: JSON.parse(tags) as Record<string, unknown>,
  }
}
