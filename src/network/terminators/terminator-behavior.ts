// Terminators keep their service, and cost more the more load they carry.

import type { LiveNetwork } from '../../access/live-network.ts'
import type { ComputedInput, Entity } from '../../definitions/resources/define.ts'
import type { terminators } from '../../definitions/resources/terminators.ts'
import { invalidError } from '../../foundation/errors.ts'
import type { Behavior } from '../../storage/behavior.ts'
import type { ReadContext, WriteContext } from '../../storage/transactions/context.ts'

type Terminator = Entity<typeof terminators>

export class TerminatorBehavior implements Behavior<typeof terminators> {
  readonly #network: LiveNetwork

  constructor(network: LiveNetwork) {
    this.#network = network
  }

  async check(_tx: WriteContext, next: Terminator, previous: Terminator | undefined): Promise<void> {
    if (previous && next.serviceId !== previous.serviceId)
      throw invalidError('service', 'cannot change', next.serviceId)
    if (next.binding === '') next.binding = next.address.startsWith('udp:') ? 'udp' : 'transport'
  }

  computeFields(_context: ReadContext, records: readonly ComputedInput[]): Record<string, unknown>[] {
    return records.map(({ id }) => ({ dynamicCost: this.#network.getDynamicCost(id) }))
  }
}
