// How one record shows another: {_links, entity, id, name}, cached until the other record changes.
import type { Kysely } from 'kysely'
import { LRUCache } from 'lru-cache'
import { getCompiledResource } from '../../definitions/model/index.ts'
import { listLinkColumns, toLinkedPlural } from '../../definitions/model/links.ts'
import type { Reference } from '../../definitions/model/record-plan.ts'
import type { AnyResource, AnyRow, ComputedInput } from '../../definitions/resources/define.ts'
import { getResource } from '../../definitions/resources/index.ts'
import type { Awaitable } from '../../foundation/awaitable.ts'
import type { Commit } from '../changes.ts'
import type { Database } from '../database.ts'
import { withParent } from '../entities/subtypes.ts'
import { type PreparedQuery, prepareQuery } from '../prepared-queries.ts'
import type { Cache } from '../projection.ts'
import { isElementOf, untyped } from '../untyped.ts'

// About 5,000 references: the targets of a page, and all records of the small resources.
const MAX_BYTES_PER_RESOURCE = 5 * 1024 * 1024
// The object, and its place in the cache.
const ENTRY_BYTES = 200

/** References by resource and id. It follows the change feed, so that a cached name is never outdated. */
export class ReferenceCache implements Cache {
  readonly kind = 'cache'
  readonly name = 'reference cache'
  readonly #byResource = new Map<string, LRUCache<string, Reference>>()
  readonly #statements = new Map<string, PreparedQuery<[ids: string], AnyRow>>()

  /** References to the records of `plural` with these ids; ids without a record are absent in the result. */
  find(db: Kysely<Database>, plural: string, ids: Iterable<string>): Awaitable<ReadonlyMap<string, Reference>> {
    const cached = this.#cacheOf(plural)
    const references = new Map<string, Reference>()
    const missingIds: string[] = []
    for (const id of new Set(ids)) {
      const reference = cached.get(id)
      if (reference) references.set(id, reference)
      else missingIds.push(id)
    }
    if (missingIds.length === 0) return references
    return this.#load(db, getResource(plural), missingIds).then((loaded) => {
      for (const [id, reference] of loaded) {
        references.set(id, reference)
        cached.set(id, reference)
      }
      return references
    })
  }

  /** Empties the cache: references are read from rows when they are needed. */
  clear(): void {
    this.#byResource.clear()
  }

  /** Invalidates the references that a commit changed. */
  apply({ changes }: Commit): void {
    for (const { resource, id } of changes) {
      if (resource === 'machines') continue
      for (const plural of withParent(resource)) this.#byResource.get(plural)?.delete(id)
    }
  }

  #cacheOf(plural: string): LRUCache<string, Reference> {
    let cache = this.#byResource.get(plural)
    if (!cache) {
      cache = new LRUCache({ maxSize: MAX_BYTES_PER_RESOURCE, sizeCalculation: estimateReferenceBytes })
      this.#byResource.set(plural, cache)
    }
    return cache
  }

  async #load(db: Kysely<Database>, resource: AnyResource, ids: readonly string[]): Promise<[string, Reference][]> {
    const rows = await this.#getRowQuery(resource)(db, JSON.stringify(ids))
    return rows.map((row) => [row.id as string, renderReference(resource, row as AnyRow)])
  }

  /** The statement that finds rows of a resource by a JSON array of ids, with the columns that references show. */
  #getRowQuery(resource: AnyResource): PreparedQuery<[ids: string], AnyRow> {
    let query = this.#statements.get(resource.plural)
    if (!query) {
      const columns = new Set([...listLinkColumns(resource), ...('name' in resource.fields ? ['name'] : [])])
      query = prepareQuery(
        (db, ids) =>
          untyped(db)
            .selectFrom(resource.table)
            .select([...columns])
            .where(isElementOf(db, 'id', ids)) as never,
      )
      this.#statements.set(resource.plural, query)
    }
    return query
  }
}

/** The reference to a record, from the columns that references show: those of its links, and its name. */
export function renderReference(resource: AnyResource, row: ComputedInput): Reference {
  const { links } = getCompiledResource(resource.plural).recordPlan
  const name = (row.name as string | undefined) ?? ''
  // Joined, it is one string. Concatenated, the engine would keep its pieces, which take three times as much.
  const text = ['{"_links":', links(row as AnyRow), renderReferenceMembers(resource, row.id, name)].join('')
  return { name, text }
}

/** What follows the links in a reference. */
export function renderReferenceMembers(resource: AnyResource, id: string, name: string): string {
  return `,"entity":"${toLinkedPlural(resource)}","id":"${id}","name":${JSON.stringify(name)}}`
}

function estimateReferenceBytes({ name, text }: Reference, id: string): number {
  return ENTRY_BYTES + 2 * (id.length + name.length + text.length)
}
