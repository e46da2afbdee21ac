// Operations on edge routers beyond their records: re-enrollment.

import { emptyResponse } from '../../responses/responses.ts'
import { type AnyOperation, defineOperation } from '../operation.ts'

export const edgeRouterOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'reEnrollEdgeRouter',
    apis: ['management'],
    topic: 'edge-routers',
    method: 'POST',
    path: '/edge-routers/:id/re-enroll',
    summary: 'Removes the credential of an edge router, and creates a new enrollment.',
    access: { permission: 'edge-router.update', grantedTo: 'administrator' },
    returns: { kind: 'empty' },
    async run({ controller, context, params }) {
      await controller.routers.provisioner.reEnroll(context, params.id ?? '')
      return emptyResponse()
    },
  }),
]
