// Has routers dial here while another controller does not respond.
//
// A router dials at the controller that responded fastest to its last heartbeat. It sends one every ten seconds, and turns away from a
// controller that has not responded for five: up to fifteen seconds in which its dials would fail. The controllers notice it within two, and those
// that respond have the router compute that they did so sooner than they did.
import type { Clock } from '../../foundation/clock.ts'
import type { ConnectedRouter, ConnectedRouters, RouterObserver } from '../routers/connected-routers.ts'
import type { ControllerList } from './controller-list.ts'

// A head start is the time since then: more than any response takes, and the later one is the greater one. A controller that had one a moment ago, and
// does not respond now, comes after those that noticed it.
const BEGIN = Date.UTC(2026, 0)

interface HeadStartParts {
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly controllers: ControllerList
}

export class HeadStart implements RouterObserver {
  readonly #parts: HeadStartParts
  #headStartMs = 0

  constructor(parts: HeadStartParts) {
    this.#parts = parts
    parts.connected.addObserver(this)
  }

  /** Follows whether another controller does not respond. */
  follow(isWanted: boolean): void {
    this.#headStartMs = isWanted ? this.#parts.clock.now() - BEGIN : 0
    for (const router of this.#parts.connected.list()) this.#tell(router)
  }

  routerConnected(router: ConnectedRouter): void {
    if (this.#headStartMs > 0) this.#tell(router)
  }

  #tell(router: ConnectedRouter): void {
    if (router.hello.isInTurn) return
    router.connection.setHeadStart(this.#headStartMs)
    // A router has new terminators created by the controller that sent the list last.
    if (this.#headStartMs > 0) this.#parts.controllers.send(router)
  }
}
