// The creation of tokens of machines, the only operation that shows the secret of one.
import { issueToken } from '../../../src/authentication/machine-tokens/issue-token.ts'
import { tokens } from '../../../src/definitions/resources/tokens.ts'
import { links, requiredObject, text, time } from '../../../src/definitions/schema/json-schema.ts'
import { toIsoTime } from '../../../src/foundation/clock.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { dataResponse } from '../../api/responses.ts'
import { readResourceBody } from '../resource-operations.ts'

export const machineTokenOperations: readonly AnyOperation[] = [
  defineOperation<(storedType: undefined) => Record<string, unknown>>({
    id: 'createToken',
    apis: ['management'],
    topic: tokens.plural,
    isOwn: true,
    method: 'POST',
    path: `/controller/${tokens.plural}`,
    summary: 'Creates a token, and shows its secret, which cannot be shown again.',
    access: { permission: `${tokens.name}.create`, grantedTo: 'administrator', records: tokens.plural },
    body: readResourceBody(tokens, 'create'),
    canDryRun: true,
    returns: {
      kind: 'data',
      schema: requiredObject({
        _links: links,
        id: text,
        expiresAt: time,
        token: { ...text, description: 'The secret, which requests have as `Authorization: Bearer`.' },
      }),
      isNew: true,
    },
    async run({ controller, context, body }) {
      const { id, expiresAt, secret } = await issueToken(controller, context, body(undefined))
      const self = { href: `./controller/${tokens.plural}/${id}` }
      return dataResponse(
        { _links: { self }, id, expiresAt: toIsoTime(expiresAt), token: secret },
        { status: 201, headers: { 'cache-control': 'no-store' } },
      )
    },
  }),
]
