// Who may reach what, in memory: built from rows at start, kept by the changes of every commit, in their order. No I/O.
import { Bitset } from './bitset.ts'
import { Directory } from './directory.ts'
import { type IndexedPolicy, PolicyTable } from './policy-table.ts'
import { type Attributed, parseSide, type Semantic } from './side.ts'

/** A service policy as it is stored. */
export interface ServicePolicyRecord {
  readonly id: string
  readonly name: string
  readonly type: 'Dial' | 'Bind'
  readonly semantic: Semantic
  readonly identityRoles: readonly string[]
  readonly serviceRoles: readonly string[]
  readonly postureCheckRoles: readonly string[]
}

export type PolicyType = 'Dial' | 'Bind'

export class PolicyIndex {
  readonly #services = new Directory()
  readonly #servicePolicies = new PolicyTable(this.#services)

  setService(record: Attributed): void {
    const previous = this.#services.get(record.id)?.attributes ?? []
    const slot = this.#services.set(record)
    this.#servicePolicies.objectChanged(slot, record, previous)
  }

  deleteService(id: string): void {
    const record = this.#services.get(id)
    const slot = this.#services.delete(id)
    if (record && slot !== undefined) this.#servicePolicies.objectGone(slot, record)
  }

  setServicePolicy(record: ServicePolicyRecord): void {
    this.#servicePolicies.set({
      id: record.id,
      name: record.name,
      type: record.type,
      subjects: parseSide(record.semantic, record.identityRoles),
      objects: parseSide(record.semantic, record.serviceRoles),
      conditions: parseSide(record.semantic, record.postureCheckRoles),
    })
  }

  deleteServicePolicy(id: string): void {
    this.#servicePolicies.delete(id)
  }

  /** The service policies that match an identity. */
  servicePoliciesOf(identity: Attributed, type?: PolicyType): IndexedPolicy[] {
    const policies = this.#servicePolicies.forSubject(identity)
    return type ? policies.filter((policy) => policy.type === type) : policies
  }

  /** The service policies that match a service; none for a service that does not exist. */
  servicePoliciesOfService(serviceId: string, type?: PolicyType): IndexedPolicy[] {
    const service = this.#services.get(serviceId)
    const policies = service ? this.#servicePolicies.forObject(service) : []
    return type ? policies.filter((policy) => policy.type === type) : policies
  }

  /** Ids of the services that these policies grant together. */
  servicesGrantedBy(policies: Iterable<IndexedPolicy>): string[] {
    const granted = new Bitset()
    for (const policy of policies) granted.addAll(this.#servicePolicies.grantedBy(policy.id))
    return this.#services.idsOf(granted)
  }

  /** Those of the policies that grant the service. */
  grantingService(policies: Iterable<IndexedPolicy>, serviceId: string): IndexedPolicy[] {
    const slot = this.#services.slotOf(serviceId)
    if (slot === undefined) return []
    return [...policies].filter((policy) => this.#servicePolicies.grantedBy(policy.id).has(slot))
  }
}
