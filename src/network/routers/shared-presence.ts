// The routers and identities that are connected, as all controllers of a cluster know them: the one that has the routers commits changes.
//
// Its commits have no rows. One that begins later asks for everything, and is sent it in a commit.
import type { ConnectionStatus, LiveNetwork, LiveRouter } from '../../access/live-network.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { Log } from '../../foundation/log.ts'
import type { Commit, ConnectedRouterFields, RouterPresence } from '../../storage/transactions/changes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { LiveState } from '../../storage/transactions/projection.ts'
import type { ConnectedRouter, ConnectedRouters, RouterObserver } from './connected-routers.ts'

// Changes of this time are committed together.
const BATCH_MS = 100

// Routers try again every few seconds, so that most of them are back by then with the controller that takes them over.
const TAKEOVER_MS = 20_000

// Of one commit, which is a row of the log.
const MAX_IDENTITIES = 10_000

interface SharedPresenceParts {
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly log: Log
  /** The name of this controller. */
  readonly node: string
  createSystemContext(): Context
}

interface KnownRouter extends LiveRouter {
  readonly fields: ConnectedRouterFields
}

export class SharedPresence implements LiveNetwork, LiveState, RouterObserver {
  readonly kind = 'live state'
  readonly name = 'presence of routers'
  readonly #parts: SharedPresenceParts
  /** As they were committed. */
  readonly #routers = new Map<string, KnownRouter>()
  readonly #identityIds = new Set<string>()
  readonly #disconnectTimes = new Map<string, Instant>()
  /** Whether everything was committed since this controller began. */
  #isComplete = false
  /** While this controller has the routers: until when others may still return, by the monotonic clock. */
  #takeover: { readonly endsAt: number } | undefined
  #isFullDue = false
  readonly #changedIdentityIds = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #committing: Promise<void> | undefined

  constructor(parts: SharedPresenceParts) {
    this.#parts = parts
    parts.connected.addObserver(this)
  }

  /** Asks the controller that has the routers for what it knows. */
  async ask(): Promise<void> {
    await this.#commit([undefined])
  }

  /** This controller has the routers from now on. Those of the controller before it count as connected until they had time to return. */
  begin(): void {
    this.#parts.connected.dropDisconnectTimes()
    this.#takeover = { endsAt: this.#parts.clock.monotonic() + (this.#isComplete ? TAKEOVER_MS : 0) }
    this.#isFullDue = true
    this.#timer = setInterval(() => this.#publish(), BATCH_MS).unref()
  }

  /** Another controller has the routers. */
  end(): void {
    clearInterval(this.#timer)
    this.#takeover = undefined
    this.#changedIdentityIds.clear()
  }

  /** Resolves when nothing is being committed any more. */
  async close(): Promise<void> {
    this.end()
    await this.#committing
  }

  /** Whether this controller has the routers. */
  get isHere(): boolean {
    return this.#takeover !== undefined
  }

  findRouter(id: string): LiveRouter | undefined {
    const { connected } = this.#parts
    return this.#knowsAll ? connected.findRouter(id) : (connected.findRouter(id) ?? this.#routers.get(id))
  }

  getPresence(routerId: string): ConnectionStatus {
    if (this.findRouter(routerId)) return 'online'
    return this.#knowsAll || this.#isComplete ? 'offline' : 'unknown'
  }

  getDisconnectTime(routerId: string): Instant | undefined {
    const own = this.isHere ? this.#parts.connected.getDisconnectTime(routerId) : undefined
    return own ?? this.#disconnectTimes.get(routerId)
  }

  getConnectionStatus(identityId: string): ConnectionStatus {
    const own = this.#parts.connected.getConnectionStatus(identityId)
    return !this.#knowsAll && this.#identityIds.has(identityId) ? 'online' : own
  }

  getDynamicCost(terminatorId: string): number {
    return this.#parts.connected.getDynamicCost(terminatorId)
  }

  listRoutePath(sessionId: string): readonly string[] {
    return this.#parts.connected.listRoutePath(sessionId)
  }

  identityChanged(identityId: string): void {
    if (this.isHere) this.#changedIdentityIds.add(identityId)
  }

  apply({ changes, at }: Commit): void {
    for (const { resource, operation, id, after } of changes) {
      if (resource === 'presence') this.#take(id, after, at)
      else if (operation === 'delete' && (resource === 'edge-routers' || resource === 'routers')) {
        this.#routers.delete(id)
        this.#disconnectTimes.delete(id)
      } else if (operation === 'delete' && resource === 'identities') this.#identityIds.delete(id)
    }
  }

  /** Nothing of it comes from rows. */
  async reconcile(): Promise<void> {}

  /** Whether every router that is connected is connected to this controller. */
  get #knowsAll(): boolean {
    return this.#takeover !== undefined && this.#parts.clock.monotonic() >= this.#takeover.endsAt
  }

  #take(node: string, state: RouterPresence | undefined, at: Instant): void {
    if (!state) {
      this.#isFullDue = true
      return
    }
    const { isFull, routers, identities } = state
    if (isFull) this.#isComplete = true
    const lostIds = isFull ? [...this.#routers.keys()].filter((id) => !routers[id]) : []
    for (const id of lostIds) this.#setRouter(id, null, at)
    for (const [id, fields] of Object.entries(routers)) this.#setRouter(id, fields, at)
    if (isFull) this.#identityIds.clear()
    for (const [id, isConnected] of Object.entries(identities)) {
      if (isConnected) this.#identityIds.add(id)
      else this.#identityIds.delete(id)
    }
    // The word of another controller has to be corrected: this one has the routers.
    if (node !== this.#parts.node) this.#isFullDue = true
  }

  #setRouter(id: string, fields: ConnectedRouterFields | null, at: Instant): void {
    if (fields) {
      const { modelMode, ...described } = fields
      const model = { mode: modelMode, index: undefined, behindSince: undefined }
      this.#routers.set(id, { ...described, model, fields })
      this.#disconnectTimes.delete(id)
    } else if (this.#routers.delete(id)) this.#disconnectTimes.set(id, at)
  }

  #publish(): void {
    if (this.#committing || !this.#takeover) return
    const states = this.#takeChanges()
    if (states.length > 0) this.#committing = this.#commitOrRepeat(states)
  }

  async #commitOrRepeat(states: readonly RouterPresence[]): Promise<void> {
    try {
      await this.#commit(states)
    } catch (error) {
      this.#isFullDue = true
      this.#parts.log.warn({ err: error }, 'the other controllers could not be told which routers are connected')
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
    const isEnding = this.#knowsAll && this.#takeover?.endsAt !== Number.NEGATIVE_INFINITY
    if (isEnding) {
      this.#takeover = { endsAt: Number.NEGATIVE_INFINITY }
      this.#isFullDue = true
    }
    const isFull = this.#isFullDue
    this.#isFullDue = false
    const routers = isFull ? this.#listAllRouters() : this.#listChangedRouters()
    const identityIds = isFull ? this.#listAllIdentities() : [...this.#changedIdentityIds]
    this.#changedIdentityIds.clear()
    if (!isFull && identityIds.length === 0 && Object.keys(routers).length === 0) return []
    const states: RouterPresence[] = []
    for (let begin = 0; begin === 0 || begin < identityIds.length; begin += MAX_IDENTITIES) {
      const ids = identityIds.slice(begin, begin + MAX_IDENTITIES)
      const identities = Object.fromEntries(ids.map((id) => [id, this.getConnectionStatus(id) === 'online']))
      states.push({ isFull: isFull && begin === 0, routers: begin === 0 ? routers : {}, identities })
    }
    return states
  }

  #listAllRouters(): RouterPresence['routers'] {
    const others = this.#knowsAll ? [] : Array.from(this.#routers, ([id, { fields }]) => [id, fields] as const)
    const own = this.#parts.connected.list().map((router) => [router.id, toFields(router)] as const)
    return Object.fromEntries([...others, ...own])
  }

  #listAllIdentities(): string[] {
    const own = this.#parts.connected.list().flatMap(({ identityIds }) => [...identityIds])
    return [...new Set(this.#knowsAll ? own : [...this.#identityIds, ...own])]
  }

  #listChangedRouters(): RouterPresence['routers'] {
    const { connected } = this.#parts
    const changed: Record<string, ConnectedRouterFields | null> = {}
    for (const router of connected.list()) {
      const fields = toFields(router)
      if (!isSame(fields, this.#routers.get(router.id)?.fields)) changed[router.id] = fields
    }
    // Routers of the controller before may return, until the takeover ends.
    for (const id of this.#routers.keys())
      if (!connected.get(id) && (this.#knowsAll || connected.getDisconnectTime(id) !== undefined)) changed[id] = null
    return changed
  }
}

function toFields(router: ConnectedRouter): ConnectedRouterFields {
  const { hostname, supportedProtocols, syncStatus, versionInfo, model } = router.toLiveRouter()
  return { hostname, supportedProtocols, syncStatus, versionInfo, modelMode: model.mode }
}

/** The objects are those of the first message of a connection, so that they are compared by their identity or their few members. */
function isSame(fields: ConnectedRouterFields, known: ConnectedRouterFields | undefined): boolean {
  return (
    known !== undefined &&
    fields.hostname === known.hostname &&
    fields.syncStatus === known.syncStatus &&
    fields.modelMode === known.modelMode &&
    fields.versionInfo.version === known.versionInfo.version &&
    hasSameMembers(fields.supportedProtocols, known.supportedProtocols)
  )
}

function hasSameMembers(some: Readonly<Record<string, string>>, others: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(some)
  return names.length === Object.keys(others).length && names.every((name) => some[name] === others[name])
}
