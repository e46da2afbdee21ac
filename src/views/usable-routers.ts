// The edge routers over which an identity reaches a service, as clients are told of them.
import type { KnownRouter } from '../access/known-routers.ts'
import type { ReadContext } from '../context.ts'
import type { Attributed } from '../policy/side.ts'
import type { LiveRouter } from '../routers/live-network.ts'
import { clientsFacts } from './router-views.ts'

/** A router as a client needs it to connect: what it is, and how it is reached at the moment. */
export type UsableRouter = KnownRouter & ReturnType<typeof clientsFacts>

// More routers than a client would ever try.
const MOST_ROUTERS = 25

/** Those that are online come first; offline ones are told of, too, because they may come back. */
export function usableRouters(context: Reading, identity: Attributed, serviceId: string): UsableRouter[] {
  const { network } = context.controller
  return routersFor(context, identity, serviceId).map((router) => ({
    ...router,
    ...clientsFacts(network.router(router.id)),
  }))
}

/** The same as JSON text for sessions, in which clients know the addresses of a router by two names. */
export function sessionRoutersText(context: Reading, identity: Attributed, serviceId: string): string {
  const { network } = context.controller
  const texts = routersFor(context, identity, serviceId).map((router) => {
    const live = network.router(router.id)
    return live ? textOf(router, live) : offlineText(router)
  })
  return `[${texts.join(',')}]`
}

type Reading = Pick<ReadContext, 'controller'>

function routersFor({ controller: { access, network } }: Reading, identity: Attributed, serviceId: string) {
  const isOffline = (id: string) => (network.router(id) ? 0 : 1)
  const ids = access
    .commonRouters(identity, serviceId)
    .sort((a, b) => isOffline(a) - isOffline(b) || (a < b ? -1 : 1))
    .slice(0, MOST_ROUTERS)
  return ids.flatMap((id) => access.routers.get(id) ?? [])
}

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
