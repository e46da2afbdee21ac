// The services that a caller may reach, and how it learns that they changed.
import { attributesOf } from '../../src/access/access.ts'
import { knownConfigTypes } from '../../src/auth/open-session.ts'
import { isoTime } from '../../src/clock.ts'
import type { Context } from '../../src/context.ts'
import { notFound } from '../../src/errors.ts'
import type { Presentation } from '../../src/records/present.ts'
import { services } from '../../src/resources/services.ts'
import type { ServiceView } from '../../src/views/service-views.ts'
import { data } from '../answers.ts'
import { ownIdentityId } from '../both-apis/current-identity.ts'
import { type AnyOperation, type Call, operation, type QueryParameter } from '../operation.ts'
import { listQuery, roleQuery } from '../query.ts'
import { answerList, answerRecord } from '../resource-operations.ts'

/** Config types by id or name, several times over. */
export const configTypesQuery: Readonly<Record<string, QueryParameter>> = {
  configTypes: {
    schema: { type: 'string', description: 'The id or name of a config type, or "all".' },
    isMultiple: true,
  },
}

/** Services as the caller sees them. */
export async function ownServicePresentation(call: Call, isList: boolean): Promise<Presentation> {
  const { context, query } = call
  const { caller } = context
  const isIdentity = caller.kind === 'identity'
  const session = isIdentity ? context.controller.sessions.get(caller.apiSessionId) : undefined
  const asked = query.configTypes as string[] | undefined
  const view: ServiceView = {
    identity: isIdentity ? await attributesOf(context, caller.identityId) : { id: '', attributes: [] },
    isAdmin: !isIdentity || caller.isAdmin,
    configTypes: asked ? await knownConfigTypes(context, asked) : (session?.configTypes ?? []),
    emptyConfig: isList ? {} : null,
  }
  return { view }
}

/** An administrator sees every service, everybody else what policies grant. */
async function visibleServices(context: Context): Promise<readonly string[] | 'all'> {
  const { caller } = context
  if (caller.kind !== 'identity' || caller.isAdmin) return 'all'
  return context.controller.access.servicesOf(await attributesOf(context, caller.identityId))
}

export const clientServiceOperations: readonly AnyOperation[] = [
  operation({
    id: 'listServices',
    apis: ['client'],
    topic: 'services',
    method: 'GET',
    path: '/services',
    summary: 'Lists the services that the caller may dial or bind.',
    access: { permission: 'service.reach', grantedTo: 'authenticated' },
    query: { ...listQuery, ...roleQuery, ...configTypesQuery },
    returns: { kind: 'list', resource: 'services' },
    async run(call) {
      const visible = await visibleServices(call.context)
      // Roles say nothing on this API: what a caller sees is decided by policies alone.
      const { roleFilter: _, roleSemantic: __, ...query } = call.query
      const restrictions = visible === 'all' ? [] : [{ ids: visible }]
      return answerList({ ...call, query }, services, restrictions, {
        presentation: () => ownServicePresentation(call, true),
      })
    },
  }),
  operation({
    id: 'detailService',
    apis: ['client'],
    topic: 'services',
    method: 'GET',
    path: '/services/:id',
    summary: 'Shows one service that the caller may dial or bind.',
    access: { permission: 'service.reach', grantedTo: 'authenticated' },
    query: configTypesQuery,
    returns: { kind: 'record', resource: 'services' },
    async run(call) {
      const { id = '' } = call.params
      const visible = await visibleServices(call.context)
      // What is not there and what is not granted look the same.
      if (visible !== 'all' && !visible.includes(id)) throw notFound('service', id)
      return answerRecord(call, services, id, { presentation: () => ownServicePresentation(call, false) })
    },
  }),
  operation({
    id: 'listServiceUpdates',
    apis: ['client'],
    topic: 'current-api-session',
    method: 'GET',
    path: '/current-api-session/service-updates',
    summary: 'Shows when something last changed that the caller may reach.',
    access: { permission: 'current-api-session.read', grantedTo: 'authenticated' },
    returns: {
      kind: 'data',
      schema: { type: 'object', properties: { lastChangeAt: { type: 'string', format: 'date-time' } } },
    },
    async run({ context }) {
      const { controller, caller } = context
      const session = caller.kind === 'identity' ? controller.sessions.get(caller.apiSessionId) : undefined
      const identity = await attributesOf(context, ownIdentityId(context))
      return data({ lastChangeAt: isoTime(controller.access.lastChangeFor(identity, session?.createdAt ?? 0)) })
    },
  }),
  operation({
    id: 'getCurrentIdentityEdgeRouters',
    apis: ['client'],
    topic: 'current-identity',
    method: 'GET',
    path: '/current-identity/edge-routers',
    summary: 'Lists the edge routers that the caller may use.',
    access: { permission: 'current-identity.read', grantedTo: 'authenticated' },
    query: listQuery,
    returns: { kind: 'data', schema: { type: 'array', items: { type: 'object' } } },
    run: () => data([]),
  }),
]
