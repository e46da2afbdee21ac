// Records made ready once and remembered: most reads then cost a look-up and a paste.
import type { ReadContext } from '../context.ts'
import { listLinkColumns } from '../model/links.ts'
import type { AnyResource, AnyRow } from '../resources/define.ts'
import { getResource, resources } from '../resources/index.ts'
import type { Change } from '../store/changes.ts'
import { getRecordTable } from '../store/record-tables.ts'
import { withParent } from '../store/subtypes.ts'
import { type CachedRecord, renderCachedRecords } from './render-records.ts'

// About what 15,000 identities take.
const MAX_BYTES = 32 * 1024 * 1024

/** The remembered records of one resource, the oldest first. */
interface Partition {
  readonly byId: Map<string, CachedRecord>
  readonly byKey: Map<number, CachedRecord>
  bytes: number
}

export class RecordCache {
  readonly #shelves = new Map<string, Partition>()
  readonly #dependants = mapDependants()
  readonly #referring = mapReferrers()
  readonly #mostBytes: number
  #bytes = 0
  /** Counts commits: what was read before one is not remembered after it. */
  #commits = 0

  constructor(mostBytes = MAX_BYTES) {
    this.#mostBytes = mostBytes
  }

  /** The record of that id, or undefined. */
  async byId(context: ReadContext, resource: AnyResource, id: string): Promise<CachedRecord | undefined> {
    const known = this.#shelf(resource).byId.get(id)
    if (known) return known
    const row = await getRecordTable(resource).byId(context.db, id)
    return row && (await this.#make(context, resource, [row]))[0]
  }

  /** The records of those ids, in their order; ids without a record are passed over. */
  async byIds(context: ReadContext, resource: AnyResource, ids: readonly string[]): Promise<CachedRecord[]> {
    const load = (missing: readonly string[]) => getRecordTable(resource).byIds(context.db, missing)
    return this.#gather(context, resource, ids, this.#shelf(resource).byId, load, ({ id }) => id)
  }

  /** The records of those keys (`n`), in their order; keys without a record are passed over. */
  async byKeys(context: ReadContext, resource: AnyResource, keys: readonly number[]): Promise<CachedRecord[]> {
    const load = (missing: readonly number[]) => getRecordTable(resource).byKeys(context.db, missing)
    return this.#gather(context, resource, keys, this.#shelf(resource).byKey, load, ({ n }) => n)
  }

  /** Forgets what a commit changed, and what depends on it. */
  apply(changes: readonly Change[]): void {
    this.#commits += 1
    for (const { resource, id, before, after } of changes) {
      for (const plural of withParent(resource)) this.#forget(plural, id)
      for (const { owner, field } of this.#dependants.get(resource) ?? []) {
        for (const values of [before, after]) {
          const ownerId = values?.[field]
          if (typeof ownerId === 'string') this.#forget(owner, ownerId)
        }
      }
      if (before && after && this.#looksOther(resource, before, after)) {
        for (const plural of withParent(resource).flatMap((name) => this.#referring.get(name) ?? []))
          this.#clear(plural)
      }
    }
  }

  /** Forgets all records of a resource. */
  clear(plural: string): void {
    this.#commits += 1
    this.#clear(plural)
  }

  async #gather<K>(
    context: ReadContext,
    resource: AnyResource,
    wanted: readonly K[],
    known: ReadonlyMap<K, CachedRecord>,
    load: (missing: readonly K[]) => Promise<AnyRow[]>,
    keyOf: (record: CachedRecord) => K,
  ): Promise<CachedRecord[]> {
    // Taken before anything is waited for: a commit, or the others of the page, may make them forgotten meanwhile.
    const found = wanted.map((key) => known.get(key))
    const missing = wanted.filter((_, at) => !found[at])
    if (missing.length === 0) return found as CachedRecord[]
    const made = await this.#make(context, resource, await load(missing))
    const fresh = new Map(made.map((record) => [keyOf(record), record]))
    return wanted.flatMap((key, at) => found[at] ?? fresh.get(key) ?? [])
  }

  async #make(context: ReadContext, resource: AnyResource, rows: readonly AnyRow[]): Promise<CachedRecord[]> {
    const before = this.#commits
    const made = await renderCachedRecords(context, resource, rows)
    if (this.#commits === before) for (const record of made) this.#remember(resource, record)
    return made
  }

  #remember(resource: AnyResource, record: CachedRecord): void {
    const shelf = this.#shelf(resource)
    if (shelf.byKey.has(record.n)) return
    shelf.byId.set(record.id, record)
    shelf.byKey.set(record.n, record)
    this.#weigh(shelf, sizeOf(record))
    while (this.#bytes > this.#mostBytes) this.#dropOldest()
  }

  /** Makes room where most is taken: however many identities are read, the few policies stay remembered. */
  #dropOldest(): void {
    let largest: Partition | undefined
    for (const shelf of this.#shelves.values()) if (!largest || shelf.bytes > largest.bytes) largest = shelf
    const [oldest] = largest?.byId.values() ?? []
    if (largest && oldest) this.#drop(largest, oldest)
  }

  #forget(plural: string, id: string): void {
    const shelf = this.#shelves.get(plural)
    const record = shelf?.byId.get(id)
    if (shelf && record) this.#drop(shelf, record)
  }

  #drop(shelf: Partition, record: CachedRecord): void {
    shelf.byId.delete(record.id)
    shelf.byKey.delete(record.n)
    this.#weigh(shelf, -sizeOf(record))
  }

  #weigh(shelf: Partition, bytes: number): void {
    shelf.bytes += bytes
    this.#bytes += bytes
  }

  #clear(plural: string): void {
    this.#bytes -= this.#shelves.get(plural)?.bytes ?? 0
    this.#shelves.delete(plural)
  }

  /** Whether references to the record read differently than before. */
  #looksOther(plural: string, before: Change['before'], after: Change['after']): boolean {
    return ['name', ...listLinkColumns(getResource(plural))].some((name) => before?.[name] !== after?.[name])
  }

  #shelf({ plural }: AnyResource): Partition {
    let shelf = this.#shelves.get(plural)
    if (!shelf) {
      shelf = { byId: new Map(), byKey: new Map(), bytes: 0 }
      this.#shelves.set(plural, shelf)
    }
    return shelf
  }
}

/** What a record takes, with what it takes to find it. */
function sizeOf({ bytes }: CachedRecord): number {
  return bytes.length + 500
}

/** By resource: the resources whose records change their look with it, and the field that says which record. */
function mapDependants(): Map<string, { owner: string; field: string }[]> {
  const found = new Map<string, { owner: string; field: string }[]>()
  for (const { plural: owner, dependsOn } of resources as readonly AnyResource[]) {
    for (const [resource, fields] of Object.entries(dependsOn)) {
      found.set(resource, [...(found.get(resource) ?? []), ...fields.map((field) => ({ owner, field }))])
    }
  }
  return found
}

/** By resource: the resources whose records show its records by name. */
function mapReferrers(): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { plural, fields } of resources as readonly AnyResource[]) {
    for (const { kind } of Object.values(fields)) {
      const isShown = kind.roles || (kind.name === 'reference' && kind.reference?.as)
      if (kind.target && isShown) found.set(kind.target, [...(found.get(kind.target) ?? []), plural])
    }
  }
  return found
}
