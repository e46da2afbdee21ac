// The controllers of the network, for administrators and clients alike.
import { controllers } from '../../../src/definitions/resources/controllers.ts'
import type { ControllerView } from '../../../src/network/controllers/controller-behavior.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { listQuery } from '../../api/query.ts'
import { respondWithList } from '../../responses/record-responses.ts'

const LIST = {
  id: 'listControllers',
  topic: 'controllers',
  method: 'GET',
  path: '/controllers',
  access: { permission: 'controller.read', grantedTo: 'authenticated', acceptsTokens: true },
  query: listQuery,
} as const

const returns = { kind: 'list', resource: controllers.plural } as const

export const controllerOperations: readonly AnyOperation[] = [
  defineOperation({
    ...LIST,
    apis: ['management'],
    summary: 'Lists the controllers of the network, and the addresses of their APIs.',
    returns,
    run: (call) => respondWithList(call, controllers, []),
  }),
  defineOperation({
    ...LIST,
    apis: ['client'],
    summary: 'Lists the controllers of the network, and the addresses at which clients reach them.',
    returns,
    run: (call) => {
      const view: ControllerView = { isForClients: true }
      return respondWithList(call, controllers, [], { presentation: () => ({ view }) })
    },
  }),
]
