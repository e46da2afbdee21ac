// Updates the policy index: from rows at the start, then from every change, and from changes that are only tried out.
//
// Changes are tried out by `withHypothetical`: the index is changed, queried and restored within one turn of the event
// loop, so that no other request observes it. Sessions are revoked by it inside a transaction, whose group may hold
// changes that memory has not applied yet; `policy impact` compares the access before and after with it.
import type { Kysely } from 'kysely'
import type { PolicyIndex } from '../policy/policy-index.ts'
import { compilePostureCheck } from '../policy/posture/posture-checks.ts'
import type { RoleBearer } from '../policy/role-selector.ts'
import type { Database } from '../storage/database.ts'
import type { RecordChange } from '../storage/transactions/changes.ts'
import { untyped } from '../storage/untyped.ts'

function toIndexedBearer(id: string, { roleAttributes }: { readonly roleAttributes: string[] }): RoleBearer {
  return { id, attributes: roleAttributes }
}

/** Tells the index of a change; what policies do not look at has no effect. */
export function applyToIndex(index: PolicyIndex, change: RecordChange): void {
  setInIndex(index, change, 'after')
}

/** @param side which record of the change the index holds from now on */
function setInIndex(index: PolicyIndex, change: RecordChange, side: 'before' | 'after'): void {
  const { resource, id } = change
  switch (resource) {
    case 'services':
      if (change[side]) index.setService(toIndexedBearer(id, change[side]))
      else index.deleteService(id)
      break
    case 'edge-routers':
      if (change[side]) index.setEdgeRouter(toIndexedBearer(id, change[side]))
      else index.deleteEdgeRouter(id)
      break
    case 'posture-checks': {
      const check = change[side]
      if (check) index.setPostureCheck(toIndexedBearer(id, check), compilePostureCheck({ ...check, id }))
      else index.deletePostureCheck(id)
      break
    }
    case 'service-policies':
      if (change[side]) index.setServicePolicy(change[side])
      else index.deleteServicePolicy(id)
      break
    case 'edge-router-policies':
      if (change[side]) index.setEdgeRouterPolicy(change[side])
      else index.deleteEdgeRouterPolicy(id)
      break
    case 'service-edge-router-policies':
      if (change[side]) index.setServiceEdgeRouterPolicy(change[side])
      else index.deleteServiceEdgeRouterPolicy(id)
  }
}

/**
 * The result of `ask` as if these changes had been made. `ask` must not wait for anything: when this returns, the index is as it
 * was before.
 */
export function withHypothetical<T>(index: PolicyIndex, changes: readonly RecordChange[], ask: () => T): T {
  const appliedChanges: RecordChange[] = []
  try {
    for (const change of changes) {
      applyToIndex(index, change)
      appliedChanges.push(change)
    }
    return ask()
  } finally {
    for (const change of appliedChanges.reverse()) setInIndex(index, change, 'before')
  }
}

/** A row of posture checks, whose variants have no columns of their own. */
interface CheckRow {
  readonly id: string
  readonly roleAttributes: string
  readonly typeId: string
  readonly details: string
}

/** Builds the index from the rows of the store. */
export async function loadIndex(db: Kysely<Database>, index: PolicyIndex): Promise<void> {
  for (const row of await db.selectFrom('services').select(['id', 'roleAttributes']).execute()) {
    index.setService(roleBearerFromRow(row))
  }
  const routers = db.selectFrom('routers').select(['id', 'roleAttributes']).where('isEdge', '=', 1)
  for (const row of await routers.execute()) index.setEdgeRouter(roleBearerFromRow(row))
  const checks = untyped(db).selectFrom('posture_checks').select(['id', 'roleAttributes', 'typeId', 'details'])
  for (const { id, roleAttributes, typeId, details } of (await checks.execute()) as CheckRow[]) {
    index.setPostureCheck(
      roleBearerFromRow({ id, roleAttributes }),
      compilePostureCheck({ id, typeId, details: JSON.parse(details) }),
    )
  }
  await loadPolicies(db, index)
}

async function loadPolicies(db: Kysely<Database>, index: PolicyIndex): Promise<void> {
  for (const row of await db.selectFrom('service_policies').selectAll().execute()) {
    index.setServicePolicy({
      ...row,
      identityRoles: parseStrings(row.identityRoles),
      serviceRoles: parseStrings(row.serviceRoles),
      postureCheckRoles: parseStrings(row.postureCheckRoles),
    })
  }
  for (const row of await db.selectFrom('edge_router_policies').selectAll().execute()) {
    const { identityRoles, edgeRouterRoles } = row
    index.setEdgeRouterPolicy({
      ...row,
      identityRoles: parseStrings(identityRoles),
      edgeRouterRoles: parseStrings(edgeRouterRoles),
    })
  }
  for (const row of await db.selectFrom('service_edge_router_policies').selectAll().execute()) {
    const { serviceRoles, edgeRouterRoles } = row
    index.setServiceEdgeRouterPolicy({
      ...row,
      serviceRoles: parseStrings(serviceRoles),
      edgeRouterRoles: parseStrings(edgeRouterRoles),
    })
  }
}

function roleBearerFromRow({ id, roleAttributes }: { id: string; roleAttributes: string }): RoleBearer {
  return { id, attributes: parseStrings(roleAttributes) }
}

function parseStrings(stored: string): string[] {
  return JSON.parse(stored) as string[]
}
