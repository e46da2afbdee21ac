// The role bearers that policies grant, each with a slot (a small integer), so that sets of them are bitsets.
import { Bitset } from './bitset.ts'
import type { RoleBearer, RoleSelector } from './role-selector.ts'

export class RoleBearerDirectory {
  readonly #slots = new Map<string, number>()
  readonly #records: (RoleBearer | undefined)[] = []
  readonly #free: number[] = []
  readonly #byAttribute = new Map<string, Bitset>()
  readonly #present = new Bitset()

  /** Adds a record, or replaces its attributes. Returns its slot. */
  set(record: RoleBearer): number {
    let slot = this.#slots.get(record.id)
    if (slot === undefined) {
      slot = this.#free.pop() ?? this.#records.length
      this.#slots.set(record.id, slot)
    } else {
      this.#removeAttributes(slot)
    }
    this.#records[slot] = record
    this.#present.add(slot)
    for (const attribute of record.attributes) this.#ensureAttribute(attribute).add(slot)
    return slot
  }

  /** Removes a record. Returns its slot, which a later record reuses. */
  delete(id: string): number | undefined {
    const slot = this.#slots.get(id)
    if (slot === undefined) return undefined
    this.#removeAttributes(slot)
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

  /** Every record. */
  *list(): Generator<RoleBearer> {
    for (const record of this.#records) if (record) yield record
  }

  getSlot(id: string): number | undefined {
    return this.#slots.get(id)
  }

  listIds(slots: Iterable<number>): string[] {
    const ids: string[] = []
    for (const slot of slots) {
      const record = this.#records[slot]
      if (record) ids.push(record.id)
    }
    return ids
  }

  /** Returns the slots of all records that a selector matches. */
  findMatchingSlots(selector: RoleSelector): Bitset {
    const slots = new Bitset(this.#records.length)
    if (selector.isAll) {
      slots.addAll(this.#present)
      return slots
    }
    if (selector.attributes.size > 0) slots.addAll(this.#byAttributes(selector))
    for (const id of selector.ids) {
      const slot = this.#slots.get(id)
      if (slot !== undefined) slots.add(slot)
    }
    return slots
  }

  #byAttributes(selector: RoleSelector): Bitset {
    const slots = new Bitset(this.#records.length)
    let isFirst = true
    for (const attribute of selector.attributes) {
      const bearers = this.#byAttribute.get(attribute) ?? new Bitset()
      if (isFirst || selector.semantic === 'AnyOf') slots.addAll(bearers)
      else slots.intersect(bearers)
      isFirst = false
    }
    return slots
  }

  #ensureAttribute(attribute: string): Bitset {
    let bearers = this.#byAttribute.get(attribute)
    if (!bearers) {
      bearers = new Bitset()
      this.#byAttribute.set(attribute, bearers)
    }
    return bearers
  }

  #removeAttributes(slot: number): void {
    for (const attribute of this.#records[slot]?.attributes ?? []) {
      const bearers = this.#byAttribute.get(attribute)
      bearers?.delete(slot)
      if (bearers?.isEmpty) this.#byAttribute.delete(attribute)
    }
  }
}
