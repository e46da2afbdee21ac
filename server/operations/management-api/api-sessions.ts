// API sessions for administrators, who see and end all of them. Callers have `current-api-session` for their own.
import type { ApiSessionView } from '../../../src/authentication/api-sessions/api-session-behavior.ts'
import { apiSessions } from '../../../src/definitions/resources/api-sessions.ts'
import type { Presentation } from '../../../src/storage/records/presentation.ts'
import { TOTP_QUERY_WORDS } from '../../api/dialects.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import { listQuery } from '../../api/query.ts'
import { emptyResponse } from '../../api/responses.ts'
import { respondWithList, respondWithRecord } from '../../responses/record-responses.ts'
import { getExternalTokens } from '../both-apis/current-api-session.ts'

const COMMON = { apis: ['management'] as const, topic: 'api-sessions' }
const READ = { permission: 'api-session.read', grantedTo: 'administrator' } as const

/** Administrators see what each session owes; of tokens, those that come with their own request. */
function presentation({ context, dialect }: Pick<Call, 'context' | 'dialect'>): Presentation {
  const externalTokens = getExternalTokens(context)
  const view: ApiSessionView = { totpWords: TOTP_QUERY_WORDS[dialect], externalTokens, isOwn: false }
  return { view }
}

export const apiSessionOperations: readonly AnyOperation[] = [
  defineOperation({
    ...COMMON,
    id: 'listAPISessions',
    method: 'GET',
    path: '/api-sessions',
    summary: 'Lists API sessions.',
    access: READ,
    query: listQuery,
    returns: { kind: 'list', resource: 'api-sessions' },
    run: (call) => respondWithList(call, apiSessions, [], { presentation }),
  }),
  defineOperation({
    ...COMMON,
    id: 'detailAPISessions',
    method: 'GET',
    path: '/api-sessions/:id',
    summary: 'Shows one API session.',
    access: READ,
    returns: { kind: 'record', resource: 'api-sessions' },
    run: (call) => respondWithRecord(call, apiSessions, call.params.id, { presentation }),
  }),
  defineOperation({
    ...COMMON,
    id: 'deleteAPISessions',
    method: 'DELETE',
    path: '/api-sessions/:id',
    summary: 'Ends one API session.',
    access: { permission: 'api-session.delete', grantedTo: 'administrator', isForbidden: true },
    returns: { kind: 'empty' },
    async run({ controller, context, params }) {
      await controller.auth.apiSessions.termination.end(context, params.id ?? '', 'event')
      return emptyResponse()
    },
  }),
]
