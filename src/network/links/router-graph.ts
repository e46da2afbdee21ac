// The graph that paths are found in: routers, and the links that may carry traffic between them.
import type { PathLink } from './path.ts'

// Even a router without a cost of its own makes a path longer.
const MIN_ROUTER_COST = 10

export interface GraphRouter {
  readonly id: string
  /** Its place in arrays of all routers. */
  readonly index: number
  isConnected: boolean
  /** The cost of entering it. */
  cost: number
  /** Whether paths may only begin and end here. */
  noTraversal: boolean
  /** Its links, each with the router at the other end. */
  readonly exits: Exit[]
}

/** A link as one of its routers sees it. */
export interface Exit {
  readonly link: GraphLink
  readonly neighbour: GraphRouter
}

export interface GraphLink {
  readonly link: PathLink
  readonly source: GraphRouter
  readonly destination: GraphRouter
  cost: number
}

/** The settings in a router's record that concern its cost. */
export interface RouterCost {
  readonly cost: number
  readonly noTraversal: boolean
}

export class RouterGraph {
  readonly #routers = new Map<string, GraphRouter>()
  readonly #links = new Map<string, GraphLink>()
  /** By index; the places of routers that were removed are empty until others take them. */
  readonly #byIndex: (GraphRouter | undefined)[] = []
  readonly #freeIndexes: number[] = []

  /** More than any index of a router. */
  get size(): number {
    return this.#byIndex.length
  }

  getRouter(id: string): GraphRouter | undefined {
    return this.#routers.get(id)
  }

  getLink(id: string): GraphLink | undefined {
    return this.#links.get(id)
  }

  /** The router at an index that a router has. */
  at(index: number): GraphRouter {
    return this.#byIndex[index]!
  }

  /** Returns the router with this id, and adds it if it is not there. */
  ensureRouter(id: string): GraphRouter {
    const existing = this.#routers.get(id)
    if (existing) return existing
    const index = this.#freeIndexes.pop() ?? this.#byIndex.length
    const router = { id, index, isConnected: false, cost: MIN_ROUTER_COST, noTraversal: false, exits: [] }
    this.#routers.set(id, router)
    this.#byIndex[index] = router
    return router
  }

  /** Removes a router that has no links any more. */
  removeRouter(router: GraphRouter): void {
    this.#routers.delete(router.id)
    this.#byIndex[router.index] = undefined
    this.#freeIndexes.push(router.index)
  }

  setCost(router: GraphRouter, { cost, noTraversal }: RouterCost): void {
    router.cost = Math.max(cost, MIN_ROUTER_COST)
    router.noTraversal = noTraversal
  }

  addLink(link: PathLink, cost: number): GraphLink {
    const source = this.ensureRouter(link.sourceId)
    const destination = this.ensureRouter(link.destinationId)
    const added = { link, source, destination, cost }
    this.#links.set(link.id, added)
    source.exits.push({ link: added, neighbour: destination })
    destination.exits.push({ link: added, neighbour: source })
    return added
  }

  removeLink(removed: GraphLink): void {
    this.#links.delete(removed.link.id)
    for (const { exits } of [removed.source, removed.destination]) {
      exits.splice(
        exits.findIndex(({ link }) => link === removed),
        1,
      )
    }
  }
}

/** The other end of a link of a router. */
export function getNeighbour({ source, destination }: GraphLink, router: GraphRouter): GraphRouter {
  return source === router ? destination : source
}
