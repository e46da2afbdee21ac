// Finds the policies whose side matches a record, by the record's own attributes and id: never by asking every policy.
import type { Attributed, Side } from './side.ts'

export class Postings {
  readonly #all = new Set<string>()
  readonly #byId = new Map<string, Set<string>>()
  /** Attribute → policies that name it. */
  readonly #byAttribute = new Map<string, Set<string>>()
  /** How many attributes a policy demands together; absent where one is enough. */
  readonly #demanded = new Map<string, number>()

  add(policy: string, side: Side): void {
    if (side.isAll) this.#all.add(policy)
    for (const id of side.ids) put(this.#byId, id, policy)
    for (const attribute of side.attributes) put(this.#byAttribute, attribute, policy)
    if (side.semantic === 'AllOf' && side.attributes.size > 1) this.#demanded.set(policy, side.attributes.size)
  }

  delete(policy: string, side: Side): void {
    this.#all.delete(policy)
    for (const id of side.ids) take(this.#byId, id, policy)
    for (const attribute of side.attributes) take(this.#byAttribute, attribute, policy)
    this.#demanded.delete(policy)
  }

  /** The policies whose side matches the record. */
  matching(record: Attributed): Set<string> {
    const found = new Set(this.#all)
    for (const policy of this.#byId.get(record.id) ?? []) found.add(policy)
    let held: Map<string, number> | undefined
    for (const attribute of record.attributes) {
      for (const policy of this.#byAttribute.get(attribute) ?? []) {
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
    const found = new Set([...this.#all, ...(this.#byId.get(id) ?? [])])
    for (const attribute of attributes) for (const policy of this.#byAttribute.get(attribute) ?? []) found.add(policy)
    return found
  }
}

function put(map: Map<string, Set<string>>, key: string, policy: string): void {
  const set = map.get(key)
  if (set) set.add(policy)
  else map.set(key, new Set([policy]))
}

function take(map: Map<string, Set<string>>, key: string, policy: string): void {
  const set = map.get(key)
  if (!set?.delete(policy)) return
  if (set.size === 0) map.delete(key)
}
