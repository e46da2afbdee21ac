// What administrators do with authenticators beyond creating and changing them.
import { requestExtension, requestExtensionOfAll } from '../../src/auth/extension-requests.ts'
import { reEnroll } from '../../src/enrollment/re-enroll.ts'
import { f } from '../../src/schema/fields.ts'
import { created, empty } from '../answers.ts'
import { type AnyOperation, fieldsBody, operation } from '../operation.ts'

const COMMON = { apis: ['management'] as const, topic: 'authenticators', method: 'POST' as const }
const UPDATE = { permission: 'authenticator.update', grantedTo: 'administrator' } as const

interface ExtendBody {
  readonly rollKeys?: boolean
}

const extendBody = fieldsBody<ExtendBody>({
  rollKeys: f.bool({ summary: 'Whether the holder is asked for a new key, too.' }),
})

export const authenticatorOperations: readonly AnyOperation[] = [
  operation<{ readonly expiresAt: number }>({
    ...COMMON,
    id: 'reEnrollAuthenticator',
    path: '/authenticators/:id/re-enroll',
    summary: 'Reverts an authenticator to an enrollment of its kind; it is gone, and so are its sessions.',
    access: UPDATE,
    body: fieldsBody({ expiresAt: f.time({ required: true, summary: 'Until when the token can be used.' }) }),
    returns: { kind: 'created', resource: 'enrollments' },
    run: async ({ context, params, body }) =>
      created('enrollments', await reEnroll(context, params.id ?? '', body.expiresAt)),
  }),
  operation<ExtendBody>({
    ...COMMON,
    id: 'requestExtendAuthenticator',
    path: '/authenticators/:id/request-extend',
    summary: 'Asks the holder of a certificate to extend it early.',
    access: UPDATE,
    body: extendBody,
    returns: { kind: 'empty' },
    async run({ context, params, body }) {
      await requestExtension(context, params.id ?? '', body.rollKeys === true)
      return empty()
    },
  }),
  operation<ExtendBody>({
    ...COMMON,
    id: 'requestExtendAllCertAuthenticators',
    path: '/identities/:id/request-extend',
    summary: 'Asks an identity to extend all of its certificates early.',
    access: UPDATE,
    body: extendBody,
    returns: { kind: 'empty' },
    async run({ context, params, body }) {
      await requestExtensionOfAll(context, params.id ?? '', body.rollKeys === true)
      return empty()
    },
  }),
]
