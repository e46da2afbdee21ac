// What administrators do with authenticators beyond creating and changing them.
import { requestExtension, requestExtensionForIdentity } from '../../src/auth/extension-requests.ts'
import { reEnroll } from '../../src/enrollment/re-enroll.ts'
import { f } from '../../src/schema/fields.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../operation.ts'
import { createdResponse, emptyResponse } from '../responses.ts'

const COMMON = { apis: ['management'] as const, topic: 'authenticators', method: 'POST' as const }
const UPDATE = { permission: 'authenticator.update', grantedTo: 'administrator' } as const

type Extend = typeof requestExtension

function extendOperation(extend: Extend, words: Pick<AnyOperation, 'id' | 'path' | 'summary'>) {
  return defineOperation<{ readonly rollKeys?: boolean }>({
    ...COMMON,
    ...words,
    access: UPDATE,
    body: readFieldsBody({ rollKeys: f.bool({ summary: 'Whether the holder is asked for a new key, too.' }) }),
    returns: { kind: 'empty' },
    errorStatuses: [403],
    async run({ controller, context, params, body }) {
      await extend(controller.entities, context, params.id ?? '', body.rollKeys === true)
      return emptyResponse()
    },
  })
}

export const authenticatorOperations: readonly AnyOperation[] = [
  defineOperation<{ readonly expiresAt: number }>({
    ...COMMON,
    id: 'reEnrollAuthenticator',
    path: '/authenticators/:id/re-enroll',
    summary: 'Reverts an authenticator to an enrollment of its kind; it is gone, and so are its sessions.',
    access: UPDATE,
    body: readFieldsBody({ expiresAt: f.time({ required: true, summary: 'Until when the token can be used.' }) }),
    returns: { kind: 'created', resource: 'enrollments' },
    run: async ({ controller, context, params, body }) =>
      createdResponse('enrollments', await reEnroll(controller, context, params.id ?? '', body.expiresAt)),
  }),
  extendOperation(requestExtension, {
    id: 'requestExtendAuthenticator',
    path: '/authenticators/:id/request-extend',
    summary: 'Asks the holder of a certificate to extend it early.',
  }),
  extendOperation(requestExtensionForIdentity, {
    id: 'requestExtendAllCertAuthenticators',
    path: '/identities/:id/request-extend',
    summary: 'Asks an identity to extend all of its certificates early.',
  }),
]
