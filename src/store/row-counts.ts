// Counts, cached until one of the tables they read changes: a client that polls a filtered list pays for it once.
import type { CompiledQuery } from 'kysely'
import { LRUCache } from 'lru-cache'
import { type Awaitable, whenReady } from '../awaitable.ts'
import type { Change } from './changes.ts'
import type { Projection } from './projection.ts'

const MAX_BYTES = 1024 * 1024
// The number, its version, and the map around them.
const ENTRY_BYTES = 100

interface CachedCount {
  readonly total: number
  readonly version: number
}

export class RowCounts implements Projection {
  readonly name = 'row counts'
  readonly #cached = new LRUCache<string, CachedCount>({
    maxSize: MAX_BYTES,
    sizeCalculation: (_count, key) => ENTRY_BYTES + 2 * key.length,
  })
  /** By table: how many commits have touched it. */
  readonly #versions = new Map<string, number>()

  async rebuild(): Promise<void> {
    this.clear()
  }

  apply(_changes: readonly Change[], tables: ReadonlySet<string>): void {
    for (const table of tables) this.#versions.set(table, (this.#versions.get(table) ?? 0) + 1)
  }

  clear(): void {
    this.#cached.clear()
  }

  /** The count of a query over these tables; `run` runs it. */
  count(
    query: CompiledQuery<{ n: number }>,
    tables: readonly string[],
    run: (query: CompiledQuery<{ n: number }>) => Awaitable<readonly { readonly n: number }[]>,
  ): Awaitable<number> {
    const key = `${query.sql}\0${JSON.stringify(query.parameters)}`
    const version = tables.reduce((sum, table) => sum + (this.#versions.get(table) ?? 0), 0)
    const cached = this.#cached.get(key)
    if (cached?.version === version) return cached.total
    return whenReady(run(query), ([row]) => {
      const total = row?.n ?? 0
      this.#cached.set(key, { total, version })
      return total
    })
  }
}
