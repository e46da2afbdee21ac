// Who may reach what: the policy index, fed from the store, behind listing, enforcement and the policies' own sub-lists.
import type { Kysely } from 'kysely'
import type { Instant } from '../clock.ts'
import type { Context } from '../context.ts'
import { notFound } from '../errors.ts'
import { PolicyIndex, type PolicyType, type ServicePolicyRecord } from '../policy/policy-index.ts'
import type { IndexedPolicy } from '../policy/policy-table.ts'
import { type Attributed, parseSide, type Semantic, type Side } from '../policy/side.ts'
import { UpdateTimes } from '../policy/update-times.ts'
import type { AnyRow, Scope } from '../resources/define.ts'
import type { Change } from '../store/changes.ts'
import type { Database } from '../store/database.ts'

export class Access {
  readonly #index = new PolicyIndex()
  readonly #updates = new UpdateTimes()
  readonly #startedAt: Instant
  /** Config → the services that carry it. */
  readonly #servicesByConfig = new Map<string, Set<string>>()

  private constructor(startedAt: Instant) {
    this.#startedAt = startedAt
  }

  /** Builds the index from the rows of the store. */
  static async load(db: Kysely<Database>, startedAt: Instant): Promise<Access> {
    const access = new Access(startedAt)
    for (const row of await db.selectFrom('services').select(['id', 'roleAttributes', 'configs']).execute()) {
      access.#index.setService({ id: row.id, attributes: strings(row.roleAttributes) })
      access.#attachConfigs(row.id, strings(row.configs))
    }
    for (const row of await db.selectFrom('service_policies').selectAll().execute()) {
      access.#index.setServicePolicy({
        ...row,
        identityRoles: strings(row.identityRoles),
        serviceRoles: strings(row.serviceRoles),
        postureCheckRoles: strings(row.postureCheckRoles),
      })
    }
    return access
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

  /** When something last changed that the identity may reach; never later than it is told, maybe for nothing. */
  lastChangeFor(identity: Attributed, signedInAt: Instant): Instant {
    return this.#updates.of(identity) || Math.max(signedInAt, this.#startedAt)
  }

  /** One side of a stored policy. */
  sideOf(policyRow: AnyRow, field: string): Side {
    return parseSide(policyRow.semantic as Semantic, strings(policyRow[field] as string))
  }

  // ---- sub-lists ------------------------------------------------------------------------------------------------------

  policiesOfService(serviceId: string): Scope {
    return { ids: this.#index.servicePoliciesOfService(serviceId).map(({ id }) => id) }
  }

  identitiesOfService(serviceId: string, policyType: unknown): Scope {
    const policies = this.#index.servicePoliciesOfService(serviceId, typeFrom(policyType))
    return { sides: policies.map(({ subjects }) => subjects) }
  }

  async policiesOfIdentity(context: Context, identityId: string): Promise<Scope> {
    const identity = await attributesOf(context, identityId)
    return { ids: this.policiesOf(identity).map(({ id }) => id) }
  }

  async servicesOfIdentity(context: Context, identityId: string, policyType: unknown): Promise<Scope> {
    const identity = await attributesOf(context, identityId)
    return { ids: this.servicesOf(identity, typeFrom(policyType)) }
  }

  // ---- changes --------------------------------------------------------------------------------------------------------

  /** Follows the changes of a commit, in their order. */
  follow(changes: readonly Change[]): void {
    for (const change of changes) {
      switch (change.resource) {
        case 'services':
          this.#serviceChanged(change)
          break
        case 'service-policies':
          this.#servicePolicyChanged(change)
          break
        case 'configs':
          for (const serviceId of this.#servicesByConfig.get(change.id) ?? []) this.#stampService(serviceId, change.at)
          break
        case 'identities':
          this.#identityChanged(change)
          break
        default:
      }
    }
  }

  #serviceChanged({ id, at, before, after }: Change): void {
    this.#stampService(id, at)
    if (before) this.#detachConfigs(id, before.configs as string[])
    if (after) {
      this.#index.setService({ id, attributes: after.roleAttributes as string[] })
      this.#attachConfigs(id, after.configs as string[])
    } else {
      this.#index.deleteService(id)
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

  #identityChanged({ id, at, before, after }: Change): void {
    if (!after) this.#updates.forgetIdentity(id)
    else if (before?.roleAttributes !== after.roleAttributes) this.#updates.stampIdentity(id, at)
  }

  /** Tells everyone who may reach a service. */
  #stampService(serviceId: string, at: Instant): void {
    for (const { subjects } of this.#index.servicePoliciesOfService(serviceId)) this.#updates.stamp(subjects, at)
  }

  #attachConfigs(serviceId: string, configIds: readonly string[]): void {
    for (const configId of configIds) {
      const services = this.#servicesByConfig.get(configId)
      if (services) services.add(serviceId)
      else this.#servicesByConfig.set(configId, new Set([serviceId]))
    }
  }

  #detachConfigs(serviceId: string, configIds: readonly string[]): void {
    for (const configId of configIds) {
      const services = this.#servicesByConfig.get(configId)
      services?.delete(serviceId)
      if (services?.size === 0) this.#servicesByConfig.delete(configId)
    }
  }
}

/** What policies know an identity by. @throws NOT_FOUND */
export async function attributesOf({ db }: Pick<Context, 'db'>, identityId: string): Promise<Attributed> {
  const row = await db.selectFrom('identities').select('roleAttributes').where('id', '=', identityId).executeTakeFirst()
  if (!row) throw notFound('identity', identityId)
  return { id: identityId, attributes: strings(row.roleAttributes) }
}

function typeFrom(policyType: unknown): PolicyType | undefined {
  if (policyType === 'dial') return 'Dial'
  return policyType === 'bind' ? 'Bind' : undefined
}

function strings(stored: string): string[] {
  return JSON.parse(stored) as string[]
}
