// Changes of terminators on the fabric API. Those that routers make for hosts can only be deleted.
import { routers } from '../../../src/definitions/resources/routers.ts'
import { terminators } from '../../../src/definitions/resources/terminators.ts'
import type { AnyOperation, Call } from '../../api/operation.ts'
import { requireRow } from '../../responses/record-responses.ts'
import { makeChangeOperations, type ShapeValues } from './change-operations.ts'
import { terminatorShape } from './shapes.ts'

export const terminatorChangeOperations: readonly AnyOperation[] = makeChangeOperations({
  shape: terminatorShape,
  resource: terminators,
  summaries: { create: 'Creates a terminator.', delete: 'Deletes one terminator. Its circuits continue.' },
  errorStatuses: [404],
  create: async (call) =>
    call.controller.entities.create(call.context, terminators, (await readTerminator(call)) as never),
  update: async (call, verb, id) =>
    call.controller.entities[verb](call.context, terminators, id, await readTerminator(call)),
})

/** The values of a body, by the fields of terminators. @throws NOT_FOUND if the router is unknown */
async function readTerminator({ context, body }: Call<ShapeValues>): Promise<Record<string, unknown>> {
  const { instanceId, instanceSecret, ...values } = body
  if (values.routerId !== undefined) await requireRow(context, routers, values.routerId as string)
  return {
    ...values,
    ...(instanceId === undefined ? {} : { identity: instanceId }),
    ...(instanceSecret === undefined ? {} : { identitySecret: instanceSecret }),
  }
}
