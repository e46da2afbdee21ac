// A client of OpenID Connect that presents certificates: its requests go over TLS, each by a connection of its own.
import { X509Certificate } from 'node:crypto'
import { expect } from 'vitest'
import { callOverTls } from '../world/certificates.ts'
import { CLIENT, type TestController, type TestResponse } from '../world/controller.ts'
import type { Device, Person } from '../world/people.ts'
import { bearer, encodeForm, type Form, OpenIdClient, REDIRECT } from './client.ts'

/** The certificates that a client presents, and the key of the first one; undefined if it presents none. */
export type Holder = { readonly cert: string; readonly key: string } | undefined

export const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:'

export const holderOf = ({ chain, key }: Pick<Device, 'chain' | 'key'>): Holder => ({ cert: chain, key: key.keyPem })

export const printOf = (pem: string) => new X509Certificate(pem).fingerprint.replaceAll(':', '').toLowerCase()

export const toForm = ({ username, password }: Person): Form => ({ username, password })

export class CertificateClient {
  readonly #world: TestController
  readonly #at: { readonly url: string; readonly rootPem: string }

  constructor(world: TestController, at: { readonly url: string; readonly rootPem: string }) {
    this.#world = world
    this.#at = at
  }

  call(
    holder: Holder,
    method: string,
    path: string,
    form?: Form,
    headers: Record<string, string> = {},
  ): Promise<TestResponse> {
    const type: Record<string, string> = form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
    return callOverTls(this.#at.url, this.#at.rootPem, {
      ...{ method, path, headers: { ...type, ...headers } },
      ...(form ? { body: encodeForm(form) } : {}),
      ...holder,
    })
  }

  /** Begins a sign-in. */
  async begin(holder: Holder): Promise<{ readonly id: string; readonly verifier: string }> {
    const { parameters, verifier } = new OpenIdClient(this.#world)
    const begun = await this.call(holder, 'GET', `/oidc/authorize?${encodeForm(parameters)}`)
    const id = new URL(String(begun.headers.location), this.#at.url).searchParams.get('authRequestID') ?? ''
    return { id, verifier }
  }

  /** The response to the exchange of the code of a sign-in that is complete. */
  async finish(holder: Holder, { id, verifier }: { readonly id: string; readonly verifier: string }) {
    const back = await this.call(holder, 'GET', `/oidc/authorize/callback?id=${id}`)
    const code = new URL(String(back.headers.location)).searchParams.get('code') ?? ''
    return this.call(holder, 'POST', '/oidc/oauth/token', {
      ...{ grant_type: 'authorization_code', client_id: 'native', code, code_verifier: verifier },
      redirect_uri: REDIRECT,
    })
  }

  /** The response to the exchange of the code of a sign-in by one credential, which is all that is needed. */
  async signIn(holder: Holder, path: string, form: Form = {}, headers: Record<string, string> = {}) {
    const request = await this.begin(holder)
    const login = await this.call(holder, 'POST', path, { id: request.id, ...form }, headers)
    expect(login.status).toBe(302)
    return this.finish(holder, request)
  }

  refresh(holder: Holder, token: string, changes: Form = {}): Promise<TestResponse> {
    return this.call(holder, 'POST', '/oidc/oauth/token', {
      ...{ grant_type: 'refresh_token', client_id: 'native', refresh_token: token },
      ...changes,
    })
  }

  exchange(holder: Holder, token: string, changes: Form = {}): Promise<TestResponse> {
    return this.call(holder, 'POST', '/oidc/oauth/token', {
      ...{ grant_type: EXCHANGE, client_id: 'native', subject_token: token },
      subject_token_type: `${TOKEN_TYPE}refresh_token`,
      ...changes,
    })
  }

  async isAdmitted(holder: Holder, token: string): Promise<boolean> {
    return (await this.call(holder, 'GET', `${CLIENT}/current-identity`, undefined, bearer(token))).status === 200
  }
}
