// The identity of the caller.

import { identities } from '../../../src/definitions/resources/identities.ts'
import { errors } from '../../../src/foundation/errors.ts'
import type { Presentation } from '../../../src/storage/records/presentation.ts'
import type { Context } from '../../../src/storage/transactions/context.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { respondWithRecord } from '../../responses/record-responses.ts'

const OWN_LINKS = '{"self":{"href":"./current-identity"},"mfa":{"href":"./current-identity/mfa"}}'
const OWN_PRESENTATION: Presentation = { links: () => OWN_LINKS }

/** The id of the caller's identity. */
export function requireIdentityId({ caller }: Pick<Context, 'caller'>): string {
  if (caller.kind !== 'identity')
    throw errors.UNAUTHORIZED({ code: 'SESSION_MISSING', message: 'no session was named' })
  return caller.identityId
}

export const currentIdentityOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'getCurrentIdentity',
    apis: ['client', 'management'],
    topic: 'current-identity',
    method: 'GET',
    path: '/current-identity',
    summary: "Shows the caller's own identity.",
    access: { permission: 'current-identity.read', grantedTo: 'authenticated', acceptsTokens: true },
    returns: { kind: 'record', resource: 'identities' },
    run: (call) =>
      respondWithRecord(call, identities, requireIdentityId(call.context), {
        presentation: () => OWN_PRESENTATION,
      }),
  }),
]
