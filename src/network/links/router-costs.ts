// The costs of paths at each router, as its record says.
import type { Kysely } from 'kysely'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'
import type { Links } from './links.ts'
import type { Paths } from './paths.ts'
import type { RouterCost } from './router-graph.ts'

export class RouterCosts implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'costs of routers'
  readonly #paths: Paths
  readonly #links: Links
  #ids = new Set<string>()

  constructor(paths: Paths, links: Links) {
    this.#paths = paths
    this.#links = links
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('routers').select(['id', 'cost', 'noTraversal']).execute()
    const earlierIds = this.#ids
    this.#ids = new Set(rows.map(({ id }) => id))
    for (const id of earlierIds) if (!this.#ids.has(id)) this.#remove(id)
    for (const { id, cost, noTraversal } of rows)
      this.#paths.setRouterCost(id, { cost, noTraversal: noTraversal === 1 })
  }

  apply({ changes }: Commit): void {
    for (const { resource, id, after } of changes) {
      if (resource !== 'edge-routers' && resource !== 'routers') continue
      if (after) this.#set(id, after)
      else this.#remove(id)
    }
  }

  #set(id: string, { cost, noTraversal }: RouterCost): void {
    this.#ids.add(id)
    this.#paths.setRouterCost(id, { cost, noTraversal })
  }

  #remove(id: string): void {
    this.#ids.delete(id)
    this.#links.removeRouter(id)
    this.#paths.removeRouter(id)
  }
}
