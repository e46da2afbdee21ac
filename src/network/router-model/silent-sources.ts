// Has routers follow the data model from another controller if the one that they follow does not respond.
//
// A router takes changes from one controller, and keeps to it for up to five minutes and a half while the connection is there: new services are
// not hosted there so long, and connections whose right is gone stay open. But any controller may have it compare its model with another one: if
// they differ, it takes that, and asks for the model anew at the controller that responds. This costs the whole model twice, so only what a
// router lacks is a reason for it.
import type { Clock } from '../../foundation/clock.ts'
import type { Log } from '../../foundation/log.ts'
import type { ConnectedRouter, ConnectedRouters, RouterObserver } from '../routers/connected-routers.ts'
import type { ModelSource, SharedPresence } from '../routers/shared-presence.ts'
import type { RouterModel } from './router-model.ts'

/** A controller that stalls is back by then, and one that ended has lost its routers. */
const MIN_SILENCE_MS = 5_000

// A router that follows none that is known: it follows one that was gone before this controller began, unless it subscribes late.
const MIN_UNKNOWN_MS = 60_000

// A router that asked the silent controller again, because that seemed to respond, lacks what changes from then on.
const MIN_INTERVAL_MS = 30_000

// The index is noted once a second. What was committed shortly before the silence was noticed may not have arrived.
const MAX_NOTED_INDEXES = 6

interface SilentSourcesParts {
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly log: Log
  readonly model: RouterModel
  readonly presence: SharedPresence
  /** The name of this controller. */
  readonly node: string
  listLiveNodes(): readonly string[]
  /** The names of the controllers that do not respond. */
  listSilentNodes(): readonly string[]
}

/** A router that follows a controller which does not respond. */
interface Stranded {
  /** Undefined if it is not known. */
  readonly source: ModelSource | undefined
  /** By the monotonic clock. */
  readonly since: number
  /** The index that the router has; infinite if nothing is sent to it any more. */
  index: number
  replacedAt: number
}

export class SilentSources implements RouterObserver {
  readonly #parts: SilentSourcesParts
  readonly #stranded = new Map<ConnectedRouter, Stranded>()
  /** The index of the model at the last ticks. */
  readonly #indexes: number[] = []
  #silentNodes: ReadonlySet<string> = new Set()
  #liveNodes: ReadonlySet<string> = new Set()
  /** One router at a time, because a model may have megabytes. */
  #replacing: Promise<void> = Promise.resolve()

  constructor(parts: SilentSourcesParts) {
    this.#parts = parts
    parts.connected.addObserver(this)
  }

  routerDisconnected(router: ConnectedRouter): void {
    this.#stranded.delete(router)
  }

  /** Does what is due by the clock. Called once a second. */
  tick(): void {
    const { connected, listLiveNodes, listSilentNodes, model } = this.#parts
    this.#indexes.push(model.index)
    if (this.#indexes.length > MAX_NOTED_INDEXES) this.#indexes.shift()
    this.#silentNodes = new Set(listSilentNodes())
    this.#liveNodes = new Set(listLiveNodes())
    for (const router of connected.listEdgeRouters())
      if (router.hello.hasDataModel && !router.hello.isInTurn) this.#judge(router)
  }

  #judge(router: ConnectedRouter): void {
    const { clock, model } = this.#parts
    const now = clock.monotonic()
    const stranded = this.#followSource(router, now)
    if (!stranded || now - stranded.since < (stranded.source ? MIN_SILENCE_MS : MIN_UNKNOWN_MS)) return
    if (model.index <= stranded.index || now - stranded.replacedAt < MIN_INTERVAL_MS || !this.#isFirstOf(router.id))
      return
    // It would keep those waiting that come after it.
    if (router.connection.isSilent) return
    // Some never subscribe. They are sent it once.
    stranded.index = stranded.source ? model.index : Number.POSITIVE_INFINITY
    stranded.replacedAt = now
    this.#replace(router, stranded)
  }

  /** Returns undefined if the controller that the router follows responds. */
  #followSource(router: ConnectedRouter, now: number): Stranded | undefined {
    const { node, presence } = this.#parts
    const before = this.#stranded.get(router)
    const last = presence.findModelSource(router.id)
    // Presence drops the routers of a controller some time after that has ended.
    const source = before?.source && (!last || last.at <= before.source.at) ? before.source : last
    const isFollowing = source
      ? source.node === node || !this.#isSilent(source.node, router.id)
      : !presence.isComplete || presence.findRouter(router.id)?.model.mode !== 'waiting'
    if (isFollowing) {
      this.#stranded.delete(router)
      return undefined
    }
    if (before && source === before.source) return before
    // Nothing tells since when it lacks what changes.
    const index = source ? (this.#indexes[0] ?? 0) : 0
    const stranded = { source, since: now, index, replacedAt: Number.NEGATIVE_INFINITY }
    this.#stranded.set(router, stranded)
    return stranded
  }

  #isSilent(node: string, routerId: string): boolean {
    return this.#silentNodes.has(node) || !this.#liveNodes.has(node) || this.#parts.presence.isSilentAt(node, routerId)
  }

  /** Whether this controller is the one that acts for a router, of those that respond. */
  #isFirstOf(routerId: string): boolean {
    const { node, presence } = this.#parts
    return presence.listNodesOf(routerId).find((name) => name === node || !this.#isSilent(name, routerId)) === node
  }

  #replace(router: ConnectedRouter, stranded: Stranded): void {
    const { log, model } = this.#parts
    this.#replacing = this.#replacing.then(() => {
      // The controller may be back when the turn of the router comes.
      if (this.#stranded.get(router) !== stranded) return
      log.info(
        { routerId: router.id, node: stranded.source?.node },
        'a router is sent the data model, because the controller that it follows does not respond',
      )
      return model.replace(router)
    })
  }
}
