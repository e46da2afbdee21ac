// The services that a caller can reach, their routers and terminators, and the time of the last change.
import { getViewer, type Viewer } from '../../../src/access/viewers.ts'
import { apiSessionUnknownError } from '../../../src/authentication/api-sessions/caller-errors.ts'
import type { LiveApiSession } from '../../../src/authentication/api-sessions/live-api-sessions.ts'
import { edgeRouters } from '../../../src/definitions/resources/edge-routers.ts'
import { services } from '../../../src/definitions/resources/services.ts'
import { terminators } from '../../../src/definitions/resources/terminators.ts'
import { requiredObject, text, time } from '../../../src/definitions/schema/json-schema.ts'
import { type Instant, toIsoTime } from '../../../src/foundation/clock.ts'
import { errors, notFoundError } from '../../../src/foundation/errors.ts'
import { MAX_ROUTERS } from '../../../src/network/routers/usable-routers.ts'
import { planList } from '../../../src/storage/lists/list-plan.ts'
import { type Presentation, renderRecords } from '../../../src/storage/records/presentation.ts'
import { RawJson } from '../../../src/storage/records/raw-json.ts'
import { JSON_FORMS } from '../../api/dialects.ts'
import { BodyParts } from '../../api/large-bodies.ts'
import { type AnyOperation, type Call, defineOperation } from '../../api/operation.ts'
import { listParameters, listQuery, roleQuery } from '../../api/query.ts'
import { dataResponse, listUnder, type Response, rawResponse } from '../../api/responses.ts'
import { getListSource } from '../../responses/list-source.ts'
import { fetchPageOfIds, requireRow, respondWithList, respondWithRecord } from '../../responses/record-responses.ts'
import { requireApiSessionId } from '../both-apis/current-api-session.ts'
import {
  configTypesQuery,
  presentServices,
  presentWithConfigs,
  readConfigTypes,
  restrictToVisible,
} from '../both-apis/service-presentation.ts'
import { makeResourceOperations } from '../resource-operations.ts'

const REACH = { permission: 'service.reach', grantedTo: 'authenticated', acceptsTokens: true } as const

/** The members of edge routers that clients receive. */
const ROUTER_MEMBERS = [
  'name',
  'hostname',
  'isOnline',
  'supportedProtocols',
  'syncStatus',
  'cost',
  'noTraversal',
  'disabled',
]
/** The members of terminators that clients receive: enough to address one of several hosts. */
const TERMINATOR_MEMBERS = ['serviceId', 'service', 'routerId', 'identity']

/** Refuses services that the caller may not see. Unknown services and services that are not granted get the same error. */
async function assertVisible({ controller, context }: Call, { identity, isAdmin }: Viewer, id = ''): Promise<void> {
  if (isAdmin) await requireRow(context, services, id)
  else if (!controller.access.isVisible(identity, id)) throw notFoundError('service', id)
}

async function listServiceRouters(call: Call): Promise<Response> {
  const { controller, context, params, headers, dialect } = call
  const { id = '' } = params
  const viewer = await getViewer(controller.auth.apiSessions, context)
  await assertVisible(call, viewer, id)
  const { 'session-token': token } = headers
  if (token !== undefined) await assertSessionToken(call, String(token), id)
  // Without a limit, a client gets as many as it would ever try.
  const plan = planList(listParameters(call.query), MAX_ROUTERS)
  const source = getListSource(call.operation, edgeRouters, context.caller)
  const ids = controller.routers.usable.listIds(viewer.identity, id)
  const { items, ...page } = await fetchPageOfIds(controller, context, { resource: edgeRouters, plan, source }, ids)
  const form = JSON_FORMS[dialect]
  const texts = await renderRecords(controller.records, context, edgeRouters, items, { only: ROUTER_MEMBERS, form })
  return listUnder('edgeRouters', texts, page, source.filterableFields, form)
}

/** Requires that the token belongs to a session of the caller's API session for the service. */
async function assertSessionToken({ controller, context }: Call, token: string, serviceId: string): Promise<void> {
  const reference = await controller.sessionTokens.findReference(token)
  const own = context.db
    .selectFrom('sessions')
    .select('id')
    .where('serviceId', '=', serviceId)
    .where('apiSessionId', '=', requireApiSessionId(context))
  const named =
    reference && 'signed' in reference
      ? own.where('id', '=', reference.signed.id)
      : own.where('opaqueToken', '=', reference?.opaqueToken ?? '')
  if (await named.executeTakeFirst()) return
  throw errors.UNAUTHORIZED({ code: 'SESSION_UNKNOWN', message: 'the session token is not one of this session' })
}

/** Lists the services of the caller, as `ServiceChanges` holds them if it can. */
async function listServices(call: Call): Promise<Response> {
  const { controller, context, query, dialect } = call
  const viewer = await getViewer(controller.auth.apiSessions, context)
  const { apiSessionId } = viewer
  const apiSession = apiSessionId === undefined ? undefined : controller.auth.apiSessions.get(apiSessionId)
  const window = readWindow(query)
  if (!apiSession || viewer.isAdmin || !window) return renderServices(call, viewer, await presentServices(call, viewer))
  const configTypes = await readConfigTypes(call)
  const render = async () => {
    const { body } = await renderServices(call, viewer, presentWithConfigs(viewer, configTypes))
    if (body instanceof BodyParts) return body.join()
    // A list with a limit is not a stream.
    return body instanceof Buffer ? body : Buffer.from(body as string)
  }
  const { limit, offset } = window
  const shape = { limit, offset, configTypes, form: JSON_FORMS[dialect] }
  const body = await controller.serviceChanges.findList(context, apiSession, viewer, shape, render)
  return rawResponse('application/json', body)
}

/** The window of a list whose order and records no parameter changes; undefined for other lists, and for one without a limit. */
function readWindow(query: Call['query']): { readonly limit: number; readonly offset: number } | undefined {
  for (const name in query) if (!WINDOW_PARAMETERS.has(name)) return undefined
  const { limit, offset } = planList(query)
  return limit === 'none' ? undefined : { limit, offset }
}

/** Parameters that leave which services there are, and their order, as they are. */
const WINDOW_PARAMETERS: ReadonlySet<string> = new Set(['limit', 'offset', 'configTypes'])

async function renderServices(call: Call, viewer: Viewer, presentation: Presentation): Promise<Response> {
  const response = await respondWithList(call, services, restrictToVisible(call, viewer), {
    presentation: () => presentation,
  })
  noteShown(call, viewer)
  return response
}

/** Tells the polls of the caller's API session, once services are read, that it is shown them. */
function noteShown({ controller }: Call, { apiSessionId, identity }: Viewer): void {
  if (apiSessionId !== undefined) controller.serviceChanges.noteShown(apiSessionId, identity)
}

async function findServiceChange({ controller, context }: Call, session: LiveApiSession): Promise<Response> {
  const viewer = await getViewer(controller.auth.apiSessions, context)
  return showServiceChange(await controller.serviceChanges.getLastChange(context, session, viewer))
}

function showServiceChange(at: Instant): Response {
  return dataResponse(new RawJson(`{"lastChangeAt":"${toIsoTime(at)}"}`))
}

export const clientServiceOperations: readonly AnyOperation[] = [
  defineOperation({
    id: 'listServices',
    apis: ['client'],
    topic: 'services',
    method: 'GET',
    path: '/services',
    summary: 'Lists the services that the caller may dial or bind.',
    access: REACH,
    query: { ...listQuery, ...roleQuery, ...configTypesQuery },
    returns: { kind: 'list', resource: 'services' },
    run: listServices,
  }),
  defineOperation({
    id: 'detailService',
    apis: ['client'],
    topic: 'services',
    method: 'GET',
    path: '/services/:id',
    summary: 'Shows one service that the caller may dial or bind.',
    access: REACH,
    query: configTypesQuery,
    returns: { kind: 'record', resource: 'services' },
    async run(call) {
      const viewer = await getViewer(call.controller.auth.apiSessions, call.context)
      await assertVisible(call, viewer, call.params.id)
      const response = await respondWithRecord(call, services, call.params.id, {
        presentation: () => presentServices(call, viewer),
      })
      noteShown(call, viewer)
      return response
    },
  }),
  ...makeResourceOperations(services, { apis: ['client'], verbs: ['replace', 'patch', 'delete'], relations: [] }),
  defineOperation({
    id: 'listServiceTerminators',
    apis: ['client'],
    topic: 'services',
    method: 'GET',
    path: '/services/:id/terminators',
    summary: 'Lists the terminators of a service that the caller may dial or bind.',
    access: REACH,
    query: listQuery,
    returns: { kind: 'list', resource: 'terminators', only: TERMINATOR_MEMBERS },
    async run(call) {
      const { id = '' } = call.params
      await assertVisible(call, await getViewer(call.controller.auth.apiSessions, call.context), id)
      return respondWithList(call, terminators, [{ field: 'serviceId', equals: id }])
    },
  }),
  defineOperation({
    id: 'listServiceEdgeRouters',
    apis: ['client'],
    topic: 'services',
    method: 'GET',
    path: '/services/:id/edge-routers',
    summary: 'Lists the edge routers over which the caller may reach a service; those that are online come first.',
    access: REACH,
    query: listQuery,
    headers: { 'session-token': { schema: { ...text, description: 'The token of a session for the service.' } } },
    returns: { kind: 'list', resource: 'edge-routers', only: ROUTER_MEMBERS, under: 'edgeRouters' },
    run: listServiceRouters,
  }),
  defineOperation({
    id: 'listServiceUpdates',
    apis: ['client'],
    topic: 'current-api-session',
    method: 'GET',
    path: '/current-api-session/service-updates',
    summary: 'Shows when the services of the caller last changed.',
    access: { permission: 'current-api-session.read', grantedTo: 'authenticated' },
    grantsNothing: 'a client that learns of a change asks for its services',
    returns: {
      kind: 'data',
      schema: requiredObject({ lastChangeAt: time }),
    },
    run(call) {
      const { serviceChanges, auth } = call.controller
      const session = auth.apiSessions.get(requireApiSessionId(call.context))
      if (!session) throw apiSessionUnknownError()
      const { id, roleAttributes: attributes } = session.identity
      const unchangedSince = serviceChanges.findUnchanged(session.id, { id, attributes })
      return unchangedSince === undefined ? findServiceChange(call, session) : showServiceChange(unchangedSince)
    },
  }),
  defineOperation({
    id: 'getCurrentIdentityEdgeRouters',
    apis: ['client'],
    topic: 'current-identity',
    method: 'GET',
    path: '/current-identity/edge-routers',
    summary: 'Lists the enrolled edge routers that the caller may use.',
    access: { permission: 'current-identity.read', grantedTo: 'authenticated', acceptsTokens: true },
    query: listQuery,
    returns: { kind: 'list', resource: 'edge-routers', only: ROUTER_MEMBERS },
    async run(call) {
      const { access, auth } = call.controller
      const { enrolledIds } = access.routers
      const { identity, isAdmin } = await getViewer(auth.apiSessions, call.context)
      // By ids alone, because such a list needs no query: every client asks for it every few seconds.
      const ids = isAdmin ? [...enrolledIds] : access.listRouters(identity).filter((id) => enrolledIds.has(id))
      return respondWithList(call, edgeRouters, [{ ids }])
    },
  }),
]
