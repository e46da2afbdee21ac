// Shows which controllers of the network are online, as far as this one knows.

import type { controllers } from '../../definitions/resources/controllers.ts'
import type { ComputedInput } from '../../definitions/resources/define.ts'
import type { Behavior } from '../../storage/behavior.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import type { ControllerMembership } from './membership.ts'

export class ControllerBehavior implements Behavior<typeof controllers> {
  readonly #membership: ControllerMembership

  constructor(membership: ControllerMembership) {
    this.#membership = membership
  }

  async computeFields(_context: ReadContext, records: readonly ComputedInput[]): Promise<Record<string, unknown>[]> {
    return records.map((record) => ({ isOnline: this.#membership.isOnline(record) }))
  }
}
