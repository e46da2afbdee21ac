// Access: the policy index, fed from the store, behind listing, enforcement and the policies' own sub-lists.
import type { Kysely } from 'kysely'
import { hasOtherMfa } from '../authentication/api-sessions/live-api-sessions.ts'
import type { AnyRow } from '../definitions/resources/define.ts'
import type { Instant } from '../foundation/clock.ts'
import { PolicyIndex, type PolicyReader, type PolicyType } from '../policy/policy-index.ts'
import type { IndexedPolicy } from '../policy/policy-table.ts'
import { parseRoleSelector, type RoleBearer, type RoleSelector, type Semantic } from '../policy/role-selector.ts'
import { UpdateTimes } from '../policy/update-times.ts'
import type { Database } from '../storage/database.ts'
import type { Change, Commit, RecordChange } from '../storage/transactions/changes.ts'
import type { DerivedRows } from '../storage/transactions/projection.ts'
import { ConfigUsage, type Override } from './config-usage.ts'
import {
  type AccessQuestion,
  type Decision,
  decide,
  PostureEvaluation,
  type PostureSource,
  type PostureSubject,
} from './decision.ts'
import { applyToIndex, loadIndex, withHypothetical } from './index-updates.ts'
import { type LiveSources, unknownLiveState } from './live-state.ts'
import { PolicyScopes } from './policy-scopes.ts'
import { RouterDirectory } from './router-directory.ts'

export class Access implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'access'
  /** The state that exists beyond records. */
  readonly live: LiveSources
  readonly posture: PostureSource
  readonly routers = new RouterDirectory()
  /** When something last changed that may concern the services of an identity. */
  readonly updates = new UpdateTimes()
  #index = new PolicyIndex()
  #scopes = new PolicyScopes(this.#index)
  #configs = new ConfigUsage()

  constructor(posture: PostureSource, live: LiveSources = unknownLiveState) {
    this.posture = posture
    this.live = live
  }

  /** The policy index itself, for what explains or compares decisions. */
  get index(): PolicyReader {
    return this.#index
  }

  /** The sub-lists that policies decide. */
  get scopes(): PolicyScopes {
    return this.#scopes
  }

  // ---- questions ------------------------------------------------------------------------------------------------------

  /** The service policies that match an identity. */
  findPolicies(identity: RoleBearer, type?: PolicyType): IndexedPolicy[] {
    return this.#index.findServicePolicies(identity, type)
  }

  /** Ids of the services that an identity may dial or bind. */
  listServices(identity: RoleBearer): string[] {
    return this.#index.listGrantedServices(this.findPolicies(identity))
  }

  /** Filters policies to those that grant the service. */
  filterGranting(policies: Iterable<IndexedPolicy>, serviceId: string): IndexedPolicy[] {
    return this.#index.filterGrantingService(policies, serviceId)
  }

  /** Whether an identity may dial, or host, a service: what opens a session, keeps it, and explains it. */
  decide(question: AccessQuestion): Decision {
    return decide(this.#index, this.posture, question)
  }

  /** Starts the evaluation of posture checks for a subject, as everything stands at this moment. */
  evaluatePosture(subject: PostureSubject): PostureEvaluation {
    return new PostureEvaluation(this.#index, this.posture, subject)
  }

  /** Whether a policy links an identity with a service, whatever its posture checks find: then the identity sees it. */
  isVisible(identity: RoleBearer, serviceId: string): boolean {
    return this.#index.grants(identity, serviceId)
  }

  /** Ids of the edge routers that an identity may use. */
  listRouters(identity: RoleBearer): string[] {
    return this.#index.listRouters(identity)
  }

  /** Ids of the edge routers over which an identity may reach a service. */
  listCommonRouters(identity: RoleBearer, serviceId: string): string[] {
    return this.#index.listCommonRouters(identity, serviceId)
  }

  /** Whether an identity may reach a service over an edge router. */
  isCommonRouter(identity: RoleBearer, serviceId: string, routerId: string): boolean {
    return this.#index.isCommonRouter(identity, serviceId, routerId)
  }

  /** The configs that an identity gets in place of those of services. */
  findOverrides(identityId: string): Override[] {
    return this.#configs.findOverrides(identityId)
  }

  /** One side of a stored policy. */
  parsePolicySelector(policyRow: AnyRow, field: string): RoleSelector {
    return parseRoleSelector(policyRow.semantic as Semantic, JSON.parse(policyRow[field] as string) as string[])
  }

  /** The result of `ask` as if these changes had been made. `ask` must not wait for anything. */
  withHypothetical<T>(changes: readonly RecordChange[], ask: (index: PolicyReader) => T): T {
    return this.posture.withHypothetical(changes, () => withHypothetical(this.#index, changes, () => ask(this.#index)))
  }

  // ---- changes --------------------------------------------------------------------------------------------------------

  /** Builds everything from rows. What changed before is unknown, so the newest commit counts as a change for everyone. */
  async rebuild(db: Kysely<Database>): Promise<void> {
    const index = new PolicyIndex()
    await loadIndex(db, index)
    const configs = new ConfigUsage()
    for (const { id, configs: ids } of await db.selectFrom('services').select(['id', 'configs']).execute()) {
      configs.setService(id, JSON.parse(ids) as string[])
    }
    const overrides = db.selectFrom('service_configs').select(['id', 'identityId', 'serviceId', 'configId'])
    for (const row of await overrides.execute()) configs.setOverride(row.id, row)
    await this.routers.rebuild(db)
    const { at } = await db.selectFrom('commit_position').select('at').executeTakeFirstOrThrow()
    this.#index = index
    this.#scopes = new PolicyScopes(index)
    this.#configs = configs
    this.updates.stampAll(at)
  }

  /** Compares the policy index with one that is built from rows. */
  async findDifferences(db: Kysely<Database>): Promise<string[]> {
    const fresh = new PolicyIndex()
    await loadIndex(db, fresh)
    const [inMemory, inRows] = [new Set(this.#index.describe()), new Set(fresh.describe())]
    return [
      ...[...inMemory].filter((text) => !inRows.has(text)).map((text) => `only memory holds ${text}`),
      ...[...inRows].filter((text) => !inMemory.has(text)).map((text) => `memory lacks ${text}`),
    ]
  }

  /** Follows the changes of a commit, in their order. */
  apply({ changes, at }: Commit): void {
    for (const change of changes) {
      // Identities that lose something by the change must learn of it as well as those that gain something.
      this.#stamp(change, at)
      applyToIndex(this.#index, change)
      this.#configsChanged(change)
      this.routers.apply(change)
      if (change.resource === 'services' || change.resource === 'posture-checks') this.#stamp(change, at)
    }
  }

  /** Notes whose services a change may alter, as far as policies stand at this moment. */
  #stamp(change: Change, at: Instant): void {
    const { id } = change
    switch (change.resource) {
      case 'services':
        this.#stampService(id, at)
        break
      case 'posture-checks':
        this.#stampSubjects(this.#index.findServicePoliciesOfPostureCheck(id), at)
        break
      case 'service-policies':
        for (const policy of [change.before, change.after]) {
          if (policy) this.updates.stamp(parseRoleSelector(policy.semantic, policy.identityRoles), at)
        }
        break
      case 'configs':
        for (const serviceId of this.#configs.findServices(id)) this.#stampService(serviceId, at)
        for (const identityId of this.#configs.findIdentities(id)) this.updates.stampIdentity(identityId, at)
        break
      case 'config-types':
        // Services show the configs by the name of their type. It changes too rarely to follow who sees them.
        if (change.before && change.after && change.before.name !== change.after.name) this.updates.stampAll(at)
        break
      case 'service-configs': {
        const override = change.after ?? change.before
        if (override) this.updates.stampIdentity(override.identityId, at)
        break
      }
      case 'api-sessions': {
        const { before, after } = change
        if (after && hasOtherMfa(before, after)) this.updates.stampIdentity(after.identityId, at)
        break
      }
      case 'machines':
        this.updates.stampIdentity(id, at)
        break
      case 'identities': {
        const { before, after } = change
        if (!after) this.updates.removeIdentity(id)
        // A new identity has no API session yet.
        else if (before && !isSameList(before.roleAttributes, after.roleAttributes)) this.updates.stampIdentity(id, at)
      }
    }
  }

  /** Tells everyone who may reach a service. */
  #stampService(serviceId: string, at: Instant): void {
    this.#stampSubjects(this.#index.findServicePoliciesOfService(serviceId), at)
  }

  #stampSubjects(policies: readonly IndexedPolicy[], at: Instant): void {
    for (const { subjects } of policies) this.updates.stamp(subjects, at)
  }

  #configsChanged(change: Change): void {
    const { resource, id, after } = change
    if (resource === 'services') {
      if (after) this.#configs.setService(id, after.configs)
      else this.#configs.deleteService(id)
    }
    if (resource === 'service-configs') {
      if (after) this.#configs.setOverride(id, after)
      else this.#configs.deleteOverride(id)
    }
  }
}

function isSameList(some: readonly string[], others: readonly string[]): boolean {
  return some === others || (some.length === others.length && some.every((entry, at) => entry === others[at]))
}
