// Chooses one of the terminators of a service by its strategy.
import type { TerminatorStrategy } from '../../definitions/resources/services.ts'
import type { Path } from '../links/path.ts'
import type { LiveTerminator } from './terminator-directory.ts'

/** A terminator that can be reached now. */
export interface TerminatorCandidate {
  readonly terminator: LiveTerminator
  readonly path: Path
  /** Its own cost, what its load adds, and the cost of the path; precedence comes before all of them. */
  readonly cost: number
}

export interface ChoiceOptions {
  readonly strategy: TerminatorStrategy
  /** The terminator of an earlier circuit of the client, which `sticky` prefers. */
  readonly stickyTerminatorId: string | undefined
  /** A random number in [0, 1). */
  readonly random: () => number
}

const RANKS: Readonly<Record<LiveTerminator['precedence'], number>> = { required: 0, default: 1, failed: 2 }

/**
 * Chooses a candidate; undefined if there is none. Only those of the best precedence are considered: cost never outweighs it.
 */
export function chooseTerminator(
  candidates: readonly TerminatorCandidate[],
  { strategy, stickyTerminatorId, random }: ChoiceOptions,
): TerminatorCandidate | undefined {
  const bestRank = Math.min(...candidates.map(({ terminator }) => RANKS[terminator.precedence]))
  const eligible = candidates.filter(({ terminator }) => RANKS[terminator.precedence] === bestRank)
  if (eligible.length < 2) return eligible[0]
  switch (strategy) {
    case 'random':
      return eligible[Math.floor(random() * eligible.length)]
    case 'weighted':
      return chooseWeighted(eligible, random)
    case 'sticky':
      return eligible.find(({ terminator }) => terminator.id === stickyTerminatorId) ?? findCheapest(eligible)
    case 'smartrouting':
      return findCheapest(eligible)
  }
}

/** Of several that cost the same, the one that comes first. */
function findCheapest(candidates: readonly TerminatorCandidate[]): TerminatorCandidate | undefined {
  return candidates.reduce((cheapest, candidate) => (candidate.cost < cheapest.cost ? candidate : cheapest))
}

/** A candidate that costs twice as much is chosen half as often. */
function chooseWeighted(candidates: readonly TerminatorCandidate[], random: () => number): TerminatorCandidate {
  const weights = candidates.map(({ cost }) => 1 / (cost + 1))
  let rest = random() * weights.reduce((sum, weight) => sum + weight, 0)
  for (const [at, candidate] of candidates.entries()) {
    rest -= weights[at]!
    if (rest < 0) return candidate
  }
  return candidates.at(-1)!
}
