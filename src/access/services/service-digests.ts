// Digests of what API sessions are shown of their services: while a digest stays the same, so does the list.
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { configTypes } from '../../definitions/resources/config-types.ts'
import { configs } from '../../definitions/resources/configs.ts'
import { servicePolicies } from '../../definitions/resources/service-policies.ts'
import { services } from '../../definitions/resources/services.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import { toJsonText } from '../../storage/records/raw-json.ts'
import type { RecordCache } from '../../storage/records/record-cache.ts'
import type { CachedRecord } from '../../storage/records/render-records.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import type { Cache } from '../../storage/transactions/projection.ts'
import type { Access } from '../access.ts'
import type { Override } from '../config-usage.ts'
import type { Viewer } from '../viewers.ts'
import { findPostureTransitions, type PostureTransitions, renderPostureQuerySets } from './posture-query-sets.ts'
import { listPermissions } from './service-rights.ts'

/** The services that policies grant, with all their configs, and posture queries without the time that is left. */
export interface ServiceDigest {
  readonly digest: string
  /**
   * Whether lists with this digest are the same to the byte: they show no time that is left of a timeout, and no configs of the
   * identity's own, whose order the digest leaves out.
   */
  readonly isExact: boolean
  readonly transitions: PostureTransitions
}

interface ServiceContent {
  readonly digest: string
  readonly configIds: readonly string[]
}

interface ConfigContent {
  readonly configTypeId: string
  readonly digest: string
}

interface ServiceDigestsParts {
  readonly access: Access
  readonly cache: RecordCache
}

// About 10,000 sets of policies that identities have together.
const MAX_GRANT_BYTES = 8 * 1024 * 1024
// The digest, and the entry of the map.
const GRANT_BYTES = 250

/** The resources that the digest of what policies grant depends on. */
const GRANT_RESOURCES: ReadonlySet<string> = new Set(
  [services, configs, configTypes, servicePolicies].map(({ plural }) => plural),
)

/**
 * Computes digests from the record cache. A digest of a record lives as long as the record is cached; what a set of policies
 * grants is computed once after a change, for all identities that have no configs of their own.
 */
export class ServiceDigests implements Cache {
  readonly kind = 'cache'
  readonly name = 'service digests'
  readonly #access: Access
  readonly #cache: RecordCache
  readonly #services = new WeakMap<CachedRecord, ServiceContent>()
  readonly #configs = new WeakMap<CachedRecord, ConfigContent>()
  /** By the ids of policies: the digest of what they grant. */
  readonly #grants = new LRUCache<string, string>({
    maxSize: MAX_GRANT_BYTES,
    sizeCalculation: (_digest, key) => GRANT_BYTES + 2 * key.length,
  })
  /** Counts changes of what policies grant: what was read before one is not cached after it. */
  #generation = 0

  constructor({ access, cache }: ServiceDigestsParts) {
    this.#access = access
    this.#cache = cache
  }

  /** Drops what policies grant. */
  clear(): void {
    this.#generation += 1
    this.#grants.clear()
  }

  apply({ changes }: Commit): void {
    if (!changes.some(({ resource }) => GRANT_RESOURCES.has(resource))) return
    this.#generation += 1
    this.#grants.clear()
  }

  /** The digest for a viewer, at this moment. A commit that comes meanwhile may be part of it, or not. */
  async compute(context: ReadContext, viewer: Viewer): Promise<ServiceDigest> {
    const policies = this.#access.index.findGrantingPolicies(viewer.identity)
    const transitions = findPostureTransitions(this.#access, policies, viewer)
    const querySets = await renderPostureQuerySets(this.#access, context, policies, viewer, 'end')
    const grants = await this.#digestGrants(context, viewer.identity.id, policies, querySets !== undefined)
    const digest = querySets ? toDigest(`${grants} ${toJsonText([...querySets.values()])}`) : grants
    return { digest, isExact: !this.#showsMore(viewer.identity.id, policies), transitions }
  }

  /** Whether lists show more than the digest determines. */
  #showsMore(identityId: string, policies: readonly IndexedPolicy[]): boolean {
    const { index } = this.#access
    if (this.#access.findOverrides(identityId).length > 0) return true
    if (!index.hasPostureChecks) return false
    return policies.some((policy) => index.listRequiredPostureChecks(policy).some(({ typeId }) => typeId === 'MFA'))
  }

  /**
   * The digest of the services that policies grant an identity, with their configs and permissions.
   * @param showsPolicies whether records show which policies grant a service, because one of them has a posture check
   */
  async #digestGrants(
    context: ReadContext,
    identityId: string,
    policies: readonly IndexedPolicy[],
    showsPolicies: boolean,
  ): Promise<string> {
    const overrides = this.#access.findOverrides(identityId)
    if (overrides.length > 0) return this.#computeGrants(context, policies, showsPolicies, overrides)
    const key = `${showsPolicies} ${policies.map(({ id }) => id).join()}`
    const cached = this.#grants.get(key)
    if (cached !== undefined) return cached
    const generation = this.#generation
    const digest = await this.#computeGrants(context, policies, showsPolicies, overrides)
    if (this.#generation === generation) this.#grants.set(key, digest)
    return digest
  }

  async #computeGrants(
    context: ReadContext,
    policies: readonly IndexedPolicy[],
    showsPolicies: boolean,
    overrides: readonly Override[],
  ): Promise<string> {
    const { index } = this.#access
    const records = await this.#cache.findByIds(context, services, index.listGrantedServices(policies))
    const configDigests = await this.#digestConfigs(context, records, overrides)
    const lines = records.map((record) => {
      const granting = index.filterGrantingService(policies, record.id)
      const rights = showsPolicies ? granting.map(({ id }) => id) : listPermissions(granting)
      return `${this.#digestService(record).digest} ${configDigests.get(record.id)} ${rights.join()}`
    })
    return toDigest(lines.join('\n'))
  }

  /** By service: the configs that an identity gets, its own in place of those of the service. */
  async #digestConfigs(
    context: ReadContext,
    records: readonly CachedRecord[],
    overrides: readonly Override[],
  ): Promise<ReadonlyMap<string, string>> {
    const idsByService = new Map(records.map((record) => [record.id, this.#digestService(record).configIds]))
    for (const { serviceId, configId } of overrides) {
      const own = idsByService.get(serviceId)
      if (own) idsByService.set(serviceId, [...own, configId])
    }
    const ids = new Set([...idsByService.values()].flat())
    const cached = ids.size === 0 ? [] : await this.#cache.findByIds(context, configs, [...ids])
    const contents = new Map(cached.map((record) => [record.id, this.#digestConfig(record)]))
    return new Map([...idsByService].map(([serviceId, configIds]) => [serviceId, digestByType(configIds, contents)]))
  }

  #digestService(record: CachedRecord): ServiceContent {
    let content = this.#services.get(record)
    if (!content) {
      const configIds = JSON.parse(record.computedInput.configs as string) as string[]
      content = { digest: toDigest(record.bytes), configIds }
      this.#services.set(record, content)
    }
    return content
  }

  /** Services show of a config the name of its type and its data; lists may be of some types only. */
  #digestConfig(record: CachedRecord): ConfigContent {
    let content = this.#configs.get(record)
    if (!content) {
      const { configTypeId, configType, data } = JSON.parse(`${record.bytes.toString('utf8')}}`)
      content = { configTypeId, digest: toDigest(JSON.stringify([configTypeId, configType.name, data])) }
      this.#configs.set(record, content)
    }
    return content
  }
}

/** Of two configs of one type the later one stays. */
function digestByType(configIds: readonly string[], contents: ReadonlyMap<string, ConfigContent>): string {
  if (configIds.length === 0) return ''
  const byType = new Map<string, string>()
  for (const configId of configIds) {
    const content = contents.get(configId)
    if (content) byType.set(content.configTypeId, content.digest)
  }
  return [...byType].sort(([one], [other]) => (one < other ? -1 : 1)).join()
}

function toDigest(content: string | Buffer): string {
  return hash('sha256', content, 'base64')
}
