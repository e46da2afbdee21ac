// Creates circuits: chooses a terminator, sends each router of the path its part, and tries once more if one fails.

import type { TerminatorStrategy } from '../../definitions/resources/services.ts'
import type { Clock } from '../../foundation/clock.ts'
import type { IdentityTraces } from '../identity-traces.ts'
import type { PathFinder } from '../links/path.ts'
import type { ConnectedRouters } from '../routers/connected-routers.ts'
import type { PeerData, RouteFailure } from '../routers/router-connection.ts'
import { chooseTerminator, type TerminatorCandidate } from '../terminators/terminator-choice.ts'
import type { TerminatorCosts } from '../terminators/terminator-costs.ts'
import type { LiveTerminator, TerminatorDirectory } from '../terminators/terminator-directory.ts'
import { CircuitError, type CircuitFailureCause } from './circuit-failures.ts'
import { type CircuitIds, newEndAddress } from './circuit-ids.ts'
import type { Circuit } from './circuit-table.ts'
import { planRoutes } from './route-plan.ts'
import type { RouteOutcome, RouteResults } from './route-results.ts'
import type { Unroutes } from './unroutes.ts'

/** A request to connect a client with a service, by a caller that has decided that the client may dial it. */
export interface CircuitRequest {
  /** The router that the client is connected to. */
  readonly routerId: string
  readonly clientId: string
  readonly clientName: string
  readonly sessionId: string
  readonly isSessionSigned: boolean
  readonly service: DialedService
  /** Selects the terminators that have exactly this instance id; empty for those without one. */
  readonly instanceId: string
  /** Data of the client for the host. */
  readonly peerData: PeerData
}

/** The members of a service that its circuits need. */
export interface DialedService {
  readonly id: string
  readonly terminatorStrategy: TerminatorStrategy
  /** 0 if its circuits may be idle for any time. */
  readonly maxIdleTimeMillis: number
}

/** A circuit whose routers forward data. */
export interface CreatedCircuit {
  readonly circuit: Circuit
  /** Data of the host for the client. */
  readonly peerData: PeerData
}

/** The header of peer data by which a client asks for the terminator of an earlier circuit. */
const STICKY_TERMINATOR = 1114

/** The headers of peer data that tell a host who the client is. */
const [CLIENT_ID, CLIENT_NAME] = [1115, 1116]

const MAX_ATTEMPTS = 2

/** A router waits for at most 30 seconds for a circuit, so both attempts fit. */
export const ROUTE_TIMEOUT_MS = 10_000

// Requests that wait for routers. Beyond that, clients dial services whose hosts do not respond.
const MAX_PENDING_OF_ROUTER = 2_000
const MAX_PENDING = 20_000

// More circuits than a router ever carries: only one that invents them reaches this.
const MAX_CIRCUITS_OF_ROUTER = 250_000

interface CircuitCreationParts {
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly unroutes: Unroutes
  readonly costs: TerminatorCosts
  readonly ids: CircuitIds
  readonly paths: PathFinder
  readonly results: RouteResults
  readonly terminators: Pick<TerminatorDirectory, 'get' | 'listOfService'>
  readonly traces: IdentityTraces
  /** The names of the controllers that a router is connected to. */
  listNodesOf(routerId: string): readonly string[]
  /** The ids of the routers that other controllers have. */
  listIdsElsewhere(): readonly string[]
  /** A random number in [0, 1). */
  readonly random: () => number
  /** Runs when all routers of a circuit forward its data. */
  open(circuit: Circuit): void
  /** How many circuits begin, end at or pass a router. */
  countCircuits(routerId: string): number
  /** Runs if the router of a terminator says that it does not know the address. */
  rejectTerminator(terminator: LiveTerminator): void
}

/** A circuit that may be created. */
interface CircuitAttempt {
  readonly circuit: Circuit
  readonly candidate: TerminatorCandidate
}

export class CircuitCreation {
  readonly #parts: CircuitCreationParts
  /** Router of the client → the number of its requests that are not completed. */
  readonly #pending = new Map<string, number>()
  #pendingCount = 0

  constructor(parts: CircuitCreationParts) {
    this.#parts = parts
  }

  /**
   * Creates a circuit: its routers forward data when this resolves.
   * @throws CircuitError if no terminator can be reached; then no router keeps state of it that it reported
   */
  async create(request: CircuitRequest): Promise<CreatedCircuit> {
    this.#requireCapacity(request.routerId)
    this.#addPending(request.routerId, 1)
    try {
      return await this.#createByAttempts(request)
    } finally {
      this.#addPending(request.routerId, -1)
    }
  }

  #requireCapacity(routerId: string): void {
    const isBusy = this.#pendingCount >= MAX_PENDING || (this.#pending.get(routerId) ?? 0) >= MAX_PENDING_OF_ROUTER
    if (isBusy || this.#parts.countCircuits(routerId) >= MAX_CIRCUITS_OF_ROUTER)
      throw new CircuitError('TOO_MANY_CIRCUITS', 'the router requests more circuits than it can have')
  }

  #addPending(routerId: string, difference: 1 | -1): void {
    this.#pendingCount += difference
    const count = (this.#pending.get(routerId) ?? 0) + difference
    if (count === 0) this.#pending.delete(routerId)
    else this.#pending.set(routerId, count)
  }

  async #createByAttempts(request: CircuitRequest): Promise<CreatedCircuit> {
    for (let number = 0; ; number += 1) {
      const attempt = this.#prepareAttempt(request)
      const outcome = await this.#route(request, attempt, number)
      if (outcome.isSuccess) {
        const peerData = collectPeerData(request.service, attempt.candidate.terminator, outcome.peerData)
        return { circuit: attempt.circuit, peerData }
      }
      this.#cleanUp(request, attempt, outcome)
      // The client of a router that is gone does not wait any more.
      const isClientGone = this.#parts.connected.get(request.routerId) === undefined
      if (number + 1 === MAX_ATTEMPTS || isClientGone) {
        const message = `the service could not be reached in ${number + 1} attempts: ${outcome.message}`
        throw new CircuitError(toFailureCause(outcome.failure), message, attempt.circuit.id)
      }
    }
  }

  /** Draws the consequences of an attempt that failed, for its routers and for its terminator. */
  #cleanUp(
    { service }: CircuitRequest,
    { circuit, candidate }: CircuitAttempt,
    outcome: RouteOutcome & { isSuccess: false },
  ): void {
    const { costs, rejectTerminator, terminators, unroutes } = this.#parts
    const { terminator } = candidate
    for (const routerId of outcome.holderIds) unroutes.send(routerId, circuit.id, true)
    for (const routerId of outcome.unreportedIds) unroutes.awaitReport(routerId, circuit.id)
    const isTerminatorToBlame = outcome.routerId === undefined || outcome.routerId === terminator.routerId
    const hasCost = service.terminatorStrategy !== 'random' && terminators.get(terminator.id) !== undefined
    if (isTerminatorToBlame && hasCost) costs.addFailure(terminator.id)
    // Only its own router knows the address of a terminator.
    const isUnknown = outcome.failure?.kind === 'invalid terminator' && outcome.routerId === terminator.routerId
    if (isUnknown) rejectTerminator(terminator)
  }

  /**
   * Chooses a terminator, and names the circuit. Each attempt has an id of its own, so that what routers still say of an earlier
   * one concerns no other. @throws CircuitError if there is nothing to choose from
   */
  #prepareAttempt(request: CircuitRequest): CircuitAttempt {
    const { clientId, sessionId, isSessionSigned, service, instanceId } = request
    const { clock, ids, traces } = this.#parts
    const candidate = this.#chooseTerminator(request)
    const { terminator, path } = candidate
    const now = clock.now()
    const circuit: Circuit = {
      id: ids.create(path.routerIds, service.maxIdleTimeMillis),
      createdAt: now,
      updatedAt: now,
      clientId,
      sessionId,
      isSessionSigned,
      serviceId: service.id,
      terminatorId: terminator.id,
      strategy: service.terminatorStrategy,
      hostId: terminator.hostId,
      hostSessionId: terminator.sessionId,
      path,
      tags: {
        serviceId: instanceId === '' ? service.id : `${instanceId}@${service.id}`,
        clientId,
        hostId: terminator.hostId,
      },
      ingressAddress: newEndAddress(),
      egressAddress: newEndAddress(),
      idleSince: undefined,
    }
    traces.recordPath(circuit, candidate.cost)
    return { circuit, candidate }
  }

  /** @throws CircuitError */
  #chooseTerminator({ routerId, service, instanceId, peerData }: CircuitRequest): TerminatorCandidate {
    const { terminators, connected, paths, costs, random } = this.#parts
    const all = terminators.listOfService(service.id, instanceId)
    if (all.length === 0) throw new CircuitError('NO_TERMINATORS', 'the service has no terminators')
    const online = all.filter((terminator) => connected.get(terminator.routerId))
    if (online.length === 0) throw this.#noneOnline(all)
    const candidates = online.flatMap((terminator): TerminatorCandidate[] => {
      const path = paths.findPath(routerId, terminator.routerId)
      return path ? [{ terminator, path, cost: path.cost + terminator.cost + costs.get(terminator.id) }] : []
    })
    const choice = chooseTerminator(candidates, {
      strategy: service.terminatorStrategy,
      stickyTerminatorId: peerData.get(STICKY_TERMINATOR)?.toString(),
      random,
    })
    if (!choice) throw this.#noPath(all)
    return choice
  }

  #noneOnline(all: readonly LiveTerminator[]): CircuitError {
    const elsewhere = this.#describeElsewhere(
      'its routers are',
      all.map(({ routerId }) => routerId),
    )
    return new CircuitError('NO_ONLINE_TERMINATORS', `the service has no online terminators${elsewhere}`)
  }

  #noPath(all: readonly LiveTerminator[]): CircuitError {
    const ids = [...all.map(({ routerId }) => routerId), ...this.#parts.listIdsElsewhere()]
    const elsewhere = this.#describeElsewhere('routers that may lead there are', ids)
    return new CircuitError('NO_PATH', `no path leads to a terminator of the service${elsewhere}`)
  }

  /** Another controller may have the routers: this one routes over those alone that are connected to it. */
  #describeElsewhere(subject: string, routerIds: readonly string[]): string {
    const { connected, listNodesOf } = this.#parts
    const nodes = new Set(routerIds.filter((id) => !connected.get(id)).flatMap((id) => listNodesOf(id)))
    return nodes.size > 0
      ? `: ${subject} connected to the controller ${[...nodes].sort().join(', ')}, and not to this one`
      : ''
  }

  /** Sends all routers of the path their parts at once, and waits for their results. */
  #route(request: CircuitRequest, { circuit, candidate }: CircuitAttempt, number: number): Promise<RouteOutcome> {
    const { clock, connected, results, traces, open } = this.#parts
    const { id: circuitId, path, tags } = circuit
    const deadline = clock.monotonic() + ROUTE_TIMEOUT_MS
    const { binding, address: destination, routerId: hostRouterId } = candidate.terminator
    const peerData = introduceClient(request, connected.get(hostRouterId)?.hello.hasDataModel === true)
    const egress = { binding, address: circuit.egressAddress, destination, peerData }
    const trace = traces.toRouteTrace(circuit)
    return new Promise((resolve) => {
      results.wait({ circuitId, attempt: number, routerIds: path.routerIds, deadline }, (outcome) => {
        // At once: the next message of the router may already say that the circuit ended.
        if (outcome.isSuccess) open(circuit)
        traces.recordOutcome(circuit, outcome)
        resolve(outcome)
      })
      for (const { routerId, forwards, isLast } of planRoutes(path, circuit)) {
        const timeoutMs = deadline - clock.monotonic()
        const part = { circuitId, attempt: number, forwards, tags, timeoutMs, ...(trace ? { trace } : {}) }
        const router = connected.get(routerId)
        if (!router) return results.loseRouter(routerId)
        router.connection.sendRoute(isLast ? { ...part, egress } : part)
      }
    })
  }
}

/**
 * The data of the client, with its identity if the router of the host passes it on. The controller states the identity: what the client
 * or its router says of it is dropped.
 */
function introduceClient({ clientId, clientName, peerData }: CircuitRequest, isPassedOn: boolean): PeerData {
  const introduced = new Map(peerData)
  for (const [header, value] of [
    [CLIENT_ID, clientId],
    [CLIENT_NAME, clientName],
  ] as const) {
    if (isPassedOn) introduced.set(header, Buffer.from(value))
    else introduced.delete(header)
  }
  return introduced
}
/** The data that was stored when the host bound the service, overridden by what the host said for this circuit. */
function collectPeerData(service: DialedService, terminator: LiveTerminator, runtime: PeerData): PeerData {
  const peerData = new Map([...terminator.peerData, ...runtime])
  if (service.terminatorStrategy === 'sticky') peerData.set(STICKY_TERMINATOR, Buffer.from(terminator.id))
  return peerData
}

const CAUSES: Readonly<Record<RouteFailure['kind'], CircuitFailureCause>> = {
  generic: 'ROUTER_ERR_GENERIC',
  'invalid terminator': 'ROUTER_ERR_INVALID_TERMINATOR',
  'misconfigured terminator': 'ROUTER_ERR_MISCONFIGURED_TERMINATOR',
  'dial timed out': 'ROUTER_ERR_DIAL_TIMED_OUT',
  'dial refused': 'ROUTER_ERR_CONN_REFUSED',
  'rejected by the application': 'ROUTER_ERR_REJECTED_BY_APPLICATION',
  'name not resolved': 'ROUTER_ERR_DNS_RESOLUTION_FAILED',
  'port not allowed': 'ROUTER_ERR_PORT_NOT_ALLOWED',
  'invalid link destination': 'ROUTER_ERR_INVALID_LINK_DESTINATION',
  'resources not available': 'ROUTER_ERR_RESOURCES_NOT_AVAILABLE',
}

const toFailureCause = (failure: RouteFailure | undefined): CircuitFailureCause =>
  failure ? CAUSES[failure.kind] : 'ROUTER_RESPONSE_TIMEOUT'
