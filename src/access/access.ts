// Who may reach what: the policy index, fed from the store, behind listing, enforcement and the policies' own sub-lists.
import type { Kysely } from 'kysely'
import type { Instant } from '../clock.ts'
import {
  type EdgeRouterPolicyRecord,
  PolicyIndex,
  type PolicyType,
  type ServiceEdgeRouterPolicyRecord,
  type ServicePolicyRecord,
} from '../policy/policy-index.ts'
import type { IndexedPolicy } from '../policy/policy-table.ts'
import { type Attributed, parseSide, type Semantic, type Side } from '../policy/side.ts'
import { UpdateTimes } from '../policy/update-times.ts'
import type { AnyRow } from '../resources/define.ts'
import type { Change } from '../store/changes.ts'
import type { Database } from '../store/database.ts'
import { ConfigUses } from './config-uses.ts'
import { PolicyScopes } from './policy-scopes.ts'

export class Access {
  readonly #index = new PolicyIndex()
  readonly #updates = new UpdateTimes()
  readonly #configs = new ConfigUses()
  readonly #startedAt: Instant
  /** The sub-lists that policies decide. */
  readonly scopes = new PolicyScopes(this.#index)

  private constructor(startedAt: Instant) {
    this.#startedAt = startedAt
  }

  /** Builds the index from the rows of the store. */
  static async load(db: Kysely<Database>, startedAt: Instant): Promise<Access> {
    const access = new Access(startedAt)
    await access.#loadRecords(db)
    await access.#loadPolicies(db)
    return access
  }

  async #loadRecords(db: Kysely<Database>): Promise<void> {
    for (const row of await db.selectFrom('services').select(['id', 'roleAttributes', 'configs']).execute()) {
      this.#index.setService(attributed(row))
      this.#configs.setService(row.id, strings(row.configs))
    }
    const routers = db.selectFrom('routers').select(['id', 'roleAttributes']).where('isEdge', '=', 1)
    for (const row of await routers.execute()) this.#index.setEdgeRouter(attributed(row))
    const checks = db.selectFrom('posture_checks').select(['id', 'roleAttributes'])
    for (const row of await checks.execute()) this.#index.setPostureCheck(attributed(row))
    const overrides = db.selectFrom('service_configs').select(['id', 'identityId', 'configId'])
    for (const row of await overrides.execute()) this.#configs.setOverride(row.id, row)
  }

  async #loadPolicies(db: Kysely<Database>): Promise<void> {
    for (const row of await db.selectFrom('service_policies').selectAll().execute()) {
      this.#index.setServicePolicy({
        ...row,
        identityRoles: strings(row.identityRoles),
        serviceRoles: strings(row.serviceRoles),
        postureCheckRoles: strings(row.postureCheckRoles),
      })
    }
    for (const row of await db.selectFrom('edge_router_policies').selectAll().execute()) {
      const { identityRoles, edgeRouterRoles } = row
      this.#index.setEdgeRouterPolicy({
        ...row,
        identityRoles: strings(identityRoles),
        edgeRouterRoles: strings(edgeRouterRoles),
      })
    }
    for (const row of await db.selectFrom('service_edge_router_policies').selectAll().execute()) {
      const { serviceRoles, edgeRouterRoles } = row
      this.#index.setServiceEdgeRouterPolicy({
        ...row,
        serviceRoles: strings(serviceRoles),
        edgeRouterRoles: strings(edgeRouterRoles),
      })
    }
  }

  // ---- questions ------------------------------------------------------------------------------------------------------

  /** The service policies that match an identity. */
  policiesOf(identity: Attributed, type?: PolicyType): IndexedPolicy[] {
    return this.#index.servicePoliciesOf(identity, type)
  }

  /** Ids of the services that an identity may dial or bind. */
  servicesOf(identity: Attributed, type?: PolicyType): string[] {
    return this.#index.servicesGrantedBy(this.policiesOf(identity, type))
  }

  /** Those of the policies that grant the service. */
  granting(policies: Iterable<IndexedPolicy>, serviceId: string): IndexedPolicy[] {
    return this.#index.grantingService(policies, serviceId)
  }

  /** Ids of the edge routers that an identity may use. */
  routersOf(identity: Attributed): string[] {
    return this.#index.routersOf(identity)
  }

  /** Ids of the edge routers over which an identity may reach a service. */
  commonRouters(identity: Attributed, serviceId: string): string[] {
    return this.#index.commonRouters(identity, serviceId)
  }

  /** When something last changed that the identity may reach; never later than it is told, maybe for nothing. */
  lastChangeFor(identity: Attributed, signedInAt: Instant): Instant {
    return this.#updates.of(identity) || Math.max(signedInAt, this.#startedAt)
  }

  /** One side of a stored policy. */
  sideOf(policyRow: AnyRow, field: string): Side {
    return parseSide(policyRow.semantic as Semantic, strings(policyRow[field] as string))
  }

  // ---- changes --------------------------------------------------------------------------------------------------------

  /** Follows the changes of a commit, in their order. */
  follow(changes: readonly Change[]): void {
    for (const change of changes) this.#followers[change.resource]?.(change)
  }

  readonly #followers: Readonly<Record<string, (change: Change) => void>> = {
    services: (change) => this.#serviceChanged(change),
    'edge-routers': ({ id, after }) => {
      if (after) this.#index.setEdgeRouter(changed(id, after))
      else this.#index.deleteEdgeRouter(id)
    },
    'posture-checks': (change) => this.#postureCheckChanged(change),
    'service-policies': (change) => this.#servicePolicyChanged(change),
    'edge-router-policies': ({ id, after }) => {
      if (after) this.#index.setEdgeRouterPolicy(after as unknown as EdgeRouterPolicyRecord)
      else this.#index.deleteEdgeRouterPolicy(id)
    },
    'service-edge-router-policies': ({ id, after }) => {
      if (after) this.#index.setServiceEdgeRouterPolicy(after as unknown as ServiceEdgeRouterPolicyRecord)
      else this.#index.deleteServiceEdgeRouterPolicy(id)
    },
    configs: ({ id, at }) => {
      for (const serviceId of this.#configs.servicesWith(id)) this.#stampService(serviceId, at)
      for (const identityId of this.#configs.identitiesWith(id)) this.#updates.stampIdentity(identityId, at)
    },
    'service-configs': (change) => this.#overrideChanged(change),
    identities: ({ id, at, before, after }) => {
      if (!after) this.#updates.forgetIdentity(id)
      else if (before?.roleAttributes !== after.roleAttributes) this.#updates.stampIdentity(id, at)
    },
  }

  #serviceChanged({ id, at, after }: Change): void {
    this.#stampService(id, at)
    if (after) {
      this.#index.setService(changed(id, after))
      this.#configs.setService(id, after.configs as string[])
    } else {
      this.#index.deleteService(id)
      this.#configs.deleteService(id)
    }
    this.#stampService(id, at)
  }

  #servicePolicyChanged({ id, at, before, after }: Change): void {
    for (const policy of [before, after] as unknown as (ServicePolicyRecord | undefined)[]) {
      if (policy) this.#updates.stamp(parseSide(policy.semantic, policy.identityRoles), at)
    }
    if (after) this.#index.setServicePolicy(after as unknown as ServicePolicyRecord)
    else this.#index.deleteServicePolicy(id)
  }

  #postureCheckChanged({ id, at, after }: Change): void {
    this.#stampPostureCheck(id, at)
    if (after) this.#index.setPostureCheck(changed(id, after))
    else this.#index.deletePostureCheck(id)
    this.#stampPostureCheck(id, at)
  }

  #overrideChanged({ id, at, before, after }: Change): void {
    const { identityId } = (after ?? before) as { identityId: string }
    this.#updates.stampIdentity(identityId, at)
    if (after) this.#configs.setOverride(id, { identityId, configId: after.configId as string })
    else this.#configs.deleteOverride(id)
  }

  /** Tells everyone who may reach a service. */
  #stampService(serviceId: string, at: Instant): void {
    for (const { subjects } of this.#index.servicePoliciesOfService(serviceId)) this.#updates.stamp(subjects, at)
  }

  /** Tells everyone whose access depends on a posture check. */
  #stampPostureCheck(id: string, at: Instant): void {
    for (const { subjects } of this.#index.servicePoliciesOfPostureCheck(id)) this.#updates.stamp(subjects, at)
  }
}

function attributed({ id, roleAttributes }: { id: string; roleAttributes: string }): Attributed {
  return { id, attributes: strings(roleAttributes) }
}

function changed(id: string, after: NonNullable<Change['after']>): Attributed {
  return { id, attributes: after.roleAttributes as string[] }
}

function strings(stored: string): string[] {
  return JSON.parse(stored) as string[]
}
