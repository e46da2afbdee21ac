// The edge routers over which an identity reaches a service, as clients are told of them.
import type { KnownRouter } from '../access/known-routers.ts'
import type { ReadContext } from '../context.ts'
import type { Attributed } from '../policy/side.ts'
import type { LiveRouter } from '../routers/live-network.ts'
import { clientsFacts } from './router-views.ts'

/** More routers than a client would ever try. */
export const MAX_ROUTERS = 25

/** The ids of these routers; those that are online come first. Offline ones are included, because they may come back. */
export function usableRouterIds({ controller: { access, network } }: Reading, identity: Attributed, serviceId: string) {
  const offlineRank = (id: string) => (network.router(id) ? 0 : 1)
  return access.commonRouters(identity, serviceId).sort((a, b) => offlineRank(a) - offlineRank(b) || (a < b ? -1 : 1))
}

/** The first of them as JSON text for sessions, in which clients know the addresses of a router by two names. */
export function sessionRoutersText(context: Reading, identity: Attributed, serviceId: string): string {
  const { access, network } = context.controller
  const texts = usableRouterIds(context, identity, serviceId)
    .slice(0, MAX_ROUTERS)
    .flatMap((id) => access.routers.get(id) ?? [])
    .map((router) => {
      const live = network.router(router.id)
      return live ? textOf(router, live) : offlineText(router)
    })
  return `[${texts.join(',')}]`
}

type Reading = Pick<ReadContext, 'controller'>

function textOf(router: KnownRouter, live: LiveRouter | undefined): string {
  const facts = clientsFacts(live)
  return JSON.stringify({ ...router, ...facts, urls: facts.supportedProtocols })
}

// A router that changes is another object, and so is its text.
const offlineTexts = new WeakMap<KnownRouter, string>()

function offlineText(router: KnownRouter): string {
  let text = offlineTexts.get(router)
  if (text === undefined) {
    text = textOf(router, undefined)
    offlineTexts.set(router, text)
  }
  return text
}
