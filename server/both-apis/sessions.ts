// Dialing and hosting: clients make sessions for services, administrators see every one, everybody else their own.
import { openSession } from '../../src/access/open-session.ts'
import { notFound } from '../../src/errors.ts'
import type { PolicyType } from '../../src/policy/policy-index.ts'
import type { AnyRow } from '../../src/resources/define.ts'
import { sessions, sessionTypes } from '../../src/resources/sessions.ts'
import { f, type Tags } from '../../src/schema/fields.ts'
import { removeIn } from '../../src/store/entities.ts'
import type { NewSessionView } from '../../src/views/service-session-views.ts'
import { data, empty } from '../answers.ts'
import { type AnyOperation, type Call, fieldsBody, operation } from '../operation.ts'
import { listQuery } from '../query.ts'
import { answerList, answerRecord, existingRow, recordJson } from '../resource-operations.ts'
import { ownSessionId } from './current-api-session.ts'
import { callingViewer } from './service-presentation.ts'

const BOTH = { apis: ['client', 'management'], topic: 'sessions' } as const
const READ = { permission: 'session.read', grantedTo: 'authenticated' } as const
const NEW: NewSessionView = { isNew: true }

interface SessionCreate {
  readonly serviceId: string
  readonly type: PolicyType | 'Invalid' | null
  readonly tags: Tags
}

/** The identity whose sessions the caller may see; undefined for those who may see all. */
function onlyIdentity({ context: { caller } }: Call): string | undefined {
  return caller.kind === 'identity' && !caller.isAdmin ? caller.identityId : undefined
}

/** The row of a session that the caller may see: that of another looks as if it were not there. @throws NOT_FOUND */
async function visibleSession(call: Call): Promise<AnyRow> {
  const row = await existingRow(call.context, sessions, call.params.id)
  const identityId = onlyIdentity(call)
  if (identityId !== undefined && row.identityId !== identityId) throw notFound('session', row.id)
  return row
}

export const sessionOperations: readonly AnyOperation[] = [
  operation({
    ...BOTH,
    id: 'listSessions',
    method: 'GET',
    path: '/sessions',
    summary: 'Lists sessions for services: all of them for administrators, their own for others.',
    access: READ,
    query: listQuery,
    returns: { kind: 'list', resource: 'sessions' },
    run(call) {
      const identityId = onlyIdentity(call)
      return answerList(call, sessions, identityId === undefined ? [] : [{ field: 'identityId', equals: identityId }])
    },
  }),
  operation<SessionCreate>({
    ...BOTH,
    apis: ['client'],
    id: 'createSession',
    method: 'POST',
    path: '/sessions',
    summary: 'Makes a session for dialing or hosting a service; the same again as long as it lives.',
    access: { permission: 'session.create', grantedTo: 'authenticated' },
    body: fieldsBody<SessionCreate>({
      serviceId: f.text({ summary: 'The service.' }),
      type: f.choice([...sessionTypes, 'Invalid'], { default: 'Dial', summary: 'Dial: reach it. Bind: host it.' }),
      tags: f.tags({ summary: "Key-value pairs of the caller's own." }),
    }),
    returns: { kind: 'record', resource: 'sessions', isNew: true },
    refusals: [404],
    async run({ context, body }) {
      const dialer = { ...(await callingViewer(context)), apiSessionId: ownSessionId(context) }
      const id = await openSession(context, dialer, {
        serviceId: body.serviceId ?? '',
        type: body.type ?? 'Dial',
        tags: body.tags ?? {},
      })
      return data(await recordJson(context, sessions, id, { view: NEW }), { status: 201 })
    },
  }),
  operation({
    ...BOTH,
    id: 'detailSession',
    method: 'GET',
    path: '/sessions/:id',
    summary: 'Shows one session for a service.',
    access: READ,
    returns: { kind: 'record', resource: 'sessions' },
    async run(call) {
      const { id } = await visibleSession(call)
      return answerRecord(call, sessions, id)
    },
  }),
  operation({
    ...BOTH,
    id: 'deleteSession',
    method: 'DELETE',
    path: '/sessions/:id',
    summary: 'Ends one session for a service.',
    access: { permission: 'session.delete', grantedTo: 'authenticated' },
    returns: { kind: 'empty' },
    async run(call) {
      const { id } = await visibleSession(call)
      await call.context.write((tx) => removeIn(tx, sessions, id, 'none'))
      return empty()
    },
  }),
  operation({
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
      const { id } = await visibleSession(call)
      return data({ routePath: call.context.controller.network.routePathOf(id) })
    },
  }),
]
