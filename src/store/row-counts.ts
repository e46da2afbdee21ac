// Counts, remembered until one of the tables they read changes: a client that polls a filtered list pays for it once.
import type { CompiledQuery } from 'kysely'
import { BoundedCache } from '../bounded-cache.ts'

const MAX_BYTES = 1024 * 1024
// The number, its version, and the map around them.
const ENTRY_BYTES = 100

interface CachedCount {
  readonly total: number
  readonly version: number
}

export class RowCounts {
  readonly #remembered = new BoundedCache<CachedCount>(MAX_BYTES)
  /** By table: how many commits have touched it. */
  readonly #versions = new Map<string, number>()

  invalidate(tables: Iterable<string>): void {
    for (const table of tables) this.#versions.set(table, (this.#versions.get(table) ?? 0) + 1)
  }

  clear(): void {
    this.#remembered.clear()
  }

  /** The count of a query over these tables; `run` runs it. */
  async count(
    query: CompiledQuery<{ n: number }>,
    tables: readonly string[],
    run: (query: CompiledQuery<{ n: number }>) => Promise<readonly { readonly n: number }[]>,
  ): Promise<number> {
    const key = `${query.sql}\0${JSON.stringify(query.parameters)}`
    const version = tables.reduce((sum, table) => sum + (this.#versions.get(table) ?? 0), 0)
    const remembered = this.#remembered.get(key)
    if (remembered?.version === version) return remembered.total
    const [row] = await run(query)
    const total = row?.n ?? 0
    this.#remembered.set(key, { total, version }, ENTRY_BYTES)
    return total
  }
}
