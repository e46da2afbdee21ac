// Paths: the cheapest way between two routers, whatever changed before it is asked for.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Path, PathLink } from '../../src/network/links/path.ts'
import { Paths } from '../../src/network/links/paths.ts'

const link = (id: string, sourceId: string, destinationId: string): PathLink => ({ id, sourceId, destinationId })

/** A line a – b – c with links of cost 1, and a link from a to c of cost 30. */
function network(): Paths {
  const paths = new Paths()
  for (const id of ['a', 'b', 'c']) paths.connectRouter(id)
  paths.setLink(link('ab', 'a', 'b'), 1)
  paths.setLink(link('bc', 'b', 'c'), 1)
  paths.setLink(link('ac', 'a', 'c'), 30)
  return paths
}

const routersOf = (path: Path | undefined) => path?.routerIds.join('')
const linksOf = (path: Path | undefined) => path?.links.map(({ id }) => id)

describe('a path', () => {
  it('within one router has no links and costs nothing', () => {
    expect(network().findPath('a', 'a')).toEqual({ routerIds: ['a'], links: [], cost: 0 })
  })

  it('costs its links and the routers that it enters, each at least 10', () => {
    const paths = network()
    paths.setRouterCost('c', { cost: 25, noTraversal: false })
    expect(paths.findPath('a', 'c')).toMatchObject({ routerIds: ['a', 'b', 'c'], cost: 1 + 10 + 1 + 25 })
    expect(paths.findPath('c', 'a')).toMatchObject({ routerIds: ['c', 'b', 'a'], cost: 1 + 10 + 1 + 10 })
  })

  it('uses the cheapest of several links between two routers', () => {
    const paths = network()
    paths.setLink(link('second', 'b', 'a'), 0)
    expect(linksOf(paths.findPath('a', 'b'))).toEqual(['second'])
    paths.setLink(link('second', 'b', 'a'), 2)
    expect(linksOf(paths.findPath('a', 'b'))).toEqual(['ab'])
  })

  it('does not lead through a router without traversal, but begins and ends there', () => {
    const paths = network()
    paths.setRouterCost('b', { cost: 0, noTraversal: true })
    expect(routersOf(paths.findPath('a', 'c'))).toBe('ac')
    expect(routersOf(paths.findPath('a', 'b'))).toBe('ab')
    expect(routersOf(paths.findPath('b', 'c'))).toBe('bc')
  })

  it('does not lead over a router that is not connected', () => {
    const paths = network()
    expect(routersOf(paths.findPath('a', 'c'))).toBe('abc')
    paths.disconnectRouter('b')
    expect(routersOf(paths.findPath('a', 'c'))).toBe('ac')
    expect(paths.findPath('a', 'b')).toBeUndefined()
    paths.connectRouter('b')
    expect(routersOf(paths.findPath('a', 'c'))).toBe('abc')
  })

  it('does not exist between routers without links between them', () => {
    const paths = network()
    paths.connectRouter('d')
    expect(paths.findPath('a', 'd')).toBeUndefined()
    expect(paths.findPath('a', 'unknown')).toBeUndefined()
    expect(paths.findPath('unknown', 'unknown')).toBeUndefined()
  })

  it('follows costs that change', () => {
    const paths = network()
    paths.setLink(link('bc', 'b', 'c'), 65_000)
    expect(routersOf(paths.findPath('a', 'c'))).toBe('ac')
    paths.setLink(link('bc', 'b', 'c'), 2)
    expect(routersOf(paths.findPath('a', 'c'))).toBe('abc')
    paths.removeLink('ab')
    expect(routersOf(paths.findPath('a', 'c'))).toBe('ac')
  })

  it('follows a link id that another router uses', () => {
    const paths = network()
    paths.connectRouter('d')
    paths.setLink(link('ac', 'd', 'c'), 1)
    expect(routersOf(paths.findPath('d', 'a'))).toBe('dcba')
  })
})

// The same by trying all paths, as the definition says.

const IDS = ['a', 'b', 'c', 'd', 'e', 'f']

interface Network {
  readonly routers: Map<string, { isConnected: boolean; cost: number; noTraversal: boolean }>
  readonly links: Map<string, { link: PathLink; cost: number }>
}

/** The least cost of all ways that pass no router twice; Infinity without any. */
function leastCost({ routers, links }: Network, from: string, to: string, passed: readonly string[] = []): number {
  if (!routers.get(from)?.isConnected || !routers.get(to)?.isConnected) return Number.POSITIVE_INFINITY
  if (from === to) return 0
  if (passed.length > 0 && routers.get(from)!.noTraversal) return Number.POSITIVE_INFINITY
  let least = Number.POSITIVE_INFINITY
  for (const { link: one, cost } of links.values()) {
    if (one.sourceId !== from && one.destinationId !== from) continue
    const next = one.sourceId === from ? one.destinationId : one.sourceId
    const router = routers.get(next)
    if (!router?.isConnected || next === from || passed.includes(next)) continue
    const rest = leastCost({ routers, links }, next, to, [...passed, from])
    least = Math.min(least, cost + Math.max(router.cost, 10) + rest)
  }
  return least
}

/** The cost of a path by its links and routers; undefined if it is not a way through the network. */
function walk({ routers, links }: Network, { routerIds, links: used }: Path): number | undefined {
  let cost = 0
  for (const [at, { id }] of used.entries()) {
    const [from, to] = [routerIds[at]!, routerIds[at + 1]!]
    const { link: one, cost: linkCost } = links.get(id)!
    if (`${from}${to}` !== one.sourceId + one.destinationId && `${to}${from}` !== one.sourceId + one.destinationId)
      return undefined
    if (at > 0 && routers.get(from)!.noTraversal) return undefined
    cost += linkCost + Math.max(routers.get(to)!.cost, 10)
  }
  return cost
}

/** The pairs of routers whose path is not as the definition demands. */
function listWrongPaths(paths: Paths, expected: Network): string[] {
  return IDS.flatMap((from) =>
    IDS.filter((to) => {
      const path = paths.findPath(from, to)
      const least = leastCost(expected, from, to)
      if (!path) return Number.isFinite(least)
      return path.cost !== least || walk(expected, path) !== least
    }).map((to) => `${from} to ${to}`),
  )
}

const anyId = fc.constantFrom(...IDS)
const anyCost = fc.integer({ min: 0, max: 60 })
const anyChange = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(fc.constant('link'), anyId, anyId, anyCost, fc.constantFrom('', '2')) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('unlink'), anyId, anyId, fc.constantFrom('', '2')) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('connect'), anyId) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('disconnect'), anyId) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('cost'), anyId, anyCost, fc.boolean()) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('remove'), anyId) },
)

type Change = readonly [kind: string, ...values: unknown[]]

function apply(paths: Paths, { routers, links }: Network, change: Change): void {
  const [kind, id, ...values] = change as [string, string, ...unknown[]]
  const router = routers.get(id) ?? { isConnected: false, cost: 0, noTraversal: false }
  const linkId = (suffix: unknown) => [id, values[0]].sort().join('') + suffix
  switch (kind) {
    case 'link': {
      const [other, cost, suffix] = values as [string, number, string]
      if (other === id) break
      // Mostly in the same direction, so that the cost of a link changes more often than its ends.
      const [source, destination] = cost % 7 === 0 ? [id, other] : ([id, other].sort() as [string, string])
      const added = link(linkId(suffix), source, destination)
      links.set(added.id, { link: added, cost })
      paths.setLink(added, cost)
      break
    }
    case 'unlink':
      links.delete(linkId(values[1]))
      paths.removeLink(linkId(values[1]))
      break
    case 'connect':
      routers.set(id, { ...router, isConnected: true })
      paths.connectRouter(id)
      break
    case 'disconnect':
      routers.set(id, { ...router, isConnected: false })
      paths.disconnectRouter(id)
      break
    case 'cost': {
      const [cost, noTraversal] = values as [number, boolean]
      routers.set(id, { ...router, cost, noTraversal })
      paths.setRouterCost(id, { cost, noTraversal })
      break
    }
    default:
      routers.delete(id)
      for (const [key, { link: one }] of links) {
        if (one.sourceId === id || one.destinationId === id) links.delete(key)
      }
      paths.removeRouter(id)
  }
}

describe('after any changes', () => {
  it('the path between any two routers costs least of all that exist', () => {
    fc.assert(
      fc.property(fc.array(anyChange, { minLength: 20, maxLength: 60 }), (changes) => {
        const paths = new Paths()
        const expected: Network = { routers: new Map(), links: new Map() }
        for (const id of IDS) apply(paths, expected, ['connect', id])
        for (const change of changes) {
          apply(paths, expected, change as Change)
          // Every pair after every change, so that trees are cached when the next one comes.
          expect(listWrongPaths(paths, expected)).toEqual([])
        }
      }),
      { numRuns: 40 },
    )
  })
})
