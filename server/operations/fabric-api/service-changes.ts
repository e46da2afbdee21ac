// Changes of services on the fabric API: as far as routers are concerned, what a service is called and how it is balanced.
import { services } from '../../../src/definitions/resources/services.ts'
import { applyFallbacks } from '../../../src/definitions/schema/bodies.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import type { AnyOperation } from '../../api/operation.ts'
import { makeChangeOperations } from './change-operations.ts'
import { serviceShape } from './shapes.ts'

const { name, terminatorStrategy, maxIdleTimeMillis } = services.fields
/** The members that a replacement resets: the fabric API does not show the other members of a service. */
const fields = { name, terminatorStrategy, maxIdleTimeMillis, tags: f.tags() }

export const serviceChangeOperations: readonly AnyOperation[] = makeChangeOperations({
  shape: serviceShape,
  resource: services,
  summaries: {
    create: 'Creates a service, whose clients and hosts must encrypt end to end.',
    delete: 'Deletes one service, with its terminators.',
  },
  create: ({ controller, context, body }) =>
    controller.entities.create(context, services, { ...body, encryptionRequired: true } as never),
  update: ({ controller, context, body }, verb, id) =>
    controller.entities.patch(context, services, id, verb === 'replace' ? applyFallbacks(fields, body) : body),
})
