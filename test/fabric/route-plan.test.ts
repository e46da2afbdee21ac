// Route plans: following the forwards of a path from either end reaches the other end, over every link once.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { planRoutes, type RouterPart } from '../../src/network/circuits/route-plan.ts'
import type { Path } from '../../src/network/links/path.ts'

const ENDS = { ingressAddress: 'in', egressAddress: 'eg' }

/** A path over so many routers, whose links were dialed from either side. */
function pathOver(count: number, areReversed: readonly boolean[]): Path {
  const routerIds = Array.from({ length: count }, (_, at) => `router-${at}`)
  const links = routerIds.slice(1).map((id, at) => {
    const ends = [routerIds[at]!, id]
    const [sourceId, destinationId] = areReversed[at] ? ends.reverse() : ends
    return { id: `link-${at}`, sourceId: sourceId!, destinationId: destinationId! }
  })
  return { routerIds, links, cost: 0 }
}

/** Follows data from an end through the routers of a plan. Returns the addresses that it passes, and the kind of the last one. */
function follow(parts: readonly RouterPart[], path: Path, from: string, entryId: string) {
  const passed: string[] = []
  let routerId = entryId
  for (let address = from; ; ) {
    const part = parts.find((one) => one.routerId === routerId)!
    const forward = part.forwards.find((one) => one.from === address)!
    passed.push(forward.to)
    if (forward.toKind !== 'link') return { passed, kind: forward.toKind, routerId }
    address = forward.to
    const link = path.links.find(({ id }) => id === address)!
    routerId = link.sourceId === routerId ? link.destinationId : link.sourceId
  }
}

const paths = fc
  .tuple(fc.integer({ min: 1, max: 12 }), fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }))
  .map(([count, areReversed]) => pathOver(count, areReversed))

describe('a route plan', () => {
  it('leads data from the client to the terminator, and back the same way', () => {
    fc.assert(
      fc.property(paths, (path) => {
        const parts = planRoutes(path, ENDS)
        const linkIds = path.links.map(({ id }) => id)
        const [first, last] = [path.routerIds[0]!, path.routerIds.at(-1)!]
        expect(follow(parts, path, 'in', first)).toEqual({
          passed: [...linkIds, 'eg'],
          kind: 'terminator',
          routerId: last,
        })
        expect(follow(parts, path, 'eg', last)).toEqual({
          passed: [...linkIds.reverse(), 'in'],
          kind: 'client',
          routerId: first,
        })
      }),
    )
  })

  it('has one part for each router, with one forward for each direction; only the last reaches the terminator', () => {
    fc.assert(
      fc.property(paths, (path) => {
        const parts = planRoutes(path, ENDS)
        expect(parts.map(({ routerId }) => routerId)).toEqual(path.routerIds)
        for (const { forwards } of parts) expect(new Set(forwards.map(({ from }) => from)).size).toBe(2)
        expect(parts.map(({ isLast }) => isLast)).toEqual(parts.map((_, at) => at === parts.length - 1))
      }),
    )
  })
})
