// Waits for what routers report of the routes that were sent to them, for a bounded time.
import type { Clock } from '../../foundation/clock.ts'
import type { PeerData, RouteFailure, RouteResult } from '../routers/router-connection.ts'

/** The outcome of the routes of one circuit. */
export type RouteOutcome =
  | {
      readonly isSuccess: true
      /** The data that the last router received from the terminator. */
      readonly peerData: PeerData
    }
  | {
      readonly isSuccess: false
      /** Undefined if a router did not respond in time, or lost its connection. */
      readonly failure: RouteFailure | undefined
      readonly message: string
      /** The router that failed; undefined if several did not respond. */
      readonly routerId: string | undefined
      /** The routers that hold state of the circuit, or may: they had succeeded, or what they reported was lost with their connection. */
      readonly holderIds: readonly string[]
      /** The routers that have not reported yet, and may still succeed. */
      readonly unreportedIds: readonly string[]
    }

export interface RouteWait {
  readonly circuitId: string
  readonly attempt: number
  /** In order of the path. */
  readonly routerIds: readonly string[]
  /** By the monotonic clock, in milliseconds. */
  readonly deadline: number
}

interface PendingWait extends RouteWait {
  readonly missingIds: Set<string>
  readonly holderIds: string[]
  peerData: PeerData
  readonly settle: (outcome: RouteOutcome) => void
}

const NO_PEER_DATA: PeerData = new Map()

export class RouteResults {
  readonly #clock: Clock
  /** By circuit: at any moment at most one attempt of a circuit waits. */
  readonly #waits = new Map<string, PendingWait>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether the routes of a circuit are being waited for. */
  has(circuitId: string): boolean {
    return this.#waits.has(circuitId)
  }

  /** Calls `settle` once every router has succeeded, or the first has failed, or the time is over. */
  wait(wait: RouteWait, settle: (outcome: RouteOutcome) => void): void {
    this.#waits.set(wait.circuitId, {
      ...wait,
      missingIds: new Set(wait.routerIds),
      holderIds: [],
      peerData: NO_PEER_DATA,
      settle: (outcome) => {
        this.#waits.delete(wait.circuitId)
        settle(outcome)
      },
    })
  }

  /** Takes a result. Returns whether an attempt waits for it. */
  report(routerId: string, { circuitId, attempt, failure, peerData }: RouteResult): boolean {
    const wait = this.#waits.get(circuitId)
    if (!wait || (attempt ?? wait.attempt) !== wait.attempt || !wait.missingIds.has(routerId)) return false
    wait.missingIds.delete(routerId)
    if (failure) {
      this.#fail(wait, { failure, message: failure.message, routerId })
      return true
    }
    wait.holderIds.push(routerId)
    if (routerId === wait.routerIds.at(-1)) wait.peerData = peerData
    if (wait.missingIds.size === 0) wait.settle({ isSuccess: true, peerData: wait.peerData })
    return true
  }

  /** Fails the attempt of a circuit whose terminator closed the connection again before all routers had succeeded. */
  reportEnd(routerId: string, circuitId: string): void {
    const wait = this.#waits.get(circuitId)
    if (wait?.routerIds.at(-1) !== routerId || wait.missingIds.has(routerId)) return
    this.#fail(wait, { failure: undefined, message: 'the terminator closed the connection', routerId })
  }

  /** Fails every attempt that needs a router which lost its connection. */
  loseRouter(routerId: string): void {
    for (const wait of [...this.#waits.values()]) {
      if (!wait.routerIds.includes(routerId)) continue
      if (wait.missingIds.delete(routerId)) wait.holderIds.push(routerId)
      this.#fail(wait, { failure: undefined, message: 'a router of the path lost its connection', routerId })
    }
  }

  /** Fails the attempts whose time is over. */
  expire(): void {
    const now = this.#clock.monotonic()
    for (const wait of [...this.#waits.values()]) {
      if (wait.deadline > now) continue
      const [routerId] = wait.missingIds.size === 1 ? wait.missingIds : []
      this.#fail(wait, { failure: undefined, message: 'routers of the path did not respond in time', routerId })
    }
  }

  #fail(
    wait: PendingWait,
    failure: Pick<RouteOutcome & { isSuccess: false }, 'failure' | 'message' | 'routerId'>,
  ): void {
    wait.settle({ isSuccess: false, ...failure, holderIds: wait.holderIds, unreportedIds: [...wait.missingIds] })
  }
}
