// The operations that list and show the records of a view on the fabric API.
import type { BodyShapes } from '../../../src/definitions/model/body-shapes.ts'
import type { AnyRow } from '../../../src/definitions/resources/define.ts'
import { type BodyPurpose, readBody } from '../../../src/definitions/schema/bodies.ts'
import { listOf } from '../../../src/definitions/schema/json-schema.ts'
import { toResourceNoun } from '../../../src/storage/entities/entities.ts'
import { type AnyOperation, type BodyReader, type Call, defineOperation } from '../../api/operation.ts'
import { listQuery } from '../../api/query.ts'
import type { Response } from '../../api/responses.ts'
import { requireRow } from '../../responses/record-responses.ts'
import {
  CompiledView,
  type RecordView,
  requireItem,
  respondWithMemoryList,
  respondWithStored,
  respondWithStoredList,
  respondWithView,
  type StoredView,
} from '../../responses/record-views.ts'
import { toPascalCase } from '../resource-operations.ts'
import { fabricReferenceShapes } from './shapes.ts'

/** A view of what memory holds, and how its items are found. */
export interface MemoryView<Item> extends RecordView<Item> {
  listItems(call: Call): readonly Item[]
  findItem(call: Call, id: string): Item | undefined
}

export const FABRIC = { apis: ['fabric'] } as const

export function compileFabricView<Item>(view: RecordView<Item>): CompiledView<Item> {
  return new CompiledView(view, { referenceShapes: fabricReferenceShapes })
}

/** The list of a resource, and one of its records. */
export function makeStoredOperations(view: StoredView, compiled: CompiledView<AnyRow>): readonly AnyOperation[] {
  return makeReadOperations(
    compiled,
    (call) => respondWithStoredList(call, compiled, view),
    (call) => respondWithStored(call, compiled, view.resource),
  )
}

/** The list of what memory holds, and one of its items. */
export function makeMemoryOperations<Item>(
  view: MemoryView<Item>,
  compiled: CompiledView<Item>,
): readonly AnyOperation[] {
  return makeReadOperations(
    compiled,
    (call) => respondWithMemoryList(call, compiled, view.listItems(call)),
    (call) => {
      const { id = '' } = call.params
      return respondWithView(call, compiled, requireItem(compiled, id, view.findItem(call, id)))
    },
  ).map((operation) => ({ ...operation, needsRouters: true }))
}

function makeReadOperations<Item>(
  { schema, view }: CompiledView<Item>,
  list: (call: Call) => Promise<Response>,
  show: (call: Call) => Promise<Response>,
): readonly AnyOperation[] {
  const { name, plural } = view.shape
  const access = { permission: `${name}.read`, grantedTo: 'administrator' } as const
  return [
    defineOperation({
      ...FABRIC,
      id: `list${toPascalCase(plural)}`,
      topic: plural,
      method: 'GET',
      path: `/${plural}`,
      summary: `Lists ${plural}.`,
      access,
      query: listQuery,
      returns: { kind: 'data', schema: listOf(schema) },
      run: list,
    }),
    defineOperation({
      ...FABRIC,
      id: `detail${toPascalCase(name)}`,
      topic: plural,
      method: 'GET',
      path: `/${plural}/:id`,
      summary: `Shows one ${toResourceNoun(view.shape)}.`,
      access,
      returns: { kind: 'data', schema },
      run: show,
    }),
  ]
}

/** A body that creates or changes records of a shape; the operation gets its values by the fields of the shape. */
export function readShapeBody<B>(shapes: BodyShapes, purpose: BodyPurpose): BodyReader<B> {
  const shape = shapes[purpose].get(undefined)
  if (!shape) throw new Error('a shape has no variants')
  return {
    schema: shape.schema,
    isRequired: true,
    contentTypes: ['application/json'],
    read: (sent, tolerance) => readBody(shape, sent, tolerance) as B,
  }
}

/** The records of `listed` that belong to one record of `parent`, by the field that refers to it. */
export function makeSubListOperation(
  parent: StoredView,
  listed: StoredView,
  compiled: CompiledView<AnyRow>,
  field: string,
): AnyOperation {
  const { name, plural } = parent.shape
  return defineOperation({
    ...FABRIC,
    id: `list${toPascalCase(name)}${toPascalCase(listed.shape.plural)}`,
    topic: plural,
    method: 'GET',
    path: `/${plural}/:id/${listed.shape.plural}`,
    summary: `Lists the ${listed.shape.plural} of one ${toResourceNoun(parent.shape)}.`,
    access: { permission: `${listed.shape.name}.read`, grantedTo: 'administrator' },
    query: listQuery,
    returns: { kind: 'data', schema: listOf(compiled.schema) },
    async run(call) {
      const row = await requireRow(call.context, parent.resource, call.params.id)
      return respondWithStoredList(call, compiled, listed, [{ field, equals: row.id }])
    },
  })
}
