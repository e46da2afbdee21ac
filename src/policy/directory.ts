// The records on the granted side of policies, each with a small number of its own, so that sets of them are bitsets.
import { Bitset } from './bitset.ts'
import type { RoleBearer, RoleSelector } from './role-selector.ts'

export class RoleBearerDirectory {
  readonly #slots = new Map<string, number>()
  readonly #records: (RoleBearer | undefined)[] = []
  readonly #free: number[] = []
  readonly #byAttribute = new Map<string, Bitset>()
  readonly #present = new Bitset()

  /** Adds a record, or gives it new attributes. Returns its slot. */
  set(record: RoleBearer): number {
    let slot = this.#slots.get(record.id)
    if (slot === undefined) {
      slot = this.#free.pop() ?? this.#records.length
      this.#slots.set(record.id, slot)
    } else {
      this.#forgetAttributes(slot)
    }
    this.#records[slot] = record
    this.#present.add(slot)
    for (const attribute of record.attributes) this.#having(attribute).add(slot)
    return slot
  }

  /** Removes a record; its slot is given to another later. Returns the slot. */
  delete(id: string): number | undefined {
    const slot = this.#slots.get(id)
    if (slot === undefined) return undefined
    this.#forgetAttributes(slot)
    this.#slots.delete(id)
    this.#records[slot] = undefined
    this.#present.delete(slot)
    this.#free.push(slot)
    return slot
  }

  get(id: string): RoleBearer | undefined {
    const slot = this.#slots.get(id)
    return slot === undefined ? undefined : this.#records[slot]
  }

  slotOf(id: string): number | undefined {
    return this.#slots.get(id)
  }

  idsOf(slots: Iterable<number>): string[] {
    const ids: string[] = []
    for (const slot of slots) {
      const record = this.#records[slot]
      if (record) ids.push(record.id)
    }
    return ids
  }

  /** The slots of all records that a side matches. */
  matching(side: RoleSelector): Bitset {
    const found = new Bitset(this.#records.length)
    if (side.isAll) {
      found.addAll(this.#present)
      return found
    }
    if (side.attributes.size > 0) found.addAll(this.#byAttributes(side))
    for (const id of side.ids) {
      const slot = this.#slots.get(id)
      if (slot !== undefined) found.add(slot)
    }
    return found
  }

  #byAttributes(side: RoleSelector): Bitset {
    const found = new Bitset(this.#records.length)
    let isFirst = true
    for (const attribute of side.attributes) {
      const having = this.#byAttribute.get(attribute) ?? new Bitset()
      if (isFirst || side.semantic === 'AnyOf') found.addAll(having)
      else found.intersect(having)
      isFirst = false
    }
    return found
  }

  #having(attribute: string): Bitset {
    let having = this.#byAttribute.get(attribute)
    if (!having) {
      having = new Bitset()
      this.#byAttribute.set(attribute, having)
    }
    return having
  }

  #forgetAttributes(slot: number): void {
    for (const attribute of this.#records[slot]?.attributes ?? []) {
      const having = this.#byAttribute.get(attribute)
      having?.delete(slot)
      if (having?.isEmpty) this.#byAttribute.delete(attribute)
    }
  }
}
