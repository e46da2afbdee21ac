// The cheapest paths from one router to all others, and which changes of the network alter them.
//
// A change of a link concerns a tree only if the tree uses the link, or a path over the link became cheaper: two
// comparisons, so that reports of latency do not recompute all paths.
import { NodeQueue } from './node-queue.ts'
import type { GraphLink, GraphRouter, RouterGraph } from './router-graph.ts'

/** The cheapest paths from one router, until it is discarded because a change alters one of them. */
export class ShortestPathTree {
  readonly #source: GraphRouter
  /** Router → the cost of the path to it; Infinity if there is none. Routers that were added later have no place in it. */
  readonly #costs: Float64Array
  /** Router → the last link of the path to it. */
  readonly #lastLinks: (GraphLink | undefined)[]

  /** Finds the paths by Dijkstra's algorithm. The source must be connected. */
  constructor(graph: RouterGraph, source: GraphRouter) {
    this.#source = source
    this.#costs = new Float64Array(graph.size).fill(Number.POSITIVE_INFINITY)
    this.#lastLinks = new Array(graph.size).fill(undefined)
    const costs = this.#costs
    const queue = new NodeQueue(costs)
    costs[source.index] = 0
    queue.push(source.index)
    for (let index = queue.pop(); index >= 0; index = queue.pop()) {
      const router = graph.at(index)
      if (!this.#canLeave(router)) continue
      const cost = costs[index]!
      for (const { link, neighbour } of router.exits) {
        if (!neighbour.isConnected) continue
        const costOver = cost + link.cost + neighbour.cost
        if (costOver >= costs[neighbour.index]!) continue
        costs[neighbour.index] = costOver
        this.#lastLinks[neighbour.index] = link
        queue.push(neighbour.index)
      }
    }
  }

  get source(): GraphRouter {
    return this.#source
  }

  /** The cost of the path to a router; Infinity if there is none. */
  getCost({ index }: GraphRouter): number {
    return this.#costs[index] ?? Number.POSITIVE_INFINITY
  }

  /** The last link of the path to a router; undefined for the source, and if there is no path. */
  getLastLink({ index }: GraphRouter): GraphLink | undefined {
    return this.#lastLinks[index]
  }

  /** Whether a path of the tree uses a link: no other path changes if the link costs more, or goes. */
  uses(link: GraphLink): boolean {
    return this.#endsWith(link.destination, link) || this.#endsWith(link.source, link)
  }

  /** Whether a path over a link is cheaper than one of the tree: because the link is new, or its cost became less. */
  isImprovedBy(link: GraphLink): boolean {
    const { source, destination } = link
    return this.#isCheaperOver(link, source, destination) || this.#isCheaperOver(link, destination, source)
  }

  /** Follows that a router was disconnected. Returns whether the tree stays valid: that is if no path leads through it. */
  removeLeaf(router: GraphRouter): boolean {
    if (router === this.#source) return false
    if (router.exits.some(({ link, neighbour }) => this.#endsWith(neighbour, link))) return false
    if (router.index < this.#costs.length) {
      this.#costs[router.index] = Number.POSITIVE_INFINITY
      this.#lastLinks[router.index] = undefined
    }
    return true
  }

  #endsWith({ index }: GraphRouter, link: GraphLink): boolean {
    return this.#lastLinks[index] === link
  }

  #isCheaperOver(link: GraphLink, from: GraphRouter, to: GraphRouter): boolean {
    if (!from.isConnected || !to.isConnected || !this.#canLeave(from)) return false
    return this.getCost(from) + link.cost + to.cost < this.getCost(to)
  }

  /** Whether a path may go on from a router that it has reached. */
  #canLeave(router: GraphRouter): boolean {
    return router === this.#source || !router.noTraversal
  }
}
