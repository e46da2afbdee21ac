// The application: routes, hooks and the error handler over a controller. It never listens.
import type { OutgoingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type onSendAsyncHookHandler,
  type RouteHandlerMethod,
} from 'fastify'
import type { Controller } from '../src/controller/controller.ts'
import { type BodyTolerance, bodyRequiredError } from '../src/definitions/schema/bodies.ts'
import type { Awaitable } from '../src/foundation/awaitable.ts'
import { ControllerError } from '../src/foundation/errors.ts'
import { newId } from '../src/foundation/ids.ts'
import type { Api, ListenerApi } from '../src/settings/listener-settings.ts'
import type { Cluster } from '../src/storage/cluster/cluster.ts'
import type { Store } from '../src/storage/store.ts'
import type { Caller } from '../src/storage/transactions/context.ts'
import { bodyTolerance } from './api/dialects.ts'
import { DRY_RUN_HEADER, isDryRun } from './api/dry-run.ts'
import { BodyParts, isLarge, writePieces } from './api/large-bodies.ts'
import type { Monitor } from './api/monitor.ts'
import { BASE_PATHS, rewriteUrl } from './api/mount-points.ts'
import { type AnyOperation, type Call, isConfidential } from './api/operation.ts'
import { POSITION_HEADER } from './api/position.ts'
import { type Response, withWarnings } from './api/responses.ts'
import { getConnection } from './connections/http-connection.ts'
import { SocketCertificates } from './connections/socket-certificates.ts'
import { asksForWebSocket, beginWebSocket } from './connections/upgrades.ts'
import type { Load } from './monitoring/load.ts'
import type { Metrics } from './monitoring/metrics.ts'
import { createMetricsOperation } from './operations/monitoring/metrics-operation.ts'
import { operations } from './operations/operations.ts'
import { addBodyParsers, createBodyParsers } from './requests/body-parsers.ts'
import { allowOrigins } from './requests/hooks/allow-origins.ts'
import { authorize } from './requests/hooks/authorize.ts'
import { awaitCluster } from './requests/hooks/await-cluster.ts'
import { type Check, findRefusal } from './requests/hooks/check.ts'
import { checkContentType } from './requests/hooks/check-content-type.ts'
import { checkHead } from './requests/hooks/check-head.ts'
import { closeWhileDraining } from './requests/hooks/close-while-draining.ts'
import { countResponse } from './requests/hooks/count-response.ts'
import { identify } from './requests/hooks/identify.ts'
import { ignoreUnreadBody } from './requests/hooks/ignore-unread-body.ts'
import { limitWrites } from './requests/hooks/limit-writes.ts'
import { logRequest } from './requests/hooks/log-request.ts'
import { negotiate } from './requests/hooks/negotiate.ts'
import { reauthorize } from './requests/hooks/reauthorize.ts'
import { requireRoute } from './requests/hooks/require-route.ts'
import { requireRouters } from './requests/hooks/require-routers.ts'
import { setResponseHeaders } from './requests/hooks/set-response-headers.ts'
import { shedLoad } from './requests/hooks/shed-load.ts'
import { PathTable } from './requests/path-table.ts'
import { MAX_PARAMETER_LENGTH } from './requests/path-tree.ts'
import { RequestTimeouts } from './requests/request-timeout.ts'
import { isServed, readBearerTokens } from './requests/requests.ts'
import { requireVisibleRecord } from './responses/caller-restrictions.ts'
import { respondIfCurrent } from './responses/entity-tags.ts'
import { handleError } from './responses/error-handler.ts'

export interface AppOptions {
  /** The caller of every request, set by an in-process transport such as an offline command. No header can claim it. */
  readonly trustedCaller?: Caller
  /** The operations to serve; defaults to all. */
  readonly operations?: readonly AnyOperation[]
  /** The load monitor; without it no load is shed. */
  readonly load?: Load
  /** Counts the requests, and is served by listeners that carry metrics. */
  readonly metrics?: Metrics | undefined
  /** Serves the files of the console, if the settings name their directory. */
  readonly hasConsole?: boolean
  /** A hook that receives every response before it is sent; tests check responses in it. */
  readonly onSend?: onSendAsyncHookHandler
}

/** Builds the application. @throws if a route states neither a permission nor why it needs none */
export async function buildApp(controller: Controller, options: AppOptions = {}): Promise<FastifyInstance> {
  const { config, log } = controller
  const instanceId = newId()
  const fail = handleError(controller)
  const { metrics } = options
  const servedOperations = [
    ...(options.operations ?? operations),
    ...(metrics ? [createMetricsOperation(metrics)] : []),
  ]
  const paths = buildPathTable(servedOperations)
  const createRequestId = createRequestIds()
  const app = Fastify({
    logger: false,
    // For paths that cannot be decoded, which reach no route and no hook.
    frameworkErrors: (error, request, reply) => fail(error, request as FastifyRequest, reply as FastifyReply),
    exposeHeadRoutes: false,
    genReqId: createRequestId,
    rewriteUrl: (request) => rewriteUrl(request.url ?? '/'),
    routerOptions: {
      ignoreTrailingSlash: true,
      ignoreDuplicateSlashes: true,
      maxParamLength: MAX_PARAMETER_LENGTH,
      // `negotiate` reads the query of either route from the URL.
      querystringParser: () => ({}),
    },
    bodyLimit: config['limits.body'],
    return503OnClosing: true,
    forceCloseConnections: 'idle',
  })
  app.decorateRequest('state')
  app.addHook('onRoute', (route) => {
    if (!route.config?.operation) {
      throw new Error(`the route ${route.method} ${route.url} states neither a permission nor why it needs none`)
    }
  })
  if (options.onSend) app.addHook('onSend', options.onSend)
  const afterwards = [
    ...(metrics ? [countResponse(metrics)] : []),
    ...(config['log.requests'] ? [logRequest(log)] : []),
  ]
  for (const step of afterwards) {
    app.addHook('onResponse', (request, reply, done) => {
      step(request, reply)
      done()
    })
  }
  const origins = config['cors.origins']
  const cors = origins.length > 0 ? allowOrigins(origins, servedOperations, paths) : undefined
  if (cors) app.addHook('onRequest', cors.respondToPreflight)
  const checks: readonly Check[] = [
    ...(cors ? [cors.check] : []),
    ...(options.load ? [shedLoad(options.load, config['limits.delay'], controller.clock)] : []),
    setResponseHeaders(instanceId),
    ...(controller.cluster ? [closeWhileDraining(controller.cluster)] : []),
    checkHead(config),
    requireRoute(paths),
    authorize,
    limitWrites(controller),
    ...(controller.cluster ? [requireRouters(controller, controller.cluster)] : []),
    checkContentType,
    negotiate,
    ignoreUnreadBody,
  ]
  // One hook for both, because each costs more than most checks do.
  const identifyCaller = awaitCluster(controller, identify(controller, options.trustedCaller))
  app.addHook('onRequest', (request, reply, done) => {
    identifyCaller(request, (failure) => done(failure ?? findRefusal(checks, request, reply)))
  })
  // The public contract has an operation that reads the body of a GET request.
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true })
  const bodyParsers = createBodyParsers(app.getDefaultJsonParser('error', 'error'), reauthorize(controller))
  addBodyParsers(app, bodyParsers)
  app.setErrorHandler(fail)
  app.setNotFoundHandler(assertUnreachable)
  const timeouts = new RequestTimeouts(config['limits.answerTime'])
  const monitor: Monitor = { load: options.load ?? { delayMs: 0 }, metrics }
  for (const operation of servedOperations) register(app, { controller, timeouts, monitor }, operation)
  if (options.hasConsole && config['console.directory'] !== undefined) {
    const { serveConsole } = await import('./console/serve-console.ts')
    await serveConsole(app, config, [controller.directory, controller.backups.folder])
  }
  await app.ready()
  return app
}

/** The parts that every operation works with. */
interface Served {
  readonly controller: Controller
  readonly timeouts: RequestTimeouts
  readonly monitor: Monitor
}

function register(app: FastifyInstance, served: Served, operation: AnyOperation): void {
  assertAccess(operation)
  const { method } = operation
  const bodyLimit = served.controller.config[toBodyLimitKey(operation)]
  const handler = createHandler(served, operation)
  for (const { api, listenerApi, path } of listRoutes(operation)) {
    const config = { operation, api, listenerApi }
    app.route({ method, url: path, config, bodyLimit, handler })
  }
}

type BodyLimitKey =
  | NonNullable<AnyOperation['bodyLimit']>
  | 'limits.bodyBeforeSession'
  | 'limits.ownBody'
  | 'limits.body'

function toBodyLimitKey({ access, bodyLimit }: AnyOperation): BodyLimitKey {
  if (bodyLimit) return bodyLimit
  if ('public' in access) return 'limits.bodyBeforeSession'
  return access.grantedTo === 'administrator' ? 'limits.body' : 'limits.ownBody'
}

/** A path of an operation; one at the root belongs to none of the HTTP APIs. */
interface OperationRoute {
  readonly path: string
  readonly api: Api | undefined
  /** The API that a listener must carry for it; undefined for paths that every listener has. */
  readonly listenerApi: ListenerApi | undefined
}

/** Returns every path of an operation. */
export function listRoutes(operation: AnyOperation): OperationRoute[] {
  const below = operation.apis.map((api) => ({
    api,
    listenerApi: api,
    path: BASE_PATHS[api] + (operation.path === '/' ? '' : operation.path),
  }))
  const { atRoot = [], listenerApi } = operation
  return [...below, ...atRoot.map((path) => ({ api: undefined, listenerApi, path }))]
}

function assertAccess({ id, access }: AnyOperation): void {
  const isStated =
    access && (('public' in access && access.public !== '') || ('permission' in access && access.permission !== ''))
  if (!isStated) throw new Error(`the operation ${id} states neither a permission nor why it needs none`)
}

function createHandler({ controller, timeouts, monitor }: Served, operation: AnyOperation): RouteHandlerMethod {
  const isPublic = 'public' in operation.access
  const { cluster, store } = controller
  // A request that changes something in several steps is not repeated; an operation that grants nothing concerns no records.
  const isRepeatable = (operation.method !== 'POST' || operation.canDryRun === true) && !operation.grantsNothing
  const statesPosition = cluster !== undefined && operation.method !== 'GET'
  const mayBeStored = !isConfidential(operation)
  const hasEnvelope = operation.returns.kind !== 'raw'
  // Sends the response itself: what Fastify does with a promise that a handler returns costs as much as a small operation.
  return (request, reply) => {
    const { caller, contentType, dialect, query, route } = request.state
    const tolerance = bodyTolerance(dialect, route.api, isPublic)
    const context = controller.contexts.create(
      caller,
      { requestId: request.id, address: request.ip },
      isDryRun(request.headers[DRY_RUN_HEADER], operation),
    )
    const params = request.params as Record<string, string>
    const call: Call = {
      operation,
      controller,
      context,
      params,
      query,
      body: readRequestBody(operation, request, tolerance),
      dialect,
      contentType,
      headers: request.headers,
      isCarried: (api) => isServed(request.raw, api),
      peer: new SocketCertificates(request.raw.socket as TLSSocket),
      bearerTokens: readBearerTokens(request.raw),
      accessToken: request.state.accessToken,
      asksForWebSocket: () => asksForWebSocket(request.raw),
      socket: request.raw.socket,
      monitor,
    }
    const run = () => {
      const visible = requireVisibleRecord(context, operation, params.id)
      return visible ? visible.then(() => operation.run(call)) : operation.run(call)
    }
    const pending = cluster && isRepeatable ? runAsOneOfSeveral(cluster, store, run) : run()
    const succeed = (response: Response) => {
      if (statesPosition) reply.header(POSITION_HEADER, store.position)
      void send(request, reply, hasEnvelope ? withWarnings(response, tolerance.ignoredMembers) : response, mayBeStored)
    }
    if (!(pending instanceof Promise)) return succeed(pending)
    const fail = (error: unknown) => reply.send(error)
    const hasNoTimeout = operation.hasNoTimeout || caller.kind === 'local-operator'
    if (hasNoTimeout) pending.then(succeed).catch(fail)
    else timeouts.settle(pending, succeed, fail)
  }
}

/** Runs an operation once more if what it does not find may have been made at another controller just now. */
function runAsOneOfSeveral(cluster: Cluster, store: Store, run: () => Awaitable<Response>): Awaitable<Response> {
  const { position } = store
  const runAgain = async (error: unknown): Promise<Response> => {
    if (!(error instanceof ControllerError) || error.status !== 404) throw error
    await cluster.catchUp()
    if (store.position === position) throw error
    return run()
  }
  try {
    const pending = run()
    return pending instanceof Promise ? pending.catch(runAgain) : pending
  } catch (error) {
    return runAgain(error)
  }
}

function readRequestBody(operation: AnyOperation, request: FastifyRequest, tolerance: BodyTolerance): unknown {
  const { body } = operation
  if (!body) return undefined
  if (request.body === undefined && body.isRequired) throw bodyRequiredError()
  return body.read(request.body, tolerance)
}

/** @param mayBeStored whether a cache, such as that of a browser, may store the response */
function send(request: FastifyRequest, reply: FastifyReply, response: Response, mayBeStored: boolean): FastifyReply {
  const { status, contentType, body, headers } = response
  if (response.beginWebSocket) {
    reply.code(status).hijack()
    beginWebSocket(request.raw, response.beginWebSocket)
    return reply
  }
  if (mayBeStored) {
    const current = respondIfCurrent(request, reply, response)
    if (current) return current
  } else reply.header('cache-control', 'no-store')
  if (headers) reply.headers(headers)
  reply.code(status).header('content-type', contentType)
  if (body instanceof Readable && request.raw.socket.destroyed) {
    // The client is gone, which is not a fault: the stream only has to end.
    body.destroy()
    return reply.hijack()
  }
  if (body instanceof BodyParts) return sendLarge(request, reply, body)
  if (!(body instanceof Readable) && isLarge(body)) {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    return sendLarge(request, reply, new BodyParts([bytes], bytes.length), response.isShared)
  }
  // The serializer keeps Fastify from adding a charset, which clients that compare the type literally do not expect.
  return reply.serializer(String).send(body)
}

function sendLarge(
  request: FastifyRequest,
  reply: FastifyReply,
  { parts, byteLength }: BodyParts,
  isShared = false,
): FastifyReply {
  const hold = getConnection(request.raw.socket).holdBody(isShared ? 0 : byteLength)
  if (!hold) return reply.hijack()
  reply.raw.once('close', hold.release)
  reply.header('content-length', byteLength).hijack()
  reply.raw.writeHead(reply.statusCode, reply.getHeaders() as OutgoingHttpHeaders)
  writePieces(reply.raw, parts)
  return reply
}

/** The handler behind hooks that always refuse. */
function assertUnreachable(): never {
  throw new Error('a hook should have refused this request')
}

/** Returns the paths of all operations, with their methods and APIs. */
function buildPathTable(servedOperations: readonly AnyOperation[]): PathTable {
  const table = new PathTable()
  for (const operation of servedOperations) {
    for (const { listenerApi, path } of listRoutes(operation)) table.add(path, operation.method, listenerApi)
  }
  return table
}

/** Returns a generator of request ids: short, unique in this process and unlikely to repeat in another. */
function createRequestIds(): () => string {
  const prefix = newId().slice(-6)
  let last = 0
  return () => `${prefix}-${(++last).toString(36)}`
}
