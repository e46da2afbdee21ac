// Hook: ends each connection after its response while this controller drains, so that clients open the next one at another.
import type { Cluster } from '../../../src/storage/cluster/cluster.ts'
import type { Check } from './check.ts'

export function closeWhileDraining({ nodes }: Cluster): Check {
  return (_, reply) => {
    if (nodes.isDraining) reply.header('connection', 'close')
    return undefined
  }
}
