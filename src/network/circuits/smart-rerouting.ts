// Moves circuits to paths that have become cheaper than theirs: the most expensive ones first, and few at a time.
import type { Clock } from '../../foundation/clock.ts'
import type { Path, PathFinder } from '../links/path.ts'
import type { Circuit } from './circuit-table.ts'
import type { Circuits } from './circuits.ts'
import type { Rerouting } from './rerouting.ts'

const PERIOD_MS = 60_000

// A path is left only for one that is cheaper by as much: latencies vary.
const MIN_SAVING = 15

// Per period, and at least one: so that traffic does not swing from one link to the other.
const MAX_MOVED = 4
const MAX_MOVED_SHARE = 0.02

// Circuits that are compared in a period; with more of them, each has its turn in a later one.
const MAX_COMPARED = 10_000

interface SmartReroutingParts {
  readonly clock: Clock
  readonly circuits: Circuits
  readonly paths: PathFinder
  readonly rerouting: Rerouting
}

export class SmartRerouting {
  readonly #parts: SmartReroutingParts
  #dueAt: number
  /** The position at which the comparison continues. */
  #offset = 0

  constructor(parts: SmartReroutingParts) {
    this.#parts = parts
    this.#dueAt = parts.clock.monotonic() + PERIOD_MS
  }

  /** Moves circuits if a period is over. Called once a second. */
  tick(): void {
    const { clock, circuits, rerouting } = this.#parts
    const now = clock.monotonic()
    if (now < this.#dueAt) return
    this.#dueAt = now + PERIOD_MS
    const maxMoved = Math.min(MAX_MOVED, Math.max(1, Math.floor(circuits.size * MAX_MOVED_SHARE)))
    for (const { circuit } of this.#listMovable().slice(0, maxMoved)) rerouting.requestIfPossible(circuit.id)
  }

  /** The circuits for which there is a cheaper path, the most expensive first. */
  #listMovable(): { circuit: Circuit; cost: number }[] {
    const { paths, rerouting } = this.#parts
    const bestPaths = new Map<string, Path | undefined>()
    return this.#takeCompared()
      .flatMap((circuit) => {
        const { routerIds } = circuit.path
        if (routerIds.length === 1 || rerouting.has(circuit.id)) return []
        const cost = paths.computePathCost(circuit.path)
        if (cost === undefined) return []
        const ends = [routerIds[0]!, routerIds.at(-1)!] as const
        const key = ends.join(' ')
        if (!bestPaths.has(key)) bestPaths.set(key, paths.findPath(...ends))
        const best = bestPaths.get(key)
        return best && cost - best.cost >= MIN_SAVING ? [{ circuit, cost }] : []
      })
      .sort((a, b) => b.cost - a.cost)
  }

  #takeCompared(): Circuit[] {
    const all = this.#parts.circuits.list()
    if (this.#offset >= all.length) this.#offset = 0
    const compared = all.slice(this.#offset, this.#offset + MAX_COMPARED)
    this.#offset += compared.length
    return compared
  }
}
