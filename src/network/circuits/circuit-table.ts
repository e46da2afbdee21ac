// The open circuits of this process: found by id, and by the service, identity, session, router or link that they belong to.

import type { TerminatorStrategy } from '../../definitions/resources/services.ts'
import type { Instant } from '../../foundation/clock.ts'
import { SetMap } from '../../policy/set-map.ts'
import type { Path } from '../links/path.ts'

/** The way of one connection from the router of its client to a terminator. */
export interface Circuit {
  readonly id: string
  readonly createdAt: Instant
  /** When its path last changed. */
  readonly updatedAt: Instant
  /** The identity that dialed. */
  readonly clientId: string
  /** The session by which it dialed. */
  readonly sessionId: string
  /** Whether the client showed a signed token of it: routers of release 1 do not follow the end of such a session. */
  readonly isSessionSigned: boolean
  readonly serviceId: string
  /** Still named if the terminator was deleted since. */
  readonly terminatorId: string
  /** The strategy by which the terminator was chosen. */
  readonly strategy: TerminatorStrategy
  /** The identity that hosts the terminator; empty if an administrator created it. */
  readonly hostId: string
  /** The session by which the host bound the terminator; empty if an administrator created it. */
  readonly hostSessionId: string
  readonly path: Path
  /** Tags of the circuit, for the dialing client and the routers. */
  readonly tags: Readonly<Record<string, string>>
  /** Its end at the router of the client, in the router's forwarding table. */
  readonly ingressAddress: string
  /** Its end at the router of the terminator. */
  readonly egressAddress: string
  /** Since when it has carried no data; undefined if no router at its ends has reported that it is idle. */
  readonly idleSince: Instant | undefined
}

/** The properties that circuits are selected by; all that are given must match. */
export interface CircuitFilter {
  readonly serviceId?: string
  readonly clientId?: string
  readonly sessionId?: string
  readonly hostSessionId?: string
  /** A router that the circuit passes, begins or ends at. */
  readonly routerId?: string
  readonly linkId?: string
}

/** A circuit whose path may be replaced. */
type MutableCircuit = { -readonly [K in keyof Circuit]: Circuit[K] }

export class CircuitTable {
  readonly #byId = new Map<string, MutableCircuit>()
  readonly #indexes: Readonly<Record<keyof CircuitFilter, SetMap<MutableCircuit>>> = {
    serviceId: new SetMap(),
    clientId: new SetMap(),
    sessionId: new SetMap(),
    hostSessionId: new SetMap(),
    routerId: new SetMap(),
    linkId: new SetMap(),
  }

  get size(): number {
    return this.#byId.size
  }

  get(id: string): Circuit | undefined {
    return this.#byId.get(id)
  }

  /** The circuits that match. Their number decides what it costs. */
  list(filter: CircuitFilter = {}): Circuit[] {
    const criteria = Object.entries(filter) as [keyof CircuitFilter, string][]
    if (criteria.length === 0) return [...this.#byId.values()]
    const sets = criteria.map(([property, key]) => this.#indexes[property].get(key))
    const [smallest, ...others] = sets.sort((a, b) => a.size - b.size)
    return [...smallest!].filter((circuit) => others.every((circuits) => circuits.has(circuit)))
  }

  /** How many circuits match. */
  count(property: keyof CircuitFilter, key: string): number {
    return this.#indexes[property].get(key).size
  }

  add(circuit: Circuit): void {
    const entry: MutableCircuit = { ...circuit }
    this.#byId.set(circuit.id, entry)
    for (const [property, key] of listKeys(entry)) this.#indexes[property].add(key, entry)
  }

  /** Returns the circuit that was removed; undefined if there was none. */
  remove(id: string): Circuit | undefined {
    const circuit = this.#byId.get(id)
    if (!circuit) return undefined
    this.#byId.delete(id)
    for (const [property, key] of listKeys(circuit)) this.#indexes[property].delete(key, circuit)
    return circuit
  }

  /** Moves a circuit to another path. */
  setPath(id: string, path: Path, updatedAt: Instant): void {
    const circuit = this.#byId.get(id)
    if (!circuit) return
    for (const [property, key] of listKeys(circuit)) this.#indexes[property].delete(key, circuit)
    Object.assign(circuit, { path, updatedAt })
    for (const [property, key] of listKeys(circuit)) this.#indexes[property].add(key, circuit)
  }

  setIdleSince(id: string, idleSince: Instant): void {
    const circuit = this.#byId.get(id)
    if (circuit) circuit.idleSince = idleSince
  }
}

/** The keys by which the indexes find a circuit. */
function listKeys({ serviceId, clientId, sessionId, hostSessionId, path }: Circuit): [keyof CircuitFilter, string][] {
  return [
    ['serviceId', serviceId],
    ['clientId', clientId],
    ['sessionId', sessionId],
    ['hostSessionId', hostSessionId],
    ...path.routerIds.map((routerId) => ['routerId', routerId] as [keyof CircuitFilter, string]),
    ...path.links.map(({ id }) => ['linkId', id] as [keyof CircuitFilter, string]),
  ]
}
