// The edge routers in memory: few, and shown with every session and every service that is about to be reached.
import type { Kysely } from 'kysely'
import type { Database } from '../storage/database.ts'
import type { Change } from '../storage/transactions/changes.ts'

/** An edge router as clients see it, besides whether and where it is connected. */
export interface RouterEntry {
  readonly id: string
  readonly name: string
  readonly cost: number
  readonly noTraversal: boolean
  readonly disabled: boolean
}

export class RouterDirectory {
  #byId = new Map<string, RouterEntry>()
  #enrolledIds = new Set<string>()

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db
      .selectFrom('routers')
      .select(['id', 'name', 'cost', 'noTraversal', 'disabled', 'isVerified'])
      .where('isEdge', '=', 1)
      .execute()
    this.#byId = new Map(
      rows.map(({ id, name, cost, noTraversal, disabled }) => [
        id,
        { id, name, cost, noTraversal: noTraversal === 1, disabled: disabled === 1 },
      ]),
    )
    this.#enrolledIds = new Set(rows.flatMap(({ id, isVerified }) => (isVerified === 1 ? [id] : [])))
  }

  /** Ids of those that have enrolled: clients are shown no others. */
  get enrolledIds(): ReadonlySet<string> {
    return this.#enrolledIds
  }

  get(id: string): RouterEntry | undefined {
    return this.#byId.get(id)
  }

  /** Follows the changes of a commit. */
  apply({ resource, id, after }: Change): void {
    if (resource !== 'edge-routers') return
    if (!after) {
      this.#byId.delete(id)
      this.#enrolledIds.delete(id)
      return
    }
    const { name, cost, noTraversal, disabled } = after
    this.#byId.set(id, { id, name, cost, noTraversal, disabled })
    if (after.isVerified === true) this.#enrolledIds.add(id)
    else this.#enrolledIds.delete(id)
  }
}
