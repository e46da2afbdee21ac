// What an API session is shown of its services, as a digest: while it stays the same, so does the list.
import { hash } from 'node:crypto'
import type { Access } from '../access/access.ts'
import type { Viewer } from '../access/viewers.ts'
import type { ReadContext } from '../context.ts'
import { toJsonText } from '../records/raw-json.ts'
import type { RecordCache } from '../records/record-cache.ts'
import type { CachedRecord } from '../records/render-records.ts'
import { configs } from '../resources/configs.ts'
import { services } from '../resources/services.ts'
import { findPostureTransitions, type PostureTransitions, renderPostureQuerySets } from './posture-query-sets.ts'
import { type PermissionFields, ServiceRights } from './service-rights.ts'

/** The services that policies grant, with all their configs, and posture queries without the time that is left. */
export interface ServiceDigest {
  readonly digest: string
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

interface Collaborators {
  readonly access: Access
  readonly cache: RecordCache
}

/** Computes digests from the record cache. A digest of a record lives as long as the record is cached. */
export class ServiceDigests {
  readonly #access: Access
  readonly #cache: RecordCache
  readonly #services = new WeakMap<CachedRecord, ServiceContent>()
  readonly #configs = new WeakMap<CachedRecord, ConfigContent>()

  constructor({ access, cache }: Collaborators) {
    this.#access = access
    this.#cache = cache
  }

  /** The digest for a viewer, at this moment. A commit that comes meanwhile may be part of it, or not. */
  async compute(context: ReadContext, viewer: Viewer): Promise<ServiceDigest> {
    const { index } = this.#access
    const policies = index.findGrantingPolicies(viewer.identity)
    const transitions = findPostureTransitions(this.#access, policies, viewer)
    const rights = new ServiceRights(await renderPostureQuerySets(this.#access, context, policies, viewer, 'end'))
    const records = await this.#cache.findByIds(context, services, index.listGrantedServices(policies))
    const configDigests = await this.#digestConfigs(context, viewer.identity.id, records)
    const rightsDigests = new Map<PermissionFields, string>()
    let text = ''
    for (const record of records) {
      const permissions = rights.granted(index.filterGrantingService(policies, record.id))
      let rightsDigest = rightsDigests.get(permissions)
      if (rightsDigest === undefined) {
        rightsDigest = toDigest(toJsonText(permissions.members))
        rightsDigests.set(permissions, rightsDigest)
      }
      text += `${this.#digestService(record).digest} ${configDigests.get(record.id)} ${rightsDigest}\n`
    }
    return { digest: toDigest(text), transitions }
  }

  /** By service: what the identity gets of configs for it, its own in place of those of the service. */
  async #digestConfigs(
    context: ReadContext,
    identityId: string,
    records: readonly CachedRecord[],
  ): Promise<ReadonlyMap<string, string>> {
    const idsByService = new Map(records.map((record) => [record.id, this.#digestService(record).configIds]))
    for (const { serviceId, configId } of this.#access.findOverrides(identityId)) {
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
      const configIds = JSON.parse(record.facts.configs as string) as string[]
      content = { digest: toDigest(record.bytes), configIds }
      this.#services.set(record, content)
    }
    return content
  }

  /** Services show of a config the name of its type and its data. */
  #digestConfig(record: CachedRecord): ConfigContent {
    let content = this.#configs.get(record)
    if (!content) {
      const { configTypeId, configType, data } = JSON.parse(`${record.bytes.toString('utf8')}}`)
      content = { configTypeId, digest: toDigest(JSON.stringify([configType.name, data])) }
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
