// The computed fields of the inventory: the holder's name, and the state at the moment of the read.

import type { certificates } from '../../definitions/resources/certificates.ts'
import { controllers } from '../../definitions/resources/controllers.ts'
import type { ComputedInput } from '../../definitions/resources/define.ts'
import type { ControllerMembership } from '../../network/controllers/membership.ts'
import type { Behavior } from '../../storage/behavior.ts'
import { findReferences } from '../../storage/records/references.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import { findHolderResource } from './inventory.ts'

/** A certificate that ends within this time is shown as expiring. */
const EXPIRING_MS = 30 * 24 * 60 * 60 * 1000

export class CertificateBehavior implements Behavior<typeof certificates> {
  readonly #membership: ControllerMembership

  constructor(membership: ControllerMembership) {
    this.#membership = membership
  }

  async computeFields(
    { db, clock }: ReadContext,
    records: readonly ComputedInput[],
  ): Promise<Record<string, unknown>[]> {
    const now = clock.now()
    const names = await this.#findHolderNames(db, records)
    return records.map((record) => ({
      holderName: names.get(this.#toHolder(record).id ?? '') ?? null,
      state: toState(record.notBefore as number, record.notAfter as number, now),
    }))
  }

  async #findHolderNames(db: ReadContext['db'], records: readonly ComputedInput[]): Promise<Map<string, string>> {
    const ids = new Map<string, Set<string>>()
    for (const { resource, id } of records.map((record) => this.#toHolder(record))) {
      if (id !== null) ids.set(resource, (ids.get(resource) ?? new Set()).add(id))
    }
    const names = new Map<string, string>()
    for (const [resource, ofResource] of ids) {
      const references = await findReferences(db, resource, ofResource)
      for (const [id, { name }] of references) names.set(id, name)
    }
    return names
  }

  /** The holder of a certificate; the certificates of the controller belong to its own record. */
  #toHolder({ kind, holderId }: ComputedInput): { resource: string; id: string | null } {
    const resource = findHolderResource(kind as string)
    if (resource) return { resource, id: holderId as string | null }
    return { resource: controllers.plural, id: this.#membership.ownId ?? null }
  }
}

function toState(notBefore: number, notAfter: number, now: number): string {
  if (now < notBefore) return 'pending'
  if (now > notAfter) return 'expired'
  return notAfter - now <= EXPIRING_MS ? 'expiring' : 'valid'
}
