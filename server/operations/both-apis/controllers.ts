// The controllers of the network, for administrators and clients alike.
import { controllers } from '../../../src/definitions/resources/controllers.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { listQuery } from '../../api/query.ts'
import { respondWithList } from '../../responses/record-responses.ts'

export const controllerOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'listControllers',
    apis: ['client', 'management'],
    topic: 'controllers',
    method: 'GET',
    path: '/controllers',
    summary: 'Lists the controllers of the network.',
    access: { permission: 'controller.read', grantedTo: 'authenticated', acceptsTokens: true },
    query: listQuery,
    returns: { kind: 'list', resource: 'controllers' },
    run: (call) => respondWithList(call, controllers, []),
  }),
]
