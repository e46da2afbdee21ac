// The links between routers: as routers report, measure and lose them, and administrators change them. Paths use those that can
// carry traffic.
//
// A link outlives the connections of its routers to the controller, because it may still carry traffic. It is lost only if
// one of its routers reports that it is, or its dialing router connects again and does not report it.

import type { AggregatedLog } from '../../foundation/aggregated-log.ts'
import type { Clock } from '../../foundation/clock.ts'
import { SetMap } from '../../policy/set-map.ts'
import type { ConnectedRouter, ConnectedRouters, RouterObserver } from '../routers/connected-routers.ts'
import {
  computeLinkCost,
  type Link,
  type LinkEnds,
  type LinkReport,
  type LinkSettings,
  toLinkKey,
  UNKNOWN_LATENCY_NS,
} from './link.ts'
import type { Path, PathFinder } from './path.ts'
import type { Paths } from './paths.ts'
import type { StoredLinkSettings } from './stored-link-settings.ts'

// The router that dials a link reports it before the other one has admitted it: until then routes over it fail.
const SETTLE_MS = 1_000

// More than a router of the greatest network dials.
const MAX_LINKS_PER_ROUTER = 10_000

// Routers make one link, or a few, with each other; more would only burden the other router.
const MAX_LINKS_OF_PAIR = 64

// No network is as slow, and sums of such latencies are still exact.
const MAX_LATENCY_NS = 3_600_000_000_000

// A router that connects again reports its links within milliseconds; those that it does not report by then are gone.
const CONFIRMATION_TIMEOUT_MS = 10_000

type MutableLink = { -readonly [K in keyof Link]: Link[K] }

interface LinkEntry {
  readonly link: MutableLink
  /** The connection by which the link was reported; undefined since that connection ended. */
  reporter: ConnectedRouter | undefined
  /** By the monotonic clock. */
  readonly settlesAt: number
  /** Whether paths may use it, or only wait for one of its routers to connect again. */
  isUp: boolean
}

/**
 * The reason why new paths do not use a link any more. An `unreachable` link may still carry traffic: only a router's connection
 * to the controller ended.
 */
export type LinkLoss = 'failed' | 'removed' | 'down' | 'unreachable'

type LossListener = (link: Link, loss: LinkLoss) => void
type RiseListener = (link: Link) => void

interface LinksParts {
  readonly clock: Clock
  readonly aggregatedLog: AggregatedLog
  readonly connected: ConnectedRouters
  readonly paths: Paths
  readonly settings: Pick<StoredLinkSettings, 'get' | 'onChange'>
}

export class Links implements PathFinder, RouterObserver {
  readonly #clock: Clock
  readonly #log: AggregatedLog
  readonly #connected: ConnectedRouters
  readonly #paths: Paths
  readonly #settings: Pick<StoredLinkSettings, 'get'>
  readonly #byId = new Map<string, LinkEntry>()
  /** Router → the links that it is an end of. */
  readonly #byRouter = new SetMap<LinkEntry>()
  /** Router, and router with destination → the number of links that it dialed. */
  readonly #dialedCounts = new Map<string, number>()
  /** Links that are too new to be used, the oldest first. */
  readonly #settling = new Set<LinkEntry>()
  /** Router that connected again → when the links that it has not reported by then are lost, by the monotonic clock. */
  readonly #confirmationDeadlines = new Map<ConnectedRouter, number>()
  readonly #lossListeners: LossListener[] = []
  readonly #riseListeners: RiseListener[] = []

  constructor({ aggregatedLog, clock, connected, paths, settings }: LinksParts) {
    this.#clock = clock
    this.#log = aggregatedLog
    this.#connected = connected
    this.#paths = paths
    this.#settings = settings
    connected.addObserver(this)
    settings.onChange((ends, changed) => this.#applySettings(ends, changed))
  }

  /** Runs a listener for each link that new paths do not use any more. */
  onLost(listener: LossListener): void {
    this.#lossListeners.push(listener)
  }

  /** Runs a listener for each link that new paths may use from now on. */
  onUp(listener: RiseListener): void {
    this.#riseListeners.push(listener)
  }

  findPath(fromRouterId: string, toRouterId: string): Path | undefined {
    this.#useSettled()
    return this.#paths.findPath(fromRouterId, toRouterId)
  }

  computePathCost(path: Path): number | undefined {
    this.#useSettled()
    return this.#paths.computePathCost(path)
  }

  /** The links with a router that is connected: of others no router could report that they are gone. */
  list(): Link[] {
    this.#useSettled()
    const links = Array.from(this.#byId.values(), ({ link }) => link)
    return links.filter(
      ({ sourceId, destinationId }) => this.#isConnected(sourceId) || this.#isConnected(destinationId),
    )
  }

  get(id: string): Link | undefined {
    this.#useSettled()
    return this.#byId.get(id)?.link
  }

  /** The links that a router is an end of. */
  listOfRouter(routerId: string): Link[] {
    this.#useSettled()
    return Array.from(this.#byRouter.get(routerId), ({ link }) => link)
  }

  /** How many links a router is an end of. */
  countOfRouter(routerId: string): number {
    return this.#byRouter.get(routerId).size
  }

  /** Whether paths use a link: it is old enough, both its routers are connected, and no administrator has set it down. */
  isUsable({ id, destinationId, state, isDown }: Link): boolean {
    return state === 'Connected' && !isDown && this.#byId.has(id) && this.#isConnected(destinationId)
  }

  /** Whether one of the routers of a link is not connected. */
  hasOfflineEnd({ sourceId, destinationId }: Link): boolean {
    return !this.#isConnected(sourceId) || !this.#isConnected(destinationId)
  }

  /**
   * Follows what a router reports of the links that it dialed. Reports of a connection that was replaced are ignored.
   * @param areAll whether these are all of its links: then others are gone
   */
  report(router: ConnectedRouter, reports: readonly LinkReport[], areAll = false): void {
    for (const one of reports) {
      if (this.#connected.get(router.id) !== router) return
      this.#reportOne(router, one)
    }
    if (!areAll || this.#connected.get(router.id) !== router) return
    const reportedIds = new Set(reports.map(({ id }) => id))
    for (const entry of [...this.#byRouter.get(router.id)])
      if (entry.link.sourceId === router.id && !reportedIds.has(entry.link.id)) this.#lose(entry, 'failed')
    this.#confirmationDeadlines.delete(router)
  }

  #reportOne(router: ConnectedRouter, report: LinkReport): void {
    const { id, destinationId, iteration } = report
    if (destinationId === router.id || !this.#paths.hasRouter(destinationId)) return
    const existing = this.#byId.get(id)
    // A router cannot take over the link of another one.
    if (existing && existing.link.sourceId !== router.id) return
    if (existing?.reporter && existing.link.iteration >= iteration) return
    if (existing?.link.iteration === iteration) {
      this.#confirm(existing, router)
      return
    }
    if (existing) this.#drop(existing)
    // Only the links that it dialed count: what other routers report must not close its connection.
    if ((this.#dialedCounts.get(toPairKey(router.id, destinationId)) ?? 0) >= MAX_LINKS_OF_PAIR) return
    if ((this.#dialedCounts.get(router.id) ?? 0) < MAX_LINKS_PER_ROUTER) this.#add(router, report)
    else router.connection.close(`the router has more than ${MAX_LINKS_PER_ROUTER} links`)
  }

  /** The link was known before the router lost its connection, and is the same still: so are its latencies. */
  #confirm(entry: LinkEntry, router: ConnectedRouter): void {
    entry.reporter = router
    entry.link.state = 'Connected'
    this.#updateCost(entry)
  }

  /** Follows what a router measured of a link that it is an end of. */
  recordLatency(routerId: string, linkId: string, latencyNs: number): void {
    const entry = this.#byId.get(linkId)
    if (!entry || !(latencyNs >= 0)) return
    const { link } = entry
    const measuredNs = Math.min(Math.round(latencyNs), MAX_LATENCY_NS)
    if (link.sourceId === routerId) link.sourceLatencyNs = measuredNs
    else if (link.destinationId === routerId) link.destinationLatencyNs = measuredNs
    else return
    this.#updateCost(entry)
  }

  /**
   * Follows that a router lost a link, or found it to be a duplicate. The other end is told, because it may not have noticed.
   * @param iteration the attempt that failed; 0 stands for any. Earlier attempts than the present one do not matter
   */
  fail(routerId: string, linkId: string, iteration: number): void {
    const entry = this.#byId.get(linkId)
    if (!entry) return
    const { link } = entry
    if (link.sourceId !== routerId && link.destinationId !== routerId) return
    if (iteration !== 0 && iteration < link.iteration) return
    this.#log.info(routerId, { linkId, routerId, iteration }, 'a link failed')
    this.#lose(entry, 'failed')
    this.#sendFault(link.sourceId === routerId ? link.destinationId : link.sourceId, link)
  }

  /** Removes a link; both routers drop it. The router that dialed it may dial again. */
  remove(id: string): void {
    const entry = this.#byId.get(id)
    if (!entry) return
    const { link } = entry
    this.#lose(entry, 'removed')
    for (const routerId of [link.sourceId, link.destinationId]) this.#sendFault(routerId, link)
  }

  #applySettings(ends: LinkEnds, { isDown, staticCost }: LinkSettings): void {
    const key = toLinkKey(ends)
    for (const entry of this.#byRouter.get(ends.sourceId)) {
      const { link } = entry
      if (toLinkKey(link) !== key) continue
      const wasDown = link.isDown
      link.isDown = isDown
      link.staticCost = staticCost
      link.changedAt = this.#clock.now()
      this.#updateCost(entry)
      if (isDown && !wasDown) this.#reportLoss(link, 'down')
    }
  }

  routerConnected(router: ConnectedRouter): void {
    this.#paths.connectRouter(router.id)
    if (this.countOfRouter(router.id) > 0)
      this.#confirmationDeadlines.set(router, this.#clock.monotonic() + CONFIRMATION_TIMEOUT_MS)
  }

  /** Its links stay, because they may still carry traffic: until one of their routers loses them, or does not know them any more. */
  routerDisconnected(router: ConnectedRouter): void {
    const isOffline = !this.#isConnected(router.id)
    if (isOffline) this.#paths.disconnectRouter(router.id)
    this.#confirmationDeadlines.delete(router)
    for (const entry of [...this.#byRouter.get(router.id)]) {
      if (entry.reporter === router) this.#suspend(entry)
      if (isOffline) this.#reportLoss(entry.link, 'unreachable')
    }
  }

  /** Follows that a router was deleted. */
  removeRouter(id: string): void {
    for (const entry of [...this.#byRouter.get(id)]) this.#lose(entry, 'failed')
  }

  /** Does what is due by the clock. Called once a second. */
  tick(): void {
    this.#useSettled()
    const now = this.#clock.monotonic()
    for (const [router, deadline] of this.#confirmationDeadlines) {
      if (deadline > now) continue
      this.#confirmationDeadlines.delete(router)
      for (const entry of [...this.#byRouter.get(router.id)]) {
        if (!entry.reporter && entry.link.sourceId === router.id) this.#lose(entry, 'failed')
      }
    }
  }

  #add(reporter: ConnectedRouter, { id, destinationId, protocol, dialAddress, iteration }: LinkReport): void {
    const ends = { sourceId: reporter.id, destinationId, protocol, dialAddress }
    const { isDown, staticCost } = this.#settings.get(ends)
    const latencies = { sourceLatencyNs: UNKNOWN_LATENCY_NS, destinationLatencyNs: UNKNOWN_LATENCY_NS }
    const cost = computeLinkCost({ staticCost, ...latencies })
    const now = this.#clock.now()
    const link: MutableLink = {
      id,
      ...ends,
      iteration,
      isDown,
      staticCost,
      ...latencies,
      cost,
      reportedAt: now,
      changedAt: now,
      state: 'Pending',
    }
    const entry: LinkEntry = { link, reporter, settlesAt: this.#clock.monotonic() + SETTLE_MS, isUp: false }
    this.#byId.set(id, entry)
    for (const routerId of [reporter.id, destinationId]) this.#byRouter.add(routerId, entry)
    this.#settling.add(entry)
    this.#countDialed(link, 1)
  }

  #drop(entry: LinkEntry): void {
    const { link } = entry
    this.#byId.delete(link.id)
    this.#settling.delete(entry)
    for (const routerId of [link.sourceId, link.destinationId]) this.#byRouter.delete(routerId, entry)
    this.#paths.removeLink(link.id)
    this.#countDialed(link, -1)
  }

  #countDialed({ sourceId, destinationId }: Link, difference: 1 | -1): void {
    for (const key of [sourceId, toPairKey(sourceId, destinationId)]) {
      const count = (this.#dialedCounts.get(key) ?? 0) + difference
      if (count === 0) this.#dialedCounts.delete(key)
      else this.#dialedCounts.set(key, count)
    }
  }

  /** No path uses the link until the router that dialed it has reported it again. */
  #suspend(entry: LinkEntry): void {
    entry.reporter = undefined
    entry.link.state = 'Pending'
    this.#settling.delete(entry)
    this.#paths.removeLink(entry.link.id)
  }

  #lose(entry: LinkEntry, loss: LinkLoss): void {
    this.#drop(entry)
    this.#reportLoss(entry.link, loss)
  }

  #reportLoss(link: Link, loss: LinkLoss): void {
    for (const listener of this.#lossListeners) listener(link, loss)
  }

  #updateCost(entry: LinkEntry): void {
    const { link } = entry
    link.cost = computeLinkCost(link)
    if (link.isDown) entry.isUp = false
    const isUsed = link.state === 'Connected' && !link.isDown
    if (isUsed) this.#paths.setLink(link, link.cost)
    else this.#paths.removeLink(link.id)
    if (!isUsed || entry.isUp) return
    entry.isUp = true
    for (const listener of this.#riseListeners) listener(link)
  }

  #useSettled(): void {
    if (this.#settling.size === 0) return
    const now = this.#clock.monotonic()
    for (const entry of this.#settling) {
      if (entry.settlesAt > now) return
      this.#settling.delete(entry)
      entry.link.state = 'Connected'
      this.#updateCost(entry)
    }
  }

  #isConnected(routerId: string): boolean {
    return this.#connected.get(routerId) !== undefined
  }

  #sendFault(routerId: string, { id, iteration }: Link): void {
    this.#connected.get(routerId)?.connection.sendFault({ linkId: id, iteration })
  }
}

const toPairKey = (sourceId: string, destinationId: string) => `${sourceId}>${destinationId}`
