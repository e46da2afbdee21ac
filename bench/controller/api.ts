// The public API as the bench uses it to set things up: what it offers, records, sessions.
import type { Credential, Target } from '../generator/connection.ts'
import { type RequestParts, requestBytes } from '../generator/requests.ts'
import { ADMINISTRATOR } from './controller-process.ts'
import { exchange } from './exchange.ts'

export const MANAGEMENT = '/edge/management/v1'
export const CLIENT = '/edge/client/v1'

/** An operation that a measurement cannot do without, its path as in the API's document. */
export interface Need {
  readonly api: 'client' | 'management'
  readonly method: RequestParts['method']
  readonly path: string
}

/** The controller refused a request of the set-up. */
export class RefusedRequestError extends Error {
  readonly code: string | undefined

  constructor({ method, path }: RequestParts, status: number, text: string) {
    super(`${method} ${path} failed with ${status}: ${text}`)
    this.name = 'RefusedRequestError'
    this.code = (JSON.parse(text || '{}') as { error?: { code?: string } }).error?.code
  }
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

// So many requests of the set-up are made at the same time.
const AT_ONCE = 8
const PAGE = 500

export class Api {
  readonly target: Target
  readonly #documents = new Map<Need['api'], Promise<Document>>()
  #token = ''

  constructor(target: Target) {
    this.target = target
  }

  /** Signs in as administrator; everything after that is done with this session. */
  async signIn(): Promise<void> {
    const { token } = (await this.data({
      method: 'POST',
      path: `${MANAGEMENT}/authenticate?method=password`,
      body: ADMINISTRATOR,
    })) as { token: string }
    this.#token = token
  }

  /** The headers of the administrator's session. */
  get session(): Readonly<Record<string, string>> {
    return { 'net-session': this.#token }
  }

  /** Returns the data of a response. @throws RefusedRequestError */
  async data(parts: RequestParts, credential?: Credential): Promise<unknown> {
    const text = await this.#text(parts, credential)
    return (JSON.parse(text) as { data?: unknown }).data
  }

  /** Sends a request as the administrator. @throws RefusedRequestError */
  asAdministrator(parts: Omit<RequestParts, 'headers'>): Promise<unknown> {
    return this.data({ ...parts, headers: this.session })
  }

  /** The bytes of a request to the management API as the administrator. */
  managementRequest(method: RequestParts['method'], path: string, body?: unknown): Buffer {
    return requestBytes({ method, path: MANAGEMENT + path, headers: this.session, ...(body ? { body } : {}) })
  }

  /** A page of a management list. */
  page<R>(list: string, filter: string, skip: number, limit: number): Promise<R[]> {
    const query = new URLSearchParams({ filter: `${filter} skip ${skip} limit ${limit}` })
    return this.asAdministrator({ method: 'GET', path: `${MANAGEMENT}${list}?${query}` }) as Promise<R[]>
  }

  /** The first records of a management list in the order of its filter, up to a number of them. */
  async records<R>(list: string, filter: string, most: number): Promise<R[]> {
    const records: R[] = []
    while (records.length < most) {
      const limit = Math.min(PAGE, most - records.length)
      const page = await this.page<R>(list, filter, records.length, limit)
      records.push(...page)
      if (page.length < limit) break
    }
    return records
  }

  /** Returns those of the operations that its own document does not list. */
  async missing(needs: readonly Need[]): Promise<Need[]> {
    const offers = await Promise.all(needs.map((need) => this.#offers(need)))
    return needs.filter((_, at) => !offers[at])
  }

  async #offers({ api, method, path }: Need): Promise<boolean> {
    const { paths } = await this.#document(api)
    return paths[path]?.[method.toLowerCase()] !== undefined
  }

  #document(api: Need['api']): Promise<Document> {
    let document = this.#documents.get(api)
    if (!document) {
      const path = `${MANAGEMENT}/specs/edge-${api}/spec`
      document = this.#text({ method: 'GET', path }).then((text) => JSON.parse(text) as Document)
      this.#documents.set(api, document)
    }
    return document
  }

  async #text(parts: RequestParts, credential?: Credential): Promise<string> {
    const { status, body } = await exchange(this.target, requestBytes(parts), credential)
    const text = body?.toString('utf8') ?? ''
    if (status >= 400) throw new RefusedRequestError(parts, status, text)
    return text
  }
}

/** Does something for every item, several at a time; results in the order of the items. */
export async function forEach<T, R>(items: readonly T[], work: (item: T, at: number) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const worker = async () => {
    while (next < items.length) {
      const at = next++
      results[at] = await work(items[at] as T, at)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return results
}
