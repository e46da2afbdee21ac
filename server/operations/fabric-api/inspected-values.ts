// The values of the running controller that tools of operators can inspect, by the names that these tools use.
import type { Controller } from '../../../src/controller/controller.ts'
import { toIsoTime } from '../../../src/foundation/clock.ts'
import type { ConnectedRouter } from '../../../src/network/routers/connected-routers.ts'
import { findReferences } from '../../../src/storage/records/references.ts'
import type { Context } from '../../../src/storage/transactions/context.ts'

/** Returns the value, or a promise of it. */
type Inspect = (controller: Controller, context: Context) => unknown

export const INSPECTED_VALUES: Readonly<Record<string, Inspect>> = {
  config: showSettings,
  links: showLinks,
  'connected-routers': showConnectedRouters,
  'identity-connection-statuses': showIdentityConnections,
  'router-messaging': showRouterMessaging,
}

/** The settings hold no secrets: those are in files, and the settings name them. */
function showSettings({ config }: Controller): unknown {
  return config
}

function showLinks({ fabric }: Controller): unknown {
  const links = fabric.links.list().map((link) => ({
    id: link.id,
    iteration: link.iteration,
    protocol: link.protocol,
    dialAddress: link.dialAddress,
    source: link.sourceId,
    dest: link.destinationId,
    state: link.state,
    down: link.isDown,
    cost: link.cost,
  }))
  return { links }
}

async function showConnectedRouters(controller: Controller, context: Context): Promise<unknown> {
  const { clock, routers } = controller
  const connected = routers.connected.list()
  const nameOf = await loadRouterNames(context, connected)
  return connected.map((router) => ({
    Id: router.id,
    Name: nameOf(router),
    Version: router.hello.version.version,
    ConnectTime: toIsoTime(clock.now() - Math.round(clock.monotonic() - router.connectedAt)),
  }))
}

function showIdentityConnections({ clock, routers }: Controller): unknown {
  const now = clock.monotonic()
  const routersByIdentity = new Map<string, [id: string, value: object][]>()
  for (const { id, identityIds, connection } of routers.connected.list()) {
    const silentSeconds = Math.max(0, Math.round((now - connection.lastHeardAt) / 1000))
    const value = { router_id: id, closed: false, time_since_last_write: `${silentSeconds}s` }
    for (const identityId of identityIds) {
      const entries = routersByIdentity.get(identityId)
      if (entries) entries.push([id, value])
      else routersByIdentity.set(identityId, [[id, value]])
    }
  }
  const connections = [...routersByIdentity].map(([identityId, entries]) => [
    identityId,
    { connected_routers: Object.fromEntries(entries), last_reported_state: 'online' },
  ])
  return { connections: Object.fromEntries(connections) }
}

async function showRouterMessaging(controller: Controller, context: Context): Promise<unknown> {
  const { clock, fabric, routers } = controller
  const connected = routers.connected.listEdgeRouters()
  const nameOf = await loadRouterNames(context, connected)
  const terminatorValidations = connected.flatMap((router) => {
    const pending = fabric.validation.describePending(router)
    if (!pending) return []
    return {
      router: { id: router.id, name: nameOf(router) },
      terminators: pending.terminatorIds,
      checkInProgress: true,
      lastSend: toIsoTime(clock.now() - Math.round(clock.monotonic() - pending.lastAskedAt)),
    }
  })
  // Routers are told about each other within milliseconds, so that no update waits.
  return { routerUpdates: [], terminatorValidations }
}

async function loadRouterNames({ db }: Context, routers: readonly ConnectedRouter[]) {
  const ids = routers.map(({ id }) => id)
  const references = await findReferences(db, 'routers', ids)
  return ({ id }: ConnectedRouter) => references.get(id)?.name ?? id
}
