// A client of OpenID Connect: takes the steps of a sign-in by itself, as client libraries of the network do.
import { createHash, randomBytes } from 'node:crypto'
import { decodeJwt } from 'jose'
import { expect } from 'vitest'
import type { TestController, TestResponse } from '../world/controller.ts'

export const HOST = '127.0.0.1:1280'
export const ISSUER = `https://${HOST}/oidc`
export const REDIRECT = 'http://localhost:8080/auth/callback'

/** The settings of a controller that serves it. */
export const OIDC_SETTINGS = {
  listeners: [{ address: '127.0.0.1:0', apis: ['client', 'management', 'fabric', 'oidc'], dialect: 'native' }],
}

export type Form = Readonly<Record<string, string | readonly string[]>>

export function encodeForm(form: Form): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(form)) for (const one of [value].flat()) parameters.append(name, one)
  return parameters.toString()
}

export interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
  readonly id_token: string
  readonly expires_in: number
}

export class OpenIdClient {
  #world: Pick<TestController, 'send'>
  readonly clientId: string
  readonly verifier = randomBytes(32).toString('base64url')
  readonly state = randomBytes(16).toString('base64url')
  readonly nonce = randomBytes(16).toString('base64url')

  constructor(world: Pick<TestController, 'send'>, clientId = 'native') {
    this.#world = world
    this.clientId = clientId
  }

  /** Sends what follows to another controller. */
  at(world: Pick<TestController, 'send'>): this {
    this.#world = world
    return this
  }

  get parameters(): Record<string, string> {
    return {
      client_id: this.clientId,
      response_type: 'code',
      scope: 'openid offline_access',
      redirect_uri: REDIRECT,
      state: this.state,
      nonce: this.nonce,
      code_challenge: createHash('sha256').update(this.verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }
  }

  get(path: string, headers: Record<string, string> = {}): Promise<TestResponse> {
    return this.#world.send({ method: 'GET', path, headers: { host: HOST, ...headers } })
  }

  postForm(path: string, form: Form, headers: Record<string, string> = {}): Promise<TestResponse> {
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    return this.#world.send({
      method: 'POST',
      path,
      body: encodeForm(form),
      headers: { host: HOST, ...type, ...headers },
    })
  }

  postJson(path: string, body: object, headers: Record<string, string> = {}): Promise<TestResponse> {
    return this.#world.send({ method: 'POST', path, body, headers: { host: HOST, ...headers } })
  }

  authorize(changes: Record<string, string | undefined> = {}): Promise<TestResponse> {
    const all = Object.entries({ ...this.parameters, ...changes })
    const parameters = Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== undefined))
    return this.get(`/oidc/authorize?${encodeForm(parameters)}`)
  }

  /** The id of a new request. */
  async begin(changes: Record<string, string> = {}): Promise<string> {
    const response = await this.authorize(changes)
    expect(response.status).toBe(302)
    return new URL(String(response.headers.location), ISSUER).searchParams.get('authRequestID') ?? ''
  }

  login(id: string, { username, password }: { username: string; password: string }): Promise<TestResponse> {
    return this.postForm('/oidc/login/password', { id, username, password })
  }

  /** The code of a sign-in that is complete. */
  async finish(id: string): Promise<string> {
    const response = await this.get(`/oidc/authorize/callback?id=${id}`)
    expect(response.status).toBe(302)
    return new URL(String(response.headers.location)).searchParams.get('code') ?? ''
  }

  redeem(code: string, changes: Form = {}): Promise<TestResponse> {
    return this.postForm('/oidc/oauth/token', {
      grant_type: 'authorization_code',
      client_id: this.clientId,
      code,
      code_verifier: this.verifier,
      redirect_uri: REDIRECT,
      ...changes,
    })
  }

  /** Signs in by a password that is all that is needed. */
  async signIn(person: { username: string; password: string }): Promise<Tokens> {
    const id = await this.begin()
    const login = await this.login(id, person)
    expect([login.status, login.headers.location]).toEqual([302, `${ISSUER}/authorize/callback?id=${id}`])
    const response = await this.redeem(await this.finish(id))
    expect(response.status).toBe(200)
    return response.body
  }
}

/** The claims of a token, not verified. */
// biome-ignore lint/suspicious/noExplicitAny: tests read any claim
export function readClaims(token: string): any {
  return decodeJwt(token)
}

export function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` }
}
