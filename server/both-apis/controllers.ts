// The controllers of the network, as administrators and as clients know them.
import { controllers } from '../../src/resources/controllers.ts'
import { type AnyOperation, operation } from '../operation.ts'
import { listQuery } from '../query.ts'
import { answerList } from '../resource-operations.ts'

/** What clients are told; how controllers reach one another is none of their business. */
const CLIENT_MEMBERS = ['name', 'certPem', 'fingerprint', 'isOnline', 'lastJoinedAt', 'apiAddresses']

const listOn = (api: 'client' | 'management', only?: readonly string[]) =>
  operation({
    id: 'listControllers',
    apis: [api],
    topic: 'controllers',
    method: 'GET',
    path: '/controllers',
    summary: 'Lists the controllers of the network.',
    access: { permission: 'controller.read', grantedTo: 'authenticated' },
    query: listQuery,
    returns: { kind: 'list', resource: 'controllers' },
    run: (call) => answerList(call, controllers, [], { presentation: async () => (only ? { only } : {}) }),
  })

export const controllerOperations: readonly AnyOperation[] = [listOn('management'), listOn('client', CLIENT_MEMBERS)]
