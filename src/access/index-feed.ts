// How the policy index comes to know the records: from rows at the start, then from every change, also tried ones.
import type { Kysely } from 'kysely'
import type {
  EdgeRouterPolicyRecord,
  PolicyIndex,
  ServiceEdgeRouterPolicyRecord,
  ServicePolicyRecord,
} from '../policy/policy-index.ts'
import type { Attributed } from '../policy/side.ts'
import type { Change } from '../store/changes.ts'
import type { Database } from '../store/database.ts'

/** What the index needs of a change. */
export type Altered = Pick<Change, 'resource' | 'id' | 'before' | 'after'>

type Values = NonNullable<Change['after']>
type Feed = (index: PolicyIndex, id: string, after: Values | undefined) => void

const attributed = (id: string, { roleAttributes }: Values): Attributed => ({
  id,
  attributes: roleAttributes as string[],
})

const feeds: Readonly<Record<string, Feed>> = {
  services: (index, id, after) => (after ? index.setService(attributed(id, after)) : index.deleteService(id)),
  'edge-routers': (index, id, after) =>
    after ? index.setEdgeRouter(attributed(id, after)) : index.deleteEdgeRouter(id),
  'posture-checks': (index, id, after) =>
    after ? index.setPostureCheck(attributed(id, after)) : index.deletePostureCheck(id),
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
export function feed(index: PolicyIndex, { resource, id, after }: Altered): void {
  feeds[resource]?.(index, id, after)
}

/**
 * What `ask` finds as if these changes had been made. It must not wait for anything: when this returns, the index is as it
 * was before.
 */
export function asIf<T>(index: PolicyIndex, changes: readonly Altered[], ask: () => T): T {
  const made: Altered[] = []
  try {
    for (const change of changes) {
      feed(index, change)
      made.push(change)
    }
    return ask()
  } finally {
    for (const { resource, id, before } of made.reverse()) feeds[resource]?.(index, id, before)
  }
}

/** Builds the index from the rows of the store. */
export async function loadIndex(db: Kysely<Database>, index: PolicyIndex): Promise<void> {
  for (const row of await db.selectFrom('services').select(['id', 'roleAttributes']).execute()) {
    index.setService(fromRow(row))
  }
  const routers = db.selectFrom('routers').select(['id', 'roleAttributes']).where('isEdge', '=', 1)
  for (const row of await routers.execute()) index.setEdgeRouter(fromRow(row))
  const checks = db.selectFrom('posture_checks').select(['id', 'roleAttributes'])
  for (const row of await checks.execute()) index.setPostureCheck(fromRow(row))
  await loadPolicies(db, index)
}

async function loadPolicies(db: Kysely<Database>, index: PolicyIndex): Promise<void> {
  for (const row of await db.selectFrom('service_policies').selectAll().execute()) {
    index.setServicePolicy({
      ...row,
      identityRoles: strings(row.identityRoles),
      serviceRoles: strings(row.serviceRoles),
      postureCheckRoles: strings(row.postureCheckRoles),
    })
  }
  for (const row of await db.selectFrom('edge_router_policies').selectAll().execute()) {
    const { identityRoles, edgeRouterRoles } = row
    index.setEdgeRouterPolicy({
      ...row,
      identityRoles: strings(identityRoles),
      edgeRouterRoles: strings(edgeRouterRoles),
    })
  }
  for (const row of await db.selectFrom('service_edge_router_policies').selectAll().execute()) {
    const { serviceRoles, edgeRouterRoles } = row
    index.setServiceEdgeRouterPolicy({
      ...row,
      serviceRoles: strings(serviceRoles),
      edgeRouterRoles: strings(edgeRouterRoles),
    })
  }
}

function fromRow({ id, roleAttributes }: { id: string; roleAttributes: string }): Attributed {
  return { id, attributes: strings(roleAttributes) }
}

function strings(stored: string): string[] {
  return JSON.parse(stored) as string[]
}
