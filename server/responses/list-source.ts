// The filter symbols of lists: they follow from the members that an operation shows, and to whom.
import { type FilterSource, limitSource } from '../../src/definitions/model/filter-symbols.ts'
import { getCompiledResource } from '../../src/definitions/model/index.ts'
import { limitRecordSchema } from '../../src/definitions/model/record-schema.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import type { JsonSchema } from '../../src/definitions/schema/json-schema.ts'
import type { Caller } from '../../src/storage/transactions/context.ts'
import type { AnyOperation } from '../api/operation.ts'

// Follows from the operation and its resource, neither of which changes. Built at the first request, because commands load
// every operation at their start and list nothing by them.
const sources = new WeakMap<AnyOperation, Partial<Record<'auditors' | 'others', FilterSource>>>()

/**
 * The symbols of a list: the declared ones for callers who read everything, also of records that sets name, and for others those of
 * members that they are shown.
 */
export function getListSource(operation: AnyOperation, resource: AnyResource, caller: Caller): FilterSource {
  const kind = caller.kind !== 'identity' || caller.rights.readsEverything ? 'auditors' : 'others'
  let byCaller = sources.get(operation)
  if (!byCaller) {
    byCaller = {}
    sources.set(operation, byCaller)
  }
  byCaller[kind] ??= buildSource(operation, resource, kind === 'auditors')
  return byCaller[kind]
}

function buildSource({ access, returns }: AnyOperation, resource: AnyResource, isForAuditors: boolean): FilterSource {
  const only = returns.kind === 'list' ? returns.only : undefined
  const isForAdministrators = 'permission' in access && access.grantedTo === 'administrator'
  const { filterSource, recordSchema } = getCompiledResource(resource.plural)
  if (isForAuditors && isForAdministrators && !only) return filterSource
  return limitSource(filterSource, listShownMembers(only ? limitRecordSchema(resource, only) : recordSchema))
}

function listShownMembers(schema: JsonSchema): ReadonlySet<string> {
  const shapes = (schema.oneOf as readonly JsonSchema[] | undefined) ?? [schema]
  return new Set(shapes.flatMap(({ properties }) => Object.keys(properties ?? {})))
}
