// The direct route: requests without a body, straight from the HTTP server to the checks and handlers that Fastify calls for all
// others. What Fastify does beside (objects, hooks, matching, serialization) costs as much as a small read.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyContextConfig } from 'fastify'
import type { ServedReply, ServedRequest } from '../exchange.ts'
import { type Check, findRefusal } from '../hooks/check.ts'
import type { Identify } from '../hooks/identify.ts'
import { rewriteUrl } from '../mount-points.ts'
import { PathTree } from '../path-tree.ts'
import type { RequestState } from '../requests.ts'
import { DirectReply, type Endings } from './direct-reply.ts'
import { DirectRequest } from './direct-request.ts'

/** What handles a request that no check has refused. It throws, or passes an error to the reply, if it fails. */
export type Handler = (request: ServedRequest, reply: ServedReply) => void

/** What both routes have in common. */
export interface Steps extends Endings {
  readonly createRequestId: () => string
  readonly identify: Identify
  readonly checks: readonly Check[]
}

interface Route {
  readonly config: FastifyContextConfig
  readonly parameters: readonly string[]
  readonly handle: Handler
}

const NO_PARAMETERS: Readonly<Record<string, string>> = {}

export class DirectRoute {
  readonly #steps: Steps
  readonly #routes = new PathTree<Route>()
  #isOpen = true

  constructor(steps: Steps) {
    this.#steps = steps
  }

  /** @param path of a GET operation, with its parameters as `:id` */
  add(path: string, config: FastifyContextConfig, handle: Handler): void {
    const parameters = path.split('/').flatMap((segment) => (segment.startsWith(':') ? [segment.slice(1)] : []))
    this.#routes.ensure(path, () => ({ config, parameters, handle }))
  }

  /** From now on Fastify refuses all requests. */
  close(): void {
    this.#isOpen = false
  }

  /** Serves a request, or returns false without having done anything: Fastify serves whatever is unusual in any way. */
  serve(message: IncomingMessage, response: ServerResponse): boolean {
    if (message.method !== 'GET' || !this.#isOpen || hasBody(message)) return false
    const url = rewriteUrl(message.url ?? '/')
    const end = url.search(QUERY_OR_FRAGMENT)
    if (end >= 0 && url[end] === '#') return false
    const match = this.#routes.findExact(end < 0 ? url : url.slice(0, end))
    if (!match) return false
    const { config, parameters, handle } = match.value
    const state = this.#identify(message, config)
    if (!state) return false
    const params = nameSegments(parameters, match.segments)
    this.#handle(new DirectRequest(this.#steps.createRequestId(), message, url, params, state), response, handle)
    return true
  }

  #identify(message: IncomingMessage, config: FastifyContextConfig): RequestState | undefined {
    try {
      return this.#steps.identify.fromMemory(message, config)
    } catch {
      // Fastify's route fails in the same way, and responds with it: here, nothing would catch it, and the process would end.
      return undefined
    }
  }

  #handle(request: DirectRequest, response: ServerResponse, handle: Handler): void {
    const reply = new DirectReply(response, request, this.#steps)
    const refusal = findRefusal(this.#steps.checks, request, reply)
    if (refusal) {
      reply.send(refusal)
      return
    }
    try {
      handle(request, reply)
    } catch (error) {
      this.#steps.fail(error as Error, request, reply)
    }
  }
}

const QUERY_OR_FRAGMENT = /[?#]/

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
}

function nameSegments(names: readonly string[], segments: readonly string[]): Readonly<Record<string, string>> {
  if (names.length === 0) return NO_PARAMETERS
  const params: Record<string, string> = {}
  for (let at = 0; at < names.length; at++) params[names[at] as string] = segments[at] as string
  return params
}
