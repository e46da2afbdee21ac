// Extension of a caller's own certificates: a new one is issued, and takes effect once the caller has received it.
import { extendCertificate, verifyExtension } from '../../../src/authentication/credentials/certificate-extension.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { dataResponse, emptyResponse } from '../../api/responses.ts'
import { requireIdentityId } from './current-identity.ts'

const COMMON = {
  apis: ['client', 'management'] as const,
  topic: 'current-identity',
  method: 'POST' as const,
  access: { permission: 'current-identity.update', grantedTo: 'authenticated' } as const,
  isOwnChange: true as const,
}

export const certificateExtensionOperations: readonly AnyOperation[] = [
  defineOperation<{ readonly clientCertCsr: string }>({
    ...COMMON,
    id: 'extendCurrentIdentityAuthenticator',
    path: '/current-identity/authenticators/:id/extend',
    summary:
      "Issues the next certificate of one of the caller's own authenticators, whose current one the connection presents.",
    body: readFieldsBody({
      clientCertCsr: f.text({
        required: true,
        summary: 'A PEM certificate signing request, with the same key or a new one.',
      }),
    }),
    returns: { kind: 'data', schema: requiredObject({ ca: text, clientCert: text }) },
    async run({ controller, context, params, body, peer }) {
      const current = peer.readOwn()
      const csr = body.clientCertCsr
      const identityId = requireIdentityId(context)
      return dataResponse(await extendCertificate(controller, context, identityId, params.id ?? '', { current, csr }))
    },
  }),
  defineOperation<{ readonly clientCert: string }>({
    ...COMMON,
    id: 'extendVerifyCurrentIdentityAuthenticator',
    path: '/current-identity/authenticators/:id/extend-verify',
    summary:
      "Makes the next certificate of one of the caller's own authenticators the current one, once it has been received.",
    body: readFieldsBody({
      clientCert: f.text({
        required: true,
        summary: 'The next certificate, as PEM; certificates after it are ignored.',
      }),
    }),
    returns: { kind: 'empty' },
    async run({ controller, context, params, body }) {
      await verifyExtension(controller.entities, context, requireIdentityId(context), params.id ?? '', body.clientCert)
      return emptyResponse()
    },
  }),
]
