// Who is signed in: administrators see and end every session, everybody else sees their own.
import { notFound } from '../../src/errors.ts'
import { apiSessions } from '../../src/resources/api-sessions.ts'
import { removeIn } from '../../src/store/entities.ts'
import { empty } from '../answers.ts'
import { type AnyOperation, type Call, operation } from '../operation.ts'
import { listQuery } from '../query.ts'
import { answerList, answerRecord, existingRow } from '../resource-operations.ts'

const COMMON = { apis: ['management'] as const, topic: 'api-sessions' }
const READ = { permission: 'api-session.read', grantedTo: 'authenticated' } as const

/** The identity whose sessions the caller may see; undefined for those who may see all. */
function onlyIdentity({ context: { caller } }: Call): string | undefined {
  return caller.kind === 'identity' && !caller.isAdmin ? caller.identityId : undefined
}

export const apiSessionOperations: readonly AnyOperation[] = [
  operation({
    ...COMMON,
    id: 'listAPISessions',
    method: 'GET',
    path: '/api-sessions',
    summary: 'Lists sessions: all of them for administrators, their own for others.',
    access: READ,
    query: listQuery,
    returns: { kind: 'list', resource: 'api-sessions' },
    run(call) {
      const identityId = onlyIdentity(call)
      const restrictions = identityId === undefined ? [] : [{ field: 'identityId', equals: identityId }]
      return answerList(call, apiSessions, restrictions)
    },
  }),
  operation({
    ...COMMON,
    id: 'detailAPISessions',
    method: 'GET',
    path: '/api-sessions/:id',
    summary: 'Shows one session.',
    access: READ,
    returns: { kind: 'record', resource: 'api-sessions' },
    async run(call) {
      const { id } = call.params
      const identityId = onlyIdentity(call)
      const row = await existingRow(call.context, apiSessions, id)
      // That of another looks as if it were not there.
      if (identityId !== undefined && row.identityId !== identityId) throw notFound('api session', row.id)
      return answerRecord(call, apiSessions, id)
    },
  }),
  operation({
    ...COMMON,
    id: 'deleteAPISessions',
    method: 'DELETE',
    path: '/api-sessions/:id',
    summary: 'Ends one session.',
    access: { permission: 'api-session.delete', grantedTo: 'administrator', isForbidden: true },
    returns: { kind: 'empty' },
    async run({ context, params }) {
      await context.write((tx) => removeIn(tx, apiSessions, params.id ?? '', 'event'))
      return empty()
    },
  }),
]
