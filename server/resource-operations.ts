// From a resource to its operations: list, create, detail, replace, patch, delete, and its relations.
import { type Awaitable, whenReady } from '../src/awaitable.ts'
import type { Scope } from '../src/behavior.ts'
import type { Api } from '../src/config.ts'
import type { Context } from '../src/context.ts'
import type { Controller } from '../src/controller.ts'
import { notFoundError } from '../src/errors.ts'
import { listReferenceFields } from '../src/model/columns.ts'
import type { FilterSource } from '../src/model/filter-symbols.ts'
import { inputSchema, readInput } from '../src/model/input.ts'
import { toLinkedPlural } from '../src/model/links.ts'
import { type Presentation, renderList, renderRecords, renderRows } from '../src/records/presentation.ts'
import { RawJson, toJsonText } from '../src/records/raw-json.ts'
import type { CachedRecord } from '../src/records/render-records.ts'
import type { AlternateName, AnyResource, AnyRow, Relation, ResourceOperation } from '../src/resources/define.ts'
import { getResource } from '../src/resources/index.ts'
import type { BodyTolerance, Purpose } from '../src/schema/bodies.ts'
import { findRow, toResourceNoun } from '../src/store/entities.ts'
import { type ListPlan, planList } from '../src/store/list-plan.ts'
import { list, listIds, queryRows, type Restriction, type Window } from '../src/store/lists.ts'
import { getListSource } from './list-source.ts'
import { streamList } from './list-stream.ts'
import { type AnyOperation, type BodyReader, type Call, defineOperation, type QueryParameter } from './operation.ts'
import { listParameters, listQuery, roleQuery } from './query.ts'
import { createdResponse, dataResponse, emptyResponse, listResponse as listAnswer, type Response } from './responses.ts'
import { respondWithRowList } from './row-lists.ts'

/** How the operations of a resource differ from the generated ones. */
export interface OperationOverrides {
  readonly apis?: readonly Api[]
  readonly verbs?: readonly ResourceOperation[]
  readonly relations?: readonly string[]
  readonly grantedTo?: 'administrator' | 'authenticated'
  /** Verbs that a full session without the right is refused with 403 instead of 401. */
  readonly forbidden?: readonly ResourceOperation[]
  /** Statuses by which a verb refuses beside those that follow from what it is. */
  readonly errorStatuses?: Readonly<Partial<Record<ResourceOperation, readonly number[]>>>
  /** Further query parameters of list and detail, which `presentation` and `restrict` may read. */
  readonly query?: Readonly<Record<string, QueryParameter>>
  /** How records are shown to the caller. */
  presentation?(call: Call, isList: boolean): Awaitable<Presentation>
  /** Which records of the list the caller asks for, beside what the filter says. */
  restrict?(call: Call): Awaitable<readonly Restriction[]>
}

/** All operations that follow from a resource, under each of its names. */
export function makeResourceOperations(resource: AnyResource, differences: OperationOverrides = {}): AnyOperation[] {
  const { verbs = resource.verbs, relations = Object.keys(resource.relations) } = differences
  const names: AlternateName[] = [resource, ...(resource.alternateName ? [resource.alternateName] : [])]
  return [
    ...names.flatMap((name) => verbs.map((verb) => makeResourceOperation(resource, verb, differences, name))),
    ...relations.map((name) => makeRelationOperation(resource, name, differences)),
  ]
}

/** `config-type` → `ConfigType` */
export function toPascalCase(name: string): string {
  return name.replace(/(^|-)([a-z])/g, (_, _dash, letter: string) => letter.toUpperCase())
}

/** One of the operations that every resource can have. */
export function makeResourceOperation(
  resource: AnyResource,
  verb: ResourceOperation,
  differences: OperationOverrides = {},
  { name, plural }: AlternateName = resource,
): AnyOperation {
  const { apis = ['management'], grantedTo = 'administrator', forbidden = [] } = differences
  const singular = toPascalCase(name)
  const common = { apis, topic: plural }
  const access = (right: string) => ({
    permission: `${resource.name}.${right}`,
    grantedTo,
    isForbidden: forbidden.includes(verb),
  })
  const one = `/${plural}/:id`
  switch (verb) {
    case 'list':
      return defineOperation({
        ...common,
        id: `list${toPascalCase(plural)}`,
        method: 'GET',
        path: `/${plural}`,
        summary: `Lists ${toPluralNoun(resource)}.`,
        access: access('read'),
        query: { ...describeListQuery(resource), ...differences.query },
        returns: { kind: 'list', resource: resource.plural },
        errorStatuses: differences.errorStatuses?.list ?? [],
        run: (call) =>
          whenReady(differences.restrict?.(call), (restrictions = []) =>
            respondWithList(call, resource, restrictions, differences),
          ),
      })
    case 'create':
      return defineOperation({
        ...common,
        id: `create${singular}`,
        method: 'POST',
        path: `/${plural}`,
        summary: `Creates ${chooseArticle(resource)} ${toResourceNoun(resource)}.`,
        access: access('create'),
        body: readResourceBody(resource, 'create'),
        canDryRun: true,
        returns: { kind: 'created', resource: resource.plural },
        errorStatuses: [...listUnknownStatuses(resource), ...(differences.errorStatuses?.create ?? [])],
        async run({ controller, context, body }) {
          const entity = await controller.entities.create(context, resource, body(undefined) as never)
          return createdResponse(toLinkedPlural(resource), (entity as { id: string }).id)
        },
      })
    case 'detail':
      return defineOperation({
        ...common,
        id: `detail${singular}`,
        method: 'GET',
        path: one,
        summary: `Shows one ${toResourceNoun(resource)}.`,
        access: access('read'),
        ...(differences.query ? { query: differences.query } : {}),
        returns: { kind: 'record', resource: resource.plural },
        run: (call) => respondWithRecord(call, resource, call.params.id, differences),
      })
    case 'replace':
    case 'patch':
      return defineOperation({
        ...common,
        id: `${verb === 'replace' ? 'update' : 'patch'}${singular}`,
        method: verb === 'replace' ? 'PUT' : 'PATCH',
        path: one,
        summary:
          verb === 'replace'
            ? `Replaces one ${toResourceNoun(resource)}: what is not sent falls back to its default.`
            : `Changes the members of one ${toResourceNoun(resource)} that are sent.`,
        access: access('update'),
        body: readResourceBody(resource, verb),
        canDryRun: true,
        returns: { kind: 'empty' },
        async run({ controller, context, params, body }) {
          const values = body(resource.variants ? await findStoredType(context, resource, params.id) : undefined)
          await controller.entities[verb](context, resource, params.id ?? '', values)
          return emptyResponse()
        },
      })
    case 'delete':
      return defineOperation({
        ...common,
        id: `delete${singular}`,
        method: 'DELETE',
        path: one,
        summary: `Deletes one ${toResourceNoun(resource)}.`,
        access: access('delete'),
        canDryRun: true,
        returns: { kind: 'empty' },
        async run({ controller, context, params }) {
          await controller.entities.remove(context, resource, params.id ?? '')
          return emptyResponse()
        },
      })
  }
}

function makeRelationOperation(
  resource: AnyResource,
  name: string,
  { apis = ['management'], grantedTo = 'administrator' }: OperationOverrides,
) {
  const relation = resource.relations[name] as Relation
  const target = getResource(relation.resource)
  return defineOperation({
    id: relation.operationId ?? `list${toPascalCase(resource.name)}${toPascalCase(name)}`,
    apis,
    topic: resource.plural,
    method: 'GET',
    path: `/${resource.plural}/:id/${name}`,
    summary: `Lists the ${toPluralNoun(target)} of one ${toResourceNoun(resource)}.`,
    access: { permission: `${resource.name}.read`, grantedTo },
    query: { ...describeListQuery(target), ...describeRelationQuery(relation) },
    returns: { kind: 'list', resource: target.plural },
    async run(call) {
      const row = await requireRow(call.context, resource, call.params.id)
      return respondWithList(call, target, [await restrictToRelation(call, resource, name, row)], {})
    },
  })
}

function describeRelationQuery(relation: Relation): Record<string, QueryParameter> {
  if (relation.kind !== 'custom') return {}
  return Object.fromEntries(Object.entries(relation.query ?? {}).map(([name, schema]) => [name, { schema }]))
}

async function restrictToRelation(call: Call, resource: AnyResource, name: string, row: AnyRow): Promise<Restriction> {
  const relation = resource.relations[name] as Relation
  switch (relation.kind) {
    case 'hasMany':
      return { field: relation.field, equals: row.id }
    case 'inSet':
      return { field: relation.field, contains: row.id }
    case 'setMembers':
      return { ids: JSON.parse(row[relation.field] as string) as string[] }
    case 'byRoles':
      return { sides: [call.controller.access.parsePolicySelector(row, relation.field)] }
    case 'custom':
      return findRelated(call, resource, name, row.id)
  }
}

async function findRelated(call: Call, resource: AnyResource, name: string, id: string): Promise<Scope> {
  const find = call.controller.records.behaviors.get(resource).relations?.[name]
  return find ? find(call.context, id, call.query) : { ids: [] }
}

/** A body of a resource is read in two steps: the variant of a stored record may have to be looked up in between. */
type Unread = (storedType: string | undefined) => Record<string, unknown>

function readResourceBody(resource: AnyResource, purpose: Purpose): BodyReader<Unread> {
  return {
    schema: inputSchema(resource, purpose),
    isRequired: true,
    contentTypes: ['application/json'],
    read(sent: unknown, tolerance: BodyTolerance) {
      if (resource.variants && purpose !== 'create')
        return (type) => readInput(resource, purpose, sent, tolerance, type)
      const values = readInput(resource, purpose, sent, tolerance)
      return () => values
    },
  }
}

async function findStoredType(context: Context, resource: AnyResource, id: string | undefined): Promise<string> {
  return (await requireRow(context, resource, id)).typeId as string
}

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
  { presentation }: Pick<OperationOverrides, 'presentation'> = {},
): Awaitable<Response> {
  const record = whenReady(presentation?.(call, false), (how) =>
    renderRecord(call.controller, call.context, resource, id, how),
  )
  return whenReady(record, (json) => dataResponse(json))
}

/** One record as JSON. @throws NOT_FOUND */
export function renderRecord(
  controller: Controller,
  context: Context,
  resource: AnyResource,
  id: string,
  how?: Presentation,
): Awaitable<RawJson> {
  const { cache } = controller.records
  const record = cache.get(resource, id) ?? cache.findById(context, resource, id)
  const texts = whenReady(record, (cached) => {
    if (!cached) throw notFoundError(toResourceNoun(resource), id)
    return renderRecords(controller.records, context, resource, [cached], how)
  })
  return whenReady(texts, ([text = 'null']) => new RawJson(text))
}

/** Returns the response that lists records, by the parameters of the call. */
export function respondWithList(
  call: Call,
  resource: AnyResource,
  restrictions: readonly Restriction[],
  differences: OperationOverrides = {},
): Awaitable<Response> {
  const plan = planList(listParameters(call.query))
  const { returns } = call.operation
  const only = returns.kind === 'list' ? returns.only : undefined
  return whenReady(differences.presentation?.(call, true), (own) => {
    const how = only ? { ...own, only } : own
    return plan.limit === 'none'
      ? streamAll(call, resource, plan, restrictions, how)
      : respondWithPage(call, resource, plan, restrictions, how)
  })
}

async function streamAll(
  { controller, context, operation }: Call,
  resource: AnyResource,
  plan: ListPlan,
  restrictions: readonly Restriction[],
  how: Presentation | undefined,
): Promise<Response> {
  const source = getListSource(operation, resource)
  const rows = await queryRows(controller.store, context, resource, plan, restrictions, source)
  const render = (batch: readonly AnyRow[]) => renderRows(controller.records, context, resource, batch, how)
  return streamList(controller.store, context, rows, render, plan, source.filterableFields)
}

function respondWithPage(
  { controller, context, operation }: Call,
  resource: AnyResource,
  plan: ListPlan,
  restrictions: readonly Restriction[],
  how: Presentation | undefined,
): Awaitable<Response> {
  const source = getListSource(operation, resource)
  const matching = fetchPage(controller, context, resource, plan, restrictions, source)
  return whenReady(matching, ({ page, records }) =>
    whenReady(renderList(controller.records, context, resource, records, how), (rendered) =>
      listAnswer(rendered, page, source.filterableFields),
    ),
  )
}

/** A page of records. */
interface RecordPage {
  readonly page: Window
  readonly records: readonly CachedRecord[]
}

/** Returns the records of a page, without a query if their ids are known. */
function fetchPage(
  controller: Controller,
  context: Context,
  resource: AnyResource,
  plan: ListPlan,
  restrictions: readonly Restriction[],
  source: FilterSource,
): Awaitable<RecordPage> {
  const { cache } = controller.records
  const ids = listIds(plan, restrictions)
  if (ids) {
    const { limit, offset } = plan
    return whenReady(cache.findByIds(context, resource, ids), (records) => {
      return { page: { limit, offset, total: records.length }, records }
    })
  }
  return whenReady(list(controller.store, context, resource, plan, restrictions, source), (page) =>
    whenReady(cache.findByKeys(context, resource, page.keys), (records) => ({ page, records })),
  )
}

/** A page of the records with these ids, in the order of the ids unless the plan asks for another. */
export async function fetchPageOfIds(
  controller: Controller,
  context: Context,
  resource: AnyResource,
  plan: ListPlan,
  ids: readonly string[],
  source: FilterSource,
): Promise<RecordPage> {
  if (plan.order.keys.length > 0) return fetchPage(controller, context, resource, plan, [{ ids }], source)
  const { limit, offset } = plan
  const matching = plan.predicate ? await filterMatchingIds(controller, context, resource, plan, ids, source) : ids
  const pageIds = matching.slice(offset, limit === 'none' ? undefined : offset + limit)
  const records = await controller.records.cache.findByIds(context, resource, pageIds)
  return { page: { limit, offset, total: matching.length }, records }
}

/** Those of the ids whose records match the plan's predicate, in their order. */
async function filterMatchingIds(
  controller: Controller,
  context: Context,
  resource: AnyResource,
  plan: ListPlan,
  ids: readonly string[],
  source: FilterSource,
): Promise<string[]> {
  const everything = { ...plan, limit: 'none', offset: 0 } as const
  const { records } = await fetchPage(controller, context, resource, everything, [{ ids }], source)
  const matching = new Set(records.map(({ id }) => id))
  return ids.filter((id) => matching.has(id))
}

/** Returns the response that lists records, each rendered from its row by the operation. */
export async function respondWithRows(
  call: Call,
  resource: AnyResource,
  restrictions: readonly Restriction[],
  show: (row: AnyRow) => unknown,
): Promise<Response> {
  const source = getListSource(call.operation, resource)
  const render = (rows: readonly AnyRow[]) => rows.map((row) => toJsonText(show(row)))
  return respondWithRowList(call, { resource, source, restrictions, render })
}

/** The statuses by which references to unknown records are refused, beside 400. */
function listUnknownStatuses(resource: AnyResource): number[] {
  return listReferenceFields(resource).flatMap(({ field }) => field.kind.reference?.unknownStatus ?? [])
}

function describeListQuery(resource: AnyResource): Record<string, QueryParameter> {
  const { roleAttributes } = resource.fields
  return roleAttributes && roleAttributes.options.access !== 'internal' ? { ...listQuery, ...roleQuery } : listQuery
}

function toPluralNoun(resource: AnyResource): string {
  return resource.plural.replaceAll('-', ' ')
}

function chooseArticle(resource: AnyResource): string {
  return /^[aeiou]/.test(resource.name) ? 'an' : 'a'
}
