// The external JWT signers as clients see them before they sign in: where to get a token, and never by which keys it is verified.
import { externalJwtSigners } from '../../../src/definitions/resources/external-jwt-signers.ts'
import { type AnyOperation, defineOperation } from '../../api/operation.ts'
import { listQuery } from '../../api/query.ts'
import { respondWithList } from '../../responses/record-responses.ts'

const CLIENT_MEMBERS = ['name', 'externalAuthUrl', 'clientId', 'scopes', 'audience', 'targetToken']

export const clientSignerOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'listExternalJwtSigners',
    apis: ['client'],
    topic: externalJwtSigners.plural,
    method: 'GET',
    path: '/external-jwt-signers',
    summary: 'Lists the enabled signers, for clients that offer ways to sign in.',
    access: { public: 'a client chooses a way to sign in before it is known' },
    query: listQuery,
    returns: { kind: 'list', resource: externalJwtSigners.plural, only: CLIENT_MEMBERS },
    run: (call) => respondWithList(call, externalJwtSigners, [{ field: 'enabled', equals: 1 }]),
  }),
]
