// The routers and identities that are connected, as all controllers of a cluster know them: each commits what is connected to it.
//
// The commits have no rows. A controller that begins asks the others for everything, and is sent it in commits.
import type { ConnectionStatus, LiveNetwork, LiveRouter } from '../../access/live-network.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { Log } from '../../foundation/log.ts'
import type { Commit, ConnectedRouterFields, RouterPresence } from '../../storage/transactions/changes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { LiveState } from '../../storage/transactions/projection.ts'
import type { ConnectedRouters, RouterObserver } from './connected-routers.ts'
import { describeRouter, isSameRouter, type KnownRouter, NodePresence } from './node-presence.ts'

// Changes of this time are committed together.
const BATCH_MS = 100

// Routers that are connected to one controller at a time try again every few seconds, so that most of them are back by then with the
// controller that takes them over.
const TAKEOVER_MS = 20_000

// The others are asked again while one of them runs, and has not said what is connected to it: it may have been lost for a while without
// noticing. One that begins says it by itself before.
const ASK_AGAIN_MS = 10_000

// Of one commit, which is a row of the log.
const MAX_IDENTITIES = 10_000

const isDescribed = ({ supportedProtocols }: LiveRouter) => Object.keys(supportedProtocols).length > 0

interface SharedPresenceParts {
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly log: Log
  /** The name of this controller. */
  readonly node: string
  /** The names of the controllers that run, at the last contact; empty before the first one. */
  listLiveNodes(): readonly string[]
  createSystemContext(): Context
}

/** Routers that are connected to one controller at a time, and are on their way to another one. */
interface Takeover {
  /** By the monotonic clock. */
  readonly endsAt: number
}

/** The controller from which a router follows the data model. */
export interface ModelSource {
  /** Its name. */
  readonly node: string
  readonly at: Instant
}

/** An observer of what other controllers have. */
export interface PresenceObserver {
  /** Another controller has a router now, or has lost it. */
  routerChanged?(id: string): void
  /** A controller does not run any more. */
  nodeLost?(node: string): void
}

export class SharedPresence implements LiveNetwork, LiveState, RouterObserver {
  readonly kind = 'live state'
  readonly name = 'presence of routers'
  readonly #parts: SharedPresenceParts
  /** By controller, this one included: as they were committed. */
  readonly #nodes = new Map<string, NodePresence>()
  readonly #disconnectTimes = new Map<string, Instant>()
  readonly #observers: PresenceObserver[] = []
  /** While this controller has the routers that are connected to one at a time: until when those of the one before may still return. */
  #turn: Takeover | undefined
  /** While those that this controller had until now count as connected here. */
  #leaving: Takeover | undefined
  #isFullDue = true
  /** By the monotonic clock: when the other controllers were asked what is connected to them. */
  #askedAt = 0
  /** Whether the last commit failed. */
  #hasFailed = false
  readonly #changedIdentityIds = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #committing: Promise<void> | undefined

  constructor(parts: SharedPresenceParts) {
    this.#parts = parts
    parts.connected.addObserver(this)
  }

  /** From now on an observer is told about other controllers. */
  addObserver(observer: PresenceObserver): void {
    this.#observers.push(observer)
  }

  /** Tells the other controllers what is connected to this one, from now on, and asks them for what they have. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => this.#publish(), BATCH_MS).unref()
    this.#askedAt = this.#parts.clock.monotonic()
    await this.#commit([undefined])
  }

  /** Tells all that is connected to this controller again: the others have removed it if they heard nothing of this one for long. */
  repeat(): void {
    this.#isFullDue = true
  }

  /** This controller has the routers that are connected to one at a time. Those of the one before count as connected until they had time to return. */
  begin(): void {
    const { clock, connected } = this.#parts
    connected.dropDisconnectTimes()
    this.#leaving = undefined
    this.#turn = { endsAt: clock.monotonic() + (this.isComplete ? TAKEOVER_MS : 0) }
    this.#isFullDue = true
  }

  /** Another controller has those routers. */
  end(): void {
    this.#turn = undefined
    this.#leaving = { endsAt: this.#parts.clock.monotonic() + TAKEOVER_MS }
  }

  /** Resolves when nothing is being committed any more. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#turn = undefined
    await this.#committing
  }

  /** Whether this controller has the routers that are connected to one at a time. */
  get isHere(): boolean {
    return this.#turn !== undefined
  }

  findRouter(id: string): LiveRouter | undefined {
    const own = this.#parts.connected.findRouter(id)
    if (!own) return this.#findElsewhere(id)
    // A router tells its addresses after it has connected; until then those count that it told another controller.
    const described = isDescribed(own) ? undefined : this.#findElsewhere(id, isDescribed)
    // A router follows the data model of one of its controllers, and lacks nothing at the others.
    const followed =
      own.model.mode === 'waiting' ? this.#findElsewhere(id, ({ model }) => model.mode === 'following') : undefined
    if (!described && !followed) return own
    const { hostname, supportedProtocols } = described ?? own
    return { ...own, hostname, supportedProtocols, model: (followed ?? own).model }
  }

  /** The router as another controller describes it; undefined if none has it. */
  findFields(id: string): ConnectedRouterFields | undefined {
    return this.#findElsewhere(id)?.fields
  }

  listNodesOf(routerId: string): string[] {
    const { connected, node } = this.#parts
    const others = [...this.#nodes.values()].filter((one) => one.name !== node && this.#counts(one, routerId))
    return [...(connected.get(routerId) ? [node] : []), ...others.map(({ name }) => name)].sort()
  }

  /** Whether a router is connected to another controller, and does not respond to it. */
  isSilentElsewhere(routerId: string): boolean {
    const { node } = this.#parts
    return [...this.#nodes.values()].some((one) => one.name !== node && one.routers.get(routerId)?.fields.isSilent)
  }

  /** Whether a router is connected to another controller of this name, and does not respond to it. */
  isSilentAt(name: string, routerId: string): boolean {
    return this.#nodes.get(name)?.routers.get(routerId)?.fields.isSilent === true
  }

  /** The controller that a router asked for the data model last, as far as the controllers have said it. */
  findModelSource(routerId: string): ModelSource | undefined {
    const { connected, node } = this.#parts
    const own = connected.get(routerId)
    let source: ModelSource | undefined =
      own?.model.mode === 'following' && own.subscribedAt !== undefined ? { node, at: own.subscribedAt } : undefined
    for (const { name, routers } of this.#nodes.values()) {
      const at = routers.get(routerId)?.fields.subscribedAt
      if (name !== node && at !== undefined && at > (source?.at ?? 0)) source = { node: name, at }
    }
    return source
  }

  /** The ids of the routers that a controller has, as that one said last. */
  listRouterIdsOf(name: string): string[] {
    const { connected, node } = this.#parts
    if (name === node) return connected.listIds()
    const one = this.#nodes.get(name)
    return one ? [...one.routers.keys()].filter((id) => this.#counts(one, id)) : []
  }

  /** The ids of the routers that other controllers have. */
  listIdsElsewhere(): string[] {
    const ids = [...this.#nodes.values()].flatMap(({ routers }) => [...routers.keys()])
    return [...new Set(ids)].filter((id) => this.#findElsewhere(id))
  }

  getPresence(routerId: string): ConnectionStatus {
    if (this.findRouter(routerId)) return 'online'
    return this.isComplete ? 'offline' : 'unknown'
  }

  getDisconnectTime(routerId: string): Instant | undefined {
    if (this.findRouter(routerId)) return undefined
    return this.#parts.connected.getDisconnectTime(routerId) ?? this.#disconnectTimes.get(routerId)
  }

  getConnectionStatus(identityId: string): ConnectionStatus {
    const own = this.#parts.connected.getConnectionStatus(identityId)
    if (own === 'online') return own
    return [...this.#nodes.values()].some((one) => one.identityIds.has(identityId) && this.#countsIdentities(one))
      ? 'online'
      : own
  }

  /** The ids of the identities that are connected to any router, as the controllers said last. */
  listConnectedIdentityIds(): string[] {
    return [...new Set([...this.#nodes.values()].flatMap(({ identityIds }) => [...identityIds]))]
  }

  getDynamicCost(terminatorId: string): number {
    return this.#parts.connected.getDynamicCost(terminatorId)
  }

  listRoutePath(sessionId: string): readonly string[] {
    return this.#parts.connected.listRoutePath(sessionId)
  }

  identityChanged(identityId: string): void {
    this.#changedIdentityIds.add(identityId)
  }

  apply({ changes, at }: Commit): void {
    for (const { resource, operation, id, after } of changes) {
      if (resource === 'presence') this.#take(id, after, at)
      else if (operation !== 'delete') continue
      else if (resource === 'edge-routers' || resource === 'routers') {
        for (const one of this.#nodes.values()) one.routers.delete(id)
        this.#disconnectTimes.delete(id)
      } else if (resource === 'identities') for (const one of this.#nodes.values()) one.identityIds.delete(id)
    }
  }

  /** Nothing of it comes from rows. */
  async reconcile(): Promise<void> {}

  /** Whether every controller that runs has said what is connected to it. */
  get isComplete(): boolean {
    const { listLiveNodes, node } = this.#parts
    return listLiveNodes().every((name) => name === node || this.#nodes.has(name))
  }

  #findElsewhere(id: string, isWanted: (router: KnownRouter) => boolean = () => true): KnownRouter | undefined {
    for (const one of this.#nodes.values()) {
      const router = one.routers.get(id)
      if (router && this.#counts(one, id) && isWanted(router)) return router
    }
    return undefined
  }

  /** Whether a router counts as connected to a controller, as that one said last. */
  #counts(one: NodePresence, routerId: string): boolean {
    const router = one.routers.get(routerId)
    if (!router) return false
    const now = this.#parts.clock.monotonic()
    if (one.name === this.#parts.node) return router.fields.isInTurn && this.#isLeaving
    // It has ended there: this controller has those routers.
    if (router.fields.isInTurn && this.#turn && this.#turn.endsAt <= now) return false
    return one.lostAt === undefined || now - one.lostAt < TAKEOVER_MS
  }

  #countsIdentities({ name, lostAt }: NodePresence): boolean {
    const now = this.#parts.clock.monotonic()
    if (name === this.#parts.node) return this.#isLeaving
    return lostAt === undefined || now - lostAt < TAKEOVER_MS
  }

  get #isLeaving(): boolean {
    return this.#leaving !== undefined && this.#parts.clock.monotonic() < this.#leaving.endsAt
  }

  #take(name: string, state: RouterPresence | undefined, at: Instant): void {
    if (!state) {
      this.#isFullDue = true
      // One question serves all that wait.
      this.#askedAt = this.#parts.clock.monotonic()
      return
    }
    let one = this.#nodes.get(name)
    if (!one) {
      if (!state.isFull) return
      one = new NodePresence(name)
      this.#nodes.set(name, one)
    }
    for (const id of one.take(state)) this.#noteChange(id, at)
  }

  #noteChange(id: string, at: Instant): void {
    if (this.findRouter(id)) this.#disconnectTimes.delete(id)
    else this.#disconnectTimes.set(id, at)
    for (const observer of this.#observers) observer.routerChanged?.(id)
  }

  /** Notes which controllers run, and removes those that have not for longer than their routers may need to return. */
  #followNodes(): void {
    const { clock, node } = this.#parts
    const live = this.#parts.listLiveNodes()
    const now = clock.monotonic()
    for (const one of [...this.#nodes.values()]) {
      if (one.name === node) continue
      if (live.includes(one.name)) one.lostAt = undefined
      else if (one.lostAt === undefined) {
        one.lostAt = now
        for (const observer of this.#observers) observer.nodeLost?.(one.name)
      } else if (now - one.lostAt >= TAKEOVER_MS) {
        this.#nodes.delete(one.name)
        for (const id of one.routers.keys()) this.#noteChange(id, clock.now())
      }
    }
  }

  #publish(): void {
    this.#followNodes()
    if (this.#leaving && !this.#isLeaving) {
      this.#leaving = undefined
      this.#isFullDue = true
    }
    if (this.#committing) return
    const states: (RouterPresence | undefined)[] = this.#takeChanges()
    const now = this.#parts.clock.monotonic()
    if (this.isComplete) this.#askedAt = now
    else if (now - this.#askedAt >= ASK_AGAIN_MS) {
      this.#askedAt = now
      states.push(undefined)
    }
    if (states.length > 0) this.#committing = this.#commitOrRepeat(states)
  }

  async #commitOrRepeat(states: readonly (RouterPresence | undefined)[]): Promise<void> {
    try {
      await this.#commit(states)
      this.#hasFailed = false
    } catch (error) {
      this.#isFullDue = true
      // Without contact each attempt fails, several in a second.
      const level = this.#hasFailed ? 'debug' : 'warn'
      this.#parts.log[level]({ err: error }, 'the other controllers could not be told which routers are connected')
      this.#hasFailed = true
    } finally {
      this.#committing = undefined
    }
  }

  async #commit(states: readonly (RouterPresence | undefined)[]): Promise<void> {
    const { clock, createSystemContext, node } = this.#parts
    await createSystemContext().write(async (tx) => {
      for (const after of states)
        tx.record({ operation: 'update', audit: 'none', resource: 'presence', id: node, after, at: clock.now() })
    })
  }

  /** The changes since the last commit, which say everything if that is due. */
  #takeChanges(): RouterPresence[] {
    const isFull = this.#isFullDue
    this.#isFullDue = false
    const routers = isFull ? this.#listAllRouters() : this.#listChangedRouters()
    const identityIds = isFull ? this.#listAllIdentities() : [...this.#changedIdentityIds]
    this.#changedIdentityIds.clear()
    const { connected } = this.#parts
    const isConnected = (id: string) => connected.getConnectionStatus(id) === 'online' || this.#isLeaving
    if (!isFull && identityIds.length === 0 && Object.keys(routers).length === 0) return []
    const states: RouterPresence[] = []
    for (let begin = 0; begin === 0 || begin < identityIds.length; begin += MAX_IDENTITIES) {
      const ids = identityIds.slice(begin, begin + MAX_IDENTITIES)
      const identities = Object.fromEntries(ids.map((id) => [id, isConnected(id)]))
      states.push({ isFull: isFull && begin === 0, routers: begin === 0 ? routers : {}, identities })
    }
    return states
  }

  get #own(): NodePresence | undefined {
    return this.#nodes.get(this.#parts.node)
  }

  #listAllRouters(): RouterPresence['routers'] {
    const leaving = [...(this.#own?.routers.values() ?? [])].flatMap(({ fields, id }) =>
      fields.isInTurn && this.#isLeaving ? [[id, fields] as const] : [],
    )
    const connected = this.#parts.connected.list().map((router) => [router.id, describeRouter(router)] as const)
    return Object.fromEntries([...leaving, ...connected])
  }

  #listAllIdentities(): string[] {
    const own = this.#parts.connected.list().flatMap(({ identityIds }) => [...identityIds])
    return [...new Set(this.#isLeaving ? [...(this.#own?.identityIds ?? []), ...own] : own)]
  }

  #listChangedRouters(): RouterPresence['routers'] {
    const { connected } = this.#parts
    const published = this.#own?.routers
    const changed: Record<string, ConnectedRouterFields | null> = {}
    for (const router of connected.list()) {
      const fields = describeRouter(router)
      if (!isSameRouter(fields, published?.get(router.id)?.fields)) changed[router.id] = fields
    }
    for (const [id, { fields }] of published ?? [])
      if (!connected.get(id) && !(fields.isInTurn && this.#isLeaving)) changed[id] = null
    return changed
  }
}
