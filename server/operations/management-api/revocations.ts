// Revocations by administrators: of a token, a session, or all tokens that an identity has.
import { f } from '../../../src/definitions/schema/fields.ts'
import { anyObject, requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { toIsoTime } from '../../../src/foundation/clock.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import {
  findRevocation,
  REVOCATION_TYPES,
  type RevocationType,
  revokeByAdministrator,
} from '../../../src/network/router-model/revocations.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { createdResponse, dataResponse } from '../../api/responses.ts'

const COMMON = { apis: ['management'], topic: 'api-sessions', isOwn: true } as const

const revocationSchema = requiredObject({
  _links: anyObject,
  ...{ id: text, type: text, tags: anyObject, createdAt: text, updatedAt: text, expiresAt: text },
})

interface RevocationBody {
  readonly id: string
  readonly type: RevocationType
}

export const revocationOperations: readonly AnyOperation[] = [
  defineOperation<RevocationBody>({
    ...COMMON,
    id: 'createRevocation',
    method: 'POST',
    path: '/revocations',
    summary: 'Revokes a token, an API session, or all tokens that an identity has.',
    access: { permission: 'revocation.create', grantedTo: 'administrator' },
    body: readFieldsBody<RevocationBody>(
      {
        id: f.text({ required: 'always', summary: 'The id of the token, the API session or the identity.' }),
        type: f.choice(REVOCATION_TYPES, { required: 'always', summary: 'What the id is of.' }),
      },
      { tolerated: ['tags'] },
    ),
    returns: { kind: 'data', isNew: true, schema: requiredObject({ _links: anyObject, id: text }) },
    errorStatuses: [404],
    async run({ body, context, controller }) {
      await revokeByAdministrator(controller.auth.apiSessions, context, body)
      return createdResponse('revocations', body.id)
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'detailRevocation',
    method: 'GET',
    path: '/revocations/:id',
    summary: 'Shows one revocation.',
    access: { permission: 'revocation.read', grantedTo: 'administrator' },
    returns: { kind: 'data', schema: revocationSchema },
    async run({ context, params }) {
      const { id = '' } = params
      const revocation = await findRevocation(context.db, id)
      if (!revocation) throw notFoundError('revocation', id)
      const at = toIsoTime(revocation.issuedBefore)
      return dataResponse({
        id,
        type: revocation.type,
        tags: {},
        createdAt: at,
        updatedAt: at,
        expiresAt: toIsoTime(revocation.expiresAt),
        _links: { self: { href: `./revocations/${id}` } },
      })
    },
  }),
]
