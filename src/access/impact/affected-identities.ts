// The identities that changes may give or take access, as they are before and after them.

import { identities } from '../../definitions/resources/identities.ts'
import type { PolicyReader } from '../../policy/policy-index.ts'
import { mergeSelectors, parseRoleSelector, type RoleBearer, type RoleSelector } from '../../policy/role-selector.ts'
import { planList } from '../../storage/lists/list-plan.ts'
import { queryRows } from '../../storage/lists/lists.ts'
import type { Store } from '../../storage/store.ts'
import type { ChangeOf, RecordChange, RecordOf } from '../../storage/transactions/changes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { Access } from '../access.ts'

/** An identity before and after the changes; absent before them if it is new, and after them if it would be gone. */
export interface AffectedIdentity {
  readonly id: string
  readonly name: string
  readonly before: RoleBearer | undefined
  readonly after: RoleBearer | undefined
}

/** The identities that the changes concern; of those that policies reach, at most `limit`. */
export async function findAffectedIdentities(
  { access, store }: { readonly access: Access; readonly store: Store },
  context: Context,
  changes: readonly RecordChange[],
  limit: number,
): Promise<AffectedIdentity[]> {
  const changedIdentities = changes.flatMap((change) => (change.resource === 'identities' ? toSubject(change) : []))
  const others = changes.filter(({ resource }) => resource !== identities.plural)
  if (others.length === 0) return changedIdentities
  const { index } = access
  const sides = [
    ...others.flatMap((change) => findSubjects(index, change, 'before')),
    ...access.withHypothetical(others, () => others.flatMap((change) => findSubjects(index, change, 'after'))),
  ]
  const changedIds = new Set(changedIdentities.map(({ id }) => id))
  const matching = await findMatchingIdentities(store, context, mergeSelectors(sides), limit)
  return [...changedIdentities, ...matching.filter(({ id }) => !changedIds.has(id))]
}

function toSubject({ id, before, after }: ChangeOf<'identities'>): AffectedIdentity {
  const toBearer = ({ roleAttributes }: RecordOf<'identities'>): RoleBearer => ({ id, attributes: roleAttributes })
  const name = (before ?? after)?.name ?? ''
  return { id, name, before: before && toBearer(before), after: after && toBearer(after) }
}

/** The identities' sides of the policies that a record is, or by which it is reached. */
function findSubjects(index: PolicyReader, change: RecordChange, side: 'before' | 'after'): RoleSelector[] {
  const { id } = change
  if (!change[side]) return []
  const sides = (policies: Iterable<{ readonly subjects: RoleSelector }>) =>
    [...policies].map(({ subjects }) => subjects)
  const ofServices = (ids: Iterable<string>) =>
    [...ids].flatMap((one) => sides(index.findServicePoliciesOfService(one)))
  switch (change.resource) {
    case 'services':
      return ofServices([id])
    case 'posture-checks':
      return sides(index.findServicePoliciesOfPostureCheck(id))
    case 'service-policies':
    case 'edge-router-policies':
      return [parseRoleSelector(change[side].semantic, change[side].identityRoles)]
    case 'service-edge-router-policies':
      return ofServices(index.listMatchingServices(parseRoleSelector(change[side].semantic, change[side].serviceRoles)))
    case 'edge-routers':
      return [
        ...sides(index.findEdgeRouterPoliciesOfRouter(id)),
        ...ofServices(
          index.findServiceEdgeRouterPoliciesOfRouter(id).flatMap((one) => index.listMatchingServices(one.subjects)),
        ),
      ]
    default:
      return []
  }
}

/** The identities that any of the selectors matches, at most `limit` of them. */
export async function findMatchingIdentities(
  store: Store,
  context: Context,
  sides: readonly RoleSelector[],
  limit: number,
): Promise<AffectedIdentity[]> {
  if (sides.length === 0) return []
  const plan = { ...planList({}), limit }
  const query = (await queryRows(store, context, { resource: identities, plan, restrictions: [{ sides }] })).compile()
  const { rows } = await context.db.executeQuery(query)
  return rows.map((row) => {
    const bearer = { id: row.id, attributes: JSON.parse(row.roleAttributes as string) as string[] }
    return { id: row.id, name: row.name as string, before: bearer, after: bearer }
  })
}
