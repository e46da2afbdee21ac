// The view of circuits for other parts of the controller. It exists before the parts that circuits are created with.

import type { Traffic } from '../access/live-network.ts'
import type { Clock } from '../foundation/clock.ts'
import { CircuitTable } from './circuits/circuit-table.ts'
import { TerminatorCosts } from './terminators/terminator-costs.ts'

export class LiveTraffic implements Traffic {
  readonly circuits = new CircuitTable()
  readonly costs: TerminatorCosts

  constructor(clock: Clock) {
    this.costs = new TerminatorCosts(clock)
  }

  getDynamicCost(terminatorId: string): number {
    return this.costs.get(terminatorId)
  }

  listRoutePath(sessionId: string): readonly string[] {
    return this.circuits.list({ sessionId })[0]?.path.routerIds ?? []
  }
}
