// Callers of several controllers who go on whatever these meet, and know what was acknowledged to them.
import { setTimeout as wait } from 'node:timers/promises'
import { createSecureContext } from 'node:tls'
import { type Api, CLIENT, MANAGEMENT } from '../controller/api.ts'
import type { Credential, Target } from '../generator/connection.ts'
import { type OpenConnection, type OpenConnectionOptions, openConnection } from '../generator/open-connection.ts'
import { requestBytes } from '../generator/requests.ts'
import type { HttpResponse } from '../generator/response-reader.ts'
import { signIn } from '../model/clients.ts'

// Together they leave two cores nearly idle: what matters is how long it lasts.
const READERS_OF_EACH = 3
const PAUSE_MS = 60
const SIGN_IN_PAUSE_MS = 600
const CHANGE_PAUSE_MS = 150
// So many records of a caller exist at a time.
const KEPT = 20
const AWAY_MS = 300
const TOO_MANY = 429
const PREFIX = 'lasting-'

export interface LastingTraffic {
  /** Of clients and administrators, at any of the controllers. */
  readonly requests: readonly Buffer[]
  /** Of clients that sign in. */
  readonly credentials: readonly Credential[]
}

interface Named {
  readonly id: string
  readonly name: string
}

export class LastingCallers {
  readonly #targets: readonly Target[]
  readonly #api: Api
  readonly #traffic: LastingTraffic
  readonly #existing = new Set<string>()
  readonly #deleted = new Set<string>()
  #isOver = false
  completed = 0
  /** Changes. */
  acknowledged = 0
  unanswered = 0

  /** @param api has the session of an administrator */
  constructor(targets: readonly Target[], api: Api, traffic: LastingTraffic) {
    this.#targets = targets
    this.#api = api
    this.#traffic = traffic
  }

  /** Settles after `stop`. @throws if a request was refused */
  async run(): Promise<void> {
    const ofEach = this.#targets.map((target, at) => [
      ...Array.from({ length: READERS_OF_EACH }, (_, reader) => this.#read(target, at * READERS_OF_EACH + reader)),
      this.#signIn(target),
      this.#change(target, at),
    ])
    await Promise.all(ofEach.flat())
  }

  stop(): void {
    this.#isOver = true
  }

  /** Changes that were acknowledged and that a controller does not show, a sentence each. */
  async listLosses(api: Api): Promise<string[]> {
    await api.signIn()
    const filter = `name contains "${PREFIX}" sort by name`
    const shownIds = new Set(
      (await api.records<Named>('/identities', filter, Number.POSITIVE_INFINITY)).map(({ id }) => id),
    )
    return [
      ...[...this.#existing].filter((id) => !shownIds.has(id)).map((id) => `${id} was created, and is not there`),
      ...[...this.#deleted].filter((id) => shownIds.has(id)).map((id) => `${id} was deleted, and is there`),
    ]
  }

  async #read(target: Target, from: number): Promise<void> {
    const { requests } = this.#traffic
    const callers = this.#targets.length * READERS_OF_EACH
    const caller = new Caller(target)
    for (let at = from; !this.#isOver; at += callers) {
      await this.#ask(caller, requests[at % requests.length] as Buffer)
      await wait(PAUSE_MS)
    }
    caller.close()
  }

  /** Signs clients in and out again, each over a connection of its own. */
  async #signIn(target: Target): Promise<void> {
    const { credentials } = this.#traffic
    for (let at = 0; !this.#isOver; at++) {
      const caller = new Caller(target, credentials[at % credentials.length])
      const session = await this.#ask(caller, requestBytes(signIn))
      if (session)
        await this.#signOut(caller, (JSON.parse(String(session.body)) as { data: { token: string } }).data.token)
      caller.close()
      await wait(SIGN_IN_PAUSE_MS)
    }
  }

  async #signOut(caller: Caller, token: string): Promise<void> {
    const path = `${CLIENT}/current-api-session`
    await this.#ask(caller, requestBytes({ method: 'DELETE', path, headers: { 'zt-session': token } }))
  }

  /** Creates identities, and deletes the oldest ones. */
  async #change(target: Target, at: number): Promise<void> {
    const caller = new Caller(target)
    const own: string[] = []
    for (let sequence = 0; !this.#isOver; sequence++) {
      const body = { name: `${PREFIX}${at}-${sequence}`, type: 'User', isAdmin: false, roleAttributes: [PREFIX] }
      const creation = await this.#ask(caller, this.#api.managementRequest('POST', '/identities', body))
      if (creation) {
        const { id } = (JSON.parse(String(creation.body)) as { data: Named }).data
        this.acknowledged += 1
        this.#existing.add(id)
        own.push(id)
      }
      if (own.length > KEPT) await this.#delete(caller, own.shift() as string)
      await wait(CHANGE_PAUSE_MS)
    }
    caller.close()
  }

  async #delete(caller: Caller, id: string): Promise<void> {
    // Without a response, it may be there or not.
    this.#existing.delete(id)
    const request = requestBytes({
      method: 'DELETE',
      path: `${MANAGEMENT}/identities/${id}`,
      headers: this.#api.session,
    })
    if (!(await this.#ask(caller, request))) return
    this.acknowledged += 1
    this.#deleted.add(id)
  }

  /** Undefined without a response, or where the controller was busy, or cut off from the others. @throws if it refused */
  async #ask(caller: Caller, request: Buffer): Promise<HttpResponse | undefined> {
    const response = await caller.ask(request)
    if (!response || response.status >= 500 || response.status === TOO_MANY) {
      this.unanswered += 1
      await wait(AWAY_MS)
      return undefined
    }
    if (response.status >= 400) throw new Error(`${response.status} ${response.body} to ${request.subarray(0, 200)}`)
    this.completed += 1
    return response
  }
}

/** A connection that is opened again when it is lost. */
class Caller {
  readonly #options: OpenConnectionOptions
  #connection: OpenConnection | undefined

  constructor(target: Target, credential?: Credential) {
    this.#options = { target, secureContext: credential && createSecureContext(credential) }
  }

  async ask(request: Buffer): Promise<HttpResponse | undefined> {
    try {
      this.#connection ??= await openConnection(this.#options)
      return await this.#connection.ask(request)
    } catch {
      this.#connection = undefined
      return undefined
    }
  }

  close(): void {
    this.#connection?.close()
  }
}
