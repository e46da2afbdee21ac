// Who is signed in: administrators see every API session, and end them. Callers have `current-api-session` for their own.
import { apiSessions } from '../../src/resources/api-sessions.ts'
import { empty } from '../answers.ts'
import { type AnyOperation, operation } from '../operation.ts'
import { listQuery } from '../query.ts'
import { answerList, answerRecord } from '../resource-operations.ts'

const COMMON = { apis: ['management'] as const, topic: 'api-sessions' }
const READ = { permission: 'api-session.read', grantedTo: 'administrator' } as const

export const apiSessionOperations: readonly AnyOperation[] = [
  operation({
    ...COMMON,
    id: 'listAPISessions',
    method: 'GET',
    path: '/api-sessions',
    summary: 'Lists API sessions.',
    access: READ,
    query: listQuery,
    returns: { kind: 'list', resource: 'api-sessions' },
    run: (call) => answerList(call, apiSessions, []),
  }),
  operation({
    ...COMMON,
    id: 'detailAPISessions',
    method: 'GET',
    path: '/api-sessions/:id',
    summary: 'Shows one API session.',
    access: READ,
    returns: { kind: 'record', resource: 'api-sessions' },
    run: (call) => answerRecord(call, apiSessions, call.params.id),
  }),
  operation({
    ...COMMON,
    id: 'deleteAPISessions',
    method: 'DELETE',
    path: '/api-sessions/:id',
    summary: 'Ends one API session.',
    access: { permission: 'api-session.delete', grantedTo: 'administrator', isForbidden: true },
    returns: { kind: 'empty' },
    async run({ context, params }) {
      await context.controller.sessions.end(context, params.id ?? '', 'event')
      return empty()
    },
  }),
]
