// Has routers dial here while another controller does not respond.
//
// A router dials at the controller that responded fastest to its last heartbeat. It sends one every ten seconds, and turns away from a
// controller that has not responded for five: up to fifteen seconds in which its dials would fail. The controllers notice it within two if one of them does
// not respond to any, and within four if it does not reach a router. Those that respond have the router compute that they did so sooner than they did.
import type { Clock } from '../../foundation/clock.ts'
import type { ConnectedRouter, ConnectedRouters, RouterObserver } from '../routers/connected-routers.ts'
import type { PresenceObserver, SharedPresence } from '../routers/shared-presence.ts'
import type { ControllerList } from './controller-list.ts'

// A head start is the time since then: more than any response takes, and the later one is the greater one. A controller that had one a moment ago, and
// does not respond now, comes after those that noticed it.
const BEGIN = Date.UTC(2026, 0)

interface HeadStartParts {
  readonly clock: Clock
  readonly connected: ConnectedRouters
  /** Undefined if the controller is alone. */
  readonly presence: SharedPresence | undefined
  readonly controllers: ControllerList
}

export class HeadStart implements RouterObserver, PresenceObserver {
  readonly #parts: HeadStartParts
  readonly #routerIds = new Set<string>()
  #isAnySilent = false

  constructor(parts: HeadStartParts) {
    this.#parts = parts
    parts.connected.addObserver(this)
    parts.presence?.addObserver(this)
  }

  /** Follows whether any other controller does not respond, and gives a new head start if one more does not. */
  follow(isAnySilent: boolean): void {
    this.#isAnySilent = isAnySilent
    this.#routerIds.clear()
    for (const router of this.#parts.connected.list()) this.#judge(router)
  }

  routerConnected(router: ConnectedRouter): void {
    this.#routerIds.delete(router.id)
    this.#judge(router)
  }

  /** It may not respond to another controller, which knows that sooner than the router. */
  routerChanged(routerId: string): void {
    const router = this.#parts.connected.get(routerId)
    if (router) this.#judge(router)
  }

  #judge(router: ConnectedRouter): void {
    const { clock, controllers, presence } = this.#parts
    const { id, connection, hello } = router
    if (hello.isInTurn) return
    if (!this.#isAnySilent && !presence?.isSilentElsewhere(id)) {
      this.#routerIds.delete(id)
      connection.setHeadStart(0)
    } else if (!this.#routerIds.has(id)) {
      this.#routerIds.add(id)
      connection.setHeadStart(clock.now() - BEGIN)
      // A router has new terminators created by the controller that sent the list last.
      controllers.send(router)
    }
  }
}
