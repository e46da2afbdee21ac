// Keeps routers of release 2 informed of the data model, by which they decide about clients themselves.
//
// A router subscribes with the index that it knows, and is sent the sets of changes after it, or everything if they do not lead on from
// there. The log is the queue of every router: each has its place in it, so that one that does not read costs no memory.
import type { ModelProgress } from '../../access/live-network.ts'
import type { Clock } from '../../foundation/clock.ts'
import type { Log } from '../../foundation/log.ts'
import type { Store } from '../../storage/store.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import type { ConnectedRouter, ConnectedRouters, RouterObserver } from '../routers/connected-routers.ts'
import type { PublicKeys } from '../routers/public-keys.ts'
import type { ModelIndexAnnouncement } from '../routers/router-connection.ts'
import type { ModelChangeSet } from './model-events.ts'
import type { ModelLog } from './model-log.ts'
import { type ModelState, readModelState } from './model-state.ts'

/** A request of a router to be sent the model. */
export interface ModelSubscription {
  /** Chosen by the router, which ignores what it is told by another one. */
  readonly id: string | undefined
  readonly timeline: string
  /** The index that it has: 0 if it has none. */
  readonly index: number
  /** Whether it goes on with a subscription that it has. */
  readonly isRenewal: boolean
}

// A router renews its subscription after five minutes and a half at the latest.
const SUBSCRIPTION_MS = 6 * 60_000

// How often a router may be sent everything.
const MIN_STATE_INTERVAL_MS = 5_000

// For how long an encoded model serves further routers, which are sent what changed since then after it.
const STATE_LIFETIME_MS = 30_000

// How often routers are told the index, if it has moved.
const INDEX_INTERVAL_MS = 30_000

/** A router that follows the model. One loop at a time sends it what it lacks. */
interface Subscriber extends ModelProgress {
  readonly mode: 'following'
  readonly router: ConnectedRouter
  subscriptionId: string | undefined
  /** By the monotonic clock. */
  endsAt: number
  /** The index that it was sent last; undefined if it needs everything. */
  index: number | undefined
  /** The greatest index that it has had. */
  knownIndex: number
  /** Another one of each subscription: what was begun for an earlier one does not go on. */
  generation: number
  isSending: boolean
  behindSince: number | undefined
  stateSentAt: number
}

interface RouterModelParts {
  readonly clock: Clock
  readonly log: Log
  readonly store: Store
  readonly changes: ModelLog
  readonly connected: ConnectedRouters
  readonly publicKeys: Pick<PublicKeys, 'list'>
}

export class RouterModel implements SideEffect, RouterObserver {
  readonly kind = 'side effect'
  readonly name = 'data model of routers'
  readonly #clock: Clock
  readonly #log: Log
  readonly #store: Store
  readonly #changes: ModelLog
  readonly #connected: ConnectedRouters
  readonly #publicKeys: RouterModelParts['publicKeys']
  readonly #subscribers = new Map<ConnectedRouter, Subscriber>()
  /** Router → the index that it was told, and when. */
  readonly #toldIndexes = new Map<ConnectedRouter, { index: number; at: number }>()
  /** The model that routers are sent at the moment. */
  #state: { readonly promise: Promise<ModelState>; readonly readAt: number } | undefined
  #indexAnnouncement: ModelIndexAnnouncement | undefined
  /** The time of the last commit. */
  #committedAt = 0
  #isScheduled = false
  #isClosed = false

  constructor({ clock, log, store, changes, connected, publicKeys }: RouterModelParts) {
    this.#clock = clock
    this.#log = log
    this.#store = store
    this.#changes = changes
    this.#connected = connected
    this.#publicKeys = publicKeys
    connected.addObserver(this)
  }

  get index(): number {
    return this.#changes.head
  }

  routerConnected(router: ConnectedRouter): void {
    if (router.isEdge && router.hello.hasDataModel)
      this.#toldIndexes.set(router, { index: 0, at: this.#clock.monotonic() })
  }

  routerDisconnected(router: ConnectedRouter): void {
    this.#toldIndexes.delete(router)
    this.#subscribers.delete(router)
  }

  /** Everything may be stale, so all receive everything again. */
  async restart(): Promise<void> {
    await this.#changes.load(this.#store.db)
    this.#state = undefined
    for (const router of this.#subscribers.keys()) this.sendAgain(router)
  }

  apply(commit: Commit): void {
    this.#committedAt = commit.at
    if (!this.#changes.apply(commit)) return
    if (!this.#changes.hasSets) this.#state = undefined
    for (const subscriber of this.#subscribers.values()) subscriber.behindSince ??= this.#clock.monotonic()
    if (this.#isScheduled || this.#subscribers.size === 0) return
    this.#isScheduled = true
    // The callers of the commit go on first.
    setImmediate(() => {
      this.#isScheduled = false
      for (const subscriber of this.#subscribers.values()) this.#send(subscriber)
    })
  }

  /** Takes a subscription of a router in place of an earlier one. */
  subscribe(router: ConnectedRouter, { id, timeline, index, isRenewal }: ModelSubscription): void {
    if (this.#connected.get(router.id) !== router || this.#isClosed) return
    const now = this.#clock.monotonic()
    const subscriber = this.#subscribers.get(router) ?? this.#add(router)
    subscriber.endsAt = now + SUBSCRIPTION_MS
    if (isRenewal && subscriber.generation > 0 && subscriber.subscriptionId === id) return
    // Later than what the others have said of it, also after a clock was set back.
    router.subscribedAt = Math.max(this.#clock.now(), this.#committedAt + 1)
    subscriber.subscriptionId = id
    const isOfTimeline = timeline === this.#changes.timeline && index > 0 && index <= this.index
    subscriber.index = isOfTimeline ? index : undefined
    if (isOfTimeline) subscriber.knownIndex = Math.max(subscriber.knownIndex, index)
    subscriber.generation += 1
    subscriber.behindSince ??= now
    this.#send(subscriber)
  }

  #add(router: ConnectedRouter): Subscriber {
    const subscriber: Subscriber = {
      mode: 'following',
      router,
      subscriptionId: undefined,
      endsAt: 0,
      index: undefined,
      knownIndex: 0,
      generation: 0,
      isSending: false,
      behindSince: undefined,
      stateSentAt: Number.NEGATIVE_INFINITY,
    }
    this.#subscribers.set(router, subscriber)
    router.model = subscriber
    return subscriber
  }

  /** Sends a router everything, because what it was sent last may not have arrived. */
  sendAgain(router: ConnectedRouter): void {
    const subscriber = this.#subscribers.get(router)
    if (!subscriber) return
    subscriber.index = undefined
    subscriber.generation += 1
    subscriber.behindSince ??= this.#clock.monotonic()
    this.#send(subscriber)
  }

  /**
   * Has a router compare the model that it has with the present one. If they differ, it takes that, and subscribes anew at the controller that
   * responds fastest. It does so also if it follows the model of another controller.
   */
  async replace(router: ConnectedRouter): Promise<void> {
    const { connection } = router
    const isThere = () => !this.#isClosed && this.#connected.get(router.id) === router
    if (!isThere()) return
    try {
      const state = await this.#getState(this.index)
      await connection.waitUntilWritable()
      if (isThere()) await connection.replaceModel({ state, listKeys: () => this.#publicKeys.list() })
    } catch (error) {
      this.#noteFailure(router, error)
    }
  }

  #noteFailure(router: ConnectedRouter, error: unknown): void {
    this.#state = undefined
    if (this.#isClosed) return
    this.#log.error({ err: error, routerId: router.id }, 'a router could not be sent the data model')
  }

  /** Does what is due by the clock. Called once a second. */
  tick(): void {
    const now = this.#clock.monotonic()
    for (const subscriber of this.#subscribers.values()) {
      if (subscriber.endsAt <= now) this.#end(subscriber, now)
      else if (subscriber.behindSince !== undefined) this.#send(subscriber)
    }
    for (const [router, told] of this.#toldIndexes) {
      if (told.at + INDEX_INTERVAL_MS > now) continue
      told.at = now
      if (told.index === this.index) continue
      told.index = this.index
      router.connection.announce(this.#getIndexAnnouncement())
    }
    if (this.#state && this.#state.readAt + STATE_LIFETIME_MS <= now) this.#state = undefined
  }

  #end({ router, index }: Subscriber, now: number): void {
    this.#subscribers.delete(router)
    router.model = { mode: 'waiting', index, behindSince: now }
  }

  /** Sends nothing more. */
  close(): void {
    this.#isClosed = true
    this.#subscribers.clear()
  }

  /** One object for all routers, so that it is encoded once. */
  #getIndexAnnouncement(): ModelIndexAnnouncement {
    if (this.#indexAnnouncement?.index !== this.index)
      this.#indexAnnouncement = { kind: 'model-index', index: this.index }
    return this.#indexAnnouncement
  }

  #send(subscriber: Subscriber): void {
    if (subscriber.isSending) return
    subscriber.isSending = true
    this.#sendAll(subscriber)
      .catch((error: unknown) => this.#noteFailure(subscriber.router, error))
      .finally(() => {
        subscriber.isSending = false
      })
  }

  /** Sends a router what it lacks, until it has everything, or has to wait. */
  async #sendAll(subscriber: Subscriber): Promise<void> {
    while (this.#subscribers.get(subscriber.router) === subscriber) {
      const { generation, index } = subscriber
      const isCurrent = () =>
        this.#subscribers.get(subscriber.router) === subscriber && subscriber.generation === generation
      if (index === this.index) {
        subscriber.behindSince = undefined
        return
      }
      const sets = index === undefined ? [] : await this.#changes.readAfter(index)
      if (sets.length > 0) await this.#sendSets(subscriber, sets, isCurrent)
      else if (!(await this.#sendState(subscriber, isCurrent))) return
    }
  }

  async #sendSets(subscriber: Subscriber, sets: readonly ModelChangeSet[], isCurrent: () => boolean): Promise<void> {
    const { connection } = subscriber.router
    for (const set of sets) {
      await connection.waitUntilWritable()
      if (!isCurrent()) return
      connection.sendModelChanges(set, subscriber.subscriptionId)
      subscriber.index = set.index
      subscriber.knownIndex = set.index
    }
  }

  /** Returns whether the router was sent everything; otherwise it has to wait. */
  async #sendState(subscriber: Subscriber, isCurrent: () => boolean): Promise<boolean> {
    const { connection } = subscriber.router
    if (subscriber.stateSentAt + MIN_STATE_INTERVAL_MS > this.#clock.monotonic()) return false
    const state = await this.#getState(subscriber.knownIndex)
    await connection.waitUntilWritable()
    if (!isCurrent()) return true
    subscriber.stateSentAt = this.#clock.monotonic()
    const { subscriptionId } = subscriber
    await connection.sendModel({ state, listKeys: () => this.#publicKeys.list(), subscriptionId })
    if (!isCurrent()) return true
    subscriber.index = state.index
    subscriber.knownIndex = state.index
    return true
  }

  /**
   * The model that is read at the moment, or was lately: what changed since then follows it. No router is sent an earlier one than it
   * has, because it reports changes by indexes that rise.
   */
  async #getState(minIndex: number): Promise<ModelState> {
    const current = this.#state
    if (current && current.readAt + STATE_LIFETIME_MS > this.#clock.monotonic()) {
      const state = await current.promise
      if (state.index >= minIndex) return state
    }
    // Unless another router needed a new one meanwhile.
    if (!this.#state || this.#state === current) {
      const promise = readModelState(this.#store, this.#changes.initialHead)
      this.#state = { promise, readAt: this.#clock.monotonic() }
    }
    return this.#state.promise
  }
}
