// The client of a controller's API: sends requests through a transport, and returns data or throws errors.

import { collectReply, type Reply, type Request, type Transport } from '../../src/client/transport.ts'
import { isMachineToken } from '../../src/definitions/resources/tokens.ts'
import { type InvalidMember, parseOptionalJson, RequestError } from '../foundation/request-error.ts'
import { type PageMeta, readListItems } from './list-items.ts'

export const MANAGEMENT_PATH = '/edge/management/v1'
export const CLIENT_PATH = '/edge/client/v1'
/** For operations of both APIs, because a listener may serve only one of them. */
export const EITHER_PATH = [CLIENT_PATH, MANAGEMENT_PATH] as const

/** The prefixes of paths; each is tried if there is no such path below the one before it. */
export type BasePath = string | readonly string[]

export interface ClientOptions {
  readonly base?: BasePath | undefined
  /** Of an API session, or the secret of the token of a machine. */
  readonly token?: string | undefined
  /** Receives what the controller has to say about a request that it served, as text. */
  readonly onWarning?: ((text: string) => void) | undefined
}

export interface ApiResponse {
  readonly data: unknown
  readonly meta: PageMeta
  readonly reply: Reply
}

/** A member of a request that the controller ignored. */
type Warning = Pick<InvalidMember, 'field' | 'reason'>

function toCredentialHeaders(token: string | undefined): Readonly<Record<string, string>> {
  if (token === undefined) return {}
  return isMachineToken(token) ? { authorization: `Bearer ${token}` } : { 'net-session': token }
}

export class Client {
  readonly #transport: Transport
  readonly #bases: readonly string[]
  readonly #token: string | undefined
  readonly #onWarning: ClientOptions['onWarning']

  constructor(transport: Transport, { base = MANAGEMENT_PATH, token, onWarning }: ClientOptions = {}) {
    this.#transport = transport
    this.#onWarning = onWarning
    this.#bases = [base].flat()
    this.#token = token
  }

  /** A client of the same controller and session, with another prefix of paths. */
  withBase(base: BasePath): Client {
    return new Client(this.#transport, { base, token: this.#token, onWarning: this.#onWarning })
  }

  get target(): string {
    return this.#transport.target
  }

  /**
   * Sends a request, and returns the content of the response.
   * @throws RequestError if the status is not a success
   * @throws UnreachableError if there is no response
   */
  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<ApiResponse> {
    const reply = await this.#send(method, path, headers, body)
    if (reply.status >= 400) throw new RequestError(this.target, reply)
    const parsed = parseOptionalJson(reply.text) as
      | { data?: unknown; meta?: PageMeta & { warnings?: readonly Warning[] } }
      | undefined
    for (const { field, reason } of parsed?.meta?.warnings ?? []) this.#onWarning?.(`Warning: ${field} ${reason}`)
    return { data: parsed?.data, meta: parsed?.meta ?? {}, reply }
  }

  /**
   * Yields the items of a list of any length while they arrive.
   * @param request the method and the body. Default: GET
   * @throws RequestError if the status is not a success
   * @throws UnreachableError if there is no response, or it is incomplete
   */
  async *items(
    path: string,
    onMeta?: (meta: PageMeta) => void,
    { method = 'GET', body: sent }: { readonly method?: string; readonly body?: unknown } = {},
  ): AsyncIterable<unknown> {
    yield* readListItems(await this.stream(method, path, sent), onMeta)
  }

  /**
   * Sends a request, and returns the body of the response, which is read while it arrives.
   * @throws RequestError if the status is not a success
   * @throws UnreachableError if there is no response, or it is incomplete
   */
  async stream(method: string, path: string, sent?: unknown): Promise<AsyncIterable<Buffer>> {
    const [base = ''] = this.#bases
    const { body, ...head } = await this.#transport.stream(this.#request(method, base + path, {}, sent))
    if (head.status >= 400) throw new RequestError(this.target, await collectReply({ body, ...head }))
    return body
  }

  async #send(method: string, path: string, headers: Readonly<Record<string, string>>, body: unknown): Promise<Reply> {
    const [first = '', ...others] = this.#bases
    let reply = await this.#transport.send(this.#request(method, first + path, headers, body))
    for (const base of others) {
      if (reply.status !== 404) break
      reply = await this.#transport.send(this.#request(method, base + path, headers, body))
    }
    return reply
  }

  #request(method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: unknown): Request {
    return {
      method,
      path,
      headers: { ...toCredentialHeaders(this.#token), ...headers },
      ...(body === undefined ? {} : { body }),
    }
  }

  close(): Promise<void> {
    return this.#transport.close()
  }
}
