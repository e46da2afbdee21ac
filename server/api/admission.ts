// The one decision whether a caller may call an operation, by what the operation states and the caller holds.
import type { Extent, Rights } from '../../src/definitions/permissions/rights.ts'
import type { RecordScope } from '../../src/definitions/permissions/words.ts'
import { getResource, resources } from '../../src/definitions/resources/index.ts'
import type { IdentityCaller, RecordLimit } from '../../src/storage/transactions/context.ts'
import type { AnyOperation } from './operation.ts'

/** The records that a holder of rights may call an operation for; undefined if it may not call it. */
export function findOperationExtent({ access }: AnyOperation, rights: Rights): Extent | undefined {
  if ('public' in access || access.grantedTo !== 'administrator' || rights.isAdministrator) return 'all'
  const extent = rights.findExtent(access.permission)
  if (extent === 'all') return 'all'
  if (access.isFiltered && rights.readsAnything) return 'all'
  const scopes = extent && access.records !== undefined ? listMeaningfulScopes(access.records, extent) : []
  return scopes.length > 0 ? scopes : undefined
}

/** Records of some resources have no role attributes. */
function listMeaningfulScopes(plural: string, scopes: readonly RecordScope[]): readonly RecordScope[] {
  const { roleAttributes } = getResource(plural).fields
  const hasAttributes = roleAttributes !== undefined && roleAttributes.options.access !== 'internal'
  return hasAttributes ? scopes : scopes.filter((scope) => 'tag' in scope)
}

/** The caller of an operation, limited to the records that it holds the permission on; undefined if it may not call it. */
export function admit(caller: IdentityCaller, operation: AnyOperation): IdentityCaller | undefined {
  const extent = findOperationExtent(operation, caller.rights)
  if (extent === undefined) return undefined
  return extent === 'all' ? caller : { ...caller, limit: toLimit(operation, extent) }
}

function toLimit({ access }: AnyOperation, scopes: readonly RecordScope[]): RecordLimit {
  const records = 'records' in access && access.records !== undefined ? getResource(access.records) : undefined
  // A record may be one of two resources that share a table.
  const sameTable = resources.filter(({ table }) => table === records?.table)
  return { resources: sameTable.map(({ plural }) => plural), scopes }
}
