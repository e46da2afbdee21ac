// The routers and identities that are connected to one controller of a cluster, as that one has committed them.
import type { LiveRouter } from '../../access/live-network.ts'
import type { ConnectedRouterFields, RouterPresence } from '../../storage/transactions/changes.ts'
import type { ConnectedRouter } from './connected-routers.ts'

/** A router that is connected to another controller. */
export interface KnownRouter extends LiveRouter {
  readonly id: string
  readonly fields: ConnectedRouterFields
}

export class NodePresence {
  /** The name of the controller. */
  readonly name: string
  readonly routers = new Map<string, KnownRouter>()
  readonly identityIds = new Set<string>()
  /** Since when the controller does not run, by the monotonic clock. */
  lostAt: number | undefined

  constructor(name: string) {
    this.name = name
  }

  /** Follows what the controller says. Returns the ids of the routers that it has or has not any more. */
  take({ isFull, routers, identities }: RouterPresence): string[] {
    const changedIds = isFull ? [...this.routers.keys()].filter((id) => !routers[id]) : []
    for (const id of changedIds) this.routers.delete(id)
    for (const [id, fields] of Object.entries(routers)) {
      changedIds.push(id)
      if (!fields) this.routers.delete(id)
      else {
        const { hostname, modelMode, supportedProtocols, syncStatus, versionInfo } = fields
        const model = { mode: modelMode, index: undefined, behindSince: undefined }
        this.routers.set(id, { id, hostname, supportedProtocols, syncStatus, versionInfo, model, fields })
      }
    }
    if (isFull) this.identityIds.clear()
    for (const [id, isConnected] of Object.entries(identities)) {
      if (isConnected) this.identityIds.add(id)
      else this.identityIds.delete(id)
    }
    return changedIds
  }
}

/** A router that is connected to this controller, as the others know it. */
export function describeRouter(router: ConnectedRouter): ConnectedRouterFields {
  const { hostname, supportedProtocols, syncStatus, versionInfo, model } = router.toLiveRouter()
  const { isInTurn, linkListeners } = router.hello
  const listeners = linkListeners.map(({ address, protocol, costTags, groups, localBinding }) => ({
    ...{ address, protocol, localBinding },
    ...{ costTags: [...costTags], groups: [...groups] },
  }))
  const fields = { hostname, supportedProtocols, syncStatus, versionInfo, modelMode: model.mode, isInTurn, listeners }
  const { subscribedAt } = router
  const following = model.mode === 'following' && subscribedAt !== undefined ? { subscribedAt } : {}
  return { ...fields, ...following, ...(router.connection.isSilent ? { isSilent: true } : {}) }
}

/** Whether the others know of a router what it is now. It says where it accepts links when it connects. */
export function isSameRouter(fields: ConnectedRouterFields, known: ConnectedRouterFields | undefined): boolean {
  return (
    known !== undefined &&
    fields.hostname === known.hostname &&
    fields.syncStatus === known.syncStatus &&
    fields.modelMode === known.modelMode &&
    fields.subscribedAt === known.subscribedAt &&
    fields.isInTurn === known.isInTurn &&
    fields.isSilent === known.isSilent &&
    fields.versionInfo.version === known.versionInfo.version &&
    fields.listeners.length === known.listeners.length &&
    fields.listeners.every(({ address }, at) => address === known.listeners[at]?.address) &&
    hasSameMembers(fields.supportedProtocols, known.supportedProtocols)
  )
}

function hasSameMembers(some: Readonly<Record<string, string>>, others: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(some)
  return names.length === Object.keys(others).length && names.every((name) => some[name] === others[name])
}
