// Refuses what only a controller with routers can do, at one of a cluster that has none, and names one that has.
import type { Controller } from '../../../src/controller/controller.ts'
import { errors } from '../../../src/foundation/errors.ts'
import { hasOwnControlListener } from '../../../src/settings/addresses.ts'
import type { Cluster } from '../../../src/storage/cluster/cluster.ts'
import type { Check } from './check.ts'

/** @throws ROUTERS_ELSEWHERE */
export function requireRouters({ config, routers: { presence } }: Controller, cluster: Cluster): Check {
  const hasOwn = hasOwnControlListener(config)
  return ({ state }) => {
    if (!state.route.operation?.needsRouters || hasOwn || presence?.isHere) return undefined
    const node = cluster.nodeOfRouters
    const message = node === undefined ? 'no controller has the routers now' : `the controller ${node} has the routers`
    return errors.ROUTERS_ELSEWHERE({ code: 'ROUTERS_ELSEWHERE', message })
  }
}
