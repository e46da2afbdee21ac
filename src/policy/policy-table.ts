// All policies of one kind: found by the records they match on one side, each with the set of records it grants.
import { Bitset } from './bitset.ts'
import type { RoleBearerDirectory } from './directory.ts'
import { Postings } from './postings.ts'
import { matchesSelector, type RoleBearer, type RoleSelector } from './role-selector.ts'

/** A policy as the index knows it: who is granted (`subjects`) what (`objects`). */
export interface IndexedPolicy {
  readonly id: string
  readonly name: string
  /** `Dial` and `Bind` for service policies. */
  readonly type?: string
  readonly subjects: RoleSelector
  readonly objects: RoleSelector
  /** For service policies: the posture checks that all must pass. */
  readonly conditions?: RoleSelector
}

export class PolicyTable {
  readonly #directory: RoleBearerDirectory
  readonly #policies = new Map<string, IndexedPolicy>()
  readonly #subjects = new Postings()
  readonly #objects = new Postings()
  readonly #conditions = new Postings()
  readonly #granted = new Map<string, Bitset>()

  /** `directory` holds the records on the objects' side. */
  constructor(directory: RoleBearerDirectory) {
    this.#directory = directory
  }

  get(id: string): IndexedPolicy | undefined {
    return this.#policies.get(id)
  }

  /** Every policy. */
  all(): Iterable<IndexedPolicy> {
    return this.#policies.values()
  }

  /** Adds a policy, or puts its new form in place of the old. */
  set(policy: IndexedPolicy): void {
    this.delete(policy.id)
    this.#policies.set(policy.id, policy)
    this.#subjects.add(policy.id, policy.subjects)
    this.#objects.add(policy.id, policy.objects)
    if (policy.conditions) this.#conditions.add(policy.id, policy.conditions)
    this.#granted.set(policy.id, this.#directory.matching(policy.objects))
  }

  delete(id: string): void {
    const policy = this.#policies.get(id)
    if (!policy) return
    this.#subjects.delete(id, policy.subjects)
    this.#objects.delete(id, policy.objects)
    if (policy.conditions) this.#conditions.delete(id, policy.conditions)
    this.#granted.delete(id)
    this.#policies.delete(id)
  }

  /** The directory gave `record` this slot, or new attributes: `previous` are those it had. */
  objectChanged(slot: number, record: RoleBearer, previous: readonly string[]): void {
    for (const id of this.#objects.candidates(record.id, [...previous, ...record.attributes])) {
      const policy = this.#policies.get(id)
      if (!policy) continue
      if (matchesSelector(policy.objects, record)) this.#granted.get(id)?.add(slot)
      else this.#granted.get(id)?.delete(slot)
    }
  }

  /** The directory took this slot back from a record. */
  objectGone(slot: number, record: RoleBearer): void {
    for (const id of this.#objects.candidates(record.id, record.attributes)) this.#granted.get(id)?.delete(slot)
  }

  /** The policies that match `record` as a subject. */
  forSubject(record: RoleBearer): IndexedPolicy[] {
    return this.#resolve(this.#subjects.matching(record))
  }

  /** The policies that match `record` as an object. */
  forObject(record: RoleBearer): IndexedPolicy[] {
    return this.#resolve(this.#objects.matching(record))
  }

  /** The policies that have `record` among their conditions. */
  forCondition(record: RoleBearer): IndexedPolicy[] {
    return this.#resolve(this.#conditions.matching(record))
  }

  /** Whether a policy grants the object of that slot. */
  grants(id: string, slot: number): boolean {
    return this.#granted.get(id)?.has(slot) ?? false
  }

  /** Slots of the objects that policies grant together. */
  grantedBy(policies: Iterable<IndexedPolicy>): Bitset {
    const together = new Bitset()
    for (const { id } of policies) {
      const granted = this.#granted.get(id)
      if (granted) together.addAll(granted)
    }
    return together
  }

  #resolve(ids: Iterable<string>): IndexedPolicy[] {
    const found: IndexedPolicy[] = []
    for (const id of ids) {
      const policy = this.#policies.get(id)
      if (policy) found.push(policy)
    }
    return found
  }
}
