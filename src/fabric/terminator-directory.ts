// The terminators in memory, by service: what a circuit chooses from, and what the router of each is asked about.
import type { Kysely } from 'kysely'
import type { Instant } from '../clock.ts'
import type { Entity } from '../resources/define.ts'
import { terminators } from '../resources/terminators.ts'
import type { PeerData } from '../routers/router-connection.ts'
import type { Change } from '../store/changes.ts'
import type { Database } from '../store/database.ts'
import type { Projection } from '../store/projection.ts'

export type Precedence = Entity<typeof terminators>['precedence']

/** A terminator as circuits need it. A change makes another object. */
export interface LiveTerminator {
  readonly id: string
  readonly serviceId: string
  readonly routerId: string
  readonly binding: string
  readonly address: string
  readonly cost: number
  readonly precedence: Precedence
  /** By what clients address it; empty if they cannot. */
  readonly instanceId: string
  /** The identity that hosts it; empty if an administrator made it. */
  readonly hostId: string
  /** What the dialing client receives of the host: header id → value. */
  readonly peerData: PeerData
  /** Whether a router made it for a host. */
  readonly isSystem: boolean
  readonly createdAt: Instant
}

/** The terminators of a service that share an instance id. */
interface Group {
  readonly byId: Map<string, LiveTerminator>
  /** The same as a list; undefined after a change, until it is read. */
  list: readonly LiveTerminator[] | undefined
}

const NO_TERMINATORS: readonly LiveTerminator[] = []

/** What a terminator consists of while rows are read, and in the change feed. */
type Source = Omit<LiveTerminator, 'instanceId' | 'peerData'> & {
  readonly identity: string
  readonly peerData: Readonly<Record<string, string>>
}

export class TerminatorDirectory implements Projection {
  readonly name = 'terminators'
  #byId = new Map<string, LiveTerminator>()
  /** Service → instance id → terminators. */
  #byService = new Map<string, Map<string, Group>>()
  /** Router → terminators. */
  #byRouter = new Map<string, Map<string, LiveTerminator>>()

  get(id: string): LiveTerminator | undefined {
    return this.#byId.get(id)
  }

  /** The terminators of a service with exactly this instance id; with an empty one, those that have none. */
  listOfService(serviceId: string, instanceId: string): readonly LiveTerminator[] {
    const group = this.#byService.get(serviceId)?.get(instanceId)
    if (!group) return NO_TERMINATORS
    group.list ??= [...group.byId.values()]
    return group.list
  }

  /** The terminators of a router. */
  listOfRouter(routerId: string): Iterable<LiveTerminator> {
    return this.#byRouter.get(routerId)?.values() ?? NO_TERMINATORS
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db
      .selectFrom('terminators')
      .select(['id', 'serviceId', 'routerId', 'binding', 'address', 'cost', 'precedence', 'identity', 'hostId'])
      .select(['peerData', 'isSystem', 'createdAt'])
      .execute()
    this.#byId = new Map()
    this.#byService = new Map()
    this.#byRouter = new Map()
    for (const row of rows) {
      const peerData = JSON.parse(row.peerData) as Source['peerData']
      this.#add(toLiveTerminator({ ...row, peerData, isSystem: row.isSystem === 1 } as Source))
    }
  }

  apply(changes: readonly Change[]): void {
    for (const { resource, id, after } of changes) {
      if (resource !== terminators.plural) continue
      this.#remove(id)
      if (after) this.#add(toLiveTerminator(after as unknown as Source))
    }
  }

  #add(terminator: LiveTerminator): void {
    const { id, serviceId, routerId, instanceId } = terminator
    this.#byId.set(id, terminator)
    const groups = getOrAdd(this.#byService, serviceId, () => new Map<string, Group>())
    const group = getOrAdd(groups, instanceId, () => ({ byId: new Map(), list: undefined }))
    group.byId.set(id, terminator)
    group.list = undefined
    getOrAdd(this.#byRouter, routerId, () => new Map<string, LiveTerminator>()).set(id, terminator)
  }

  #remove(id: string): void {
    const terminator = this.#byId.get(id)
    if (!terminator) return
    const { serviceId, routerId, instanceId } = terminator
    this.#byId.delete(id)
    const groups = this.#byService.get(serviceId)
    const group = groups?.get(instanceId)
    if (groups && group) {
      group.byId.delete(id)
      group.list = undefined
      if (group.byId.size === 0) groups.delete(instanceId)
      if (groups.size === 0) this.#byService.delete(serviceId)
    }
    const ofRouter = this.#byRouter.get(routerId)
    ofRouter?.delete(id)
    if (ofRouter?.size === 0) this.#byRouter.delete(routerId)
  }
}

function toLiveTerminator(source: Source): LiveTerminator {
  const { id, serviceId, routerId, binding, address, cost, precedence, identity, hostId, isSystem, createdAt } = source
  const peerData = decodePeerData(source.peerData)
  return {
    id,
    serviceId,
    routerId,
    binding,
    address,
    cost,
    precedence,
    instanceId: identity,
    hostId,
    peerData,
    isSystem,
    createdAt,
  }
}

const NO_PEER_DATA: PeerData = new Map()

function decodePeerData(stored: Readonly<Record<string, string>>): PeerData {
  const entries = Object.entries(stored)
  if (entries.length === 0) return NO_PEER_DATA
  return new Map(entries.map(([id, value]) => [Number(id), Buffer.from(value, 'base64')]))
}

/** Peer data as a record holds it: JSON has no numbers as names, and no bytes. */
export function encodePeerData(peerData: PeerData): Record<string, string> {
  return Object.fromEntries(Array.from(peerData, ([id, value]) => [String(id), value.toString('base64')] as const))
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  let value = map.get(key)
  if (value === undefined) {
    value = create()
    map.set(key, value)
  }
  return value
}
