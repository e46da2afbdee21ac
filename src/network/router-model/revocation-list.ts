// Lists the revocations of tokens, as administrators read them.
import {
  type FilterSource,
  type FilterSymbol,
  toFilterSource,
  toFilterSymbols,
} from '../../definitions/model/filter-symbols.ts'
import { f } from '../../definitions/schema/fields.ts'
import type { ListPlan } from '../../storage/lists/list-plan.ts'
import { queryPage, queryRowsOf, type RowQuery, toListQuery, type Window } from '../../storage/lists/lists.ts'
import type { Store } from '../../storage/store.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'

/** A revocation with the key of its row. */
export interface RevocationRow {
  readonly n: number
  readonly id: string
  readonly type: string
  readonly issuedBefore: number
  readonly expiresAt: number
}

const begin = { type: 'date', column: 'issuedBefore', isNullable: false } as const

/** It is created at the time before which the tokens were issued. */
export const revocationSource: FilterSource = toFilterSource({
  table: 'revocations',
  symbols: new Map<string, FilterSymbol>([
    ['id', { name: 'id', type: 'string', column: 'id', member: 'id', isNullable: false }],
    ...toFilterSymbols({
      type: f.text({ filter: true }),
      issuedBefore: f.time({ filter: true }),
      expiresAt: f.time({ filter: true }),
    }),
    ...(['createdAt', 'updatedAt'] as const).map((name) => [name, { ...begin, name, member: name }] as const),
  ]),
  key: { column: 'n', isDescending: false },
})

type Reading = Pick<Context, 'db' | 'caller'>

/** One page of those that match a plan. */
export async function listRevocations(
  store: Store,
  context: Reading,
  plan: ListPlan,
): Promise<Window & { readonly items: readonly RevocationRow[] }> {
  const { keys, ...window } = await queryPage(store, toListQuery(context, revocationSource, plan))
  const rows = await context.db
    .selectFrom('revocations')
    .selectAll()
    .where(isOneOf(context.db, 'n', keys))
    .execute()
  const byKey = new Map(rows.map((row) => [row.n, row]))
  return { ...window, items: keys.flatMap((n) => byKey.get(n) ?? []) }
}

/** All that match a plan, for a stream. */
export function queryRevocationRows(store: Store, context: Reading, plan: ListPlan): Promise<RowQuery<RevocationRow>> {
  return queryRowsOf<RevocationRow>(store, toListQuery(context, revocationSource, plan))
}
