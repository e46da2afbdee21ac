// The direct route: usual requests, straight from the HTTP server to the checks, parsers and handlers that Fastify calls for all
// others. What Fastify does beside (objects, hooks, matching, serialization) costs as much as a small read.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyContextConfig } from 'fastify'
import type { BodyParser } from '../body-parsers.ts'
import type { ServedReply, ServedRequest } from '../exchange.ts'
import { type Check, findRefusal } from '../hooks/check.ts'
import type { Identify } from '../hooks/identify.ts'
import { rewriteUrl } from '../mount-points.ts'
import { type PathMatch, PathTree } from '../path-tree.ts'
import type { RequestState } from '../requests.ts'
import { DirectReply, type Endings } from './direct-reply.ts'
import { DirectRequest } from './direct-request.ts'
import { receiveBody } from './receive-body.ts'

/** What handles a request that no check has refused. It throws, or passes an error to the reply, if it fails. */
export type Handler = (request: ServedRequest, reply: ServedReply) => void

/** What both routes have in common. */
export interface Steps extends Endings {
  readonly createRequestId: () => string
  readonly identify: Identify
  readonly checks: readonly Check[]
  /** By content type. */
  readonly bodyParsers: ReadonlyMap<string, BodyParser>
}

/** What serves the requests of one method and path. */
export interface Target {
  readonly config: FastifyContextConfig
  /** In bytes. */
  readonly bodyLimit: number
  readonly handle: Handler
}

interface Route extends Target {
  readonly parameters: readonly string[]
  /** Clients send bodies with GET requests that no operation asks for. */
  readonly readsBody: boolean
}

const NO_PARAMETERS: Readonly<Record<string, string>> = {}

export class DirectRoute {
  readonly #steps: Steps
  readonly #routesByMethod = new Map<string, PathTree<Route>>()
  #isOpen = true

  constructor(steps: Steps) {
    this.#steps = steps
  }

  /** @param path with its parameters as `:id` */
  add(method: string, path: string, target: Target): void {
    const parameters = path.split('/').flatMap((segment) => (segment.startsWith(':') ? [segment.slice(1)] : []))
    const readsBody = method !== 'GET' || target.config.operation?.body !== undefined
    const routes = this.#routesByMethod.get(method) ?? new PathTree<Route>()
    this.#routesByMethod.set(method, routes)
    routes.ensure(path, () => ({ ...target, parameters, readsBody }))
  }

  /** From now on Fastify refuses all requests. */
  close(): void {
    this.#isOpen = false
  }

  /** Serves a request, or returns false without having done anything: Fastify serves whatever is unusual in any way. */
  serve(message: IncomingMessage, response: ServerResponse): boolean {
    if (!this.#isOpen) return false
    const url = rewriteUrl(message.url ?? '/')
    const match = this.#findRoute(message.method as string, url)
    if (!match) return false
    const { value: route, segments } = match
    if (!this.#isBodyUsual(message, route)) return false
    const state = this.#identify(message, route.config)
    if (!state) return false
    const params = nameSegments(route.parameters, segments)
    const request = new DirectRequest(this.#steps.createRequestId(), message, url, params, state)
    this.#check(request, new DirectReply(response, request, this.#steps), route)
    return true
  }

  #findRoute(method: string, url: string): PathMatch<Route> | undefined {
    const end = url.search(QUERY_OR_FRAGMENT)
    if (end >= 0 && url[end] === '#') return undefined
    return this.#routesByMethod.get(method)?.findExact(end < 0 ? url : url.slice(0, end))
  }

  /** Whether a request has no body, or one that says how long it is, and can be read. */
  #isBodyUsual({ headers }: IncomingMessage, { readsBody, bodyLimit }: Route): boolean {
    if (headers['transfer-encoding'] !== undefined) return false
    const { 'content-length': length, 'content-type': type } = headers
    if (!readsBody) return length === undefined
    if (length !== undefined && Number(length) > bodyLimit) return false
    return type === undefined || this.#steps.bodyParsers.has(type)
  }

  #identify(message: IncomingMessage, config: FastifyContextConfig): RequestState | undefined {
    try {
      return this.#steps.identify.fromMemory(message, config)
    } catch {
      // Fastify's route fails in the same way, and responds with it: here, nothing would catch it, and the process would end.
      return undefined
    }
  }

  #check(request: DirectRequest, reply: DirectReply, { readsBody, handle }: Route): void {
    const { checks, bodyParsers } = this.#steps
    const refusal = findRefusal(checks, request, reply)
    if (refusal) {
      this.#refuse(request, reply, refusal)
      return
    }
    const type = readsBody ? request.headers['content-type'] : undefined
    // A body without a type has been refused by the checks.
    if (type === undefined) this.#handle(request, reply, handle)
    else this.#receive(request, reply, bodyParsers.get(type) as BodyParser, handle)
  }

  #receive(request: DirectRequest, reply: DirectReply, parse: BodyParser, handle: Handler): void {
    receiveBody(request.raw, (bytes) => {
      try {
        request.body = parse(request, bytes)
      } catch (refusal) {
        // Fastify, too, closes the connection after a body that it could not read.
        reply.header('connection', 'close')
        this.#refuse(request, reply, refusal as Error)
        return
      }
      this.#handle(request, reply, handle)
    })
  }

  #refuse(request: DirectRequest, reply: DirectReply, refusal: Error): void {
    this.#handle(request, reply, () => void reply.send(refusal))
  }

  #handle(request: DirectRequest, reply: DirectReply, handle: Handler): void {
    try {
      handle(request, reply)
    } catch (error) {
      this.#steps.fail(error as Error, request, reply)
    }
  }
}

const QUERY_OR_FRAGMENT = /[?#]/

function nameSegments(names: readonly string[], segments: readonly string[]): Readonly<Record<string, string>> {
  if (names.length === 0) return NO_PARAMETERS
  const params: Record<string, string> = {}
  for (let at = 0; at < names.length; at++) params[names[at] as string] = segments[at] as string
  return params
}
