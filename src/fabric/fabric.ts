// What decides how traffic flows, as the controller holds it.
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { ConnectedRouters } from '../routers/connected-routers.ts'
import type { EntityStore } from '../store/entities.ts'
import type { Projection } from '../store/projection.ts'
import { Links } from './links.ts'
import type { PathFinder } from './path.ts'
import { Paths } from './paths.ts'
import { RouterCosts } from './router-costs.ts'
import { StoredLinkSettings } from './stored-link-settings.ts'
import { TerminatorDirectory } from './terminator-directory.ts'

export interface Fabric {
  readonly terminators: TerminatorDirectory
  readonly links: Links
  readonly linkSettings: StoredLinkSettings
  readonly paths: PathFinder
  /** What of it follows commits, in order. */
  readonly projections: readonly Projection[]
}

export interface FabricCollaborators {
  readonly clock: Clock
  readonly log: Log
  readonly connected: ConnectedRouters
  readonly entities: EntityStore
}

export function createFabric({ clock, log, connected, entities }: FabricCollaborators): Fabric {
  const terminators = new TerminatorDirectory()
  const paths = new Paths()
  const linkSettings = new StoredLinkSettings(entities)
  const links = new Links({ clock, log, connected, paths, settings: linkSettings })
  const routerCosts = new RouterCosts(paths, links)
  return { terminators, links, linkSettings, paths: links, projections: [terminators, linkSettings, routerCosts] }
}
