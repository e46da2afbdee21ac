// All policies of one kind, indexed by the records that they match, each with the set of records that it grants.
import { Bitset } from './bitset.ts'
import type { RoleBearerDirectory } from './directory.ts'
import { Postings } from './postings.ts'
import { matchesSelector, type RoleBearer, type RoleSelector } from './role-selector.ts'

/** A policy in the index: it grants `objects` to `subjects`. */
export interface IndexedPolicy {
  readonly id: string
  readonly name: string
  /** `Dial` and `Bind` for service policies. */
  readonly type?: string
  readonly subjects: RoleSelector
  readonly objects: RoleSelector
  /** For service policies: the posture checks, all of which must pass. */
  readonly conditions?: RoleSelector
}

export class PolicyTable {
  readonly #directory: RoleBearerDirectory
  readonly #policies = new Map<string, IndexedPolicy>()
  readonly #subjects = new Postings()
  readonly #objects = new Postings()
  readonly #conditions = new Postings()
  readonly #grantedSlots = new Map<string, Bitset>()

  /** @param directory the records that policies of this kind grant */
  constructor(directory: RoleBearerDirectory) {
    this.#directory = directory
  }

  /** Every policy. */
  list(): Iterable<IndexedPolicy> {
    return this.#policies.values()
  }

  get(id: string): IndexedPolicy | undefined {
    return this.#policies.get(id)
  }

  /** Adds or replaces a policy. */
  set(policy: IndexedPolicy): void {
    this.delete(policy.id)
    this.#policies.set(policy.id, policy)
    this.#subjects.add(policy.id, policy.subjects)
    this.#objects.add(policy.id, policy.objects)
    if (policy.conditions) this.#conditions.add(policy.id, policy.conditions)
    this.#grantedSlots.set(policy.id, this.#directory.findMatchingSlots(policy.objects))
  }

  delete(id: string): void {
    const policy = this.#policies.get(id)
    if (!policy) return
    this.#subjects.delete(id, policy.subjects)
    this.#objects.delete(id, policy.objects)
    if (policy.conditions) this.#conditions.delete(id, policy.conditions)
    this.#grantedSlots.delete(id)
    this.#policies.delete(id)
  }

  /** Updates the grants after the directory added `record` or replaced its attributes, which were `previous`. */
  updateObject(slot: number, record: RoleBearer, previous: readonly string[]): void {
    for (const id of this.#objects.candidates(record.id, [...previous, ...record.attributes])) {
      const policy = this.#policies.get(id)
      if (!policy) continue
      if (matchesSelector(policy.objects, record)) this.#grantedSlots.get(id)?.add(slot)
      else this.#grantedSlots.get(id)?.delete(slot)
    }
  }

  /** Updates the grants after the directory removed `record` from the slot. */
  removeObject(slot: number, record: RoleBearer): void {
    for (const id of this.#objects.candidates(record.id, record.attributes)) this.#grantedSlots.get(id)?.delete(slot)
  }

  /** The policies that match `record` as a subject. */
  findBySubject(record: RoleBearer): IndexedPolicy[] {
    return this.#resolve(this.#subjects.matching(record))
  }

  /** The policies that match `record` as an object. */
  findByObject(record: RoleBearer): IndexedPolicy[] {
    return this.#resolve(this.#objects.matching(record))
  }

  /** The policies that have `record` among their conditions. */
  findByCondition(record: RoleBearer): IndexedPolicy[] {
    return this.#resolve(this.#conditions.matching(record))
  }

  /** Whether a policy grants the object of that slot. */
  grants(id: string, slot: number): boolean {
    return this.#grantedSlots.get(id)?.has(slot) ?? false
  }

  /** Whether a policy grants any object. */
  grantsAny({ id }: IndexedPolicy): boolean {
    return this.#grantedSlots.get(id)?.isEmpty === false
  }

  /** How many objects a policy grants. */
  countGranted({ id }: IndexedPolicy): number {
    return this.#grantedSlots.get(id)?.size ?? 0
  }

  /** Slots of the objects that at least one of the policies grants. */
  collectGrantedSlots(policies: Iterable<IndexedPolicy>): Bitset {
    const union = new Bitset()
    for (const { id } of policies) {
      const slots = this.#grantedSlots.get(id)
      if (slots) union.addAll(slots)
    }
    return union
  }

  #resolve(ids: Iterable<string>): IndexedPolicy[] {
    const policies: IndexedPolicy[] = []
    for (const id of ids) {
      const policy = this.#policies.get(id)
      if (policy) policies.push(policy)
    }
    return policies
  }
}
