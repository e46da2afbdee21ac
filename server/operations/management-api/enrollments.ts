// Operations on enrollments beyond their records: a new token.
import { f } from '../../../src/definitions/schema/fields.ts'
import { links, requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'

export const enrollmentOperations: readonly AnyOperation[] = [
  defineOperation<{ readonly expiresAt: number }>({
    id: 'refreshEnrollment',
    apis: ['management'],
    topic: 'enrollments',
    method: 'POST',
    path: '/enrollments/:id/refresh',
    summary: 'Gives an enrollment a new token and expiry; the old token becomes invalid.',
    access: { permission: 'enrollment.update', grantedTo: 'administrator', records: 'enrollments' },
    body: readFieldsBody({
      expiresAt: f.time({ required: true, summary: 'The time until which the new token is valid.' }),
    }),
    returns: { kind: 'data', schema: requiredObject({ _links: links, id: text }) },
    async run({ controller, context, params: { id = '' }, body }) {
      await controller.enrollments.refresh(context, id, body.expiresAt)
      return dataResponse({ _links: { self: { href: `./enrollments/${id}` } }, id })
    },
  }),
]
