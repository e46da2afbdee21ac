// The operations by which the fabric API creates, replaces, patches and deletes the records of a resource.
import { compileBodyShapes } from '../../../src/definitions/model/body-shapes.ts'
import type { AnyResource } from '../../../src/definitions/resources/define.ts'
import { toResourceNoun } from '../../../src/storage/entities/entities.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import { createdResponse, emptyResponse } from '../../api/responses.ts'
import { toPascalCase } from '../resource-operations.ts'
import { FABRIC, readShapeBody } from './view-operations.ts'

/** The values of a body, by the fields of the shape. */
export type ShapeValues = Readonly<Record<string, unknown>>

interface Changes {
  /** The form of the records on the fabric API. */
  readonly shape: AnyResource
  readonly resource: AnyResource
  readonly summaries: Readonly<Record<'create' | 'delete', string>>
  /** Statuses by which a creation refuses besides those that follow from what it is. */
  readonly errorStatuses?: readonly number[]
  create(call: Call<ShapeValues>): Promise<{ readonly id: string }>
  update(call: Call<ShapeValues>, verb: 'replace' | 'patch', id: string): Promise<unknown>
}

const VERBS = {
  replace: { method: 'PUT', idPrefix: 'update', summary: 'Replaces ONE: what is not sent falls back to its default.' },
  patch: { method: 'PATCH', idPrefix: 'patch', summary: 'Changes the members of ONE that are sent.' },
} as const

export function makeChangeOperations(changes: Changes): readonly AnyOperation[] {
  const { shape, resource, summaries, errorStatuses = [] } = changes
  const bodies = compileBodyShapes(shape)
  const common = { ...FABRIC, topic: shape.plural } as const
  const access = (right: string) => ({ permission: `${shape.name}.${right}`, grantedTo: 'administrator' }) as const
  const idSuffix = toPascalCase(shape.name)
  return [
    defineOperation<ShapeValues>({
      ...common,
      id: `create${idSuffix}`,
      method: 'POST',
      path: `/${shape.plural}`,
      summary: summaries.create,
      access: access('create'),
      body: readShapeBody(bodies, 'create'),
      returns: { kind: 'created', resource: resource.plural },
      errorStatuses,
      run: async (call) => createdResponse(shape.plural, (await changes.create(call)).id),
    }),
    ...(['replace', 'patch'] as const).map((verb) => {
      const { method, idPrefix, summary } = VERBS[verb]
      return defineOperation<ShapeValues>({
        ...common,
        id: idPrefix + idSuffix,
        method,
        path: `/${shape.plural}/:id`,
        summary: summary.replace('ONE', `one ${toResourceNoun(shape)}`),
        access: access('update'),
        body: readShapeBody(bodies, verb),
        returns: { kind: 'empty' },
        async run(call) {
          await changes.update(call, verb, call.params.id ?? '')
          return emptyResponse()
        },
      })
    }),
    defineOperation({
      ...common,
      id: `delete${idSuffix}`,
      method: 'DELETE',
      path: `/${shape.plural}/:id`,
      summary: summaries.delete,
      access: access('delete'),
      returns: { kind: 'empty' },
      async run({ controller, context, params }) {
        await controller.entities.remove(context, resource, params.id ?? '')
        return emptyResponse()
      },
    }),
  ]
}
