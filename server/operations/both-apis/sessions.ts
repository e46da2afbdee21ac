// Service sessions: clients create them to dial or bind; administrators see all of them, other identities their own.
import { createSession } from '../../../src/access/sessions/create-session.ts'
import { getViewer } from '../../../src/access/viewers.ts'
import { excludeOfRevoked } from '../../../src/authentication/api-sessions/revoked-rows.ts'
import type { NewSessionView } from '../../../src/controller/behaviors/session-behavior.ts'
import type { AnyRow } from '../../../src/definitions/resources/define.ts'
import { sessions, sessionTypes } from '../../../src/definitions/resources/sessions.ts'
import { f, type Tags } from '../../../src/definitions/schema/fields.ts'
import { notFoundError } from '../../../src/foundation/errors.ts'
import type { PolicyType } from '../../../src/policy/policy-index.ts'
import { toResourceNoun } from '../../../src/storage/entities/entities.ts'
import { JSON_FORMS } from '../../api/dialects.ts'
import { type AnyOperation, type Call, defineOperation, readFieldsBody } from '../../api/operation.ts'
import { listQuery } from '../../api/query.ts'
import { dataResponse, emptyResponse } from '../../api/responses.ts'
import { renderRecord, respondWithList, respondWithRecord } from '../../responses/record-responses.ts'
import { requireApiSessionId } from './current-api-session.ts'
import { requireVisibleRow, restrictToOwn } from './own-records.ts'

const BOTH = { apis: ['client', 'management'], topic: 'sessions' } as const
const READ = { permission: 'session.read', grantedTo: 'authenticated', acceptsTokens: true } as const

interface SessionCreate {
  readonly serviceId: string
  readonly type: PolicyType | 'Invalid' | null
  readonly tags: Tags
}

/** @throws NOT_FOUND if the session does not exist, the caller may not see it, or its API session was revoked */
async function requireSession(call: Call): Promise<AnyRow> {
  const row = await requireVisibleRow(call, sessions)
  const isRevoked = call.controller.auth.apiSessions.isRevoked(row.apiSessionId as string)
  if (isRevoked) throw notFoundError(toResourceNoun(sessions), row.id)
  return row
}

export const sessionOperations: readonly AnyOperation[] = [
  defineOperation({
    ...BOTH,
    id: 'listSessions',
    method: 'GET',
    path: '/sessions',
    summary: 'Lists sessions for services: all for administrators, their own for other callers.',
    access: READ,
    query: listQuery,
    returns: { kind: 'list', resource: 'sessions' },
    run: async (call) =>
      respondWithList(call, sessions, [...restrictToOwn(call), ...(await excludeOfRevoked(call.context.db))]),
  }),
  defineOperation<SessionCreate>({
    ...BOTH,
    apis: ['client'],
    id: 'createSession',
    method: 'POST',
    path: '/sessions',
    summary: 'Creates a session for dialing or hosting a service, or returns the existing one.',
    access: { permission: 'session.create', grantedTo: 'authenticated' },
    body: readFieldsBody<SessionCreate>({
      serviceId: f.text({ summary: 'The service.' }),
      type: f.choice([...sessionTypes, 'Invalid'], { default: 'Dial', summary: 'Dial: reach it. Bind: host it.' }),
      // An identity may have one such session for each of its API sessions and services.
      tags: f.tags({ maxBytes: 1_024, summary: "Key-value pairs of the caller's own." }),
    }),
    returns: { kind: 'record', resource: 'sessions', isNew: true },
    errorStatuses: [404],
    async run({ controller, context, body, dialect }) {
      const apiSessionId = requireApiSessionId(context)
      const request = { serviceId: body.serviceId ?? '', type: body.type ?? 'Dial', tags: body.tags ?? {} }
      const { identity, isAdmin } = await getViewer(controller.auth.apiSessions, context)
      const id = await createSession(controller, context, { identity, isAdmin, apiSessionId }, request)
      const view: NewSessionView = { maker: identity }
      const record = await renderRecord(controller, context, sessions, id, { view, form: JSON_FORMS[dialect] })
      return dataResponse(record, { status: 201 })
    },
  }),
  defineOperation({
    ...BOTH,
    id: 'detailSession',
    method: 'GET',
    path: '/sessions/:id',
    summary: 'Shows one session for a service.',
    access: READ,
    returns: { kind: 'record', resource: 'sessions' },
    async run(call) {
      const row = await requireSession(call)
      const { caller } = call.context
      const isOwn = caller.kind === 'identity' && caller.apiSessionId === row.apiSessionId
      const form = { type: row.type as PolicyType, hasSignedToken: row.hasSignedToken === 1 }
      if (isOwn && call.controller.sessionTokens.isOutdated(form)) throw notFoundError(toResourceNoun(sessions), row.id)
      return respondWithRecord(call, sessions, row.id)
    },
  }),
  defineOperation({
    ...BOTH,
    id: 'deleteSession',
    method: 'DELETE',
    path: '/sessions/:id',
    summary: 'Ends one session for a service.',
    access: { permission: 'session.delete', grantedTo: 'authenticated' },
    returns: { kind: 'empty' },
    async run(call) {
      const { id } = await requireSession(call)
      await call.context.write((tx) => call.controller.entities.removeInTransaction(tx, sessions, id, 'none'))
      return emptyResponse()
    },
  }),
  defineOperation({
    ...BOTH,
    apis: ['management'],
    id: 'detailSessionRoutePath',
    method: 'GET',
    path: '/sessions/:id/route-path',
    summary: 'Shows which routers the traffic of a session passes.',
    access: READ,
    returns: {
      kind: 'data',
      schema: { type: 'object', properties: { routePath: { type: 'array', items: { type: 'string' } } } },
    },
    async run(call) {
      const { id } = await requireSession(call)
      return dataResponse({ routePath: call.controller.routers.network.listRoutePath(id) })
    },
  }),
]
