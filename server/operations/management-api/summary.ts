// The number of records of each resource.
import { sql } from 'kysely'
import type { AnyResource } from '../../../src/definitions/resources/define.ts'
import { resources } from '../../../src/definitions/resources/index.ts'
import type { Context } from '../../../src/storage/context.ts'
import { selectRows } from '../../../src/storage/entities/subtypes.ts'
import type { Store } from '../../../src/storage/store.ts'
import { dataResponse } from '../../responses/responses.ts'
import { type AnyOperation, defineOperation } from '../operation.ts'

/** The members that clients expect, and the resource that each of them counts. */
const counted: Readonly<Record<string, string>> = {
  apiSessionCertificates: 'api-session-certificates',
  apiSessions: 'api-sessions',
  authPolicies: 'auth-policies',
  authenticators: 'authenticators',
  cas: 'cas',
  configTypes: 'config-types',
  configs: 'configs',
  controllers: 'controllers',
  edgeRouterPolicies: 'edge-router-policies',
  enrollments: 'enrollments',
  externalJwtSigners: 'external-jwt-signers',
  identities: 'identities',
  identityTypes: 'identity-types',
  mfas: 'mfa-enrollments',
  postureCheckTypes: 'posture-check-types',
  postureChecks: 'posture-checks',
  routers: 'routers',
  'routers.edge': 'edge-routers',
  serviceEdgeRouterPolicies: 'service-edge-router-policies',
  servicePolicies: 'service-policies',
  services: 'services',
  'services.edge': 'services',
  sessions: 'sessions',
  terminators: 'terminators',
}

/** Members that clients expect, for records that this controller does not have. */
const NOTHING = { eventualEvents: 0, revocations: 0 } as const

export const summaryOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'listSummary',
    apis: ['management'],
    topic: 'informational',
    method: 'GET',
    path: '/summary',
    summary: 'Shows the number of records of each resource.',
    access: { permission: 'summary.read', grantedTo: 'administrator' },
    returns: { kind: 'data', schema: { type: 'object', additionalProperties: { type: 'integer' } } },
    async run({ controller, context }) {
      const counts: Record<string, number> = { ...NOTHING }
      for (const [member, plural] of Object.entries(counted))
        counts[member] = await countRecords(controller.store, context, plural)
      return dataResponse(counts)
    },
  }),
]

/** The number of records of a resource; cached until a commit changes it. */
export async function countRecords(store: Store, { db }: Context, plural: string): Promise<number> {
  const resource = (resources as readonly AnyResource[]).find((each) => each.plural === plural)
  if (!resource) return 0
  const query = selectRows(db, resource).select(sql<number>`count(*)`.as('n'))
  return store.count(query, [resource.table])
}
