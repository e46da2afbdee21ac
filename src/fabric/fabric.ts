// What decides how traffic flows, as the controller holds it.
import type { Access } from '../access/access.ts'
import type { PostureDeadlines } from '../access/posture-deadlines.ts'
import type { ApiSessions } from '../auth/api-sessions.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { ConnectedRouters } from '../routers/connected-routers.ts'
import type { EntityStore } from '../store/entities.ts'
import type { Projection } from '../store/projection.ts'
import { HostedTerminators } from './hosted-terminators.ts'
import { Links } from './links.ts'
import type { PathFinder } from './path.ts'
import { Paths } from './paths.ts'
import { RouterCosts } from './router-costs.ts'
import { StoredLinkSettings } from './stored-link-settings.ts'
import { TerminatorDirectory } from './terminator-directory.ts'
import { TerminatorValidation } from './terminator-validation.ts'

export interface Fabric {
  readonly terminators: TerminatorDirectory
  readonly hosted: HostedTerminators
  readonly validation: TerminatorValidation
  readonly links: Links
  readonly linkSettings: StoredLinkSettings
  readonly paths: PathFinder
  /** What of it follows commits, in order. */
  readonly projections: readonly Projection[]
}

export interface FabricCollaborators {
  readonly access: Access
  readonly apiSessions: ApiSessions
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly deadlines: PostureDeadlines
  readonly entities: EntityStore
  readonly log: Log
}

export function createFabric(parts: FabricCollaborators): Fabric {
  const { access, apiSessions, clock, connected, deadlines, entities, log } = parts
  const terminators = new TerminatorDirectory()
  const paths = new Paths()
  const linkSettings = new StoredLinkSettings(entities)
  const links = new Links({ clock, log, connected, paths, settings: linkSettings })
  return {
    terminators,
    hosted: new HostedTerminators({ access, apiSessions, deadlines, entities, directory: terminators }),
    validation: new TerminatorValidation({ clock, connected, directory: terminators }),
    links,
    linkSettings,
    paths: links,
    projections: [terminators, linkSettings, new RouterCosts(paths, links)],
  }
}
