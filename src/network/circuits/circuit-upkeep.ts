// Ends or moves the circuits that lose what they depend on: a service, a session, a router or a link.
//
// The lost connection of a router is not the loss of its circuits: they move or end if a link fails at its other end, if
// the router returns as another process (its messages are numbered from 1 again), or after a minute.
import type { Kysely } from 'kysely'
import type { SessionTokens } from '../../access/sessions/session-tokens.ts'
import { services } from '../../definitions/resources/services.ts'
import { sessions } from '../../definitions/resources/sessions.ts'
import { terminators } from '../../definitions/resources/terminators.ts'
import type { Clock } from '../../foundation/clock.ts'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { ConnectedRouter, ConnectedRouters, RouterObserver } from '../routers/connected-routers.ts'
import type { TerminatorCosts } from '../terminators/terminator-costs.ts'
import type { Circuit } from './circuit-table.ts'
import type { Circuits } from './circuits.ts'
import type { InheritedCircuits } from './inherited-circuits.ts'
import type { Rerouting } from './rerouting.ts'
import type { RouteResults } from './route-results.ts'
import type { Unroutes } from './unroutes.ts'

// A router that is told that a session ended closes its connections, which lets the client know at once. A circuit that is still
// open after this time is taken from it.
const SESSION_GRACE_MS = 10_000

// Circuits do not need the connection between a router and the controller. If it breaks while the router works, they stay.
const ROUTER_GRACE_MS = 60_000

// After the end of an outage in which this controller itself ended the connections: routers try again every minute at least.
const RETURN_GRACE_MS = 2 * ROUTER_GRACE_MS

interface CircuitUpkeepParts {
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly circuits: Circuits
  readonly costs: TerminatorCosts
  readonly inherited: InheritedCircuits
  readonly rerouting: Rerouting
  readonly results: RouteResults
  readonly unroutes: Unroutes
  readonly sessionTokens: Pick<SessionTokens, 'areSigned'>
  /** Whether routers that are not connected could be: one of several controllers takes none without contact with the others. */
  readonly takesRouters: () => boolean
}

/** Something that is judged when its time has come. */
interface Deadline {
  readonly id: string
  readonly dueAt: number
}

/** Follows the records that circuits depend on, and the routers. */
export class CircuitUpkeep implements SideEffect, RouterObserver {
  readonly kind = 'side effect'
  readonly name = 'circuits'
  readonly #parts: CircuitUpkeepParts
  /** Sessions that ended, in order of the time at which their circuits end. */
  readonly #endedSessions: Deadline[] = []
  /** Routers that lost their connection, in order of the time at which their circuits move. */
  readonly #absentRouters: Deadline[] = []
  /** Links that new paths do not use any more, since the loop had its last turn. */
  readonly #avoidedLinkIds = new Set<string>()

  constructor(parts: CircuitUpkeepParts) {
    this.#parts = parts
  }

  // ---- records --------------------------------------------------------------------------------------------------------

  apply({ changes }: Commit): void {
    const { circuits, costs } = this.#parts
    for (const { resource, operation, id } of changes) {
      if (operation !== 'delete') continue
      if (resource === services.plural) this.#removeAll(circuits.list({ serviceId: id }))
      else if (resource === sessions.plural) this.#noteEndedSession(id)
      else if (resource === terminators.plural) costs.remove(id)
      else if (resource === 'edge-routers' || resource === 'routers') this.#loseRouter(id)
    }
  }

  /** Circuits are not made from rows, but they end with them. */
  async restart(db: Kysely<Database>): Promise<void> {
    const { circuits } = this.#parts
    if (circuits.size === 0) return
    const all = circuits.list()
    const serviceIds = all.map(({ serviceId }) => serviceId)
    // Terminators that administrators created were bound by no session.
    const sessionIds = all.flatMap(({ sessionId, hostSessionId }) => [
      sessionId,
      ...(hostSessionId ? [hostSessionId] : []),
    ])
    const serviceRows = await db
      .selectFrom('services')
      .select('id')
      .where(isOneOf(db, 'id', serviceIds))
      .execute()
    const sessionRows = await db
      .selectFrom('sessions')
      .select('id')
      .where(isOneOf(db, 'id', sessionIds))
      .execute()
    const existingIds = new Set([...serviceRows, ...sessionRows].map(({ id }) => id))
    this.#removeAll(all.filter(({ serviceId }) => !existingIds.has(serviceId)))
    for (const id of new Set(sessionIds)) if (!existingIds.has(id)) this.#noteEndedSession(id)
  }

  /** Ends the circuits that routers do not end themselves, and later those that are still open. */
  #noteEndedSession(id: string): void {
    const { clock } = this.#parts
    const affected = this.#listOfSession(id)
    if (affected.length === 0) return
    this.#removeAll(affected.filter((circuit) => !this.#isEndedByRouter(circuit, id)))
    if (this.#listOfSession(id).length > 0)
      this.#endedSessions.push({ id, dueAt: clock.monotonic() + SESSION_GRACE_MS })
  }

  /** The circuits of clients that dialed by a session, or of hosts that bound by it. */
  #listOfSession(id: string): Circuit[] {
    const { circuits } = this.#parts
    return [...circuits.list({ sessionId: id }), ...circuits.list({ hostSessionId: id })]
  }

  /** Routers of release 1 do not follow the end of a session whose token is signed. */
  #isEndedByRouter({ sessionId, isSessionSigned, path }: Circuit, endedId: string): boolean {
    const { connected, sessionTokens } = this.#parts
    const isOfClient = sessionId === endedId
    const router = connected.get((isOfClient ? path.routerIds[0] : path.routerIds.at(-1)) ?? '')
    if (router?.hello.hasDataModel) return true
    return isOfClient ? !isSessionSigned : !sessionTokens.areSigned
  }

  // ---- routers and links ----------------------------------------------------------------------------------------------

  routerConnected({ id }: ConnectedRouter): void {
    const at = this.#absentRouters.findIndex((absent) => absent.id === id)
    if (at >= 0) this.#absentRouters.splice(at, 1)
  }

  routerDisconnected({ id }: ConnectedRouter): void {
    const { circuits, clock, connected, results } = this.#parts
    // Messages over the lost connection may not have arrived.
    results.loseRouter(id)
    if (connected.get(id) || circuits.count('routerId', id) === 0) return
    this.#absentRouters.push({ id, dueAt: clock.monotonic() + ROUTER_GRACE_MS })
  }

  routerRestarted({ id }: ConnectedRouter): void {
    const { circuits, inherited } = this.#parts
    inherited.loseRouter(id)
    this.#moveCircuits(id, circuits.list({ routerId: id }))
  }

  /** A link is gone: its circuits take another path, or end. */
  loseLink(linkId: string): void {
    const { circuits, rerouting } = this.#parts
    for (const { id } of circuits.list({ linkId })) rerouting.request(id)
  }

  /**
   * New paths do not use a link, which may still carry data: its circuits take another path if there is one, and stay otherwise. Decided
   * once all routers that are lost in the same turn of the event loop are known, because another path may use these, too.
   */
  avoidLink(linkId: string): void {
    this.#avoidedLinkIds.add(linkId)
    if (this.#avoidedLinkIds.size === 1) setImmediate(() => this.#goAroundLinks())
  }

  #goAroundLinks(): void {
    const { circuits, rerouting, takesRouters } = this.#parts
    const linkIds = [...this.#avoidedLinkIds]
    this.#avoidedLinkIds.clear()
    // This controller ends the connections itself, so that it can tell no router of another path.
    if (!takesRouters()) return
    for (const linkId of linkIds) for (const { id } of circuits.list({ linkId })) rerouting.requestIfPossible(id)
  }

  /** Moves the circuits of a router that is gone. Those that begin or end at it end. */
  #moveCircuits(routerId: string, affected = this.#parts.circuits.list({ routerId })): void {
    const { rerouting } = this.#parts
    const hasEndThere = ({ path }: Circuit) => path.routerIds[0] === routerId || path.routerIds.at(-1) === routerId
    this.#removeAll(affected.filter(hasEndThere))
    for (const circuit of affected) if (!hasEndThere(circuit)) rerouting.request(circuit.id)
  }

  /** A router was deleted. */
  #loseRouter(id: string): void {
    this.#moveCircuits(id)
    this.#parts.unroutes.routerDeleted(id)
  }

  #removeAll(ended: readonly Circuit[]): void {
    for (const { id } of ended) this.#parts.circuits.remove(id, true)
  }

  // ---- time -----------------------------------------------------------------------------------------------------------

  /** Does what is due by the clock. */
  tick(): void {
    const { circuits, takesRouters } = this.#parts
    if (!takesRouters()) this.#postponeAbsences()
    for (const sessionId of this.#takeDue(this.#endedSessions)) this.#removeAll(this.#listOfSession(sessionId))
    for (const routerId of this.#takeDue(this.#absentRouters)) {
      // Data inside a single router flows without the controller, for as long as the router lives.
      const overLinks = circuits.list({ routerId }).filter(({ path }) => path.routerIds.length > 1)
      this.#moveCircuits(routerId, overLinks)
    }
  }

  #postponeAbsences(): void {
    const dueAt = this.#parts.clock.monotonic() + RETURN_GRACE_MS
    this.#absentRouters.splice(0, this.#absentRouters.length, ...this.#absentRouters.map(({ id }) => ({ id, dueAt })))
  }

  #takeDue(deadlines: Deadline[]): string[] {
    const now = this.#parts.clock.monotonic()
    const count = deadlines.findIndex(({ dueAt }) => dueAt > now)
    return deadlines.splice(0, count < 0 ? deadlines.length : count).map(({ id }) => id)
  }
}
