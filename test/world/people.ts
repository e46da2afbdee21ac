// People and devices with a way in, made as administrators make them.
import { expect } from 'vitest'
import { permissivePolicy } from '../../src/definitions/resources/auth-policies.ts'
import { type ClientKey, callOverTls, clientKey } from './certificates.ts'
import { CLIENT, MANAGEMENT, type TestController, type TestResponse } from './controller.ts'

export const PASSWORD = 'correct horse battery'

export interface Person {
  readonly id: string
  readonly authenticatorId: string
  readonly username: string
  readonly password: string
}

export interface Device {
  readonly id: string
  readonly authenticatorId: string
  /** The certificate with what stands between it and the root, as PEM. */
  readonly chain: string
  readonly key: ClientKey
}

/** An auth policy, by its differences from one that allows everything. */
export interface PolicyWords {
  readonly cert?: Partial<(typeof permissivePolicy)['primary']['cert']>
  readonly updb?: Partial<(typeof permissivePolicy)['primary']['updb']>
  readonly extJwt?: { readonly allowed?: boolean; readonly allowedSigners?: readonly string[] }
  readonly requireExtJwtSigner?: string
  readonly requireTotp?: boolean
}

let sequence = 0

/** An administrator at work, over the API. */
export class People {
  readonly #world: TestController
  readonly token: string

  private constructor(world: TestController, token: string) {
    this.#world = world
    this.token = token
  }

  /** @param name of the administrator, in a world that had others before */
  static async in(world: TestController, name?: string): Promise<People> {
    const { token } = await world.signIn({ isAdmin: true, ...(name === undefined ? {} : { name }) })
    return new People(world, token)
  }

  ask(method: string, path: string, body?: unknown): Promise<TestResponse> {
    const common = { method, path: MANAGEMENT + path, token: this.token }
    return this.#world.send(body === undefined ? common : { ...common, body })
  }

  /** Sends a body as text. */
  askText(method: string, path: string, body: string): Promise<TestResponse> {
    const headers = { 'content-type': 'text/plain' }
    return this.#world.send({ method, path: MANAGEMENT + path, token: this.token, body, headers })
  }

  /** The data of a response that must be a success. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read any member of a response
  async manage(method: string, path: string, body?: unknown): Promise<any> {
    const response = await this.ask(method, path, body)
    expect(response.body.error).toBeUndefined()
    return response.body.data
  }

  async identity(values: Record<string, unknown> = {}): Promise<string> {
    const body = { name: `person ${++sequence}`, type: 'Device', isAdmin: false, ...values }
    return (await this.manage('POST', '/identities', body)).id
  }

  async policy({
    cert = {},
    updb = {},
    extJwt = {},
    requireTotp = false,
    requireExtJwtSigner,
  }: PolicyWords): Promise<string> {
    const { primary } = permissivePolicy
    const body = {
      name: `policy ${++sequence}`,
      primary: {
        cert: { ...primary.cert, ...cert },
        extJwt: { ...primary.extJwt, ...extJwt },
        updb: { ...primary.updb, ...updb },
      },
      secondary: { requireTotp, ...(requireExtJwtSigner ? { requireExtJwtSigner } : {}) },
    }
    return (await this.manage('POST', '/auth-policies', body)).id
  }

  /** An identity with a username and a password. */
  async person(values: Record<string, unknown> = {}, password = PASSWORD): Promise<Person> {
    const id = await this.identity(values)
    const username = `person-${++sequence}`
    const body = { identityId: id, method: 'updb', username, password }
    return { id, username, password, authenticatorId: (await this.manage('POST', '/authenticators', body)).id }
  }

  /** An identity that has enrolled for a certificate. */
  async device(values: Record<string, unknown> = {}): Promise<Device> {
    const id = await this.identity({ ...values, enrollment: { ott: true } })
    const { enrollment } = await this.manage('GET', `/identities/${id}`)
    const key = await clientKey(id)
    const chain = (await this.enroll(enrollment.ott.token, key.csr)).body.data.cert
    const { authenticators } = await this.manage('GET', `/identities/${id}`)
    return { id, key, chain, authenticatorId: authenticators.cert.id }
  }

  enroll(token: string, csr: string): Promise<TestResponse> {
    const headers = { 'content-type': 'application/x-pem-file' }
    const path = `${CLIENT}/enroll?method=ott&token=${token}`
    return this.#world.send({ method: 'POST', path, body: csr, headers })
  }

  /**
   * Returns the response once what its refusal leads to is on disk, for which the response does not wait.
   * @param from the address it comes from
   */
  async signIn(
    { username, password }: { username: string; password: string },
    body: object = {},
    from = '127.0.0.1',
  ): Promise<TestResponse> {
    const path = `${CLIENT}/authenticate?method=password`
    const response = await this.#world.send({ method: 'POST', path, from, body: { username, password, ...body } })
    if (response.status === 401) await this.#world.controller.auth.failedSignIns.settle()
    return response
  }

  /** The token of a session that must are made. */
  async sessionOf(person: Person): Promise<string> {
    const { body } = await this.signIn(person)
    expect(body.error).toBeUndefined()
    return body.data.token
  }

  /** Signs in over TLS, presenting a certificate. */
  signInBy(at: { url: string; rootPem: string }, { chain, key }: Pick<Device, 'chain' | 'key'>): Promise<TestResponse> {
    const path = `${CLIENT}/authenticate?method=cert`
    return callOverTls(at.url, at.rootPem, { method: 'POST', path, body: {}, cert: chain, key: key.keyPem })
  }
}
