// Operations on authenticators beyond their records: re-enrollment and early extension.
import {
  requestExtension,
  requestExtensionForIdentity,
} from '../../../src/authentication/credentials/extension-requests.ts'
import { reEnroll } from '../../../src/authentication/enrollment/re-enroll.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { createdResponse, emptyResponse } from '../../api/responses.ts'

const COMMON = { apis: ['management'] as const, topic: 'authenticators', method: 'POST' as const }
const UPDATE = { permission: 'authenticator.update', grantedTo: 'administrator' } as const

type Extend = typeof requestExtension

function extendOperation(extend: Extend, words: Pick<AnyOperation, 'id' | 'path' | 'summary'>) {
  return defineOperation<{ readonly rollKeys?: boolean }>({
    ...COMMON,
    ...words,
    access: UPDATE,
    body: readFieldsBody({ rollKeys: f.bool({ summary: 'Whether to request a new key, too.' }) }),
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
    summary: 'Replaces an authenticator with an enrollment of its method, and ends its sessions.',
    access: UPDATE,
    body: readFieldsBody({
      expiresAt: f.time({ required: true, summary: 'The time until which the token is valid.' }),
    }),
    returns: { kind: 'created', resource: 'enrollments' },
    run: async ({ controller, context, params, body }) =>
      createdResponse('enrollments', await reEnroll(controller, context, params.id ?? '', body.expiresAt)),
  }),
  extendOperation(requestExtension, {
    id: 'requestExtendAuthenticator',
    path: '/authenticators/:id/request-extend',
    summary: 'Requests the early extension of a certificate from its holder.',
  }),
  extendOperation(requestExtensionForIdentity, {
    id: 'requestExtendAllCertAuthenticators',
    path: '/identities/:id/request-extend',
    summary: 'Requests the early extension of all certificates of an identity.',
  }),
]
