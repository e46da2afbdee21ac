// The operations on certificate authorities besides creating and changing them.
import { verifyAuthority } from '../../../src/authentication/authorities/verify-authority.ts'
import { errors } from '../../../src/foundation/errors.ts'
import { ENROLLER_AUDIENCE } from '../../api/dialects.ts'
import { type AnyOperation, type BodyReader, defineOperation } from '../../api/operation.ts'
import { emptyResponse, rawResponse } from '../../api/responses.ts'

const COMMON = { apis: ['management'] as const, topic: 'cas' }

const pemBody: BodyReader<string> = {
  schema: { type: 'string', description: 'A certificate as PEM, with the verification token as its common name.' },
  isRequired: true,
  contentTypes: ['text/plain'],
  read(sent) {
    if (typeof sent !== 'string') throw errors.COULD_NOT_PARSE_BODY({ message: 'the body must be text' })
    return sent
  },
}

export const caOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'getCaJwt',
    method: 'GET',
    path: '/cas/:id/jwt',
    summary: 'Shows the JWT by which devices with a certificate of the authority enroll by themselves.',
    access: { permission: 'ca.read', grantedTo: 'administrator', records: 'cas' },
    returns: { kind: 'raw', contentType: 'application/jwt' },
    hasOneForm: true,
    run: async ({ controller, context, params: { id = '' } }) =>
      rawResponse('application/jwt', await controller.enrollments.signAuthorityJwt(context, id, ENROLLER_AUDIENCE)),
  }),
  defineOperation<string>({
    ...COMMON,
    id: 'verifyCa',
    method: 'POST',
    path: '/cas/:id/verify',
    summary: 'Verifies an authority by a certificate that it issued to its verification token.',
    access: { permission: 'ca.update', grantedTo: 'administrator', records: 'cas' },
    body: pemBody,
    returns: { kind: 'empty' },
    errorStatuses: [409],
    async run({ controller, context, params: { id = '' }, body }) {
      await verifyAuthority(controller, context, id, body)
      return emptyResponse()
    },
  }),
]
