// The cluster of OpenZiti's controllers, which its tools ask for: there is none here, also if several controllers share a network.
import { errors } from '../../../src/foundation/errors.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { FABRIC } from './view-operations.ts'

/** They are named as in OpenZiti's document. */
const clusterRequests = [
  ['clusterListMembers', 'GET', '/cluster/list-members', 'node.read'],
  ['clusterMemberAdd', 'POST', '/cluster/add-member', 'node.update'],
  ['clusterMemberRemove', 'POST', '/cluster/remove-member', 'node.update'],
  ['clusterTransferLeadership', 'POST', '/cluster/transfer-leadership', 'node.update'],
] as const

export const clusterOperations: readonly AnyOperation[] = clusterRequests.map(([id, method, path, permission]) =>
  defineOperation({
    ...FABRIC,
    id,
    topic: 'cluster',
    method,
    path,
    summary: 'Is refused: no controller of this network is a member of a cluster of OpenZiti.',
    access: { permission, grantedTo: 'administrator' },
    returns: { kind: 'empty' },
    errorStatuses: [400],
    run() {
      throw errors.SERVER_NOT_RUNNING_IN_HA_MODE({
        message: 'controller node list shows the controllers of this network',
      })
    },
  }),
)
