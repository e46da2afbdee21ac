// People with a second factor: their sessions, what they send, and the app on their phone.
import { expect } from 'vitest'
import { AuthenticatorApp, STEP_MS } from './authenticator-app.ts'
import { CLIENT, type MANAGEMENT, type TestController, type TestResponse } from './controller.ts'
import type { People, Person } from './people.ts'

export type Base = typeof CLIENT | typeof MANAGEMENT

/** The outcome of a code that is not accepted. */
export const WRONG = [401, 'MFA_INVALID_TOKEN']
/** The outcome of a code that is not looked at. */
export const LIMITED = [429, 'SERVER_TOO_MANY_REQUESTS']
/** The outcome of an enrollment that the session does not see. */
export const NONE = [404, 'NOT_FOUND']

/** The status of a success, or status and error code. */
export const outcome = ({ status, body }: TestResponse) => (status < 300 ? status : [status, body.error.code])

/** The place that the requests of a session come from, and the API that they go to. */
export interface SessionOptions {
  readonly base?: Base
  readonly from?: string
  readonly bearerToken?: string
}

/** Requests of one session. */
export class MfaSession {
  readonly token: string
  readonly #world: TestController
  readonly #options: SessionOptions

  constructor(world: TestController, token: string, options: SessionOptions = {}) {
    this.#world = world
    this.token = token
    this.#options = options
  }

  send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<TestResponse> {
    const { base = CLIENT, from, bearerToken } = this.#options
    const request = {
      method,
      path: base + path,
      token: this.token,
      headers: { ...headers, ...(bearerToken === undefined ? {} : { authorization: `Bearer ${bearerToken}` }) },
      ...(from === undefined ? {} : { from }),
    }
    return this.#world.send(body === undefined ? request : { ...request, body })
  }

  start = () => this.send('POST', '/current-identity/mfa', {})
  show = () => this.send('GET', '/current-identity/mfa')
  qrCode = () => this.send('GET', '/current-identity/mfa/qr-code')
  verify = (code: string) => this.send('POST', '/current-identity/mfa/verify', { code })
  pass = (code: string) => this.send('POST', '/authenticate/mfa', { code })
  remove = (code?: string) => this.send('DELETE', '/current-identity/mfa', undefined, toCodeHeader(code))
  recoveryCodes = (code?: string) =>
    this.send('GET', '/current-identity/mfa/recovery-codes', undefined, toCodeHeader(code))
  replaceCodes = (code: string) => this.send('POST', '/current-identity/mfa/recovery-codes', { code })

  /** The app, set up by the enrollment that the session sees. */
  async app(): Promise<AuthenticatorApp> {
    return new AuthenticatorApp((await this.show()).body.data.provisioningUrl)
  }

  async own() {
    return (await this.send('GET', '/current-api-session')).body.data
  }

  async isFull(): Promise<boolean> {
    return (await this.send('GET', '/current-identity')).status === 200
  }
}

export function toCodeHeader(code: string | undefined): Record<string, string> {
  return code === undefined ? {} : { 'mfa-validation-code': code }
}

/** Signs people in, and sets up their second factor. */
export class MfaPeople {
  readonly #world: TestController
  readonly #people: People

  constructor(world: TestController, people: People) {
    this.#world = world
    this.#people = people
  }

  async signIn(person: Person, options: SessionOptions = {}): Promise<MfaSession> {
    const { body } = await this.#people.signIn(person, {}, options.from)
    expect(body.error).toBeUndefined()
    return new MfaSession(this.#world, body.data.token, options)
  }

  /** A person whose second factor is verified, with a step to spare. */
  async enrolled(values: Record<string, unknown> = {}, options: SessionOptions = {}) {
    const person = await this.#people.person(values)
    const session = await this.signIn(person, options)
    await session.start()
    const { provisioningUrl, recoveryCodes } = (await session.show()).body.data
    const device = new AuthenticatorApp(provisioningUrl)
    expect((await session.verify(device.code(this.#world.clock.now()))).status).toBe(200)
    this.#world.clock.advance(STEP_MS)
    return { person, session, device, recoveryCodes: recoveryCodes as string[] }
  }
}
