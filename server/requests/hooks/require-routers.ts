// Refuses what only the controller with the routers can do, at the others of its cluster, and names that one.
import type { Controller } from '../../../src/controller.ts'
import { errors } from '../../../src/foundation/errors.ts'
import type { Cluster } from '../../../src/storage/cluster/cluster.ts'
import type { Check } from './check.ts'

/** @throws ROUTERS_ELSEWHERE */
export function requireRouters({ routers: { presence } }: Controller, cluster: Cluster): Check {
  return ({ state }) => {
    if (!state.route.operation?.needsRouters || presence?.isHere) return undefined
    const node = cluster.nodeOfRouters
    const message = node === undefined ? 'no controller has the routers now' : `the controller ${node} has the routers`
    return errors.ROUTERS_ELSEWHERE({ code: 'ROUTERS_ELSEWHERE', message })
  }
}
