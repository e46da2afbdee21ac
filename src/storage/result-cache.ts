// Results of queries, cached until one of the tables they read changes: a client that polls a list pays for it once.
//
// No counter is maintained: totals are counted and cached, and so are the keys of a page, so that polling a list costs no
// statement. The records of the page are rendered for each response, because what they show depends on the caller and the
// moment.
import { LRUCache } from 'lru-cache'
import type { Commit } from './transactions/changes.ts'
import type { Cache } from './transactions/projection.ts'

const MAX_BYTES = 2 * 1024 * 1024
// The object, and the map around it.
const ENTRY_BYTES = 150

export interface Result<T> {
  readonly value: T
  /** The tables that it was read from. */
  readonly tables: readonly string[]
  /** The approximate size of the value. */
  readonly bytes: number
}

interface CachedResult extends Result<unknown> {
  /** The number of commits before it was read. */
  readonly readAt: number
}

export class ResultCache implements Cache {
  readonly kind = 'cache'
  readonly name = 'result cache'
  readonly #cached = new LRUCache<string, CachedResult>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ bytes }, key) => ENTRY_BYTES + bytes + 2 * key.length,
  })
  #commits = 0
  /** By table: the last commit that touched it. */
  readonly #changedAt = new Map<string, number>()
  /** Results that were read before this commit are outdated, whatever their tables. */
  #clearedAt = 0

  apply({ tables }: Commit): void {
    this.#commits += 1
    for (const table of tables) this.#changedAt.set(table, this.#commits)
  }

  clear(): void {
    this.#commits += 1
    this.#clearedAt = this.#commits
    this.#cached.clear()
  }

  /** The result of that key, which `run` reads unless it is cached. */
  async find<T>(key: string, run: () => Promise<Result<T>>): Promise<T> {
    const cached = this.#cached.get(key)
    if (cached && this.#isCurrent(cached)) return cached.value as T
    const readAt = this.#commits
    const { value, tables, bytes } = await run()
    this.#cached.set(key, { value, tables, bytes, readAt })
    return value
  }

  #isCurrent({ tables, readAt }: CachedResult): boolean {
    return readAt >= this.#clearedAt && tables.every((table) => (this.#changedAt.get(table) ?? 0) <= readAt)
  }
}
