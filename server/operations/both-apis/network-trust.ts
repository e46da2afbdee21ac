// The JWT by which a client learns to trust this network before it has an enrollment.
import { listOf, requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { ENROLLER_AUDIENCE } from '../../api/dialects.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'

export const networkTrustOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'listNetworkJWTs',
    apis: ['client', 'management'],
    topic: 'enrollment',
    method: 'GET',
    path: '/network-jwts',
    summary: 'Lists the JWTs by which a client learns to trust this network.',
    access: { public: 'it says no more than the certificate that is served to everyone' },
    returns: {
      kind: 'data',
      schema: listOf(requiredObject({ name: text, token: text })),
    },
    errorStatuses: [400],
    run: async ({ controller }) =>
      dataResponse([{ name: 'default', token: await controller.enrollments.signNetworkJwt(ENROLLER_AUDIENCE) }]),
  }),
]
