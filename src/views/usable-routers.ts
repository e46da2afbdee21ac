// The edge routers over which an identity reaches a service, as clients are told of them.
import type { RouterEntry } from '../access/router-directory.ts'
import type { ReadContext } from '../context.ts'
import type { RoleBearer } from '../policy/role-selector.ts'
import type { LiveRouter } from '../routers/live-network.ts'
import { toClientRouterFields } from './router-views.ts'

/** More routers than a client would ever try. */
export const MAX_ROUTERS = 25

/** The ids of these routers; those that are online come first. Offline ones are included, because they may come back. */
export function usableRouterIds({ controller: { access, network } }: Reading, identity: RoleBearer, serviceId: string) {
  const offlineRank = (id: string) => (network.router(id) ? 0 : 1)
  return access
    .listCommonRouters(identity, serviceId)
    .sort((a, b) => offlineRank(a) - offlineRank(b) || (a < b ? -1 : 1))
}

/** The first of them as JSON text for sessions, in which clients know the addresses of a router by two names. */
export function renderSessionRouters(context: Reading, identity: RoleBearer, serviceId: string): string {
  const { access, network } = context.controller
  const texts = usableRouterIds(context, identity, serviceId)
    .slice(0, MAX_ROUTERS)
    .flatMap((id) => access.routers.get(id) ?? [])
    .map((router) => {
      const live = network.router(router.id)
      return live ? renderRouter(router, live) : renderOfflineRouter(router)
    })
  return `[${texts.join(',')}]`
}

type Reading = Pick<ReadContext, 'controller'>

function renderRouter(router: RouterEntry, live: LiveRouter | undefined): string {
  const facts = toClientRouterFields(live)
  return JSON.stringify({ ...router, ...facts, urls: facts.supportedProtocols })
}

// A router that changes is another object, and so is its text.
const offlineTexts = new WeakMap<RouterEntry, string>()

function renderOfflineRouter(router: RouterEntry): string {
  let text = offlineTexts.get(router)
  if (text === undefined) {
    text = renderRouter(router, undefined)
    offlineTexts.set(router, text)
  }
  return text
}
