// The responses that show records of a resource: one, a page, or a stream of all.

import type { Controller } from '../../src/controller/controller.ts'
import type { AnyResource, AnyRow } from '../../src/definitions/resources/define.ts'
import { type Awaitable, whenReady } from '../../src/foundation/awaitable.ts'
import { notFoundError } from '../../src/foundation/errors.ts'
import { findRow, toResourceNoun } from '../../src/storage/entities/entities.ts'
import { findUniqueLookup } from '../../src/storage/entities/unique-lookups.ts'
import { planList } from '../../src/storage/lists/list-plan.ts'
import {
  list,
  listIds,
  queryRows,
  type RecordList,
  type Restriction,
  type Window,
} from '../../src/storage/lists/lists.ts'
import { type Presentation, renderList, renderRecords, renderRows } from '../../src/storage/records/presentation.ts'
import { RawJson, toJsonText } from '../../src/storage/records/raw-json.ts'
import type { CachedRecord } from '../../src/storage/records/render-records.ts'
import type { Context } from '../../src/storage/transactions/context.ts'
import { JSON_FORMS } from '../api/dialects.ts'
import type { Call } from '../api/operation.ts'
import { listParameters } from '../api/query.ts'
import { dataResponse, type Response } from '../api/responses.ts'
import { findConcealment, restrictToCaller } from './caller-restrictions.ts'
import { getListSource } from './list-source.ts'
import { respondWithListing } from './lists.ts'
import { respondWithRowList } from './row-lists.ts'

/** How an operation shows records to its caller, if that differs from what the resource says. */
export interface ShowOptions {
  presentation?(call: Call, isList: boolean): Awaitable<Presentation>
}

const NO_PRESENTATION: Presentation = {}

/** The row that a path names. @throws NOT_FOUND */
export async function requireRow(context: Context, resource: AnyResource, id = ''): Promise<AnyRow> {
  const row = await findRow(context, resource, id)
  if (!row) throw notFoundError(toResourceNoun(resource), id)
  return row
}

/** Returns the response that shows one record. */
export function respondWithRecord(
  call: Call,
  resource: AnyResource,
  id = '',
  options: ShowOptions = {},
): Awaitable<Response> {
  const form = JSON_FORMS[call.dialect]
  const record = whenReady(options.presentation?.(call, false), (presentation) => {
    // Member by member, because to spread it takes a fiftieth of the request.
    const { view, links, only } = presentation ?? NO_PRESENTATION
    const concealment = findConcealment(call.context.caller, resource, only)
    return renderRecord(call.controller, call.context, resource, id, { view, links, only, form, concealment })
  })
  return whenReady(record, (json) => dataResponse(json))
}

/** One record as JSON. @throws NOT_FOUND */
export function renderRecord(
  controller: Controller,
  context: Context,
  resource: AnyResource,
  id: string,
  presentation?: Presentation,
): Awaitable<RawJson> {
  const { cache } = controller.records
  const record = cache.get(resource, id) ?? cache.findById(context, resource, id)
  const texts = whenReady(record, (cached) => {
    if (!cached) throw notFoundError(toResourceNoun(resource), id)
    return renderRecords(controller.records, context, resource, [cached], presentation)
  })
  return whenReady(texts, ([text = 'null']) => new RawJson(text))
}

/** The records of a list: those of a resource that match the plan and the restrictions. */
type CompleteRecordList = Required<RecordList>

/** Returns the response that lists records, by the parameters of the call. */
export async function respondWithList(
  call: Call,
  resource: AnyResource,
  others: readonly Restriction[],
  options: ShowOptions = {},
): Promise<Response> {
  const { controller, context } = call
  const restrictions = [...others, ...(await restrictToCaller(context, resource))]
  const source = getListSource(call.operation, resource, context.caller)
  const { returns } = call.operation
  const only = returns.kind === 'list' ? returns.only : undefined
  const own = await options.presentation?.(call, true)
  const concealment = findConcealment(context.caller, resource, own?.only ?? only)
  const presentation = { ...own, ...(only ? { only } : {}), form: JSON_FORMS[call.dialect], concealment }
  return respondWithListing<CachedRecord, AnyRow>(call, planList(listParameters(call.query)), {
    filterableFields: source.filterableFields,
    fetchPage: (plan) => fetchPage(controller, context, { resource, plan, restrictions, source }),
    render: (records) => renderList(controller.records, context, resource, records, presentation),
    stream: {
      query: (plan) => queryRows(controller.store, context, { resource, plan, restrictions, source }),
      render: (rows) => renderRows(controller.records, context, resource, rows, presentation),
    },
  })
}

/** A page of records. */
interface RecordPage extends Window {
  readonly items: readonly CachedRecord[]
}

/** Returns the records of a page, without a query if their ids are known, or the only one is cached by its name. */
async function fetchPage(
  controller: Controller,
  context: Context,
  recordList: CompleteRecordList,
): Promise<RecordPage> {
  const { resource, plan, restrictions, source } = recordList
  const { limit, offset } = plan
  const { cache } = controller.records
  const ids = listIds(plan, restrictions)
  if (ids) {
    const items = await cache.findByIds(context, resource, ids)
    return { items, limit, offset, total: items.length }
  }
  const lookup = restrictions.length === 0 ? findUniqueLookup(plan, source) : undefined
  const record = lookup?.symbol.column === 'name' ? cache.getByName(resource, lookup.value) : undefined
  if (record) return { items: [record], limit, offset, total: 1 }
  const { keys, total } = await list(controller.store, context, recordList)
  return { items: await cache.findByKeys(context, resource, keys), limit, offset, total }
}

/** A page of the records with these ids, in the order of the ids unless the plan asks for another. */
export async function fetchPageOfIds(
  controller: Controller,
  context: Context,
  recordList: Omit<CompleteRecordList, 'restrictions'>,
  ids: readonly string[],
): Promise<RecordPage> {
  const { resource, plan } = recordList
  if (plan.order.keys.length > 0) return fetchPage(controller, context, { ...recordList, restrictions: [{ ids }] })
  const { limit, offset } = plan
  const matchingIds = plan.predicate ? await filterMatchingIds(controller, context, recordList, ids) : ids
  const pageIds = matchingIds.slice(offset, limit === 'none' ? undefined : offset + limit)
  const items = await controller.records.cache.findByIds(context, resource, pageIds)
  return { items, limit, offset, total: matchingIds.length }
}

/** Filters ids to those whose records match the plan's predicate, in their order. */
async function filterMatchingIds(
  controller: Controller,
  context: Context,
  recordList: Omit<CompleteRecordList, 'restrictions'>,
  ids: readonly string[],
): Promise<string[]> {
  const plan = { ...recordList.plan, limit: 'none', offset: 0 } as const
  const { items } = await fetchPage(controller, context, { ...recordList, plan, restrictions: [{ ids }] })
  const matchingIds = new Set(items.map(({ id }) => id))
  return ids.filter((id) => matchingIds.has(id))
}

/** Returns the response that lists records, each rendered from its row by the operation. */
export async function respondWithRows(
  call: Call,
  resource: AnyResource,
  restrictions: readonly Restriction[],
  show: (row: AnyRow) => unknown,
): Promise<Response> {
  const source = getListSource(call.operation, resource, call.context.caller)
  const render = (rows: readonly AnyRow[]) => rows.map((row) => toJsonText(show(row)))
  return respondWithRowList(call, { resource, source, restrictions, render })
}
