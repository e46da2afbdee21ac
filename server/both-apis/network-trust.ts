// The JWT by which a client comes to trust this network before it has an enrollment.
import { data } from '../answers.ts'
import { NETWORK_AUDIENCE } from '../dialects.ts'
import { type AnyOperation, operation } from '../operation.ts'

export const networkTrustOperations: readonly AnyOperation[] = [
  operation({
    id: 'listNetworkJWTs',
    apis: ['client', 'management'],
    topic: 'enrollment',
    method: 'GET',
    path: '/network-jwts',
    summary: 'Lists the JWTs by which a client comes to trust this network.',
    access: { public: 'it says no more than the certificate that is served to everyone' },
    returns: {
      kind: 'data',
      schema: {
        type: 'array',
        items: { type: 'object', properties: { name: { type: 'string' }, token: { type: 'string' } } },
      },
    },
    run: async ({ context }) =>
      data([{ name: 'default', token: await context.controller.enrollments.networkJwt(NETWORK_AUDIENCE) }]),
  }),
]
