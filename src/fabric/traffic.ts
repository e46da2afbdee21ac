// What other parts of the controller show of circuits. It exists before the parts that circuits are created with.
import type { Clock } from '../clock.ts'
import type { Traffic } from '../routers/live-network.ts'
import { CircuitTable } from './circuit-table.ts'
import { TerminatorCosts } from './terminator-costs.ts'

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
