// Operations on edge routers beyond their records: re-enrollment.

import { f } from '../../../src/definitions/schema/fields.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { emptyResponse } from '../../api/responses.ts'

export const edgeRouterOperations: readonly AnyOperation[] = [
  defineOperation<{ readonly expiresAt?: number }>({
    id: 'reEnrollEdgeRouter',
    apis: ['management'],
    topic: 'edge-routers',
    method: 'POST',
    path: '/edge-routers/:id/re-enroll',
    summary: 'Removes the credential of an edge router, and creates a new enrollment.',
    access: { permission: 'edge-router.update', grantedTo: 'administrator', records: 'edge-routers' },
    body: readFieldsBody(
      { expiresAt: f.time({ summary: 'The time until which the token is valid.' }) },
      { isRequired: false },
    ),
    returns: { kind: 'empty' },
    async run({ controller, context, params, body }) {
      await controller.routers.provisioner.reEnroll(context, params.id ?? '', body ?? {})
      return emptyResponse()
    },
  }),
]
