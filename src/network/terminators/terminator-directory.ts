// The terminators in memory, by service: what a circuit chooses from, and what the router of each is asked about.
//
// Each names the session by which its host bound, because a router that is told that a host lost its right may be away or
// late. Circuits choose only among terminators whose session lives; the record stays until its router says that the host
// is gone.
import type { Kysely } from 'kysely'
import type { Entity } from '../../definitions/resources/define.ts'
import { sessions } from '../../definitions/resources/sessions.ts'
import { terminators } from '../../definitions/resources/terminators.ts'
import type { Instant } from '../../foundation/clock.ts'
import { SetMap } from '../../policy/set-map.ts'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'
import type { PeerData } from '../routers/router-connection.ts'

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
  /** The session by which the host bound; empty if an administrator made it. */
  readonly sessionId: string
  /** The data that the dialing client receives of the host: header id → value. */
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

/** The values of a terminator in rows, and in the change feed. */
type Source = Omit<LiveTerminator, 'instanceId' | 'peerData'> & {
  readonly identity: string
  readonly peerData: Readonly<Record<string, string>>
}

export class TerminatorDirectory implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'terminators'
  #byId = new Map<string, LiveTerminator>()
  /** Service → instance id → terminators. */
  #byService = new Map<string, Map<string, Group>>()
  /** Router → terminators. */
  #byRouter = new SetMap<LiveTerminator>()
  /** Session → terminators that its host bound by it, as long as it lasts. */
  #bySession = new SetMap()
  /** The terminators of the sessions that the last commits ended, until they are taken. */
  #ended: LiveTerminator[] = []

  get(id: string): LiveTerminator | undefined {
    return this.#byId.get(id)
  }

  /**
   * The terminators of a service with exactly this instance id; with an empty one, those that have none. Terminators whose
   * session has ended are not among them: their hosts have lost the right, though their routers have not removed them yet.
   */
  listOfService(serviceId: string, instanceId: string): readonly LiveTerminator[] {
    const group = this.#byService.get(serviceId)?.get(instanceId)
    if (!group) return NO_TERMINATORS
    group.list ??= [...group.byId.values()]
    return group.list
  }

  /** How many terminators a session has bound. */
  countOfSession(sessionId: string): number {
    return this.#bySession.get(sessionId).size
  }

  /** The terminators of a router. */
  listOfRouter(routerId: string): Iterable<LiveTerminator> {
    return this.#byRouter.get(routerId)
  }

  /** The terminators of a router whose sessions have ended. */
  listEndedOfRouter(routerId: string): LiveTerminator[] {
    return [...this.#byRouter.get(routerId)].filter(
      ({ id, sessionId }) => sessionId !== '' && !this.#bySession.get(sessionId).has(id),
    )
  }

  /** Returns the terminators of sessions that have ended since the last call. */
  takeEnded(): readonly LiveTerminator[] {
    const ended = this.#ended
    if (ended.length > 0) this.#ended = []
    return ended
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db
      .selectFrom('terminators as one')
      .leftJoin('sessions as session', 'session.id', 'one.sessionId')
      .select(['one.id', 'one.serviceId', 'routerId', 'binding', 'address', 'cost', 'precedence', 'identity', 'hostId'])
      .select(['sessionId', 'peerData', 'isSystem', 'one.createdAt', 'session.id as liveSessionId'])
      .execute()
    this.#byId = new Map()
    this.#byService = new Map()
    this.#byRouter = new SetMap()
    this.#bySession = new SetMap()
    for (const { liveSessionId, ...row } of rows) {
      const peerData = JSON.parse(row.peerData) as Source['peerData']
      const terminator = toLiveTerminator({ ...row, peerData, isSystem: row.isSystem === 1 } as Source)
      this.#add(terminator, row.sessionId !== '' && liveSessionId === null)
    }
  }

  apply({ changes }: Commit): void {
    for (const { resource, operation, id, after } of changes) {
      if (resource === sessions.plural && operation === 'delete') this.#endSession(id)
      if (resource !== terminators.plural) continue
      const terminator = after && toLiveTerminator(after)
      const hasEnded = terminator !== undefined && this.#hasEnded(terminator)
      this.#remove(id)
      if (terminator) this.#add(terminator, hasEnded)
    }
  }

  /** Whether the session of a terminator has ended, which it had before this change. */
  #hasEnded({ id, sessionId }: LiveTerminator): boolean {
    const isUnchanged = sessionId !== '' && this.#byId.get(id)?.sessionId === sessionId
    return isUnchanged && !this.#bySession.get(sessionId).has(id)
  }

  #endSession(sessionId: string): void {
    const ids = this.#bySession.get(sessionId)
    this.#bySession.clear(sessionId)
    for (const id of ids) {
      const terminator = this.#byId.get(id)
      if (!terminator) continue
      this.#removeFromService(terminator)
      this.#ended.push(terminator)
    }
  }

  #add(terminator: LiveTerminator, hasEnded: boolean): void {
    const { id, routerId } = terminator
    this.#byId.set(id, terminator)
    this.#byRouter.add(routerId, terminator)
    if (!hasEnded) this.#addToService(terminator)
  }

  #addToService(terminator: LiveTerminator): void {
    const { id, serviceId, instanceId, sessionId } = terminator
    if (sessionId !== '') this.#bySession.add(sessionId, id)
    const groups = getOrAdd(this.#byService, serviceId, () => new Map<string, Group>())
    const group = getOrAdd(groups, instanceId, () => ({ byId: new Map(), list: undefined }))
    group.byId.set(id, terminator)
    group.list = undefined
  }

  #remove(id: string): void {
    const terminator = this.#byId.get(id)
    if (!terminator) return
    const { routerId, sessionId } = terminator
    this.#byId.delete(id)
    this.#byRouter.delete(routerId, terminator)
    this.#bySession.delete(sessionId, id)
    this.#removeFromService(terminator)
  }

  #removeFromService({ id, serviceId, instanceId }: LiveTerminator): void {
    const groups = this.#byService.get(serviceId)
    const group = groups?.get(instanceId)
    if (groups && group) {
      group.byId.delete(id)
      group.list = undefined
      if (group.byId.size === 0) groups.delete(instanceId)
      if (groups.size === 0) this.#byService.delete(serviceId)
    }
  }
}

/** Member by member, because an object made by spreading would hold all columns of its row. */
function toLiveTerminator(source: Source): LiveTerminator {
  return {
    id: source.id,
    serviceId: source.serviceId,
    routerId: source.routerId,
    binding: source.binding,
    address: source.address,
    cost: source.cost,
    precedence: source.precedence,
    instanceId: source.identity,
    hostId: source.hostId,
    sessionId: source.sessionId,
    peerData: decodePeerData(source.peerData),
    isSystem: source.isSystem,
    createdAt: source.createdAt,
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
