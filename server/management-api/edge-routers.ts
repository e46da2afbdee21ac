// What administrators do with edge routers beyond their records.
import { empty } from '../answers.ts'
import { type AnyOperation, operation } from '../operation.ts'

export const edgeRouterOperations: readonly AnyOperation[] = [
  operation({
    id: 'reEnrollEdgeRouter',
    apis: ['management'],
    topic: 'edge-routers',
    method: 'POST',
    path: '/edge-routers/:id/re-enroll',
    summary: 'Takes the credential of an edge router, and lets it enroll again.',
    access: { permission: 'edge-router.update', grantedTo: 'administrator' },
    returns: { kind: 'empty' },
    async run({ context, params }) {
      await context.controller.routers.reEnroll(context, params.id ?? '')
      return empty()
    },
  }),
]
