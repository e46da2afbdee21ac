// The walks of known clients, request by request, as recorded: each step must have the response that its client looks for.
import { beforeAll, describe, expect, it } from 'vitest'
import { CLIENT, MANAGEMENT, type TestResponse } from '../world/controller.ts'
import { People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import {
  bearer,
  encodeForm,
  type Form,
  HOST,
  ISSUER,
  OIDC_SETTINGS,
  OpenIdClient,
  REDIRECT,
  readClaims,
} from './client.ts'

const world = useController({ settings: { ...OIDC_SETTINGS, 'session.timeout': '24h', 'oidc.announce': 'always' } })
let people: People
let person: Person

beforeAll(async () => {
  people = await People.in(world)
  person = await people.person({ isAdmin: true })
})

/** The values that steps take over from responses before them. */
interface Walk {
  readonly client: OpenIdClient
  id: string
  location: string
  code: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read any member of a response
  tokens: any
}

interface Step {
  readonly name: string
  send(walk: Walk): {
    method: string
    path: string
    form?: Form
    json?: object
    headers?: Record<string, string>
  }
  check(response: TestResponse, walk: Walk): void
}

const NATIVE_BASIC = { authorization: `Basic ${Buffer.from('native:').toString('base64')}` }
const OPENZITI_BASIC = { authorization: `Basic ${Buffer.from('openziti:').toString('base64url')}` }

const readId = (location: string) => location.slice(location.indexOf('authRequestID=') + 'authRequestID='.length)

const takeId = (response: TestResponse, walk: Walk) => {
  expect(response.status).toBe(302)
  walk.location = String(response.headers.location)
  walk.id = readId(walk.location)
}
const takeCallback = (response: TestResponse, walk: Walk) => {
  expect([response.status, response.headers.location]).toEqual([302, `${ISSUER}/authorize/callback?id=${walk.id}`])
  walk.location =
    new URL(String(response.headers.location)).pathname + new URL(String(response.headers.location)).search
}
const takeTokens = (response: TestResponse, walk: Walk) => {
  expect(response.status).toBe(200)
  expect(response.headers['content-type']).toBe('application/json')
  walk.tokens = response.body
  for (const token of [walk.tokens.access_token, walk.tokens.refresh_token])
    expect(readClaims(token).exp).toBeGreaterThan(0)
}

const announced = (api: string): Step => ({
  name: 'reads the version',
  send: () => ({ method: 'GET', path: `${api}/version` }),
  check: ({ body }) => {
    expect(body.data.capabilities).toContain('OIDC_AUTH')
    expect(body.data.apiVersions['edge-oidc'].v1.path).toBe('/oidc')
  },
})

const finish: Step = {
  name: 'follows the way back',
  send: ({ location }) => ({ method: 'GET', path: location }),
  check: ({ headers, status }, walk) => {
    expect(status).toBe(302)
    const location = String(headers.location)
    expect(location.startsWith(REDIRECT)).toBe(true)
    // Some clients take all that follows `code=` for the code, and send it in a form as it is.
    expect(location).toMatch(/\?code=[\w-]+(?:&state=[\w-]+)?$/)
    walk.code = /code=([\w-]+)/.exec(location)?.[1] ?? ''
  },
}

const redeem: Step = {
  name: 'exchanges the code',
  send: ({ client, code }) => ({
    method: 'POST',
    path: '/oidc/oauth/token',
    form: {
      grant_type: 'authorization_code',
      client_id: client.clientId,
      code,
      code_verifier: client.verifier,
      redirect_uri: REDIRECT,
    },
  }),
  check: takeTokens,
}

/** The C SDK sends what follows the code in the address, and the state once more. */
const redeemWithState: Step = {
  ...redeem,
  send: (walk) => ({
    ...redeem.send(walk),
    form: { ...redeem.send(walk).form, state: [walk.client.state, walk.client.state] },
  }),
}

const GO_SDK_INFO = {
  ...{
    envArch: 'amd64',
    envOs: 'linux',
    envOsRelease: '6.18',
    envOsVersion: '#1 SMP',
    sdkAppID: '',
    sdkAppVersion: '',
  },
  ...{ sdkBranch: '', sdkRevision: '', sdkType: 'ziti-sdk-golang', sdkVersion: 'v1.7.0' },
}

const goSdk = (api: string): Step[] => [
  announced(api),
  {
    name: 'authorizes by the query',
    send: ({ client }) => ({ method: 'GET', path: `/oidc/authorize?${encodeForm(client.parameters)}` }),
    check: takeId,
  },
  {
    name: 'opens the page, and reads the id of the request from a header',
    send: ({ location }) => ({ method: 'GET', path: location }),
    check: ({ headers, status }, { id }) => expect([status, headers['auth-request-id']]).toEqual([200, id]),
  },
  {
    name: 'sends the password in a form',
    send: ({ id }) => ({
      method: 'POST',
      path: '/oidc/login/password',
      form: { id, username: person.username, password: person.password, ...GO_SDK_INFO },
    }),
    check: takeCallback,
  },
  finish,
  redeem,
  {
    name: 'calls an API',
    send: ({ tokens }) => ({ method: 'GET', path: `${api}/current-identity`, headers: bearer(tokens.access_token) }),
    check: ({ body, status }) => expect([status, body.data.id]).toEqual([200, person.id]),
  },
  ...(['refresh_token', 'id_token'] as const).map(
    (type): Step => ({
      name: `exchanges its refresh token for a ${type}`,
      send: ({ tokens }) => ({
        method: 'POST',
        path: '/oidc/oauth/token',
        headers: NATIVE_BASIC,
        form: {
          grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
          subject_token: tokens.refresh_token,
          subject_token_type: 'urn:ietf:params:oauth:token-type:refresh_token',
          requested_token_type: `urn:ietf:params:oauth:token-type:${type}`,
          ...{ actor_token: '', actor_token_type: '' },
        },
      }),
      check: ({ body, status }) =>
        expect([status, body.issued_token_type]).toEqual([200, `urn:ietf:params:oauth:token-type:${type}`]),
    }),
  ),
]

const refresh = (headers: Record<string, string> = {}): Step => ({
  name: 'refreshes its tokens',
  send: ({ client, tokens }) => ({
    method: 'POST',
    path: '/oidc/oauth/token',
    headers,
    form: { grant_type: 'refresh_token', client_id: client.clientId, refresh_token: tokens.refresh_token },
  }),
  check: takeTokens,
})

const cSdk: Step[] = [
  announced(CLIENT),
  {
    name: 'reads the discovery document',
    send: () => ({ method: 'GET', path: '/oidc/.well-known/openid-configuration' }),
    check: ({ body }) =>
      expect([body.authorization_endpoint, body.token_endpoint]).toEqual([
        `${ISSUER}/authorize`,
        `${ISSUER}/oauth/token`,
      ]),
  },
  {
    name: 'authorizes by a POST with an empty body',
    send: ({ client: { parameters } }) => {
      const { nonce: _, ...sdkParameters } = parameters
      return { method: 'POST', path: `/oidc/authorize?${encodeForm({ ...sdkParameters, audience: 'openziti' })}` }
    },
    check: takeId,
  },
  {
    name: 'sends JSON, and the id in the query',
    send: ({ id }) => ({
      method: 'POST',
      path: `/oidc/login/password?id=${id}`,
      json: {
        username: person.username,
        password: person.password,
        sdkInfo: { type: 'ziti-sdk-c', version: '1.10' },
        envInfo: { os: 'Linux' },
      },
    }),
    check: takeCallback,
  },
  finish,
  redeemWithState,
  refresh(OPENZITI_BASIC),
]

const jvmSdk: Step[] = [
  announced(CLIENT),
  {
    name: 'authorizes by a form',
    send: ({ client }) => ({ method: 'POST', path: '/oidc/authorize', form: client.parameters }),
    check: takeId,
  },
  {
    name: 'sends its credential to the location',
    send: ({ location }) => ({
      method: 'POST',
      path: location,
      form: { username: person.username, password: person.password },
    }),
    check: takeCallback,
  },
  finish,
  redeem,
  refresh(OPENZITI_BASIC),
]

const browserConsole: Step[] = [
  announced(MANAGEMENT),
  {
    name: 'authorizes, and reads the id from the address of the page',
    send: ({ client }) => ({ method: 'GET', path: `/oidc/authorize?${encodeForm(client.parameters)}` }),
    check: takeId,
  },
  {
    name: 'sends the password in a form',
    send: ({ id }) => ({
      method: 'POST',
      path: '/oidc/login/username',
      form: { id, username: person.username, password: person.password },
      headers: { accept: 'application/json, text/plain, */*' },
    }),
    check: takeCallback,
  },
  finish,
  redeem,
  refresh(),
  {
    name: 'signs out at a path that does not exist, which it ignores',
    send: ({ tokens }) => ({ method: 'POST', path: '/oidc/oauth/revoke', form: { token: tokens.access_token } }),
    check: ({ status }) => expect(status).toBe(404),
  },
]

const WALKS: Readonly<Record<string, { readonly clientId: string; readonly steps: readonly Step[] }>> = {
  'the Go SDK': { clientId: 'native', steps: goSdk(CLIENT) },
  'the command line of release 2': { clientId: 'native', steps: goSdk(MANAGEMENT) },
  'the C SDK': { clientId: 'openziti', steps: cSdk },
  'the JVM SDK': { clientId: 'openziti', steps: jvmSdk },
  'the console': { clientId: 'openziti', steps: browserConsole },
}

describe.each(Object.entries(WALKS))('%s', (_name, { clientId, steps }) => {
  const walk: Walk = { client: new OpenIdClient(world, clientId), id: '', location: '', code: '', tokens: undefined }

  it.each(steps.map((step) => [step.name, step] as const))('%s', async (_step, step) => {
    const { method, path, form, json, headers = {} } = step.send(walk)
    const type: Record<string, string> = form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
    const body = form ? encodeForm(form) : json
    const sentHeaders = { host: HOST, ...type, ...headers }

    const response = await world.send({ method, path, headers: sentHeaders, ...(body === undefined ? {} : { body }) })

    step.check(response, walk)
  })
})
