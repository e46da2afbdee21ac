// A caller's own authenticators: reading them, and changing the username or password.
import {
  changeOwnAuthenticator,
  getOwnAuthenticator,
  type OwnAuthenticatorChange,
} from '../../../src/authentication/credentials/own-authenticators.ts'
import { listRecordMembers } from '../../../src/definitions/model/body-shapes.ts'
import { authenticators, newUsername, passwordLength } from '../../../src/definitions/resources/authenticators.ts'
import { f } from '../../../src/definitions/schema/fields.ts'
import type { Presentation } from '../../../src/storage/records/presentation.ts'
import { type AnyOperation, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { listQuery } from '../../api/query.ts'
import { emptyResponse } from '../../api/responses.ts'
import { respondWithList, respondWithRecord } from '../../responses/record-responses.ts'
import { requireIdentityId } from './current-identity.ts'

const COMMON = { apis: ['client', 'management'] as const, topic: 'current-identity' }
const ONE = '/current-identity/authenticators/:id'
const READ = { permission: 'current-identity.read', grantedTo: 'authenticated' } as const

const own: Presentation = {
  links: ({ id }) => `{"self":{"href":"./current-identity/authenticators/${id}"}}`,
}
const presentation = async () => own

const changeable = { required: 'replace', acceptsNull: 'patch' } as const
const ownFields = {
  username: f.text({ ...changeable, ...newUsername, summary: 'The new username.' }),
  password: f.text({ ...changeable, ...passwordLength, secret: true, summary: 'The new password.' }),
  currentPassword: f.text({
    required: 'always',
    ...passwordLength,
    secret: true,
    summary: 'The password until now.',
  }),
  tags: f.tags({ summary: 'Key-value pairs of your own.' }),
}

/** In a PATCH, only the current password is required. */
function changeOperation(how: 'replace' | 'patch', words: Pick<AnyOperation, 'id' | 'method' | 'summary'>) {
  return defineOperation<OwnAuthenticatorChange>({
    ...COMMON,
    ...words,
    path: ONE,
    isOwnChange: true,
    access: { permission: 'current-identity.update', grantedTo: 'authenticated' },
    body: readFieldsBody<OwnAuthenticatorChange>(ownFields, {
      purpose: how,
      tolerated: listRecordMembers(authenticators),
    }),
    returns: { kind: 'empty' },
    async run({ controller, context, params, body }) {
      await changeOwnAuthenticator(controller, context, requireIdentityId(context), params.id ?? '', how, body)
      return emptyResponse()
    },
  })
}

export const ownAuthenticatorOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'listCurrentIdentityAuthenticators',
    method: 'GET',
    path: '/current-identity/authenticators',
    summary: "Lists the caller's own authenticators.",
    access: READ,
    query: listQuery,
    returns: { kind: 'list', resource: 'authenticators' },
    run(call) {
      const restriction = { field: 'identityId', equals: requireIdentityId(call.context) }
      return respondWithList(call, authenticators, [restriction], { presentation })
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'detailCurrentIdentityAuthenticator',
    method: 'GET',
    path: ONE,
    summary: "Shows one of the caller's own authenticators.",
    access: READ,
    returns: { kind: 'record', resource: 'authenticators' },
    async run(call) {
      const { context, params } = call
      const { id } = await getOwnAuthenticator(context, requireIdentityId(context), params.id ?? '')
      return respondWithRecord(call, authenticators, id, { presentation })
    },
  }),
  changeOperation('replace', {
    id: 'updateCurrentIdentityAuthenticator',
    method: 'PUT',
    summary: "Replaces username and password of one of the caller's own authenticators.",
  }),
  changeOperation('patch', {
    id: 'patchCurrentIdentityAuthenticator',
    method: 'PATCH',
    summary: "Changes username, password or both of one of the caller's own authenticators.",
  }),
]
