// Revocations by administrators: of a token, an API session, or all API sessions of an identity.
import { f } from '../../../src/definitions/schema/fields.ts'
import { anyObject, listOf, requiredObject, text } from '../../../src/definitions/schema/json-schema.ts'
import { toIsoTime } from '../../../src/foundation/clock.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import {
  listRevocations,
  queryRevocationRows,
  type RevocationRow,
  revocationSource,
} from '../../../src/network/router-model/revocation-list.ts'
import {
  findRevocation,
  REVOCATION_TYPES,
  type RevocationType,
  revokeByAdministrator,
} from '../../../src/network/router-model/revocations.ts'
import { planList } from '../../../src/storage/lists/list-plan.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { listParameters, listQuery } from '../../api/query.ts'
import { createdResponse, dataResponse } from '../../api/responses.ts'
import { respondWithListing } from '../../responses/lists.ts'

const COMMON = { apis: ['management'], topic: 'api-sessions', isOwn: true } as const

const revocationSchema = requiredObject({
  _links: anyObject,
  ...{ id: text, type: text, tags: anyObject, createdAt: text, updatedAt: text, expiresAt: text },
})

const listedSchema = {
  ...revocationSchema,
  'x-columns': ['id', 'type', 'createdAt', 'expiresAt'],
  'x-example-filter': 'type = "IDENTITY"',
}

const READ = { permission: 'revocation.read', grantedTo: 'administrator' } as const

function toRecord({ id, type, issuedBefore, expiresAt }: Omit<RevocationRow, 'n'>) {
  const at = toIsoTime(issuedBefore)
  const links = { self: { href: `./revocations/${id}` } }
  return { _links: links, id, type, tags: {}, createdAt: at, updatedAt: at, expiresAt: toIsoTime(expiresAt) }
}

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
    summary: 'Revokes a token, an API session, or all API sessions of an identity.',
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
    id: 'listRevocations',
    method: 'GET',
    path: '/revocations',
    summary: 'Lists the revocations whose tokens may not all have ended.',
    access: READ,
    query: listQuery,
    returns: { kind: 'data', schema: listOf(listedSchema), isPage: true },
    run(call) {
      const { context } = call
      const { store } = call.controller
      const render = (rows: readonly RevocationRow[]) => rows.map((row) => JSON.stringify(toRecord(row)))
      return respondWithListing(call, planList(listParameters(call.query)), {
        filterableFields: revocationSource.filterableFields,
        fetchPage: (plan) => listRevocations(store, context, plan),
        render,
        stream: { query: (plan) => queryRevocationRows(store, context, plan), render },
      })
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'detailRevocation',
    method: 'GET',
    path: '/revocations/:id',
    summary: 'Shows one revocation.',
    access: READ,
    returns: { kind: 'data', schema: revocationSchema },
    async run({ context, params }) {
      const { id = '' } = params
      const revocation = await findRevocation(context.db, id)
      if (!revocation) throw notFoundError('revocation', id)
      return dataResponse(toRecord(revocation))
    },
  }),
]
