// Finds the cheapest path between two routers. Paths are cached by the router that they begin at, and a change of the network
// discards only those that it alters.
import type { Path, PathFinder, PathLink } from './path.ts'
import { type GraphLink, type GraphRouter, getNeighbour, type RouterCost, RouterGraph } from './router-graph.ts'
import { ShortestPathTree } from './shortest-path-tree.ts'

export class Paths implements PathFinder {
  readonly #graph = new RouterGraph()
  /** By the index of the router that the paths begin at. */
  readonly #trees = new Map<number, ShortestPathTree>()

  findPath(fromRouterId: string, toRouterId: string): Path | undefined {
    const source = this.#graph.getRouter(fromRouterId)
    const target = this.#graph.getRouter(toRouterId)
    if (!source?.isConnected || !target?.isConnected) return undefined
    const tree = this.#getTree(source)
    const cost = tree.getCost(target)
    return Number.isFinite(cost) ? readPath(tree, target, cost) : undefined
  }

  /** Whether a router exists, connected or not. */
  hasRouter(id: string): boolean {
    return this.#graph.getRouter(id) !== undefined
  }

  computePathCost({ routerIds, links }: Path): number | undefined {
    let cost = 0
    for (const [at, { id }] of links.entries()) {
      const [link, next] = [this.#graph.getLink(id), this.#graph.getRouter(routerIds[at + 1]!)]
      if (!link || !next?.isConnected) return undefined
      cost += link.cost + next.cost
    }
    return cost
  }

  /** From now on paths may begin, end and pass at a router. */
  connectRouter(id: string): void {
    const router = this.#graph.ensureRouter(id)
    if (router.isConnected) return
    router.isConnected = true
    for (const { link } of router.exits) this.#discard((tree) => tree.isImprovedBy(link))
  }

  /** From now on no path leads to a router. Its links stay, because it may come back. */
  disconnectRouter(id: string): void {
    const router = this.#graph.getRouter(id)
    if (!router?.isConnected) return
    router.isConnected = false
    this.#discard((tree) => !tree.removeLeaf(router))
  }

  /** Sets what a path through a router costs. */
  setRouterCost(id: string, cost: RouterCost): void {
    const router = this.#graph.ensureRouter(id)
    const { cost: costBefore, noTraversal: noTraversalBefore } = router
    this.#graph.setCost(router, cost)
    if (router.cost !== costBefore || router.noTraversal !== noTraversalBefore) this.#trees.clear()
  }

  /** Removes a router that was deleted, with its links. */
  removeRouter(id: string): void {
    const router = this.#graph.getRouter(id)
    if (!router) return
    for (const { link } of [...router.exits]) this.#graph.removeLink(link)
    this.#graph.removeRouter(router)
    this.#trees.clear()
  }

  /** From now on paths may use a link at this cost. */
  setLink(link: PathLink, cost: number): void {
    const existing = this.#graph.getLink(link.id)
    const isSame = existing?.source.id === link.sourceId && existing.destination.id === link.destinationId
    if (existing && isSame) this.#setLinkCost(existing, cost)
    else {
      if (existing) this.removeLink(link.id)
      const added = this.#graph.addLink(link, cost)
      this.#discard((tree) => tree.isImprovedBy(added))
    }
  }

  /** From now on no path uses a link. */
  removeLink(id: string): void {
    const link = this.#graph.getLink(id)
    if (!link) return
    this.#graph.removeLink(link)
    this.#discard((tree) => tree.uses(link))
  }

  #setLinkCost(link: GraphLink, cost: number): void {
    const costBefore = link.cost
    link.cost = cost
    if (cost > costBefore) this.#discard((tree) => tree.uses(link))
    else if (cost < costBefore) this.#discard((tree) => tree.uses(link) || tree.isImprovedBy(link))
  }

  #getTree(source: GraphRouter): ShortestPathTree {
    let tree = this.#trees.get(source.index)
    if (!tree) {
      tree = new ShortestPathTree(this.#graph, source)
      this.#trees.set(source.index, tree)
    }
    return tree
  }

  #discard(isAltered: (tree: ShortestPathTree) => boolean): void {
    for (const [index, tree] of this.#trees) if (isAltered(tree)) this.#trees.delete(index)
  }
}

function readPath(tree: ShortestPathTree, target: GraphRouter, cost: number): Path {
  const routerIds = [target.id]
  const links: PathLink[] = []
  let router = target
  for (let last = tree.getLastLink(router); last; last = tree.getLastLink(router)) {
    router = getNeighbour(last, router)
    routerIds.push(router.id)
    links.push(last.link)
  }
  return { routerIds: routerIds.reverse(), links: links.reverse(), cost }
}
