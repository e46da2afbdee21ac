// How the policy index comes to know the records: from rows at the start, then from every change, also tried ones.
import type { Kysely } from 'kysely'
import type {
  EdgeRouterPolicyRecord,
  PolicyIndex,
  ServiceEdgeRouterPolicyRecord,
  ServicePolicyRecord,
} from '../policy/policy-index.ts'
import { compilePostureCheck } from '../policy/posture/posture-checks.ts'
import type { RoleBearer } from '../policy/role-selector.ts'
import type { Change } from '../storage/changes.ts'
import type { Database } from '../storage/database.ts'
import { untyped } from '../storage/untyped.ts'

/** What the index needs of a change. */
export type RecordChange = Pick<Change, 'resource' | 'id' | 'before' | 'after'>

type Values = NonNullable<Change['after']>
type IndexUpdater = (index: PolicyIndex, id: string, after: Values | undefined) => void

const toRoleBearer = (id: string, { roleAttributes }: Values): RoleBearer => ({
  id,
  attributes: roleAttributes as string[],
})

const indexUpdaters: Readonly<Record<string, IndexUpdater>> = {
  services: (index, id, after) => (after ? index.setService(toRoleBearer(id, after)) : index.deleteService(id)),
  'edge-routers': (index, id, after) =>
    after ? index.setEdgeRouter(toRoleBearer(id, after)) : index.deleteEdgeRouter(id),
  'posture-checks': (index, id, after) =>
    after
      ? index.setPostureCheck(
          toRoleBearer(id, after),
          compilePostureCheck({ id, typeId: after.typeId as string, details: after.details }),
        )
      : index.deletePostureCheck(id),
  'service-policies': (index, id, after) =>
    after ? index.setServicePolicy(after as unknown as ServicePolicyRecord) : index.deleteServicePolicy(id),
  'edge-router-policies': (index, id, after) =>
    after ? index.setEdgeRouterPolicy(after as unknown as EdgeRouterPolicyRecord) : index.deleteEdgeRouterPolicy(id),
  'service-edge-router-policies': (index, id, after) =>
    after
      ? index.setServiceEdgeRouterPolicy(after as unknown as ServiceEdgeRouterPolicyRecord)
      : index.deleteServiceEdgeRouterPolicy(id),
}

/** Tells the index of a change; what policies do not look at is passed over. */
export function applyToIndex(index: PolicyIndex, { resource, id, after }: RecordChange): void {
  indexUpdaters[resource]?.(index, id, after)
}

/**
 * What `ask` finds as if these changes had been made. It must not wait for anything: when this returns, the index is as it
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
    for (const { resource, id, before } of appliedChanges.reverse()) indexUpdaters[resource]?.(index, id, before)
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
