// The edge routers over which an identity reaches a service, as clients are told of them.
import { sql } from 'kysely'
import type { ReadContext } from '../context.ts'
import type { Attributed } from '../policy/side.ts'
import { wordsOf } from '../store/dialects/dialect.ts'
import { kept } from '../store/kept.ts'
import { clientsFacts } from './router-views.ts'

/** A router as a client needs it to connect: what it is, and how it is reached at the moment. */
export interface UsableRouter extends ReturnType<typeof clientsFacts> {
  readonly id: string
  readonly name: string
  readonly cost: number
  readonly noTraversal: boolean
  readonly disabled: boolean
}

// More routers than a client would ever try.
const MOST_ROUTERS = 25

interface RouterRow {
  readonly id: string
  readonly name: string
  readonly cost: number
  readonly noTraversal: number
  readonly disabled: number
}

const routersByIds = kept<[ids: string], RouterRow>(
  (db, ids) =>
    db
      .selectFrom('routers')
      .select(['id', 'name', 'cost', 'noTraversal', 'disabled'])
      .where('id', 'in', sql<string>`(select value from ${wordsOf(db).elements(sql`${ids}`)})`) as never,
)

/** Those that are online come first; offline ones are told of, too, because they may come back. */
export async function usableRouters(
  { db, controller }: Pick<ReadContext, 'db' | 'controller'>,
  identity: Attributed,
  serviceId: string,
): Promise<UsableRouter[]> {
  const { access, network } = controller
  const isOffline = (id: string) => (network.router(id) ? 0 : 1)
  const ids = access
    .commonRouters(identity, serviceId)
    .sort((a, b) => isOffline(a) - isOffline(b) || (a < b ? -1 : 1))
    .slice(0, MOST_ROUTERS)
  if (ids.length === 0) return []
  const rows = new Map((await routersByIds(db, JSON.stringify(ids))).map((row) => [row.id, row]))
  return ids.flatMap((id) => {
    const row = rows.get(id)
    if (!row) return []
    const { name, cost, noTraversal, disabled } = row
    return {
      id,
      name,
      ...clientsFacts(network.router(id)),
      cost,
      noTraversal: noTraversal === 1,
      disabled: disabled === 1,
    }
  })
}
