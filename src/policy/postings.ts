// An inverted index: finds the policies whose selector matches a record by its attributes and id, without a scan.
import type { RoleBearer, RoleSelector } from './role-selector.ts'
import { SetMap } from './set-map.ts'

export class Postings {
  readonly #all = new Set<string>()
  readonly #byId = new SetMap()
  /** Attribute → policies that name it. */
  readonly #byAttribute = new SetMap()
  /** How many attributes a policy requires at once; absent if one is enough. */
  readonly #requiredCounts = new Map<string, number>()

  add(policy: string, selector: RoleSelector): void {
    if (selector.isAll) this.#all.add(policy)
    for (const id of selector.ids) this.#byId.add(id, policy)
    for (const attribute of selector.attributes) this.#byAttribute.add(attribute, policy)
    if (selector.semantic === 'AllOf' && selector.attributes.size > 1)
      this.#requiredCounts.set(policy, selector.attributes.size)
  }

  delete(policy: string, selector: RoleSelector): void {
    this.#all.delete(policy)
    for (const id of selector.ids) this.#byId.delete(id, policy)
    for (const attribute of selector.attributes) this.#byAttribute.delete(attribute, policy)
    this.#requiredCounts.delete(policy)
  }

  /** The policies whose selector matches the record. */
  matching(record: RoleBearer): Set<string> {
    const policies = new Set(this.#all)
    for (const policy of this.#byId.get(record.id)) policies.add(policy)
    let counts: Map<string, number> | undefined
    for (const attribute of record.attributes) {
      for (const policy of this.#byAttribute.get(attribute)) {
        const requiredCount = this.#requiredCounts.get(policy)
        if (requiredCount === undefined) {
          policies.add(policy)
          continue
        }
        counts ??= new Map()
        const count = (counts.get(policy) ?? 0) + 1
        counts.set(policy, count)
        if (count === requiredCount) policies.add(policy)
      }
    }
    return policies
  }

  /** The policies that could match a record with one of these attributes, or with this id: a superset. */
  candidates(id: string, attributes: Iterable<string>): Set<string> {
    const policies = new Set([...this.#all, ...this.#byId.get(id)])
    for (const attribute of attributes) for (const policy of this.#byAttribute.get(attribute)) policies.add(policy)
    return policies
  }
}
