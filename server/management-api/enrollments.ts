// What administrators do with enrollments beyond making and deleting them.
import { f } from '../../src/schema/fields.ts'
import { links, requiredObject, text } from '../../src/schema/json-schema.ts'
import { data } from '../answers.ts'
import { type AnyOperation, fieldsBody, operation } from '../operation.ts'

export const enrollmentOperations: readonly AnyOperation[] = [
  operation<{ readonly expiresAt: number }>({
    id: 'refreshEnrollment',
    apis: ['management'],
    topic: 'enrollments',
    method: 'POST',
    path: '/enrollments/:id/refresh',
    summary: 'Gives an enrollment a new token and a new end; the old token is worth nothing from then on.',
    access: { permission: 'enrollment.update', grantedTo: 'administrator' },
    body: fieldsBody({ expiresAt: f.time({ required: true, summary: 'Until when the new token can be used.' }) }),
    returns: { kind: 'data', schema: requiredObject({ _links: links, id: text }) },
    async run({ context, params: { id = '' }, body }) {
      await context.controller.enrollments.refresh(context, id, body.expiresAt)
      return data({ _links: { self: { href: `./enrollments/${id}` } }, id })
    },
  }),
]
