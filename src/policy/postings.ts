// Finds the policies whose side matches a record, by the record's own attributes and id: never by asking every policy.

import type { RoleBearer, RoleSelector } from './role-selector.ts'
import { SetMap } from './set-map.ts'

export class Postings {
  readonly #all = new Set<string>()
  readonly #byId = new SetMap()
  /** Attribute → policies that name it. */
  readonly #byAttribute = new SetMap()
  /** How many attributes a policy demands together; absent where one is enough. */
  readonly #demanded = new Map<string, number>()

  add(policy: string, side: RoleSelector): void {
    if (side.isAll) this.#all.add(policy)
    for (const id of side.ids) this.#byId.add(id, policy)
    for (const attribute of side.attributes) this.#byAttribute.add(attribute, policy)
    if (side.semantic === 'AllOf' && side.attributes.size > 1) this.#demanded.set(policy, side.attributes.size)
  }

  delete(policy: string, side: RoleSelector): void {
    this.#all.delete(policy)
    for (const id of side.ids) this.#byId.delete(id, policy)
    for (const attribute of side.attributes) this.#byAttribute.delete(attribute, policy)
    this.#demanded.delete(policy)
  }

  /** The policies whose side matches the record. */
  matching(record: RoleBearer): Set<string> {
    const found = new Set(this.#all)
    for (const policy of this.#byId.get(record.id)) found.add(policy)
    let held: Map<string, number> | undefined
    for (const attribute of record.attributes) {
      for (const policy of this.#byAttribute.get(attribute)) {
        const demanded = this.#demanded.get(policy)
        if (demanded === undefined) {
          found.add(policy)
          continue
        }
        held ??= new Map()
        const count = (held.get(policy) ?? 0) + 1
        held.set(policy, count)
        if (count === demanded) found.add(policy)
      }
    }
    return found
  }

  /** The policies that could match a record with one of these attributes, or with this id: a superset. */
  candidates(id: string, attributes: Iterable<string>): Set<string> {
    const found = new Set([...this.#all, ...this.#byId.get(id)])
    for (const attribute of attributes) for (const policy of this.#byAttribute.get(attribute)) found.add(policy)
    return found
  }
}
