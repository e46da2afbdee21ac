// Terminators keep their service, and cost more the more load they carry.
import type { Behavior } from '../behavior.ts'
import type { ReadContext, WriteContext } from '../context.ts'
import { invalidError } from '../errors.ts'
import type { ComputedInput, Entity } from '../resources/define.ts'
import type { terminators } from '../resources/terminators.ts'
import type { LiveNetwork } from './live-network.ts'

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
