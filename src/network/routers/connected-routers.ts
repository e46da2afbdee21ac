// The routers that are connected now: who may connect, what each says of itself, and which identities it sees.
import type { Kysely } from 'kysely'
import type { ConnectionStatus, LiveNetwork, LiveRouter, ModelProgress, Traffic } from '../../access/live-network.ts'
import type { VersionInfo } from '../../definitions/resources/routers.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { LiveState } from '../../storage/transactions/projection.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { EdgeDescription, IdentityPresence, RouterConnection, RouterHello } from './router-connection.ts'

/** A router may not connect. The reason goes to the log; the router's connection is closed without a response. */
export class RouterRejectedError extends Error {
  override readonly name = 'RouterRejectedError'
}

/** The members of a router's record that decide whether it may be connected. */
export interface RouterAdmission {
  readonly isEdge: boolean
  readonly disabled: boolean
  readonly fingerprint: string | null
  readonly unverifiedFingerprint: string | null
  readonly formerFingerprint: string | null
  /** The software with which it connected before; null if it never did. It decides nothing here. */
  readonly lastVersion: VersionInfo | null
}

/** How far a router has got with the API sessions: the words that clients of the API know. */
export type SyncStatus = 'SYNC_NEW' | 'SYNC_HELLO_WAIT' | 'SYNC_IN_PROGRESS' | 'SYNC_DONE'

// A router that reconnects after a loss replaces its earlier connection. While that one is this new, it must be silent for longer
// than the interval of heartbeats, which is eleven seconds on an idle connection.
const MIN_REPLACED_AGE_MS = 60_000
export const MAX_SILENCE_MS = 12_000

export class ConnectedRouter {
  readonly hello: RouterHello
  /** Whether clients connect to it. */
  readonly isEdge: boolean
  readonly connection: RouterConnection
  /** By the monotonic clock. */
  readonly connectedAt: number
  syncStatus: SyncStatus = 'SYNC_NEW'
  model: ModelProgress
  /** When it asked for the data model last, other than to go on with what it follows. */
  subscribedAt: Instant | undefined
  /** The fingerprint of the certificate which it received over this connection, and with which it connects the next time. */
  renewedFingerprint: string | undefined
  /** Whether its record was deleted while it was connected. */
  isDeleted = false
  /** The ids of the identities that are connected to it. */
  readonly identityIds = new Set<string>()
  /** Whether it has reported all of them since it connected. Routers do so some seconds later. */
  hasReportedIdentities = false
  #edge: EdgeDescription | undefined

  constructor(hello: RouterHello, isEdge: boolean, connection: RouterConnection, connectedAt: number) {
    this.hello = hello
    this.isEdge = isEdge
    this.connection = connection
    this.connectedAt = connectedAt
    this.model =
      isEdge && hello.hasDataModel
        ? { mode: 'waiting', index: undefined, behindSince: connectedAt }
        : { mode: 'none', index: undefined, behindSince: undefined }
  }

  get id(): string {
    return this.hello.routerId
  }

  describeEdge(edge: EdgeDescription): void {
    this.#edge = edge
  }

  /** The fingerprints of the certificates that it can prove itself with. */
  listFingerprints(): string[] {
    const { hello, renewedFingerprint } = this
    return renewedFingerprint === undefined ? [hello.fingerprint] : [hello.fingerprint, renewedFingerprint]
  }

  toLiveRouter(): LiveRouter {
    return {
      hostname: this.#edge?.hostname ?? '',
      supportedProtocols: this.#edge?.supportedProtocols ?? {},
      syncStatus: this.syncStatus,
      versionInfo: this.hello.version,
      model: this.model,
    }
  }
}

/** An observer of which routers are connected. */
export interface RouterObserver {
  /** Runs once the router is listed as connected; its first messages come later. */
  routerConnected?(router: ConnectedRouter): void
  /** Runs once the router is not listed any more, or another connection of the same router is. */
  routerDisconnected?(router: ConnectedRouter): void
  /** Runs if a router that connected is another process than the one before: what that one held is gone. */
  routerRestarted?(router: ConnectedRouter): void
  /** Runs if an identity is connected to a router that was connected to none, or the other way round. */
  identityChanged?(identityId: string): void
}

/** Follows the records of routers: one that is disabled, deleted, or enrolls again loses its connection. */
export class ConnectedRouters implements LiveNetwork, LiveState {
  readonly kind = 'live state'
  readonly name = 'connected routers'
  readonly #clock: Clock
  readonly #byId = new Map<string, ConnectedRouter>()
  /** Router → when it lost its connection; routers that are connected, or were deleted, are missing. */
  readonly #disconnectTimes = new Map<string, Instant>()
  /** The routers that were connected to each controller when they were connected here last. */
  readonly #eachIds = new Set<string>()
  /** Identity → the number of routers that it is connected to; identities without any are missing. */
  readonly #connectionCounts = new Map<string, number>()
  readonly #observers: RouterObserver[] = []
  readonly #traffic: Traffic
  #isListening = false

  constructor(clock: Clock, traffic: Traffic) {
    this.#clock = clock
    this.#traffic = traffic
  }

  /** From now on a router that is not connected is known to be offline. */
  startListening(): void {
    this.#isListening = true
  }

  /** From now on an observer is told about connections, after those that were added before it. */
  addObserver(observer: RouterObserver): void {
    this.#observers.push(observer)
  }

  /** The routers that are connected. */
  list(): ConnectedRouter[] {
    return [...this.#byId.values()]
  }

  /** How many routers are connected. */
  get size(): number {
    return this.#byId.size
  }

  /** Whether any edge router is connected. */
  get hasEdgeRouters(): boolean {
    for (const { isEdge } of this.#byId.values()) if (isEdge) return true
    return false
  }

  /** The edge routers that are connected. */
  listEdgeRouters(): ConnectedRouter[] {
    return [...this.#byId.values()].filter(({ isEdge }) => isEdge)
  }

  /** The ids of the routers that are connected. */
  listIds(): string[] {
    return [...this.#byId.keys()]
  }

  get(id: string): ConnectedRouter | undefined {
    return this.#byId.get(id)
  }

  /**
   * Checks whether a router may connect.
   * Returns what its record says. @throws RouterRejectedError if it does not exist, is disabled, or has not enrolled with the certificate that it presents
   */
  async requireAdmission(
    db: Kysely<Database>,
    { routerId, fingerprint }: Pick<RouterHello, 'routerId' | 'fingerprint'>,
  ): Promise<RouterAdmission> {
    const [row] = await readAdmissions(db, [routerId])
    if (!row) throw new RouterRejectedError('the router does not exist')
    const objection = findObjection(row, [fingerprint])
    if (objection) throw new RouterRejectedError(objection)
    return row
  }

  /** Whether a router may be connected by this certificate: another router asks, which accepts a link of it. */
  async isAdmitted(db: Kysely<Database>, routerId: string, fingerprint: string): Promise<boolean> {
    const [row] = await readAdmissions(db, [routerId])
    return row !== undefined && findObjection(row, [fingerprint]) === undefined
  }

  /**
   * Makes a connection that of its router; an earlier one of the same router ends.
   * @throws RouterRejectedError if the earlier one is new and in use: otherwise two processes with the certificate of one
   * router would take its place from each other without end
   */
  connect(hello: RouterHello, isEdge: boolean, connection: RouterConnection): ConnectedRouter {
    const now = this.#clock.monotonic()
    const earlier = this.#byId.get(hello.routerId)
    if (earlier && now - earlier.connectedAt < MIN_REPLACED_AGE_MS) {
      if (now - earlier.connection.lastHeardAt < MAX_SILENCE_MS)
        throw new RouterRejectedError('the router is connected already')
    }
    const router = new ConnectedRouter(hello, isEdge, connection, now)
    this.#byId.set(hello.routerId, router)
    this.#disconnectTimes.delete(hello.routerId)
    if (hello.isInTurn) this.#eachIds.delete(hello.routerId)
    else this.#eachIds.add(hello.routerId)
    earlier?.connection.close('the router connected again')
    for (const observer of this.#observers) observer.routerConnected?.(router)
    return router
  }

  /** Whether a router is connected to one of several controllers at a time, as far as it was connected here. */
  isInTurn(routerId: string): boolean {
    return !this.#eachIds.has(routerId)
  }

  /** Notes that a connection ended, unless the router has another one by now. */
  disconnect(router: ConnectedRouter): void {
    if (this.#byId.get(router.id) === router) {
      this.#byId.delete(router.id)
      if (!router.isDeleted) this.#disconnectTimes.set(router.id, this.#clock.now())
    }
    for (const identityId of [...router.identityIds]) this.#setPresence(router, identityId, false)
    for (const observer of this.#observers) observer.routerDisconnected?.(router)
  }

  /** Drops when routers lost their connections that are connected to one controller at a time: it was another one since. */
  dropDisconnectTimes(): void {
    for (const id of [...this.#disconnectTimes.keys()]) if (this.isInTurn(id)) this.#disconnectTimes.delete(id)
  }

  /** Notes that a router is another process than the one that was connected before. */
  noteRestart(router: ConnectedRouter): void {
    for (const observer of this.#observers) observer.routerRestarted?.(router)
  }

  /** Follows what a router reports of its clients. A full report replaces all earlier ones. */
  reportIdentities(router: ConnectedRouter, presences: readonly IdentityPresence[], isFull: boolean): void {
    if (this.#byId.get(router.id) !== router) return
    const connectedIds = new Set(presences.filter(({ isConnected }) => isConnected).map(({ identityId }) => identityId))
    const disconnectedIds = isFull
      ? [...router.identityIds].filter((id) => !connectedIds.has(id))
      : presences.filter(({ isConnected }) => !isConnected).map(({ identityId }) => identityId)
    if (isFull) router.hasReportedIdentities = true
    for (const id of disconnectedIds) this.#setPresence(router, id, false)
    for (const id of connectedIds) this.#setPresence(router, id, true)
  }

  #setPresence({ identityIds }: ConnectedRouter, identityId: string, isConnected: boolean): void {
    if (identityIds.has(identityId) === isConnected) return
    if (isConnected) identityIds.add(identityId)
    else identityIds.delete(identityId)
    const earlier = this.#connectionCounts.get(identityId) ?? 0
    const count = earlier + (isConnected ? 1 : -1)
    if (count > 0) this.#connectionCounts.set(identityId, count)
    else this.#connectionCounts.delete(identityId)
    if (count > 0 && earlier > 0) return
    for (const observer of this.#observers) observer.identityChanged?.(identityId)
  }

  /** Ends all connections. @param reason for the log */
  close(reason = 'the controller stops'): void {
    for (const { connection } of this.list()) connection.close(reason)
  }

  /** Ends the connections of the routers that are connected to one controller at a time, or of the others. @param reason for the log */
  closeSome(areInTurn: boolean, reason: string): void {
    for (const { connection, hello } of this.list()) if (hello.isInTurn === areInTurn) connection.close(reason)
  }

  findRouter(id: string): LiveRouter | undefined {
    return this.#byId.get(id)?.toLiveRouter()
  }

  getPresence(routerId: string): ConnectionStatus {
    if (this.#byId.has(routerId)) return 'online'
    return this.#isListening ? 'offline' : 'unknown'
  }

  getDisconnectTime(routerId: string): Instant | undefined {
    return this.#disconnectTimes.get(routerId)
  }

  getDynamicCost(terminatorId: string): number {
    return this.#traffic.getDynamicCost(terminatorId)
  }

  listNodesOf(): readonly string[] {
    return []
  }

  getConnectionStatus(identityId: string): ConnectionStatus {
    return this.#connectionCounts.has(identityId) ? 'online' : 'offline'
  }

  listRoutePath(sessionId: string): readonly string[] {
    return this.#traffic.listRoutePath(sessionId)
  }

  async reconcile(db: Kysely<Database>): Promise<void> {
    const ids = [...this.#byId.keys()]
    if (ids.length === 0) return
    const rows = new Map((await readAdmissions(db, ids)).map((row) => [row.id, row]))
    for (const id of ids) this.#judge(id, rows.get(id))
  }

  apply({ changes }: Commit): void {
    if (this.#byId.size + this.#disconnectTimes.size + this.#eachIds.size === 0) return
    for (const { resource, id, after } of changes) {
      if (resource !== 'edge-routers' && resource !== 'routers') continue
      if (!after) {
        this.#disconnectTimes.delete(id)
        this.#eachIds.delete(id)
      }
      this.#judge(id, after)
    }
  }

  #judge(id: string, record: RouterAdmission | undefined): void {
    const router = this.#byId.get(id)
    if (!router) return
    router.isDeleted = record === undefined
    // It may have received its new certificate over its connection to another controller.
    if (record?.formerFingerprint === router.hello.fingerprint)
      router.renewedFingerprint = record.fingerprint ?? undefined
    const objection = record ? findObjection(record, router.listFingerprints()) : 'the router was deleted'
    if (objection) router.connection.close(objection)
  }
}

/** The reason why a router with this record may not be connected by any of these certificates; undefined if it may. */
function findObjection(
  record: Omit<RouterAdmission, 'isEdge' | 'lastVersion'>,
  presented: readonly string[],
): string | undefined {
  const { disabled, fingerprint, unverifiedFingerprint, formerFingerprint } = record
  if (disabled) return 'the router is disabled'
  if (fingerprint === null) return 'the router has not enrolled'
  const admitted = [fingerprint, unverifiedFingerprint, formerFingerprint]
  if (presented.some((one) => admitted.includes(one))) return undefined
  return 'the router enrolled with another certificate'
}

async function readAdmissions(
  db: Kysely<Database>,
  ids: readonly string[],
): Promise<(RouterAdmission & { id: string })[]> {
  const rows = await db
    .selectFrom('routers')
    .select(['id', 'isEdge', 'disabled', 'fingerprint', 'unverifiedFingerprint', 'formerFingerprint', 'lastVersion'])
    .where(isOneOf(db, 'id', ids))
    .execute()
  return rows.map(({ lastVersion, ...row }) => ({
    ...row,
    isEdge: row.isEdge === 1,
    disabled: row.disabled === 1,
    lastVersion: lastVersion === null ? null : (JSON.parse(lastVersion) as VersionInfo),
  }))
}
