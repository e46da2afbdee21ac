// From a resource to its operations: list, create, detail, replace, patch, delete, and its relations.

import { listReferenceFields } from '../../src/definitions/model/columns.ts'
import { buildInputSchema, readInput } from '../../src/definitions/model/input.ts'
import { toCollectionPath, toLinkedPlural } from '../../src/definitions/model/links.ts'
import type {
  AlternateName,
  AnyResource,
  AnyRow,
  Relation,
  ResourceOperation,
} from '../../src/definitions/resources/define.ts'
import { getResource } from '../../src/definitions/resources/index.ts'
import type { BodyPurpose, BodyTolerance } from '../../src/definitions/schema/bodies.ts'
import type { Api } from '../../src/settings/listener-settings.ts'
import type { Scope } from '../../src/storage/behavior.ts'
import { toResourceNoun } from '../../src/storage/entities/entities.ts'
import { listMentionsByRule } from '../../src/storage/entities/mentions.ts'
import type { Restriction } from '../../src/storage/lists/lists.ts'
import type { Context } from '../../src/storage/transactions/context.ts'
import {
  type AnyOperation,
  type BodyReader,
  type Call,
  defineOperation,
  type QueryParameter,
} from '../api/operation.ts'
import { listQuery, roleQuery } from '../api/query.ts'
import { createdResponse, emptyResponse } from '../api/responses.ts'
import { requireRow, respondWithList, respondWithRecord, type ShowOptions } from '../responses/record-responses.ts'

/** How the operations of a resource differ from the generated ones. */
export interface OperationOverrides extends ShowOptions {
  readonly apis?: readonly Api[]
  readonly verbs?: readonly ResourceOperation[]
  readonly relations?: readonly string[]
  readonly grantedTo?: 'administrator' | 'authenticated'
  /** Verbs that a full session without the right is refused with 403 instead of 401. */
  readonly forbidden?: readonly ResourceOperation[]
  /** Statuses by which a verb refuses besides those that follow from what it is. */
  readonly errorStatuses?: Readonly<Partial<Record<ResourceOperation, readonly number[]>>>
  /** Further query parameters of list and detail, which `presentation` and `restrict` may read. */
  readonly query?: Readonly<Record<string, QueryParameter>>
  /** Restricts the list to the records that the caller asks for, besides the filter. */
  restrict?(call: Call): Promise<readonly Restriction[]>
}

/** All operations that follow from a resource, under each of its names. */
export function makeResourceOperations(resource: AnyResource, overrides: OperationOverrides = {}): AnyOperation[] {
  const { verbs = resource.verbs, relations = Object.keys(resource.relations) } = overrides
  const names: AlternateName[] = [resource, ...(resource.alternateName ? [resource.alternateName] : [])]
  return [
    ...names.flatMap((name) => verbs.map((verb) => makeResourceOperation(resource, verb, overrides, name))),
    ...relations.map((name) => makeRelationOperation(resource, name, overrides)),
  ]
}

/** `config-type` → `ConfigType` */
export function toPascalCase(name: string): string {
  return name.replace(/(^|-)([a-z])/g, (_, _dash, letter: string) => letter.toUpperCase())
}

/** The parts that an operation of a resource is made from. */
interface OperationParts {
  readonly resource: AnyResource
  readonly verb: ResourceOperation
  readonly overrides: OperationOverrides
  /** The name of the resource in paths and ids. */
  readonly name: AlternateName
}

/** One of the operations that every resource can have. */
export function makeResourceOperation(
  resource: AnyResource,
  verb: ResourceOperation,
  overrides: OperationOverrides = {},
  name: AlternateName = resource,
): AnyOperation {
  return operationMakers[verb]({ resource, verb, overrides, name })
}

const operationMakers: Readonly<Record<ResourceOperation, (parts: OperationParts) => AnyOperation>> = {
  list: makeListOperation,
  create: makeCreateOperation,
  detail: makeDetailOperation,
  replace: (parts) => makeUpdateOperation(parts, 'replace'),
  patch: (parts) => makeUpdateOperation(parts, 'patch'),
  delete: makeDeleteOperation,
}

/** The common part of the operations of a resource. @param right the right that its permission names */
function describeResourceOperation({ resource, verb, overrides, name }: OperationParts, right: string) {
  const { apis = ['management'], grantedTo = 'administrator', forbidden = [] } = overrides
  const permission = `${resource.name}.${right}`
  const access = { permission, grantedTo, isForbidden: forbidden.includes(verb), records: resource.plural }
  return { apis, topic: name.plural, ...(resource.isOwn ? { isOwn: true } : {}), access }
}

function makeListOperation(parts: OperationParts): AnyOperation {
  const { resource, overrides, name } = parts
  return defineOperation({
    ...describeResourceOperation(parts, 'read'),
    id: `list${toPascalCase(name.plural)}`,
    method: 'GET',
    path: toCollectionPath(resource, name.plural),
    summary: `Lists ${toPluralNoun(resource)}.`,
    query: { ...describeListQuery(resource), ...overrides.query },
    returns: { kind: 'list', resource: resource.plural },
    errorStatuses: overrides.errorStatuses?.list ?? [],
    run: async (call) => respondWithList(call, resource, (await overrides.restrict?.(call)) ?? [], overrides),
  })
}

function makeCreateOperation(parts: OperationParts): AnyOperation {
  const { resource, overrides, name } = parts
  return defineOperation({
    ...describeResourceOperation(parts, 'create'),
    id: `create${toPascalCase(name.name)}`,
    method: 'POST',
    path: toCollectionPath(resource, name.plural),
    summary: `Creates ${chooseArticle(resource)} ${toResourceNoun(resource)}.`,
    body: readResourceBody(resource, 'create'),
    canDryRun: true,
    returns: { kind: 'created', resource: resource.plural },
    errorStatuses: [...listUnknownStatuses(resource), ...(overrides.errorStatuses?.create ?? [])],
    async run({ controller, context, body }) {
      const entity = await controller.entities.create(context, resource, body(undefined) as never)
      const path = toCollectionPath(resource, toLinkedPlural(resource))
      return createdResponse(path.slice(1), (entity as { id: string }).id)
    },
  })
}

function makeDetailOperation(parts: OperationParts): AnyOperation {
  const { resource, overrides, name } = parts
  return defineOperation({
    ...describeResourceOperation(parts, 'read'),
    id: `detail${toPascalCase(name.name)}`,
    method: 'GET',
    path: `${toCollectionPath(resource, name.plural)}/:id`,
    summary: `Shows one ${toResourceNoun(resource)}.`,
    ...(overrides.query ? { query: overrides.query } : {}),
    returns: { kind: 'record', resource: resource.plural },
    run: (call) => respondWithRecord(call, resource, call.params.id, overrides),
  })
}

const UPDATES = {
  replace: {
    method: 'PUT',
    idPrefix: 'update',
    summarize: (noun: string) => `Replaces one ${noun}: what is not sent falls back to its default.`,
  },
  patch: {
    method: 'PATCH',
    idPrefix: 'patch',
    summarize: (noun: string) => `Changes the members of one ${noun} that are sent.`,
  },
} as const

function makeUpdateOperation(parts: OperationParts, verb: 'replace' | 'patch'): AnyOperation {
  const { resource, name } = parts
  const { method, idPrefix, summarize } = UPDATES[verb]
  return defineOperation({
    ...describeResourceOperation(parts, 'update'),
    id: idPrefix + toPascalCase(name.name),
    method,
    path: `${toCollectionPath(resource, name.plural)}/:id`,
    summary: summarize(toResourceNoun(resource)),
    body: readResourceBody(resource, verb),
    canDryRun: true,
    returns: { kind: 'empty' },
    async run({ controller, context, params, body }) {
      const values = body(resource.variants ? await findStoredType(context, resource, params.id) : undefined)
      await controller.entities[verb](context, resource, params.id ?? '', values)
      return emptyResponse()
    },
  })
}

function makeDeleteOperation(parts: OperationParts): AnyOperation {
  const { resource, overrides, name } = parts
  return defineOperation({
    ...describeResourceOperation(parts, 'delete'),
    id: `delete${toPascalCase(name.name)}`,
    method: 'DELETE',
    path: `${toCollectionPath(resource, name.plural)}/:id`,
    summary: `Deletes one ${toResourceNoun(resource)}.`,
    canDryRun: true,
    returns: { kind: 'empty' },
    // A record that others need is not deleted.
    errorStatuses: [
      ...(listMentionsByRule(resource, 'restrict').length > 0 ? [409] : []),
      ...(overrides.errorStatuses?.delete ?? []),
    ],
    async run({ controller, context, params }) {
      await controller.entities.remove(context, resource, params.id ?? '')
      return emptyResponse()
    },
  })
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
    access: { permission: `${target.name}.read`, grantedTo, records: target.plural },
    query: { ...describeListQuery(target), ...describeRelationQuery(relation) },
    returns: { kind: 'list', resource: target.plural },
    async run(call) {
      const row = await requireRow(call.context, resource, call.params.id)
      return respondWithList(call, target, [await restrictToRelation(call, resource, name, row)])
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

/** Reads the body of an operation that makes or changes a record. */
export function readResourceBody(resource: AnyResource, purpose: BodyPurpose): BodyReader<Unread> {
  return {
    schema: buildInputSchema(resource, purpose),
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

/** The statuses by which references to unknown records are refused, besides 400. */
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
