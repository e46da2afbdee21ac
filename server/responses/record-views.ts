// Records in the shape of another API, and records that only memory holds: a definition of the shape, and where its rows come from.

import type { Controller } from '../../src/controller/controller.ts'
import { compileFilterSource, type FilterSource, toFilterSource } from '../../src/definitions/model/filter-symbols.ts'
import { getCompiledResource } from '../../src/definitions/model/index.ts'
import { buildLinkWriter } from '../../src/definitions/model/links.ts'
import { compileRecordPlan, type Reference } from '../../src/definitions/model/record-plan.ts'
import { compileRecordSchema } from '../../src/definitions/model/record-schema.ts'
import type { AnyResource, AnyRow } from '../../src/definitions/resources/define.ts'
import { getResource } from '../../src/definitions/resources/index.ts'
import { toForm } from '../../src/definitions/schema/json-forms.ts'
import type { JsonSchema } from '../../src/definitions/schema/json-schema.ts'
import { notFoundError } from '../../src/foundation/errors.ts'
import { SetMap } from '../../src/policy/set-map.ts'
import { toResourceNoun } from '../../src/storage/entities/entities.ts'
import { type ListParameters, planList } from '../../src/storage/lists/list-plan.ts'
import type { Restriction } from '../../src/storage/lists/lists.ts'
import { listFromMemory, type MemoryRow } from '../../src/storage/lists/memory-lists.ts'
import { RawJson, toJsonText } from '../../src/storage/records/raw-json.ts'
import { findReferences } from '../../src/storage/records/references.ts'
import { renderComputedFields } from '../../src/storage/records/render-records.ts'
import type { Context } from '../../src/storage/transactions/context.ts'
import type { Call } from '../api/operation.ts'
import { listParameters } from '../api/query.ts'
import { dataResponse, type Response } from '../api/responses.ts'
import { respondWithListing } from './lists.ts'
import { requireRow } from './record-responses.ts'
import { respondWithRowList } from './row-lists.ts'

/** Shows one record inside of another: `{_links, entity, id, name}`. A record that was deleted has the name `<deleted>`. */
export type ShowReference = (plural: string, id: string) => RawJson

/** How an API shows records. */
export interface RecordView<Item> {
  /** The form of records: fields, computed members and links. Nothing is stored by it. */
  readonly shape: AnyResource
  /** The columns of the fields of the shape. */
  toRow(item: Item): MemoryRow
  /** The ids of the records that computed members show, by the plural of their resource. */
  listShown?(item: Item): Readonly<Record<string, readonly string[]>>
  computeFields?(item: Item, controller: Controller, show: ShowReference): Readonly<Record<string, unknown>>
}

/** The records of a resource in the shape of another API. */
export interface StoredView extends RecordView<AnyRow> {
  readonly resource: AnyResource
  /** Symbols besides those of the resource, which depend on the moment. */
  listSymbols?(controller: Controller): FilterSource['symbols']
}

/** The links of referenced records, by the plural of their resource; without it, those of the management API. */
export type ReferenceShapes = Readonly<Record<string, AnyResource>>

export interface ViewOptions {
  readonly referenceShapes?: ReferenceShapes
}

const DELETED = '<deleted>'

/** A view, compiled: what its operations show. */
export class CompiledView<Item> {
  readonly view: RecordView<Item>
  readonly schema: JsonSchema
  /** The symbols that follow from the fields of the shape; for views of what memory holds. */
  readonly source: FilterSource
  readonly #plan: ReturnType<typeof compileRecordPlan>
  readonly #referenceShapes: ReferenceShapes

  constructor(view: RecordView<Item>, { referenceShapes = {} }: ViewOptions = {}) {
    this.view = view
    this.schema = compileRecordSchema(view.shape)
    this.source = compileFilterSource(view.shape)
    this.#plan = compileRecordPlan(view.shape)
    this.#referenceShapes = referenceShapes
  }

  /** JSON text of each record, in their order. */
  async render(controller: Controller, context: Context, items: readonly Item[]): Promise<string[]> {
    const { view } = this
    const rows = items.map((item) => view.toRow(item) as AnyRow)
    const references = await this.#loadReferences(context, items, rows)
    // A record that is not listed is in memory only, and has no name.
    const show: ShowReference = (plural, id) =>
      new RawJson((references.get(plural)?.get(id) ?? this.#toReference(plural, id, undefined)).text)
    return items.map((item, at) => {
      const row = rows[at] as AnyRow
      const members = this.#plan.members.map((write) => write(row, references)).join('')
      const computed = view.computeFields?.(item, controller, show) ?? {}
      const tail = renderComputedFields(this.#plan.computed, computed)
      return toForm(`{"_links":${this.#plan.links(row)}${members}${tail}}`, 'documented')
    })
  }

  async #loadReferences(
    { db }: Context,
    items: readonly Item[],
    rows: readonly AnyRow[],
  ): Promise<ReadonlyMap<string, ReadonlyMap<string, Reference>>> {
    const idsByResource = new SetMap()
    const add = (plural: string, ids: readonly string[]) => {
      for (const id of ids) idsByResource.add(plural, id)
    }
    for (const { resource, idsOf } of this.#plan.targets) for (const row of rows) add(resource, idsOf(row))
    for (const item of items)
      for (const [plural, ids] of Object.entries(this.view.listShown?.(item) ?? {})) add(plural, ids)
    const references = new Map<string, ReadonlyMap<string, Reference>>()
    for (const [plural, ids] of idsByResource) {
      const byId = await findReferences(db, plural, ids)
      references.set(plural, new Map([...ids].map((id) => [id, this.#toReference(plural, id, byId.get(id))])))
    }
    return references
  }

  #toReference(plural: string, id: string, existing: Reference | undefined): Reference {
    const shape = this.#referenceShapes[plural]
    if (existing && !shape) return existing
    const resource = shape ?? getResource(plural)
    // Records without names are called by their ids.
    const name = 'name' in resource.fields ? (existing?.name ?? DELETED) : id
    const links = new RawJson(buildLinkWriter(resource)({ id }))
    return { name, text: toJsonText({ _links: links, entity: resource.plural, id, name }) }
  }
}

/** Returns the response that shows one record. */
export async function respondWithView<Item>(call: Call, compiled: CompiledView<Item>, item: Item): Promise<Response> {
  const [text = 'null'] = await compiled.render(call.controller, call.context, [item])
  return dataResponse(new RawJson(text))
}

/** Returns the response that shows the stored record that the path names. @throws NOT_FOUND */
export async function respondWithStored(
  call: Call,
  compiled: CompiledView<AnyRow>,
  resource: AnyResource,
): Promise<Response> {
  return respondWithView(call, compiled, await requireRow(call.context, resource, call.params.id))
}

/** Returns the response that lists stored records, by the parameters of the call. */
export async function respondWithStoredList(
  call: Call,
  compiled: CompiledView<AnyRow>,
  { resource, listSymbols }: StoredView,
  restrictions: readonly Restriction[] = [],
): Promise<Response> {
  const { controller, context } = call
  const source = withSymbols(getCompiledResource(resource.plural).filterSource, listSymbols?.(controller))
  const render = (rows: readonly AnyRow[]) => compiled.render(controller, context, rows)
  return respondWithRowList(call, { resource, source, restrictions, render })
}

function withSymbols(source: FilterSource, others: FilterSource['symbols'] | undefined): FilterSource {
  if (!others) return source
  return toFilterSource({ ...source, symbols: new Map([...source.symbols, ...others]) })
}

/** Returns the response that lists what memory holds, by the parameters of the call. */
export function respondWithMemoryList<Item>(
  call: Call,
  compiled: CompiledView<Item>,
  items: readonly Item[],
): Promise<Response> {
  const { controller, context } = call
  const { source, view } = compiled
  return respondWithListing(call, planList(listParameters(call.query) as ListParameters), {
    filterableFields: source.filterableFields,
    fetchPage: (plan) => listFromMemory(controller.store, context, { source, plan, items, toRow: view.toRow }),
    render: (listed) => compiled.render(controller, context, listed),
  })
}

/** The item that a path names, or the error for one that does not exist. @throws NOT_FOUND */
export function requireItem<Item>({ view }: CompiledView<Item>, id: string, item: Item | undefined): Item {
  if (item === undefined) throw notFoundError(toResourceNoun(view.shape), id)
  return item
}
