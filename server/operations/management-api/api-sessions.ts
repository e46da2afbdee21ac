// API sessions for administrators, who see and end all of them. Callers have `current-api-session` for their own.
import type { ApiSessionView } from '../../../src/authentication/api-sessions/api-session-behavior.ts'
import { excludeRevoked } from '../../../src/authentication/api-sessions/revoked-rows.ts'
import { apiSessions } from '../../../src/definitions/resources/api-sessions.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import { toResourceNoun } from '../../../src/storage/entities/entities.ts'
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

/** @throws NOT_FOUND if the session was revoked, and its row is not deleted yet */
function requireNotRevoked({ controller }: Call, id: string): void {
  if (controller.auth.apiSessions.isRevoked(id)) throw notFoundError(toResourceNoun(apiSessions), id)
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
    run: async (call) => respondWithList(call, apiSessions, await excludeRevoked(call.context.db), { presentation }),
  }),
  defineOperation({
    ...COMMON,
    id: 'detailAPISessions',
    method: 'GET',
    path: '/api-sessions/:id',
    summary: 'Shows one API session.',
    access: READ,
    returns: { kind: 'record', resource: 'api-sessions' },
    run(call) {
      const { id = '' } = call.params
      requireNotRevoked(call, id)
      return respondWithRecord(call, apiSessions, id, { presentation })
    },
  }),
  defineOperation({
    ...COMMON,
    id: 'deleteAPISessions',
    method: 'DELETE',
    path: '/api-sessions/:id',
    summary: 'Ends one API session.',
    access: { permission: 'api-session.delete', grantedTo: 'administrator', isForbidden: true },
    returns: { kind: 'empty' },
    async run(call) {
      const { id = '' } = call.params
      requireNotRevoked(call, id)
      await call.controller.auth.apiSessions.termination.end(call.context, id, 'event')
      return emptyResponse()
    },
  }),
]
