// The choice of a terminator: precedence first, then by the strategy of the service.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type ChoiceOptions,
  chooseTerminator,
  type TerminatorCandidate,
} from '../../src/network/terminators/terminator-choice.ts'
import type { LiveTerminator } from '../../src/network/terminators/terminator-directory.ts'

function candidate(
  id: string,
  cost: number,
  precedence: LiveTerminator['precedence'] = 'default',
): TerminatorCandidate {
  const terminator = { id, precedence } as LiveTerminator
  return { terminator, cost, path: { routerIds: ['router'], links: [], cost } }
}

function choose(candidates: readonly TerminatorCandidate[], options: Partial<ChoiceOptions> = {}): string | undefined {
  const defaults: ChoiceOptions = { strategy: 'smartrouting', stickyTerminatorId: undefined, random: () => 0 }
  return chooseTerminator(candidates, { ...defaults, ...options })?.terminator.id
}

const strategies = ['smartrouting', 'weighted', 'random', 'sticky'] as const

/** How often each is chosen for evenly spread random numbers. */
function countChoices(candidates: readonly TerminatorCandidate[], strategy: ChoiceOptions['strategy'], turns = 3_000) {
  const counts = new Map<string, number>()
  for (let turn = 0; turn < turns; turn += 1) {
    const id = choose(candidates, { strategy, random: () => (turn + 0.5) / turns })!
    counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  return counts
}

describe('the choice of a terminator', () => {
  it.each(strategies)('by %s prefers a better precedence at any cost', (strategy) => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(fc.integer({ min: 0, max: 500_000 }), fc.constantFrom('required', 'default', 'failed' as const)),
          { minLength: 1, maxLength: 10 },
        ),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (values, random) => {
          const order = ['required', 'default', 'failed']
          const candidates = values.map(([cost, precedence], at) =>
            candidate(`t${at}`, cost, precedence as LiveTerminator['precedence']),
          )
          const id = choose(candidates, { strategy, random: () => random })
          const choice = candidates.find(({ terminator }) => terminator.id === id)!
          const ranks = candidates.map(({ terminator }) => order.indexOf(terminator.precedence))
          expect(order.indexOf(choice.terminator.precedence)).toBe(Math.min(...ranks))
        },
      ),
    )
  })

  it.each(strategies)('by %s finds none among none', (strategy) => {
    expect(choose([], { strategy })).toBeUndefined()
  })

  it('by smartrouting is the cheapest', () => {
    expect(choose([candidate('a', 30), candidate('b', 10), candidate('c', 20)])).toBe('b')
  })

  it('by random is as often one as another, whatever they cost', () => {
    const counts = countChoices([candidate('a', 0), candidate('b', 100), candidate('c', 5)], 'random')
    expect([...counts.values()]).toEqual([1_000, 1_000, 1_000])
  })

  it('by weighted is the less often the more it costs, and every one sometimes', () => {
    const counts = countChoices([candidate('a', 99), candidate('b', 199), candidate('c', 399)], 'weighted', 7_000)
    expect([counts.get('a'), counts.get('b'), counts.get('c')]).toEqual([4_000, 2_000, 1_000])
  })

  it('by sticky is the earlier one while its precedence is the best, else the cheapest', () => {
    const candidates = [candidate('a', 1), candidate('b', 90), candidate('c', 0, 'failed')]
    const strategy = 'sticky'
    expect(choose(candidates, { strategy, stickyTerminatorId: 'b' })).toBe('b')
    expect(choose(candidates, { strategy, stickyTerminatorId: 'c' })).toBe('a')
    expect(choose(candidates, { strategy, stickyTerminatorId: 'gone' })).toBe('a')
    expect(choose(candidates, { strategy })).toBe('a')
  })
})
