// Who is signed in: administrators see and end every session, everybody else sees their own.
import { apiSessions } from '../../src/resources/api-sessions.ts'
import { empty } from '../answers.ts'
import { ownRecords, visibleRow } from '../both-apis/own-records.ts'
import { type AnyOperation, operation } from '../operation.ts'
import { listQuery } from '../query.ts'
import { answerList, answerRecord } from '../resource-operations.ts'

const COMMON = { apis: ['management'] as const, topic: 'api-sessions' }
const READ = { permission: 'api-session.read', grantedTo: 'authenticated' } as const

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
    run: (call) => answerList(call, apiSessions, ownRecords(call)),
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
      const { id } = await visibleRow(call, apiSessions)
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
      await context.controller.sessions.end(context, params.id ?? '', 'event')
      return empty()
    },
  }),
]
