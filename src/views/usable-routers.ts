// The edge routers over which an identity reaches a service, as clients are told of them.
import type { ReadContext } from '../context.ts'
import type { Attributed } from '../policy/side.ts'
import { edgeRouters } from '../resources/edge-routers.ts'
import { clientsFacts } from './router-views.ts'

/** A router as a client needs it to connect: what it is, and how it is reached at the moment. */
export interface UsableRouter extends ReturnType<typeof clientsFacts> {
  readonly id: string
  readonly name: string
  readonly cost: number
  readonly noTraversal: boolean
  readonly disabled: boolean
}

// More routers than a client would ever try.
const MOST_ROUTERS = 25

/** Those that are online come first; offline ones are told of, too, because they may come back. */
export async function usableRouters(
  context: ReadContext,
  identity: Attributed,
  serviceId: string,
): Promise<UsableRouter[]> {
  const { access, network, readyRecords } = context.controller
  const isOffline = (id: string) => (network.router(id) ? 0 : 1)
  const ids = access
    .commonRouters(identity, serviceId)
    .sort((a, b) => isOffline(a) - isOffline(b) || (a < b ? -1 : 1))
    .slice(0, MOST_ROUTERS)
  const routers = await readyRecords.byIds(context, edgeRouters, ids)
  return routers.map(({ id, facts }) => ({
    id,
    name: facts.name as string,
    ...clientsFacts(network.router(id)),
    cost: facts.cost as number,
    noTraversal: facts.noTraversal === 1,
    disabled: facts.disabled === 1,
  }))
}
