// The only requests that the controller sends by itself: to endpoints that an administrator configured, and to the token endpoints that
// these name.
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls'
import { isPrivateAddress, lookUpPublic } from './private-addresses.ts'
import { describeRequestFailure } from './request-failures.ts'

/** The endpoint did not return a usable response; the message names the reason, and is for administrators. What the system says is the cause. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError'
}

export interface OutboundSettings {
  /** The settings, as objections name them. */
  readonly settingPrefix: 'signers' | 'webhooks'
  /** Whether `http:` is allowed besides `https:`. */
  readonly allowHttp: boolean
  /** Certificates of further authorities, as PEM, besides those of Node.js. */
  readonly authorities?: string | undefined
  /** Whether addresses are requested that are not public. */
  readonly allowPrivate: boolean
  /** How long a request may take, from its beginning to the last byte of its response, redirects included. */
  readonly timeoutMs: number
}

/** A response, parsed. */
export interface OutboundResponse {
  readonly value: unknown
  /** For how long the headers of the response allow caching, in milliseconds; undefined if they do not tell. */
  readonly freshForMs: number | undefined
}

/** The content of a request, and how its name is looked up. */
interface RequestContent {
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly lookup?: LookupFunction | undefined
  /** Whether requests of the same kind may follow soon, so that their connection stays open for them. */
  readonly isOfSeries?: boolean
}

const ACCEPT_JSON = { accept: 'application/jwk-set+json, application/json', 'accept-encoding': 'identity' } as const

/** A key set of a hundred keys with their certificates has half of this size. */
const MAX_RESPONSE_BYTES = 512 * 1024
const MAX_REDIRECTS = 3

/** Less than servers keep connections open, so that none is closed while a request is sent over it. */
const MAX_IDLE_MS = 2_000
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

export class OutboundClient {
  readonly #settings: OutboundSettings
  /** With the further authorities; made once, because to read the certificates of all authorities takes 20 ms. */
  readonly #secureContext: SecureContext | undefined
  readonly #closing = new AbortController()
  readonly #agents = {
    http: new HttpAgent({ keepAlive: true, timeout: MAX_IDLE_MS }),
    https: new HttpsAgent({ keepAlive: true, timeout: MAX_IDLE_MS }),
  }
  readonly #lookup: LookupFunction | undefined

  constructor(settings: OutboundSettings) {
    const { authorities, allowPrivate } = settings
    this.#settings = settings
    const refuse = (name: string) => new OutboundError(`${name} has ${this.#describePrivate()}`)
    this.#lookup = allowPrivate ? undefined : lookUpPublic(refuse)
    if (authorities !== undefined) this.#secureContext = createSecureContext({ ca: [...rootCertificates, authorities] })
  }

  /** Returns why the URL is not one that is requested; undefined if it is. */
  findObjection(url: string): string | undefined {
    if (!URL.canParse(url)) return 'is not a URL'
    const { protocol, username, password, hostname } = new URL(url)
    const { settingPrefix, allowHttp, allowPrivate } = this.#settings
    if (protocol === 'http:' && !allowHttp) {
      return `must begin with https:, because the setting ${settingPrefix}.allowHttp is off`
    }
    if (protocol !== 'https:' && protocol !== 'http:') return 'must begin with https:'
    if (!allowPrivate && isPrivateAddress(hostname)) return `is ${this.#describePrivate()}`
    return username === '' && password === '' ? undefined : 'must not contain a username or a password'
  }

  /**
   * Requests a URL and parses the response as JSON. Only redirects to the same origin are followed.
   * @throws OutboundError
   */
  fetchJson(url: string): Promise<OutboundResponse> {
    return this.#send((signal) => this.#follow(new URL(url), signal))
  }

  /** Posts a form, and parses the response as JSON. Redirects are not followed. @throws OutboundError */
  postForm(url: string, form: Readonly<Record<string, string>>): Promise<OutboundResponse> {
    return this.#send(async (signal) => {
      const body = new URLSearchParams(form).toString()
      const headers = { ...ACCEPT_JSON, 'content-type': 'application/x-www-form-urlencoded' }
      return parseJsonResponse(await this.#request(url, signal, { headers, body }), signal)
    })
  }

  /**
   * Posts a JSON text. Each status of success counts, whatever the body of the response; redirects are not followed.
   * @throws OutboundError
   */
  postJson(url: string, body: string, headers: Readonly<Record<string, string>>): Promise<void> {
    return this.#send(async (signal) => {
      const content = { headers: { ...headers, 'content-type': 'application/json' }, body, isOfSeries: true }
      const response = await this.#request(url, signal, content)
      const { statusCode: status = 0 } = response
      discardBody(response)
      if (status < 200 || status > 299) throw new OutboundError(`status ${status}`)
    })
  }

  #describePrivate(): string {
    return `a private address, and the setting ${this.#settings.settingPrefix}.allowPrivate is off`
  }

  async #send<T>(request: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { timeoutMs } = this.#settings
    const timeout = AbortSignal.timeout(timeoutMs)
    try {
      return await request(AbortSignal.any([timeout, this.#closing.signal]))
    } catch (error) {
      if (error instanceof OutboundError) throw error
      const reason = timeout.aborted ? `no complete response within ${timeoutMs} ms` : describeRequestFailure(error)
      throw new OutboundError(reason, { cause: error })
    }
  }

  /** Aborts the requests that are under way, and every later one. */
  close(): void {
    this.#closing.abort()
    for (const agent of Object.values(this.#agents)) agent.destroy()
  }

  async #follow(start: URL, signal: AbortSignal): Promise<OutboundResponse> {
    let url = start
    // The name is looked up once: the owner of the name could otherwise send the request after a redirect to another machine.
    let lookup: LookupFunction | undefined
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const response = await this.#request(url.href, signal, { headers: { ...ACCEPT_JSON }, lookup })
      lookup ??= findAlways(response.socket.remoteAddress)
      const { statusCode: status = 0, headers } = response
      if (!REDIRECTS.has(status)) return await parseJsonResponse(response, signal)
      response.destroy()
      if (!headers.location || !URL.canParse(headers.location, url.href)) {
        throw new OutboundError(`status ${status} without a URL to follow`)
      }
      const next = new URL(headers.location, url)
      if (next.origin !== start.origin) throw new OutboundError(`a redirect to another origin, ${next.origin}`)
      url = next
    }
    throw new OutboundError(`more than ${MAX_REDIRECTS} redirects`)
  }

  /** @throws OutboundError for a URL that is not one that is requested */
  async #request(href: string, signal: AbortSignal, content: RequestContent): Promise<IncomingMessage> {
    const objection = this.findObjection(href)
    if (objection) throw new OutboundError(`the URL ${objection}`)
    const url = new URL(href)
    const { headers, body, lookup: given, isOfSeries = false } = content
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const method = body === undefined ? 'GET' : 'POST'
    const lookup = given ?? this.#lookup
    const isTls = url.protocol === 'https:'
    // Others have a connection of their own: they are rare.
    const agent = isOfSeries ? this.#agents[isTls ? 'https' : 'http'] : false
    const options = {
      ...{ agent, method, signal },
      headers: { ...headers, ...length },
      ...(lookup ? { lookup } : {}),
    } as const
    return new Promise((resolve, reject) => {
      const tls = this.#secureContext ? { secureContext: this.#secureContext } : {}
      const outgoing = isTls ? httpsRequest(url, { ...tls, ...options }, resolve) : httpRequest(url, options, resolve)
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  }
}

/** Finds one address, whatever the name. */
function findAlways(address: string | undefined): LookupFunction | undefined {
  if (address === undefined) return undefined
  const family = isIP(address)
  return (_name, { all }, callback) => (all ? callback(null, [{ address, family }]) : callback(null, address, family))
}

async function parseJsonResponse(response: IncomingMessage, signal: AbortSignal): Promise<OutboundResponse> {
  const { statusCode: status, headers } = response
  if (status !== 200) {
    response.destroy()
    throw new OutboundError(`status ${status}`)
  }
  const text = await receiveText(response, signal)
  const type = headers['content-type'] ?? 'no content type'
  try {
    return { value: JSON.parse(text) as unknown, freshForMs: readFreshness(headers) }
  } catch (error) {
    throw new OutboundError(`the response (${type}) is not JSON`, { cause: error })
  }
}

/** Receives the rest of a response for nothing, because its sender may not expect a reset; one that is too large is cut. */
function discardBody(response: IncomingMessage): void {
  let size = 0
  response.on('error', () => {})
  response.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > MAX_RESPONSE_BYTES) response.destroy()
  })
}

/** Reads a response until it is too large. */
async function receiveText(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  const destroy = () => response.destroy(signal.reason as Error)
  signal.addEventListener('abort', destroy, { once: true })
  try {
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length
      // Leaving the loop destroys the response, so the rest of it is not received.
      if (size > MAX_RESPONSE_BYTES) throw new OutboundError(`a response of more than ${MAX_RESPONSE_BYTES} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString('utf8')
  } finally {
    signal.removeEventListener('abort', destroy)
  }
}

/** RFC 9111 §4.2.1: the freshness lifetime by `Cache-Control`, else by `Expires` and `Date`, less the `Age`. */
function readFreshness(headers: IncomingMessage['headers']): number | undefined {
  const directives = (headers['cache-control'] ?? '').toLowerCase()
  if (/\bno-(store|cache)\b/.test(directives)) return 0
  const [, seconds] = /(?:^|[,\s])max-age="?(\d{1,10})"?/.exec(directives) ?? []
  const ageMs = Number(headers.age ?? 0) * 1000 || 0
  if (seconds !== undefined) return Math.max(0, Number(seconds) * 1000 - ageMs)
  const lifetimeMs = Date.parse(headers.expires ?? '') - Date.parse(headers.date ?? '')
  return Number.isNaN(lifetimeMs) ? undefined : Math.max(0, lifetimeMs - ageMs)
}
