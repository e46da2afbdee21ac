// Changes of services on the fabric API: as far as routers are concerned, what a service is called and how it is balanced.
import { services } from '../../../src/definitions/resources/services.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { createdResponse, emptyResponse } from '../../responses/responses.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../operation.ts'
import { serviceShape } from './shapes.ts'
import { FABRIC } from './view-operations.ts'

type Values = Readonly<Record<string, unknown>>

const { name, terminatorStrategy, maxIdleTimeMillis } = services.fields
const fields = { name, terminatorStrategy, maxIdleTimeMillis, tags: f.tags() }
const common = { ...FABRIC, topic: 'services' } as const
const access = (right: string) => ({ permission: `service.${right}`, grantedTo: 'administrator' }) as const

export const serviceChangeOperations: readonly AnyOperation[] = [
  defineOperation<Values>({
    ...common,
    id: 'createService',
    method: 'POST',
    path: '/services',
    summary: 'Creates a service, whose clients and hosts must encrypt end to end.',
    access: access('create'),
    body: readFieldsBody(fields),
    returns: { kind: 'created', resource: services.plural },
    async run({ controller, context, body }) {
      const { id } = await controller.entities.create(context, services, { ...body, encryptionRequired: true } as never)
      return createdResponse(serviceShape.plural, id)
    },
  }),
  defineOperation<Values>({
    ...common,
    id: 'patchService',
    method: 'PATCH',
    path: '/services/:id',
    summary: 'Changes the members of one service that are sent.',
    access: access('update'),
    body: readFieldsBody(fields, { purpose: 'patch' }),
    returns: { kind: 'empty' },
    async run({ controller, context, params, body }) {
      await controller.entities.patch(context, services, params.id ?? '', body)
      return emptyResponse()
    },
  }),
  defineOperation({
    ...common,
    id: 'deleteService',
    method: 'DELETE',
    path: '/services/:id',
    summary: 'Deletes one service, with its terminators.',
    access: access('delete'),
    returns: { kind: 'empty' },
    async run({ controller, context, params }) {
      await controller.entities.remove(context, services, params.id ?? '')
      return emptyResponse()
    },
  }),
]
