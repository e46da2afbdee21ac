// The table of circuits: every index agrees with a search of all circuits, whatever happened before.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Circuit, type CircuitFilter, CircuitTable } from '../../src/network/circuits/circuit-table.ts'
import type { Path } from '../../src/network/links/path.ts'

const toPath = (routerIds: readonly string[]): Path => ({
  routerIds,
  links: routerIds.slice(1).map((id, at) => ({
    id: [routerIds[at], id].sort().join('-'),
    sourceId: routerIds[at]!,
    destinationId: id,
  })),
  cost: 0,
})

const routerPaths = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1 }).map(toPath)

const circuits = fc.record({
  id: fc.constantFrom('1', '2', '3', '4', '5'),
  serviceId: fc.constantFrom('s', 't'),
  clientId: fc.constantFrom('i', 'j'),
  sessionId: fc.constantFrom('x', 'y'),
  path: routerPaths,
})

const steps = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), circuit: circuits }),
  fc.record({ kind: fc.constant('remove' as const), id: fc.constantFrom('1', '2', '3') }),
  fc.record({ kind: fc.constant('move' as const), id: fc.constantFrom('1', '2', '3'), path: routerPaths }),
)

const filters = fc.record(
  {
    serviceId: fc.constantFrom('s', 't', 'none'),
    clientId: fc.constantFrom('i', 'j'),
    sessionId: fc.constantFrom('x', 'y'),
    routerId: fc.constantFrom('a', 'b', 'z'),
    linkId: fc.constantFrom('a-b', 'b-c'),
  },
  { requiredKeys: [] },
)

function matches({ path, ...circuit }: Circuit, { routerId, linkId, ...values }: CircuitFilter): boolean {
  return (
    (routerId === undefined || path.routerIds.includes(routerId)) &&
    (linkId === undefined || path.links.some(({ id }) => id === linkId)) &&
    Object.entries(values).every(([key, value]) => circuit[key as keyof typeof circuit] === value)
  )
}

describe('the table of circuits', () => {
  it('lists what a search of all circuits finds', () => {
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 30 }), filters, (list, filter) => {
        const table = new CircuitTable()
        const expected = new Map<string, Circuit>()
        for (const step of list) {
          if (step.kind === 'add' && !expected.has(step.circuit.id)) {
            const circuit = step.circuit as unknown as Circuit
            table.add(circuit)
            expected.set(circuit.id, circuit)
          } else if (step.kind === 'remove') {
            table.remove(step.id)
            expected.delete(step.id)
          } else if (step.kind === 'move') {
            table.setPath(step.id, step.path, 7)
            const circuit = expected.get(step.id)
            if (circuit) expected.set(step.id, { ...circuit, path: step.path, updatedAt: 7 })
          }
        }
        const result = table.list(filter)
        const searched = [...expected.values()].filter((circuit) => matches(circuit, filter))
        const byId = (a: Circuit, b: Circuit) => (a.id < b.id ? -1 : 1)
        expect(result.sort(byId)).toEqual(searched.sort(byId))
        expect(table.size).toBe(expected.size)
      }),
    )
  })
})
