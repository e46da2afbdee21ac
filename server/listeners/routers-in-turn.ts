// Serves the routers of a cluster that are connected to one controller at a time: only that one listens at the address which leads to all.
// It also leads the other routers in what one controller has to do for each of them.
//
// A router tries the next address of a name if a port is closed, but not if a connection is accepted and then closed.
import type { Server } from 'node:net'
import type { Controller } from '../../src/controller/controller.ts'
import type { SharedPresence } from '../../src/network/routers/shared-presence.ts'
import type { Cluster } from '../../src/storage/cluster/cluster.ts'
import type { Duty } from '../../src/storage/cluster/duty.ts'
import type { ControlListener } from '../control-channel/control-listener.ts'

// While the log is out of reach, or an address is in use.
const RETRY_MS = 500

/** A server for the control channel alone, which is not bound yet. */
export interface ControlServer {
  readonly server: Server
  bind(): Promise<void>
}

interface RoutersInTurnParts {
  readonly controller: Controller
  readonly cluster: Cluster
  readonly presence: SharedPresence
  readonly controlListener: ControlListener
  readonly servers: readonly ControlServer[]
}

export class RoutersInTurn {
  readonly #parts: RoutersInTurnParts
  readonly #duty: Duty
  /** Counts the beginnings and ends: what belongs to an earlier one does not go on. */
  #turn = 0

  /** From now on this controller takes those routers if no other one has them. */
  constructor(parts: RoutersInTurnParts) {
    this.#parts = parts
    this.#duty = parts.cluster.seekRouters()
    this.#duty.onAcquired(() => void this.#begin())
    this.#duty.onLost(() => this.#end())
  }

  /** Ends the connections of routers, and lets another controller take them at once. */
  close(): Promise<void> {
    return this.#duty.close()
  }

  async #begin(): Promise<void> {
    const { controller, controlListener, presence, servers } = this.#parts
    const turn = ++this.#turn
    // Routers find here all that the controller before has committed.
    if (!(await this.#retry(turn, () => controller.store.catchUp()))) return
    controller.fabric.begin()
    presence.begin()
    controlListener.begin()
    const { endedSessions, sessionSync } = controller.routers
    void this.#retry(turn, async () => {
      await endedSessions.takeOver()
      await sessionSync.takeOver()
    })
    for (const { server, bind } of servers) {
      await this.#retry(turn, async () => {
        if (!server.listening) await bind()
      })
      // The duty may have been lost while the address was looked up.
      if (!this.#duty.isHeld && server.listening) server.close()
    }
  }

  #end(): void {
    const { controller, controlListener, presence, servers } = this.#parts
    this.#turn += 1
    for (const { server } of servers) if (server.listening) server.close()
    controller.fabric.leave()
    presence.end()
    controlListener.end('another controller has the routers that are connected to one at a time')
  }

  /** Tries until it succeeds, or the duty is lost. Returns whether it has succeeded, and the duty was not lost meanwhile. */
  async #retry(turn: number, work: () => Promise<void>): Promise<boolean> {
    const goesOn = () => this.#duty.isHeld && this.#turn === turn
    for (let attempt = 1; goesOn(); attempt += 1) {
      try {
        await work()
        return goesOn()
      } catch (error) {
        // Not the first time: a controller that has lost the log for a moment says so itself, and one that stops needs it no more.
        if (attempt === 2) this.#parts.controller.log.error({ err: error }, 'routers cannot be served yet')
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
    return false
  }
}
