// Checks that routers which follow all controllers of a cluster are connected to each: dials that another one decides cannot use them.
import type { LiveNetwork } from '../../access/live-network.ts'
import { supportsOidc } from '../../access/router-releases.ts'
import type { Cluster } from '../../storage/cluster/cluster.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { type Diagnosis, MAX_DIAGNOSES_PER_CHECK } from './diagnosis.ts'

/** Routers of release 2 that are connected to some controllers, and not to others that run. */
export async function checkRouterConnections(
  { db }: Context,
  cluster: Pick<Cluster, 'listLiveNames'>,
  network: LiveNetwork,
): Promise<Diagnosis[]> {
  const controllers = await db
    .selectFrom('controllers')
    .select(['node', 'ctrlAddress'])
    .where('node', 'in', [...cluster.listLiveNames()])
    .where('ctrlAddress', 'is not', null)
    .orderBy('node')
    .execute()
  const routers = await db.selectFrom('routers').select(['id', 'name', 'isEdge']).orderBy('name').execute()
  const diagnoses = routers.flatMap(({ id, name, isEdge }): Diagnosis[] => {
    const live = network.findRouter(id)
    // One of an earlier release is connected to one controller at a time.
    if (!live || !supportsOidc(live.versionInfo)) return []
    const nodes = network.listNodesOf(id)
    const missing = controllers.filter(({ node }) => !nodes.includes(String(node)))
    if (missing.length === 0) return []
    const toNames = (names: readonly (string | null)[]) => names.join(', ')
    const addresses = toNames(missing.map(({ ctrlAddress }) => ctrlAddress))
    return [
      {
        check: 'router connections',
        subject: `${isEdge === 1 ? 'edge-router' : 'router'} ${name}`,
        message: `it is connected to ${toNames(nodes)}, and not to ${toNames(missing.map(({ node }) => node))}: dials that are decided there cannot use it`,
        remedy: `let its machine reach ${addresses}; its log says why it does not, and its file of endpoints which controllers it knows`,
      },
    ]
  })
  return diagnoses.slice(0, MAX_DIAGNOSES_PER_CHECK)
}
