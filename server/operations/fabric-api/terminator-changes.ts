// Changes of terminators on the fabric API. Those that routers make for hosts can only be deleted.
import { compileBodyShapes } from '../../../src/definitions/model/body-shapes.ts'
import { routers } from '../../../src/definitions/resources/routers.ts'
import { terminators } from '../../../src/definitions/resources/terminators.ts'
import { requireRow } from '../../responses/record-responses.ts'
import { createdResponse, emptyResponse } from '../../responses/responses.ts'
import { type AnyOperation, type Call, defineOperation } from '../operation.ts'
import { terminatorShape } from './shapes.ts'
import { FABRIC, readShapeBody } from './view-operations.ts'

type Values = Readonly<Record<string, unknown>>

const bodyShapes = compileBodyShapes(terminatorShape)

const common = { ...FABRIC, topic: 'terminators' } as const
const access = (right: string) => ({ permission: `terminator.${right}`, grantedTo: 'administrator' }) as const

export const terminatorChangeOperations: readonly AnyOperation[] = [
  defineOperation<Values>({
    ...common,
    id: 'createTerminator',
    method: 'POST',
    path: '/terminators',
    summary: 'Creates a terminator.',
    access: access('create'),
    body: readShapeBody(bodyShapes, 'create'),
    returns: { kind: 'created', resource: terminators.plural },
    errorStatuses: [404],
    async run(call) {
      const { controller, context } = call
      const { id } = await controller.entities.create(context, terminators, await readTerminator(call))
      return createdResponse(terminatorShape.plural, id)
    },
  }),
  ...(['replace', 'patch'] as const).map((verb) =>
    defineOperation<Values>({
      ...common,
      id: verb === 'replace' ? 'updateTerminator' : 'patchTerminator',
      method: verb === 'replace' ? 'PUT' : 'PATCH',
      path: '/terminators/:id',
      summary:
        verb === 'replace'
          ? 'Replaces one terminator: what is not sent falls back to its default.'
          : 'Changes the members of one terminator that are sent.',
      access: access('update'),
      body: readShapeBody(bodyShapes, verb),
      returns: { kind: 'empty' },
      async run(call) {
        const { controller, context, params } = call
        await controller.entities[verb](context, terminators, params.id ?? '', await readTerminator(call))
        return emptyResponse()
      },
    }),
  ),
  defineOperation({
    ...common,
    id: 'deleteTerminator',
    method: 'DELETE',
    path: '/terminators/:id',
    summary: 'Deletes one terminator. Its circuits continue.',
    access: access('delete'),
    returns: { kind: 'empty' },
    async run({ controller, context, params }) {
      await controller.entities.remove(context, terminators, params.id ?? '')
      return emptyResponse()
    },
  }),
]

/** The values of a body, by the fields of terminators. @throws NOT_FOUND if the router is unknown */
async function readTerminator({ context, body }: Call<Values>): Promise<Record<string, unknown>> {
  const { instanceId, instanceSecret, ...values } = body
  if (values.routerId !== undefined) await requireRow(context, routers, values.routerId as string)
  return {
    ...values,
    ...(instanceId === undefined ? {} : { identity: instanceId }),
    ...(instanceSecret === undefined ? {} : { identitySecret: instanceSecret }),
  }
}
