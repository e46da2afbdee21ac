// The test of a token of a signer: which checks of a sign-in it passes.
import { CHECK_OUTCOMES, SIGN_IN_CHECKS, testToken } from '../../../src/authentication/sign-in/token-test.ts'
import { externalJwtSigners } from '../../../src/definitions/resources/external-jwt-signers.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import { requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'

const checkResult = requiredObject({
  check: { type: 'string', enum: SIGN_IN_CHECKS },
  outcome: { type: 'string', enum: CHECK_OUTCOMES },
  message: text,
})

export const signerOperations: readonly AnyOperation[] = [
  defineOperation<{ readonly token: string }>({
    id: 'testExternalJwtSigner',
    apis: ['management'],
    topic: externalJwtSigners.plural,
    isOwn: true,
    method: 'POST',
    path: '/controller/external-jwt-signers/:id/test',
    summary: 'Tests a token of a signer: which checks of a sign-in it passes, and what decides each.',
    access: { permission: `${externalJwtSigners.name}.read`, grantedTo: 'administrator' },
    body: readFieldsBody({ token: f.text({ required: true, secret: true, summary: 'The token.' }) }),
    returns: { kind: 'data', schema: { type: 'array', items: checkResult } },
    async run({ controller, context, params: { id = '' }, body }) {
      const signer = controller.auth.signers.directory.get(id)
      if (!signer) throw notFoundError('external jwt signer', id)
      return dataResponse(await testToken(controller, context, signer, body.token))
    },
  }),
]
