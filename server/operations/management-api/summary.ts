// The number of records of each resource.
import { countShownRecords } from '../../../src/authentication/api-sessions/revoked-rows.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'

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
        counts[member] = await countShownRecords(controller.store, context, plural)
      // Revoked ones are not shown any more, and their rows are deleted in steps.
      counts.apiSessions = (counts.apiSessions ?? 0) - controller.auth.apiSessions.countRevoked()
      return dataResponse(counts)
    },
  }),
]
