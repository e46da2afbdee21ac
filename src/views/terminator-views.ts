// What the present load adds to the cost of terminators.
import type { ReadContext } from '../context.ts'
import type { Facts, LiveView } from '../resources/define.ts'

export class TerminatorViews implements LiveView {
  async describe({ controller }: ReadContext, terminators: readonly Facts[]): Promise<Record<string, unknown>[]> {
    return terminators.map(({ id }) => ({ dynamicCost: controller.network.dynamicCostOf(id) }))
  }
}
