// Tells routers of each other: by it they learn which routers to dial links to, and where.
import { isDeepStrictEqual } from 'node:util'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import type { ConnectedRouter, ConnectedRouters, RouterObserver } from './connected-routers.ts'
import type { PeerChange } from './router-connection.ts'
import type { PresenceObserver, SharedPresence } from './shared-presence.ts'

// Changes of this time are announced together. After a restart of the controller all routers connect within seconds: each would
// otherwise be told about every other one by a message of its own.
const BATCH_MS = 5

export class PeerAnnouncements implements SideEffect, RouterObserver, PresenceObserver {
  readonly kind = 'side effect'
  readonly name = 'peers of routers'
  readonly #connected: ConnectedRouters
  readonly #presence: Pick<SharedPresence, 'findFields'> | undefined
  /** The routers that are connected to any controller, as others are told about them. */
  readonly #online = new Map<string, PeerChange>()
  /** By router; what happened last to it since the last announcement. */
  readonly #changes = new Map<string, PeerChange>()
  /** Routers that have not been told about any other one yet. */
  readonly #newcomers = new Set<ConnectedRouter>()
  #isScheduled = false

  /** @param presence the routers of other controllers; undefined if there are none */
  constructor(connected: ConnectedRouters, presence?: Pick<SharedPresence, 'findFields' | 'addObserver'>) {
    this.#connected = connected
    this.#presence = presence
    connected.addObserver(this)
    presence?.addObserver(this)
  }

  routerConnected(router: ConnectedRouter): void {
    const { routerId, version, linkListeners } = router.hello
    const change = { routerId, state: 'online', version: version.version, linkListeners } as const
    this.#online.set(routerId, change)
    this.#newcomers.add(router)
    this.#note(change)
  }

  routerDisconnected(router: ConnectedRouter): void {
    this.#newcomers.delete(router)
    if (!this.#connected.get(router.id)) this.routerChanged(router.id)
  }

  /** Routers of which none is connected to the same controller can have links all the same. */
  routerChanged(routerId: string): void {
    if (this.#connected.get(routerId)) return
    const fields = this.#presence?.findFields(routerId)
    if (!fields) {
      if (this.#online.delete(routerId)) this.#note({ routerId, state: 'offline', version: '', linkListeners: [] })
      return
    }
    const { listeners: linkListeners, versionInfo } = fields
    const change = { routerId, state: 'online', version: versionInfo.version, linkListeners } as const
    if (isDeepStrictEqual(change, this.#online.get(routerId))) return
    this.#online.set(routerId, change)
    this.#note(change)
  }

  /** Nothing of it comes from rows. */
  async restart(): Promise<void> {}

  apply({ changes }: Commit): void {
    for (const { resource, operation, id } of changes) {
      if (operation !== 'delete' || (resource !== 'edge-routers' && resource !== 'routers')) continue
      // Another controller may have had it until this commit.
      this.#online.delete(id)
      this.#note({ routerId: id, state: 'removed', version: '', linkListeners: [] })
    }
  }

  #note(change: PeerChange): void {
    this.#changes.set(change.routerId, change)
    if (this.#isScheduled) return
    this.#isScheduled = true
    setTimeout(() => this.#announce(), BATCH_MS).unref()
  }

  #announce(): void {
    const changes = { kind: 'peers-changed', changes: [...this.#changes.values()] } as const
    const newcomers = new Set(this.#newcomers)
    this.#changes.clear()
    this.#newcomers.clear()
    this.#isScheduled = false
    for (const router of this.#connected.list()) {
      if (!newcomers.has(router)) router.connection.announce(changes)
      else this.#announceAll(router)
    }
  }

  #announceAll({ id, connection }: ConnectedRouter): void {
    const others = [...this.#online.values()].filter(({ routerId }) => routerId !== id)
    if (others.length > 0) connection.announce({ kind: 'peers-changed', changes: others })
  }
}
