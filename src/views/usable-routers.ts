// The edge routers over which an identity reaches a service, as clients are told of them.
import type { KnownRouter } from '../access/known-routers.ts'
import type { ReadContext } from '../context.ts'
import type { Attributed } from '../policy/side.ts'
import { clientsFacts } from './router-views.ts'

/** A router as a client needs it to connect: what it is, and how it is reached at the moment. */
export type UsableRouter = KnownRouter & ReturnType<typeof clientsFacts>

// More routers than a client would ever try.
const MOST_ROUTERS = 25

/** Those that are online come first; offline ones are told of, too, because they may come back. */
export function usableRouters(
  { controller: { access, network } }: Pick<ReadContext, 'controller'>,
  identity: Attributed,
  serviceId: string,
): UsableRouter[] {
  const isOffline = (id: string) => (network.router(id) ? 0 : 1)
  const ids = access
    .commonRouters(identity, serviceId)
    .sort((a, b) => isOffline(a) - isOffline(b) || (a < b ? -1 : 1))
    .slice(0, MOST_ROUTERS)
  return ids.flatMap((id) => {
    const router = access.routers.get(id)
    return router ? [{ ...router, ...clientsFacts(network.router(id)) }] : []
  })
}
