// What the present load adds to the cost of terminators.
import type { ReadContext } from '../context.ts'
import type { ComputedFields, ComputedInput } from '../resources/define.ts'

export class TerminatorFields implements ComputedFields {
  async computeFields(
    { controller }: ReadContext,
    terminators: readonly ComputedInput[],
  ): Promise<Record<string, unknown>[]> {
    return terminators.map(({ id }) => ({ dynamicCost: controller.network.dynamicCostOf(id) }))
  }
}
