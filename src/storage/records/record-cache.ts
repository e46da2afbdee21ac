// The record cache: rendered JSON of records, so that most reads cost a look-up.
//
// A record is rendered once, and cached until a commit changes it, a record that belongs to it (`dependsOn` of its
// definition), or the name of a record that it refers to. Computed fields depend on the caller or the moment, and are
// never cached. A read by id or by name costs 30 µs of CPU for an identity in a network of ten thousand, and 120 µs
// without the cache.
import { LRUCache } from 'lru-cache'
import { listLinkColumns } from '../../definitions/model/links.ts'
import type { Reference } from '../../definitions/model/record-plan.ts'
import type { AnyResource, AnyRow } from '../../definitions/resources/define.ts'
import { getResource, resources } from '../../definitions/resources/index.ts'
import { getRecordTable } from '../entities/record-tables.ts'
import { withParent } from '../entities/subtypes.ts'
import type { AnyChange, Commit } from '../transactions/changes.ts'
import type { ReadContext } from '../transactions/context.ts'
import type { Cache } from '../transactions/projection.ts'
import { findReferences } from './references.ts'
import { type CachedRecord, type RenderParts, renderCachedRecords } from './render-records.ts'

// About what 15,000 identities take.
const MAX_BYTES = 32 * 1024 * 1024

// Of each resource, some 400 bytes each.
const MAX_REFERENCES = 500

/** The cached records of one resource. A read by key is not a use: a long list does not push out what is read by id. */
interface Partition {
  readonly byId: LRUCache<string, CachedRecord>
  readonly byKey: Map<number, CachedRecord>
  readonly byName: Map<string, CachedRecord>
}

/** The names of changes that concern no record. */
const WITHOUT_RECORDS: ReadonlySet<string> = new Set(['machines', 'presence', 'revocations', 'traces'])

export class RecordCache implements Cache {
  readonly kind = 'cache'
  readonly name = 'record cache'
  readonly #partitions = new Map<string, Partition>()
  readonly #dependants = mapDependants()
  readonly #referring = mapReferrers()
  readonly #parts: RenderParts
  readonly #maxBytes: number
  /** By resource and id: what records show of those that they refer to, such as the few types and policies of all identities. */
  readonly #references = new Map<string, LRUCache<string, Reference>>()
  /** Counts commits: what was read before one is not cached after it. */
  #commits = 0

  constructor(parts: RenderParts, maxBytes = MAX_BYTES) {
    this.#parts = parts
    this.#maxBytes = maxBytes
  }

  /** The record of that id if it is cached. */
  get({ plural }: AnyResource, id: string): CachedRecord | undefined {
    return this.#partitions.get(plural)?.byId.get(id)
  }

  /** The record of that name if it is cached, and no other record can have it. */
  getByName({ plural }: AnyResource, name: string): CachedRecord | undefined {
    return this.#partitions.get(plural)?.byName.get(name)
  }

  /** The record of that id, or undefined. */
  async findById(context: ReadContext, resource: AnyResource, id: string): Promise<CachedRecord | undefined> {
    const cached = this.#partition(resource).byId.get(id)
    if (cached) return cached
    const commits = this.#commits
    const row = await getRecordTable(resource).findById(context.db, id)
    return row && (await this.#render(context, resource, [row], commits))[0]
  }

  /** The records of those ids, in their order; ids without a record are skipped. */
  findByIds(context: ReadContext, resource: AnyResource, ids: readonly string[]): Promise<readonly CachedRecord[]> {
    const load = (missing: readonly string[]) => getRecordTable(resource).findByIds(context.db, missing)
    return this.#gather(context, resource, ids, this.#partition(resource).byId, load, ({ id }) => id)
  }

  /** The records of those keys (`n`), in their order; keys without a record are skipped. */
  findByKeys(context: ReadContext, resource: AnyResource, keys: readonly number[]): Promise<readonly CachedRecord[]> {
    const load = (missing: readonly number[]) => getRecordTable(resource).findByKeys(context.db, missing)
    return this.#gather(context, resource, keys, this.#partition(resource).byKey, load, ({ n }) => n)
  }

  /** Empties the cache: records are rendered when they are read. */
  clear(): void {
    this.#commits += 1
    this.#partitions.clear()
    this.#references.clear()
  }

  /** Invalidates the records that a commit changed, and those that depend on them. */
  apply({ changes }: Commit): void {
    this.#commits += 1
    for (const { resource, id, before, after } of changes as readonly AnyChange[]) {
      if (WITHOUT_RECORDS.has(resource)) continue
      for (const plural of withParent(resource)) this.#references.get(plural)?.delete(id)
      for (const plural of withParent(resource)) this.#invalidate(plural, id)
      for (const { owner, field } of this.#dependants.get(resource) ?? []) {
        for (const values of [before, after]) {
          const ownerId = values?.[field]
          if (typeof ownerId === 'string') this.#invalidate(owner, ownerId)
        }
      }
      if (before && after && this.#changesReferences(resource, before, after)) {
        for (const plural of withParent(resource).flatMap((name) => this.#referring.get(name) ?? []))
          this.#clear(plural)
      }
    }
  }

  async #gather<K>(
    context: ReadContext,
    resource: AnyResource,
    keys: readonly K[],
    partition: Pick<ReadonlyMap<K, CachedRecord>, 'get'>,
    load: (missingKeys: readonly K[]) => Promise<AnyRow[]>,
    keyOf: (record: CachedRecord) => K,
  ): Promise<readonly CachedRecord[]> {
    // Read before anything is awaited: a commit, or other records of the page, may evict them meanwhile.
    const cached = keys.map((key) => partition.get(key))
    const missingKeys = keys.filter((_, at) => !cached[at])
    if (missingKeys.length === 0) return cached as CachedRecord[]
    const commits = this.#commits
    const records = await this.#render(context, resource, await load(missingKeys), commits)
    const renderedByKey = new Map(records.map((record) => [keyOf(record), record]))
    return keys.flatMap((key, at) => cached[at] ?? renderedByKey.get(key) ?? [])
  }

  /** @param commits the number of commits before the rows were read */
  async #render(
    context: ReadContext,
    resource: AnyResource,
    rows: readonly AnyRow[],
    commits: number,
  ): Promise<CachedRecord[]> {
    const records = await renderCachedRecords(this.#parts, context, resource, rows, (plural, ids) =>
      this.#findReferences(context, plural, ids, commits),
    )
    if (this.#commits === commits) for (const record of records) this.#add(resource, record)
    return records
  }

  async #findReferences(
    { db }: ReadContext,
    plural: string,
    ids: ReadonlySet<string>,
    commits: number,
  ): Promise<ReadonlyMap<string, Reference>> {
    const cache = this.#references.get(plural) ?? new LRUCache<string, Reference>({ max: MAX_REFERENCES })
    this.#references.set(plural, cache)
    const references = new Map<string, Reference>()
    const missingIds: string[] = []
    for (const id of ids) {
      const cached = cache.get(id)
      if (cached) references.set(id, cached)
      else missingIds.push(id)
    }
    if (missingIds.length === 0) return references
    for (const [id, reference] of await findReferences(db, plural, missingIds)) {
      references.set(id, reference)
      if (this.#commits === commits) cache.set(id, reference)
    }
    return references
  }

  #add(resource: AnyResource, record: CachedRecord): void {
    const { byId, byKey, byName } = this.#partition(resource)
    if (byKey.has(record.n)) return
    byId.set(record.id, record)
    // The cache rejects a record that is larger than the whole cache.
    if (byId.has(record.id)) {
      byKey.set(record.n, record)
      if (record.name !== undefined) byName.set(record.name, record)
    }
    this.#evict()
  }

  /** Evicts from the largest partition, so that reading many identities does not evict the few policies. */
  #evict(): void {
    const caches = [...this.#partitions.values()].map(({ byId }) => byId)
    let bytes = caches.reduce((sum, { calculatedSize }) => sum + calculatedSize, 0)
    while (bytes > this.#maxBytes) {
      const largest = caches.reduce((a, b) => (b.calculatedSize > a.calculatedSize ? b : a))
      bytes -= largest.calculatedSize
      largest.pop()
      bytes += largest.calculatedSize
    }
  }

  #invalidate(plural: string, id: string): void {
    this.#partitions.get(plural)?.byId.delete(id)
  }

  #clear(plural: string): void {
    this.#partitions.delete(plural)
  }

  /** Whether a change alters what references to the record show. */
  #changesReferences(plural: string, before: AnyChange['before'], after: AnyChange['after']): boolean {
    return ['name', ...listLinkColumns(getResource(plural))].some((name) => before?.[name] !== after?.[name])
  }

  #partition({ plural }: AnyResource): Partition {
    let partition = this.#partitions.get(plural)
    if (!partition) {
      const byKey = new Map<number, CachedRecord>()
      const byName = new Map<string, CachedRecord>()
      const byId = new LRUCache<string, CachedRecord>({
        maxSize: this.#maxBytes,
        sizeCalculation: estimateRecordBytes,
        dispose: ({ n, name }) => {
          byKey.delete(n)
          if (name !== undefined) byName.delete(name)
        },
      })
      partition = { byId, byKey, byName }
      this.#partitions.set(plural, partition)
    }
    return partition
  }
}

/** Estimates the memory of a record, including its entries in the maps. */
function estimateRecordBytes({ bytes }: CachedRecord): number {
  return bytes.length + 600
}

/** By resource: the resources whose records change their look with it, and the field that says which record. */
function mapDependants(): Map<string, { owner: string; field: string }[]> {
  const dependants = new Map<string, { owner: string; field: string }[]>()
  for (const { plural: owner, dependsOn } of resources as readonly AnyResource[]) {
    for (const [resource, fields] of Object.entries(dependsOn)) {
      dependants.set(resource, [...(dependants.get(resource) ?? []), ...fields.map((field) => ({ owner, field }))])
    }
  }
  return dependants
}

/** By resource: the resources whose records show its records by name. */
function mapReferrers(): Map<string, string[]> {
  const referrers = new Map<string, string[]>()
  for (const { plural, fields, derivedReferences } of resources as readonly AnyResource[]) {
    const targets = Object.values(fields).flatMap(({ kind }) => {
      const isShown = kind.roles || (kind.name === 'reference' && kind.reference?.as)
      return isShown ? (kind.target ?? []) : []
    })
    for (const target of [...targets, ...derivedReferences])
      referrers.set(target, [...(referrers.get(target) ?? []), plural])
  }
  return referrers
}
