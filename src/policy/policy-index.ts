// The policy index: policies and role bearers in memory, loaded at start and updated by the change feed. No I/O.
//
// It grants by bitset, and looks up by postings: a policy stores the services that it grants as bits, and an identity
// finds its policies by its own attributes and id. Nothing is stored for an identity, so a change of its attributes costs
// nothing, and 100,000 identities need no memory.

import { Bitset } from './bitset.ts'
import { RoleBearerDirectory } from './directory.ts'
import { type IndexedPolicy, PolicyTable } from './policy-table.ts'
import type { PostureCheck } from './posture/posture-checks.ts'
import {
  matchesSelector,
  parseRoleSelector,
  type RoleBearer,
  type RoleSelector,
  type Semantic,
} from './role-selector.ts'

interface PolicyRecord {
  readonly id: string
  readonly name: string
  readonly semantic: Semantic
}

/** A stored service policy: identities may dial or bind services if the posture checks pass. */
export interface ServicePolicyRecord extends PolicyRecord {
  readonly type: PolicyType
  readonly identityRoles: readonly string[]
  readonly serviceRoles: readonly string[]
  readonly postureCheckRoles: readonly string[]
}

/** A stored edge router policy: identities may use edge routers. */
export interface EdgeRouterPolicyRecord extends PolicyRecord {
  readonly identityRoles: readonly string[]
  readonly edgeRouterRoles: readonly string[]
}

/** A stored service edge router policy: services are reached over edge routers. */
export interface ServiceEdgeRouterPolicyRecord extends PolicyRecord {
  readonly serviceRoles: readonly string[]
  readonly edgeRouterRoles: readonly string[]
}

export type PolicyType = 'Dial' | 'Bind'

/** The edge routers that an identity and a service may use. */
interface RouterComparison {
  readonly identityCount: number
  readonly serviceCount: number
  /** Ids of those that both may use. */
  readonly commonIds: readonly string[]
}

/** The index for those who only ask. */
export type PolicyReader = Omit<PolicyIndex, `set${string}` | `delete${string}`>

export class PolicyIndex {
  readonly #services = new RoleBearerDirectory()
  readonly #edgeRouters = new RoleBearerDirectory()
  readonly #postureChecks = new RoleBearerDirectory()
  readonly #compiledChecks = new Map<string, PostureCheck>()
  readonly #servicePolicies = new PolicyTable(this.#services)
  readonly #edgeRouterPolicies = new PolicyTable(this.#edgeRouters)
  readonly #serviceEdgeRouterPolicies = new PolicyTable(this.#edgeRouters)

  // ---- changes --------------------------------------------------------------------------------------------------------

  setService(record: RoleBearer): void {
    setInDirectory(this.#services, [this.#servicePolicies], record)
  }

  deleteService(id: string): void {
    deleteFromDirectory(this.#services, [this.#servicePolicies], id)
  }

  setEdgeRouter(record: RoleBearer): void {
    setInDirectory(this.#edgeRouters, [this.#edgeRouterPolicies, this.#serviceEdgeRouterPolicies], record)
  }

  deleteEdgeRouter(id: string): void {
    deleteFromDirectory(this.#edgeRouters, [this.#edgeRouterPolicies, this.#serviceEdgeRouterPolicies], id)
  }

  /** @param check what the record demands of machines */
  setPostureCheck(record: RoleBearer, check: PostureCheck): void {
    setInDirectory(this.#postureChecks, [], record)
    this.#compiledChecks.set(record.id, check)
  }

  deletePostureCheck(id: string): void {
    deleteFromDirectory(this.#postureChecks, [], id)
    this.#compiledChecks.delete(id)
  }

  setServicePolicy({ id, name, type, semantic, ...roles }: ServicePolicyRecord): void {
    this.#servicePolicies.set({
      id,
      name,
      type,
      subjects: parseRoleSelector(semantic, roles.identityRoles),
      objects: parseRoleSelector(semantic, roles.serviceRoles),
      conditions: parseRoleSelector(semantic, roles.postureCheckRoles),
    })
  }

  deleteServicePolicy(id: string): void {
    this.#servicePolicies.delete(id)
  }

  setEdgeRouterPolicy({ id, name, semantic, ...roles }: EdgeRouterPolicyRecord): void {
    this.#edgeRouterPolicies.set({
      id,
      name,
      subjects: parseRoleSelector(semantic, roles.identityRoles),
      objects: parseRoleSelector(semantic, roles.edgeRouterRoles),
    })
  }

  deleteEdgeRouterPolicy(id: string): void {
    this.#edgeRouterPolicies.delete(id)
  }

  setServiceEdgeRouterPolicy({ id, name, semantic, ...roles }: ServiceEdgeRouterPolicyRecord): void {
    this.#serviceEdgeRouterPolicies.set({
      id,
      name,
      subjects: parseRoleSelector(semantic, roles.serviceRoles),
      objects: parseRoleSelector(semantic, roles.edgeRouterRoles),
    })
  }

  deleteServiceEdgeRouterPolicy(id: string): void {
    this.#serviceEdgeRouterPolicies.delete(id)
  }

  /** How many records a policy of any kind grants. */
  countGranted(policy: IndexedPolicy): number {
    const tables = [this.#servicePolicies, this.#edgeRouterPolicies, this.#serviceEdgeRouterPolicies]
    return tables.find((table) => table.get(policy.id))?.countGranted(policy) ?? 0
  }

  /** Describes the contents, one text for each role bearer and policy: two indexes of the same records have the same texts. */
  *describe(): Generator<string> {
    for (const [kind, directory] of Object.entries({
      service: this.#services,
      'edge router': this.#edgeRouters,
      'posture check': this.#postureChecks,
    })) {
      for (const { id, attributes } of directory.list()) yield `${kind} ${id} ${JSON.stringify(attributes)}`
    }
    for (const [kind, table] of Object.entries({
      'service policy': this.#servicePolicies,
      'edge router policy': this.#edgeRouterPolicies,
      'service edge router policy': this.#serviceEdgeRouterPolicies,
    })) {
      for (const policy of table.list())
        yield `${kind} ${describePolicy(policy)}, which grants ${table.countGranted(policy)}`
    }
  }

  // ---- service policies -------------------------------------------------------------------------------------------------

  /** The service policies that match an identity. */
  findServicePolicies(identity: RoleBearer, type?: PolicyType): IndexedPolicy[] {
    return filterByType(this.#servicePolicies.findBySubject(identity), type)
  }

  /** The service policies that match a service; none for a service that does not exist. */
  findServicePoliciesOfService(serviceId: string, type?: PolicyType): IndexedPolicy[] {
    const service = this.#services.get(serviceId)
    return service ? filterByType(this.#servicePolicies.findByObject(service), type) : []
  }

  /** The service policies that grant an identity at least one service, by id: their order does not depend on their history. */
  findGrantingPolicies(identity: RoleBearer): IndexedPolicy[] {
    return this.findServicePolicies(identity)
      .filter((policy) => this.#servicePolicies.grantsAny(policy))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** A service policy; undefined if there is none with that id. */
  findServicePolicy(id: string): IndexedPolicy | undefined {
    return this.#servicePolicies.get(id)
  }

  /** Every service policy of a type. */
  listServicePolicies(type: PolicyType): IndexedPolicy[] {
    return filterByType([...this.#servicePolicies.list()], type)
  }

  /** Whether a policy, of that type if one is given, links the identity with the service; posture is not considered. */
  grants(identity: RoleBearer, serviceId: string, type?: PolicyType): boolean {
    const slot = this.#services.getSlot(serviceId)
    if (slot === undefined) return false
    return this.findServicePolicies(identity, type).some(({ id }) => this.#servicePolicies.grants(id, slot))
  }

  /** Slots of the services that these policies grant together: sets of them can be compared. */
  collectServiceSlots(policies: Iterable<IndexedPolicy>): Bitset {
    return this.#servicePolicies.collectGrantedSlots(policies)
  }

  /** Ids of the services in those slots. */
  listServicesInSlots(slots: Bitset): string[] {
    return this.#services.listIds(slots)
  }

  /** The slots of services. */
  collectSlotsOfServices(ids: Iterable<string>): Bitset {
    const slots = new Bitset()
    for (const id of ids) {
      const slot = this.#services.getSlot(id)
      if (slot !== undefined) slots.add(slot)
    }
    return slots
  }

  /** Ids of all services. */
  *listServiceIds(): Generator<string> {
    for (const { id } of this.#services.list()) yield id
  }

  /** Ids of the services that a selector matches. */
  listMatchingServices(side: RoleSelector): string[] {
    return this.#services.listIds(this.#services.findMatchingSlots(side))
  }

  /** The posture checks that a policy requires, by id; all must pass. */
  listRequiredPostureChecks({ conditions }: IndexedPolicy): readonly PostureCheck[] {
    // Most policies demand nothing, and every decision asks.
    if (!conditions || this.#compiledChecks.size === 0) return NO_CHECKS
    if (!conditions.isAll && conditions.ids.size === 0 && conditions.attributes.size === 0) return NO_CHECKS
    const ids = this.#postureChecks.listIds(this.#postureChecks.findMatchingSlots(conditions))
    return ids.sort().map((id) => this.#compiledChecks.get(id) as PostureCheck)
  }

  /** A posture check; undefined if there is none with that id. */
  findPostureCheck(id: string): PostureCheck | undefined {
    return this.#compiledChecks.get(id)
  }

  /** Every posture check. */
  listPostureChecks(): Iterable<PostureCheck> {
    return this.#compiledChecks.values()
  }

  get hasPostureChecks(): boolean {
    return this.#compiledChecks.size > 0
  }

  /** The service policies that require a posture check. */
  findServicePoliciesOfPostureCheck(postureCheckId: string): IndexedPolicy[] {
    const check = this.#postureChecks.get(postureCheckId)
    return check ? this.#servicePolicies.findByCondition(check) : []
  }

  /** Ids of the services that these policies grant together. */
  listGrantedServices(policies: Iterable<IndexedPolicy>): string[] {
    return this.#services.listIds(this.#servicePolicies.collectGrantedSlots(policies))
  }

  /** Filters policies to those that grant the service. */
  filterGrantingService(policies: Iterable<IndexedPolicy>, serviceId: string): IndexedPolicy[] {
    const slot = this.#services.getSlot(serviceId)
    if (slot === undefined) return []
    return [...policies].filter(({ id }) => this.#servicePolicies.grants(id, slot))
  }

  // ---- routers ----------------------------------------------------------------------------------------------------------

  /** Every edge router policy. */
  listEdgeRouterPolicies(): Iterable<IndexedPolicy> {
    return this.#edgeRouterPolicies.list()
  }

  /** Every service edge router policy. */
  listServiceEdgeRouterPolicies(): Iterable<IndexedPolicy> {
    return this.#serviceEdgeRouterPolicies.list()
  }

  /** Ids of the edge routers that a selector matches. */
  listMatchingEdgeRouters(side: RoleSelector): string[] {
    return this.#edgeRouters.listIds(this.#edgeRouters.findMatchingSlots(side))
  }

  /** The edge router policies that match an identity. */
  findEdgeRouterPolicies(identity: RoleBearer): IndexedPolicy[] {
    return this.#edgeRouterPolicies.findBySubject(identity)
  }

  /** The edge router policies that match an edge router; none for one that does not exist. */
  findEdgeRouterPoliciesOfRouter(routerId: string): IndexedPolicy[] {
    const router = this.#edgeRouters.get(routerId)
    return router ? this.#edgeRouterPolicies.findByObject(router) : []
  }

  /** The service edge router policies that match a service; none for one that does not exist. */
  findServiceEdgeRouterPolicies(serviceId: string): IndexedPolicy[] {
    const service = this.#services.get(serviceId)
    return service ? this.#serviceEdgeRouterPolicies.findBySubject(service) : []
  }

  /** The service edge router policies that match an edge router; none for one that does not exist. */
  findServiceEdgeRouterPoliciesOfRouter(routerId: string): IndexedPolicy[] {
    const router = this.#edgeRouters.get(routerId)
    return router ? this.#serviceEdgeRouterPolicies.findByObject(router) : []
  }

  /** Ids of the edge routers that an identity may use. */
  listRouters(identity: RoleBearer): string[] {
    return this.#edgeRouters.listIds(this.collectRouterSlots(identity))
  }

  /** Slots of the edge routers that an identity may use. */
  collectRouterSlots(identity: RoleBearer): Bitset {
    return this.#edgeRouterPolicies.collectGrantedSlots(this.findEdgeRouterPolicies(identity))
  }

  /** Slots of the edge routers over which a service may be reached. */
  collectRouterSlotsOfService(serviceId: string): Bitset {
    return this.#serviceEdgeRouterPolicies.collectGrantedSlots(this.findServiceEdgeRouterPolicies(serviceId))
  }

  /** Ids of the edge routers over which a service may be reached. */
  listRoutersOfService(serviceId: string): string[] {
    return this.#edgeRouters.listIds(this.collectRouterSlotsOfService(serviceId))
  }

  /** Ids of the edge routers that both the identity and the service may use. */
  listCommonRouters(identity: RoleBearer, serviceId: string): string[] {
    const common = this.collectRouterSlots(identity)
    common.intersect(this.collectRouterSlotsOfService(serviceId))
    return this.#edgeRouters.listIds(common)
  }

  /** How many edge routers the identity and the service may use, and the ids of those that both may, in their order. */
  compareRouters(identity: RoleBearer, serviceId: string): RouterComparison {
    const slots = this.collectRouterSlots(identity)
    const slotsOfService = this.collectRouterSlotsOfService(serviceId)
    const identityCount = slots.size
    slots.intersect(slotsOfService)
    return { identityCount, serviceCount: slotsOfService.size, commonIds: this.#edgeRouters.listIds(slots).sort() }
  }

  /** Whether both the identity and the service may use an edge router. */
  isCommonRouter(identity: RoleBearer, serviceId: string, routerId: string): boolean {
    const router = this.#edgeRouters.get(routerId)
    if (!router) return false
    const opensRouter = ({ objects }: IndexedPolicy) => matchesSelector(objects, router)
    return (
      this.findEdgeRouterPolicies(identity).some(opensRouter) &&
      this.findServiceEdgeRouterPolicies(serviceId).some(opensRouter)
    )
  }
}

const NO_CHECKS: readonly PostureCheck[] = []

function filterByType(policies: IndexedPolicy[], type: PolicyType | undefined): IndexedPolicy[] {
  return type ? policies.filter((policy) => policy.type === type) : policies
}

function setInDirectory(directory: RoleBearerDirectory, tables: readonly PolicyTable[], record: RoleBearer): void {
  const previous = directory.get(record.id)?.attributes ?? []
  const slot = directory.set(record)
  for (const table of tables) table.updateObject(slot, record, previous)
}

function deleteFromDirectory(directory: RoleBearerDirectory, tables: readonly PolicyTable[], id: string): void {
  const record = directory.get(id)
  const slot = directory.delete(id)
  if (!record || slot === undefined) return
  for (const table of tables) table.removeObject(slot, record)
}

function describePolicy({ id, name, type = '', subjects, objects, conditions }: IndexedPolicy): string {
  const selectors = [subjects, objects, conditions].map((selector) =>
    selector ? [selector.semantic, selector.isAll, [...selector.ids].sort(), [...selector.attributes].sort()] : [],
  )
  return `${id} ${JSON.stringify([name, type, ...selectors])}`
}
