// The edge routers over which an identity reaches a service, as clients are told about them.
import type { Access } from '../../access/access.ts'
import type { LiveNetwork, LiveRouter } from '../../access/live-network.ts'
import type { RouterEntry } from '../../access/router-directory.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import { toClientRouterFields } from './router-behavior.ts'

/** More routers than a client would ever try. */
export const MAX_ROUTERS = 25

export class UsableRouters {
  readonly #access: Access
  readonly #network: LiveNetwork

  constructor(access: Access, network: LiveNetwork) {
    this.#access = access
    this.#network = network
  }

  /** Their ids; those that are online come first. Offline ones are included, because they may come back. */
  listIds(identity: RoleBearer, serviceId: string): string[] {
    const online: string[] = []
    const offline: string[] = []
    for (const id of this.#access.listCommonRouters(identity, serviceId).sort())
      (this.#network.findRouter(id) ? online : offline).push(id)
    return online.concat(offline)
  }

  /** The first of them as JSON text for sessions, in which clients know the addresses of a router by two names. */
  render(identity: RoleBearer, serviceId: string): string {
    const texts = this.listIds(identity, serviceId)
      .slice(0, MAX_ROUTERS)
      .flatMap((id) => this.#access.routers.get(id) ?? [])
      .map((router) => findText(router, this.#network.findRouter(router.id)))
    return `[${texts.join(',')}]`
  }
}

type ClientRouterFields = ReturnType<typeof toClientRouterFields>

// By the identity of an entry, of which a change makes another, with the live fields that each use compares. Clients ask for their
// sessions again and again: without this cache, such a request takes 1.47 times the instructions, which is over its bound.
const texts = new WeakMap<RouterEntry, { readonly fields: ClientRouterFields; readonly text: string }>()

function findText(router: RouterEntry, live: LiveRouter | undefined): string {
  const fields = toClientRouterFields(live)
  const cached = texts.get(router)
  if (cached && isSame(cached.fields, fields)) return cached.text
  const text = renderRouter(router, fields)
  texts.set(router, { fields, text })
  return text
}

function isSame(some: ClientRouterFields, others: ClientRouterFields): boolean {
  return (
    some.isOnline === others.isOnline &&
    some.hostname === others.hostname &&
    some.supportedProtocols === others.supportedProtocols &&
    some.syncStatus === others.syncStatus
  )
}

function renderRouter({ id, name, cost, noTraversal, disabled }: RouterEntry, fields: ClientRouterFields): string {
  const { isOnline, hostname, supportedProtocols, syncStatus } = fields
  const urls = supportedProtocols
  return JSON.stringify({
    id,
    name,
    cost,
    noTraversal,
    disabled,
    isOnline,
    hostname,
    supportedProtocols,
    syncStatus,
    urls,
  })
}
