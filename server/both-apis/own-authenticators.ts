// A caller's own authenticators: seen, and given another username or password.
import { changeOwnAuthenticator, type OwnChange, ownAuthenticator } from '../../src/auth/own-authenticators.ts'
import type { Presentation } from '../../src/records/present.ts'
import { authenticators, newUsername, passwordLength } from '../../src/resources/authenticators.ts'
import { recordMembers } from '../../src/resources/input.ts'
import { f } from '../../src/schema/fields.ts'
import { empty } from '../answers.ts'
import { type AnyOperation, fieldsBody, operation } from '../operation.ts'
import { listQuery } from '../query.ts'
import { answerList, answerRecord } from '../resource-operations.ts'
import { ownIdentityId } from './current-identity.ts'

const COMMON = { apis: ['client', 'management'] as const, topic: 'current-identity' }
const ONE = '/current-identity/authenticators/:id'
const READ = { permission: 'current-identity.read', grantedTo: 'authenticated' } as const

const own: Presentation = {
  links: ({ id }) => `{"self":{"href":"./current-identity/authenticators/${id}"}}`,
}
const presentation = async () => own

const changeable = { required: 'replace', acceptsNull: 'patch' } as const
const ownFields = {
  username: f.text({ ...changeable, ...newUsername }),
  password: f.text({ ...changeable, ...passwordLength, secret: true }),
  currentPassword: f.text({ required: 'always', ...passwordLength, secret: true }),
  tags: f.tags(),
}

/** On a patch everything but the current password may be left out. */
function changeOperation(how: 'replace' | 'patch', words: Pick<AnyOperation, 'id' | 'method' | 'summary'>) {
  return operation<OwnChange>({
    ...COMMON,
    ...words,
    path: ONE,
    isOwnChange: true,
    access: { permission: 'current-identity.update', grantedTo: 'authenticated' },
    body: fieldsBody<OwnChange>(ownFields, { purpose: how, tolerated: recordMembers(authenticators) }),
    returns: { kind: 'empty' },
    async run({ context, params, body }) {
      await changeOwnAuthenticator(context, ownIdentityId(context), params.id ?? '', how, body)
      return empty()
    },
  })
}

export const ownAuthenticatorOperations: readonly AnyOperation[] = [
  operation({
    ...COMMON,
    id: 'listCurrentIdentityAuthenticators',
    method: 'GET',
    path: '/current-identity/authenticators',
    summary: "Lists the caller's own authenticators.",
    access: READ,
    query: listQuery,
    returns: { kind: 'list', resource: 'authenticators' },
    run(call) {
      const restriction = { field: 'identityId', equals: ownIdentityId(call.context) }
      return answerList(call, authenticators, [restriction], { presentation })
    },
  }),
  operation({
    ...COMMON,
    id: 'detailCurrentIdentityAuthenticator',
    method: 'GET',
    path: ONE,
    summary: "Shows one of the caller's own authenticators.",
    access: READ,
    returns: { kind: 'record', resource: 'authenticators' },
    async run(call) {
      const { context, params } = call
      const { id } = await ownAuthenticator(context, ownIdentityId(context), params.id ?? '')
      return answerRecord(call, authenticators, id, { presentation })
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
