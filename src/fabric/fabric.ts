// What decides how traffic flows, as the controller holds it.
import type { Kysely } from 'kysely'
import type { Access } from '../access/access.ts'
import type { PostureDeadlines } from '../access/posture-deadlines.ts'
import type { ApiSessions } from '../auth/api-sessions.ts'
import type { AuthPolicyCache } from '../auth/auth-policies.ts'
import type { Clock, Instant } from '../clock.ts'
import type { Context } from '../context.ts'
import type { Log } from '../log.ts'
import type { ConnectedRouters } from '../routers/connected-routers.ts'
import type { Database } from '../store/database.ts'
import type { EntityStore } from '../store/entities.ts'
import type { Projection } from '../store/projection.ts'
import { CircuitIds } from './circuit-ids.ts'
import { CircuitReports } from './circuit-reports.ts'
import { CircuitUpkeep } from './circuit-upkeep.ts'
import { Circuits } from './circuits.ts'
import { Dials } from './dials.ts'
import { HostedTerminators } from './hosted-terminators.ts'
import { IdentityTraces } from './identity-traces.ts'
import { Links } from './links.ts'
import type { PathFinder } from './path.ts'
import { Paths } from './paths.ts'
import { Rerouting } from './rerouting.ts'
import { RouteResults } from './route-results.ts'
import { RouterCosts } from './router-costs.ts'
import { SmartRerouting } from './smart-rerouting.ts'
import { StoredLinkSettings } from './stored-link-settings.ts'
import { type LiveTerminator, TerminatorDirectory } from './terminator-directory.ts'
import { TerminatorValidation } from './terminator-validation.ts'
import type { LiveTraffic } from './traffic.ts'

export interface Fabric {
  readonly terminators: TerminatorDirectory
  readonly hosted: HostedTerminators
  readonly validation: TerminatorValidation
  readonly links: Links
  readonly linkSettings: StoredLinkSettings
  readonly paths: PathFinder
  readonly circuits: Circuits
  /** What routers report of circuits. */
  readonly reports: CircuitReports
  readonly dials: Dials
  readonly traces: IdentityTraces
  /** What of it follows commits, in order. */
  readonly projections: readonly Projection[]
  /** Does what is due by the clock. Called once a second. */
  tick(): void
}

export interface FabricCollaborators {
  readonly access: Access
  readonly apiSessions: ApiSessions
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly deadlines: PostureDeadlines
  readonly entities: EntityStore
  readonly log: Log
  readonly db: Kysely<Database>
  readonly startedAt: Instant
  readonly policies: AuthPolicyCache
  readonly traffic: LiveTraffic
  /** The context of changes that follow from what routers report. */
  createSystemContext(): Context
}

/** Composes the fabric, which follows the routers from now on. */
export function createFabric(parts: FabricCollaborators): Fabric {
  const { access, apiSessions, clock, connected, db, deadlines, entities, log, policies, traffic } = parts
  const terminators = new TerminatorDirectory()
  const network = new Paths()
  const linkSettings = new StoredLinkSettings(entities)
  const links = new Links({ clock, log, connected, paths: network, settings: linkSettings })
  const validation = new TerminatorValidation({ clock, connected, directory: terminators })
  const right = { access, apiSessions, deadlines, policies }
  const { costs, circuits: table } = traffic
  const shared = { clock, log, connected, paths: links, results: new RouteResults(clock), costs }
  const ids = new CircuitIds(parts.startedAt)
  const traces = new IdentityTraces(clock, log)
  const hosted = new HostedTerminators({ ...right, entities, directory: terminators })
  const rejectTerminator = (terminator: LiveTerminator) => {
    hosted.reject(parts.createSystemContext(), terminator).catch((error: unknown) => {
      log.error({ err: error, terminatorId: terminator.id }, 'the record of a terminator could not be changed')
    })
  }
  const circuits = new Circuits({ ...shared, ids, random: Math.random, rejectTerminator, table, terminators, traces })
  const rerouting = new Rerouting({ ...shared, circuits })
  const reports = new CircuitReports({ ...shared, db, circuits, ids, rerouting })
  const upkeep = new CircuitUpkeep({ ...shared, circuits, inherited: reports.inherited, rerouting })
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
    links,
    linkSettings,
    paths: links,
    circuits,
    reports,
    dials: new Dials({ ...right, db, circuits }),
    traces,
    projections: [terminators, linkSettings, new RouterCosts(network, links), upkeep],
    tick() {
      validation.tick()
      links.tick()
      shared.results.expire()
      upkeep.tick()
      smartRerouting.tick()
      circuits.failures.tick()
    },
  }
}
