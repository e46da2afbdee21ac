// The application: routes, hooks and the error handler over a controller. It never listens.
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest, type HTTPMethods } from 'fastify'
import type { Api } from '../src/config.ts'
import type { Caller } from '../src/context.ts'
import type { Controller } from '../src/controller.ts'
import { errors } from '../src/errors.ts'
import { newId } from '../src/ids.ts'
import { type BodyTolerance, bodyRequired } from '../src/schema/bodies.ts'
import { withinTime } from './answer-time.ts'
import type { Answer } from './answers.ts'
import { addBodyParsers } from './body-parsers.ts'
import { answerHeaders, bodyTolerance } from './dialects.ts'
import { answerFailure } from './failures.ts'
import { authorize } from './hooks/authorize.ts'
import { identify } from './hooks/identify.ts'
import { negotiate } from './hooks/negotiate.ts'
import { reauthorize } from './hooks/reauthorize.ts'
import { shed } from './hooks/shed.ts'
import type { Load } from './load.ts'
import { BASE_PATHS, routedUrl } from './mount-points.ts'
import type { AnyOperation } from './operation.ts'
import { operations } from './operations.ts'
import { peerCertificates } from './requests.ts'

export interface AppOptions {
  /** Who is behind every request, where the channel itself says so: an offline command. No header can claim it. */
  readonly trustedCaller?: Caller
  /** The operations to serve; all of them unless a test says otherwise. */
  readonly operations?: readonly AnyOperation[]
  /** What is asked how busy the server is; without it nobody is refused for that. */
  readonly load?: Load
}

/** Builds the application. @throws where a route states neither a permission nor why it needs none */
export async function buildApp(controller: Controller, options: AppOptions = {}): Promise<FastifyInstance> {
  const { config, log } = controller
  const instanceId = newId()
  const fail = answerFailure(log)
  const app = Fastify({
    logger: false,
    // Paths that cannot be decoded, which no route and no hook ever sees.
    frameworkErrors: (error, request, reply) => fail(error, request as FastifyRequest, reply as FastifyReply),
    exposeHeadRoutes: false,
    genReqId: requestIds(),
    rewriteUrl: (request) => routedUrl(request.url ?? '/'),
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: 256 },
    bodyLimit: config['limits.body'],
    return503OnClosing: true,
    forceCloseConnections: 'idle',
  })
  app.decorateRequest('state')
  app.addHook('onRoute', (route) => {
    if (!route.config?.operation && !route.config?.public) {
      throw new Error(`the route ${route.method} ${route.url} states neither a permission nor why it needs none`)
    }
  })
  app.addHook('onRequest', identify(controller, options.trustedCaller))
  if (options.load) app.addHook('onRequest', shed(options.load, config['limits.delay']))
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(answerHeaders(request.state.dialect, instanceId))
  })
  app.addHook('onRequest', async (request) => {
    if (request.is404) throw errors.NOT_FOUND({ message: `there is no path ${request.url.split('?')[0]}` })
  })
  app.addHook('onRequest', authorize)
  app.addHook('onRequest', negotiate)
  const judgeAgain = reauthorize(controller)
  addBodyParsers(app, judgeAgain)
  app.addHook('preHandler', (request, _reply, done) => done(judgeAgain(request)))
  app.setErrorHandler(fail)
  app.setNotFoundHandler(unreachable)
  const served = options.operations ?? operations
  for (const operation of served) register(app, controller, operation)
  refuseOtherMethods(app, served)
  await app.ready()
  return app
}

function register(app: FastifyInstance, controller: Controller, operation: AnyOperation): void {
  assertAccess(operation)
  const isPublic = 'public' in operation.access
  const handler = handlerOf(controller, operation)
  for (const { api, path } of routesOf(operation)) {
    app.route({
      method: operation.method,
      url: path,
      config: { operation, api },
      bodyLimit: controller.config[isPublic ? 'limits.bodyBeforeSession' : 'limits.body'],
      handler,
    })
  }
}

/** Every path an operation is found at; those below no base path belong to the root. */
export function routesOf(operation: AnyOperation): { api: Api; path: string }[] {
  const below = operation.apis.map((api) => ({
    api,
    path: BASE_PATHS[api] + (operation.path === '/' ? '' : operation.path),
  }))
  const atRoot = (operation.atRoot ?? []).map((path) => ({ api: operation.apis[0] as Api, path }))
  return [...below, ...atRoot]
}

function assertAccess({ id, access }: AnyOperation): void {
  const isStated =
    access && (('public' in access && access.public !== '') || ('permission' in access && access.permission !== ''))
  if (!isStated) throw new Error(`the operation ${id} states neither a permission nor why it needs none`)
}

function handlerOf(controller: Controller, operation: AnyOperation) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { caller, dialect, query } = request.state
    const { api } = request.routeOptions.config
    const tolerance = bodyTolerance(dialect, api, 'public' in operation.access)
    const answering = operation.run({
      operation,
      context: controller.context(caller, { requestId: request.id, address: request.ip }),
      params: request.params as Record<string, string>,
      query,
      body: readBody(operation, request, tolerance),
      dialect,
      headers: request.headers,
      get certificates() {
        return peerCertificates(request.raw)
      },
    })
    const isUnhurried = operation.isUnhurried || caller.kind === 'local-operator'
    const limit = controller.config['limits.answerTime']
    return send(reply, await (isUnhurried ? answering : withinTime(answering, limit)))
  }
}

function readBody(operation: AnyOperation, request: FastifyRequest, tolerance: BodyTolerance): unknown {
  const { body } = operation
  if (!body) return undefined
  if (request.body === undefined && body.isRequired) throw bodyRequired()
  if (request.body !== undefined) {
    const [type = ''] = (request.headers['content-type'] ?? '').split(';')
    if (!body.contentTypes.includes(type.trim().toLowerCase())) {
      const reason = `is not one of ${body.contentTypes.join(', ')}`
      throw errors.UNSUPPORTED_MEDIA_TYPE({ field: 'Content-Type', reason, value: type })
    }
  }
  return body.read(request.body, tolerance)
}

function send(reply: FastifyReply, { status, contentType, body, headers }: Answer): FastifyReply {
  if (headers) reply.headers(headers)
  // The serializer keeps Fastify from adding a charset, which clients that compare the type literally do not expect.
  return reply.code(status).header('content-type', contentType).serializer(String).send(body)
}

/** Handlers behind hooks that always refuse. */
function unreachable(): never {
  throw new Error('a hook should have refused this request')
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Answers 405 where a path exists and the method does not. */
function refuseOtherMethods(app: FastifyInstance, served: readonly AnyOperation[]): void {
  const byPath = new Map<string, Set<string>>()
  for (const operation of served) {
    for (const { path } of routesOf(operation)) {
      const methods = byPath.get(path) ?? new Set()
      byPath.set(path, methods.add(operation.method))
    }
  }
  for (const [url, methods] of byPath) {
    const others = METHODS.filter((method) => !methods.has(method))
    if (others.length === 0) continue
    app.route({
      method: others as HTTPMethods[],
      url,
      config: { public: 'it only says that the method is not supported' },
      // In a hook, because a body is never looked at for a method that does not exist.
      onRequest: async (request) => {
        throw errors.METHOD_NOT_ALLOWED({ message: `${request.method} is not among ${[...methods].join(', ')}` })
      },
      handler: unreachable,
    })
  }
}

/** Request ids: short, unique within this process and unlikely to meet those of another. */
function requestIds(): () => string {
  const prefix = newId().slice(-6)
  let last = 0
  return () => `${prefix}-${(++last).toString(36)}`
}
