// Composes the parts that decide how traffic flows.

import type { Kysely } from 'kysely'
import type { Access } from '../access/access.ts'
import type { SessionTokens } from '../access/sessions/session-tokens.ts'
import type { ApiSessions } from '../authentication/api-sessions/api-sessions.ts'
import type { AuthPolicies } from '../authentication/auth-policies.ts'
import type { AggregatedLog } from '../foundation/aggregated-log.ts'
import type { Clock, Instant } from '../foundation/clock.ts'
import type { Log } from '../foundation/log.ts'
import type { Database } from '../storage/database.ts'
import type { EntityStore } from '../storage/entities/entities.ts'
import type { Context } from '../storage/transactions/context.ts'
import type { Projection } from '../storage/transactions/projection.ts'
import { CircuitDeletion } from './circuits/circuit-deletion.ts'
import { CircuitIds } from './circuits/circuit-ids.ts'
import { CircuitReports } from './circuits/circuit-reports.ts'
import { CircuitUpkeep } from './circuits/circuit-upkeep.ts'
import { Circuits } from './circuits/circuits.ts'
import { Dials } from './circuits/dials.ts'
import { Rerouting } from './circuits/rerouting.ts'
import { RouteResults } from './circuits/route-results.ts'
import { SmartRerouting } from './circuits/smart-rerouting.ts'
import { Unroutes } from './circuits/unroutes.ts'
import type { RightParts } from './client-requests/session-right.ts'
import { IdentityTraces } from './identity-traces.ts'
import { Links } from './links/links.ts'
import type { PathFinder } from './links/path.ts'
import { Paths } from './links/paths.ts'
import { RouterCosts } from './links/router-costs.ts'
import { StoredLinkSettings } from './links/stored-link-settings.ts'
import type { ConnectedRouters } from './routers/connected-routers.ts'
import { EndedBinds } from './terminators/ended-binds.ts'
import { HostedTerminators } from './terminators/hosted-terminators.ts'
import { type LiveTerminator, TerminatorDirectory } from './terminators/terminator-directory.ts'
import { TerminatorValidation } from './terminators/terminator-validation.ts'
import type { LiveTraffic } from './traffic.ts'

export interface Fabric {
  readonly terminators: TerminatorDirectory
  readonly hosted: HostedTerminators
  readonly validation: TerminatorValidation
  readonly endedBinds: EndedBinds
  readonly links: Links
  readonly linkSettings: StoredLinkSettings
  readonly paths: PathFinder
  readonly circuits: Circuits
  /** Ends circuits for administrators. */
  readonly circuitDeletion: CircuitDeletion
  readonly unroutes: Unroutes
  /** The routers' reports about circuits. */
  readonly reports: CircuitReports
  readonly dials: Dials
  readonly traces: IdentityTraces
  /** Its projections, in order. */
  readonly projections: readonly Projection[]
  /** Does what is due by the clock. Called once a second. */
  tick(): void
  /**
   * Leaves the circuits over routers that are connected to one controller at a time to the one that has these from now on. Called before
   * their connections end, so that none is told to drop any.
   */
  leave(): void
  /** Leaves all circuits, before this controller ends the connections of all routers because it is about to stop. */
  leaveAll(): void
  /** Takes those routers: all circuits that they have are those of an earlier process. */
  begin(): void
}

export interface FabricParts {
  readonly access: Access
  readonly aggregatedLog: AggregatedLog
  readonly apiSessions: ApiSessions
  /** Proves of circuits which routers carry them, also to a later process. */
  readonly circuitKey: Buffer
  /** Applies what other controllers have committed by now; undefined if there are none. */
  readonly catchUp: (() => Promise<void>) | undefined
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly entities: EntityStore
  readonly log: Log
  /** The name of this controller, if it has others beside it. */
  readonly node: string | undefined
  /** The names of the controllers beside it that run. */
  listLiveNodes(): readonly string[]
  /** The names of the controllers that a router is connected to; empty if this one is alone. */
  listNodesOf(routerId: string): readonly string[]
  /** The ids of the routers that other controllers have. */
  listIdsElsewhere(): readonly string[]
  /** Whether routers that are not connected could be. */
  readonly takesRouters: () => boolean
  /** Whether this controller is the one of several that leads routers. */
  readonly isLeading: () => boolean
  readonly db: Kysely<Database>
  readonly startedAt: Instant
  readonly policies: AuthPolicies
  readonly accessTokens: RightParts['accessTokens']
  readonly sessionTokens: SessionTokens
  readonly traffic: LiveTraffic
  /** The context of changes that follow from what routers report. */
  createSystemContext(): Context
}

/** Composes the fabric, which follows the routers from now on. */
export function createFabric(parts: FabricParts): Fabric {
  const {
    access,
    accessTokens,
    aggregatedLog,
    apiSessions,
    clock,
    connected,
    db,
    entities,
    log,
    policies,
    sessionTokens,
    traffic,
  } = parts
  const terminators = new TerminatorDirectory()
  const network = new Paths()
  const linkSettings = new StoredLinkSettings(entities)
  const links = new Links({ aggregatedLog, clock, connected, paths: network, settings: linkSettings })
  const { isLeading, listLiveNodes } = parts
  const validation = new TerminatorValidation({ clock, connected, directory: terminators, isLeading })
  const right = { access, accessTokens, apiSessions, catchUp: parts.catchUp, connected, policies, sessionTokens }
  const { costs, circuits: table } = traffic
  const unroutes = new Unroutes(connected)
  const shared = { aggregatedLog, clock, connected, paths: links, results: new RouteResults(clock), costs, unroutes }
  const ids = new CircuitIds(parts.circuitKey, parts.startedAt, parts.node)
  const traces = new IdentityTraces(clock, log)
  const hosted = new HostedTerminators({ ...right, entities, directory: terminators })
  const rejectTerminator = (terminator: LiveTerminator) => {
    hosted.reject(parts.createSystemContext(), terminator).catch((error: unknown) => {
      log.error({ err: error, terminatorId: terminator.id }, 'the record of a terminator could not be changed')
    })
  }
  const { listIdsElsewhere, listNodesOf } = parts
  const circuits = new Circuits({
    ...shared,
    ids,
    listIdsElsewhere,
    listNodesOf,
    random: Math.random,
    rejectTerminator,
    table,
    terminators,
    traces,
  })
  const rerouting = new Rerouting({ ...shared, circuits, ids })
  const reports = new CircuitReports({ ...shared, db, circuits, ids, rerouting, listLiveNodes })
  const upkeep = new CircuitUpkeep({
    ...{ ...shared, circuits, inherited: reports.inherited, rerouting, sessionTokens },
    takesRouters: parts.takesRouters,
  })
  const circuitDeletion = new CircuitDeletion({ clock, circuits, inherited: reports.inherited, unroutes })
  const { createSystemContext } = parts
  const endedBinds = new EndedBinds({
    ...{ connected, directory: terminators, hosted, log, sessionTokens, createSystemContext },
  })
  const smartRerouting = new SmartRerouting({ ...shared, circuits, rerouting })
  connected.addObserver(upkeep)
  links.onLost(({ id }, loss) => {
    if (loss === 'unreachable') upkeep.avoidLink(id)
    else upkeep.loseLink(id)
  })
  return {
    terminators,
    hosted,
    validation,
    endedBinds,
    links,
    linkSettings,
    paths: links,
    circuits,
    circuitDeletion,
    unroutes,
    reports,
    dials: new Dials({ ...right, db, circuits, mayGrant: parts.takesRouters }),
    traces,
    projections: [terminators, linkSettings, new RouterCosts(network, links), traces, upkeep, endedBinds],
    tick() {
      validation.tick()
      links.tick()
      shared.results.expire()
      upkeep.tick()
      circuitDeletion.tick()
      smartRerouting.tick()
    },
    leave() {
      const isInTurn = (routerId: string) => connected.isInTurn(routerId)
      circuits.leave(isInTurn)
      for (const routerId of connected.listIds().filter(isInTurn)) reports.inherited.loseRouter(routerId)
      // Reports of the other routers about those circuits concern an earlier process, too.
      ids.begin(clock.now())
    },
    leaveAll() {
      circuits.leave(() => true)
      ids.begin(clock.now())
    },
    begin() {
      ids.begin(clock.now())
    },
  }
}
