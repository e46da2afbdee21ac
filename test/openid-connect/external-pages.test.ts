// Signing in with a browser at the issuer of an external signer, by the pages of the controller.
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Browser, type Page } from '../world/browser.ts'
import { authorityFile, openEndpoint, requestOverTls } from '../world/endpoints.ts'
import { type ReachableController, reachableController } from '../world/enrollments.ts'
import { IdentityProvider, RESOURCE } from '../world/identity-provider.ts'
import { PASSWORD } from '../world/people.ts'

const CLIENT_ID = 'controller'
const REDIRECT = 'https://app.example.com/callback'

const authority = authorityFile()
let network: ReachableController
let provider: IdentityProvider
let signerId: string

beforeAll(async () => {
  network = await reachableController({
    apis: ['client', 'management', 'oidc'],
    settings: { 'signers.caFile': authority.path },
  })
  const redirectUri = `${network.url}/oidc/login/external/callback`
  provider = await IdentityProvider.start([{ clientId: CLIENT_ID, type: 'web', redirectUri }])
  await network.people.manage('PATCH', '/controller-settings/global/effective', { oidc: { redirectUris: [REDIRECT] } })
  const { id } = await network.people.manage('POST', '/external-jwt-signers', {
    name: 'Company <1>',
    issuer: provider.issuer,
    audience: RESOURCE,
    enabled: true,
    jwksEndpoint: `${provider.issuer}/jwks`,
    useExternalId: true,
    externalAuthUrl: provider.issuer,
    clientId: CLIENT_ID,
  })
  signerId = id
})
afterAll(async () => {
  await provider?.stop()
  await network?.stop()
  authority.remove()
})

/** A browser that trusts the controller and the provider. */
const newBrowser = () => new Browser([network.rootPem, authority.pem].join('\n'))

function beginUrl(state = 'the-state'): string {
  const parameters = {
    client_id: 'native',
    response_type: 'code',
    scope: 'openid',
    redirect_uri: REDIRECT,
    state,
    code_challenge: createHash('sha256').update('v'.repeat(43)).digest('base64url'),
    code_challenge_method: 'S256',
  }
  return `${network.url}/oidc/authorize?${new URLSearchParams(parameters)}`
}

let logins = 0
async function addPerson(values: object = {}): Promise<{ id: string; login: string; username: string }> {
  const login = `berta-${++logins}`
  const { id, username } = await network.people.person({ name: login, externalId: login, ...values })
  return { id, login, username }
}

const errorOf = ({ text }: Page) => /<p class="error" role="alert" id="error">([^<]*)<\/p>/.exec(text)?.[1]
const readLink = ({ text }: Page) => {
  const [, href = ''] = /href="(\/oidc\/login\/external[^"]*)"/.exec(text) ?? []
  return network.url + href.replaceAll('&amp;', '&')
}

/** Goes to the provider by the link of a page. */
const follow = (browser: Browser, page: Page) => browser.open(readLink(page))

describe('a browser', () => {
  it('signs in with the provider that the page names, and goes back to the client with a code', async () => {
    const { login } = await addPerson()
    const browser = newBrowser()
    const page = await browser.open(beginUrl())
    expect(page.text).toContain('Sign in with Company &lt;1&gt;')
    const form = await follow(browser, page)
    expect(form.url.startsWith(provider.issuer)).toBe(true)
    const { url } = await provider.signIn(browser, form, login)
    expect(url).toMatch(/^https:\/\/app\.example\.com\/callback\?code=[^&]+&state=the-state$/)
  })

  it('is not sent to the provider if it could not keep what it has to bring back, and learns that', async () => {
    const browser = newBrowser()
    const page = await browser.open(beginUrl('s'.repeat(2_500)))
    const refused = await follow(browser, page)
    expect([refused.status, errorOf(refused)]).toEqual([400, expect.stringContaining('Sign in another way.')])
  })

  it('learns that the controller has no identity for its account', async () => {
    const browser = newBrowser()
    const page = await provider.signIn(browser, await follow(browser, await browser.open(beginUrl())), 'stranger')
    expect([page.status, errorOf(page)]).toEqual([401, expect.stringMatching(/has no identity for that account/)])
  })

  it('is not signed in if the provider refuses, and may sign in another way', async () => {
    const { username } = await addPerson()
    const browser = newBrowser()
    const begun = await browser.open(beginUrl())
    const state = await readState(browser, begun)
    const page = await browser.open(`${network.url}/oidc/login/external/callback?error=access_denied&state=${state}`)
    expect([page.status, errorOf(page)]).toEqual([401, 'Company &lt;1&gt; did not sign you in.'])
    const { url } = await browser.submit(page, { username, password: PASSWORD })
    expect(url).toMatch(/^https:\/\/app\.example\.com\/callback\?code=/)
  })

  it('presents a second factor of the signer, which has to be of the same identity', async () => {
    const authPolicyId = await network.people.policy({ requireExtJwtSigner: signerId })
    const { id: identityId, login, username } = await addPerson({ authPolicyId })
    const other = await addPerson()
    const browser = newBrowser()
    const factor = await browser.submit(await browser.open(beginUrl()), { username, password: PASSWORD })
    expect(factor.text).toMatch(/You also have to sign in with Company/)
    const foreign = newBrowser()
    const wrongFactor = await foreign.submit(await foreign.open(beginUrl()), { username, password: PASSWORD })
    const refused = await provider.signIn(foreign, await follow(foreign, wrongFactor), other.login)
    expect([refused.status, /You also have to sign in/.test(refused.text)]).toEqual([401, true])
    const id = new URL(wrongFactor.url).searchParams.get('id') ?? ''
    const { requests } = network.world.controller.openIdConnect
    expect((await requests.find(id, `${network.url}/oidc`))?.login?.externalTokens).toEqual([])
    const { url } = await provider.signIn(browser, await follow(browser, factor), login)
    expect(url).toMatch(/^https:\/\/app\.example\.com\/callback\?code=/)
    const refusal = { method: 'ext-jwt', reason: 'UNKNOWN_CREDENTIAL', entityId: `extJwtId:${signerId}` }
    expect(await listRefusals(identityId)).toEqual([{ ...refusal, resource: 'authenticators' }])
  })

  it('is refused a second factor of another signer, which the audit says', async () => {
    const required = await network.people.manage('POST', '/external-jwt-signers', {
      name: 'Partner',
      issuer: 'https://partner.example',
      audience: RESOURCE,
      enabled: true,
      jwksEndpoint: `${provider.issuer}/jwks`,
      externalAuthUrl: provider.issuer,
      clientId: CLIENT_ID,
    })
    const authPolicyId = await network.people.policy({ requireExtJwtSigner: required.id })
    const { id: identityId, login, username } = await addPerson({ authPolicyId })
    const browser = newBrowser()
    const factor = await browser.submit(await browser.open(beginUrl()), { username, password: PASSWORD })
    const ofOther = readLink(factor).replace(required.id, signerId)
    const refused = await provider.signIn(browser, await browser.open(ofOther), login)

    expect(refused.status).toBe(401)
    const refusal = { method: 'ext-jwt', reason: 'SIGNER_NOT_ALLOWED', entityId: `extJwtId:${required.id}` }
    expect(await listRefusals(identityId)).toEqual([{ ...refusal, resource: 'authenticators' }])
  })

  it('learns that the provider does not respond, and the log says why', async () => {
    const other = await IdentityProvider.start([])
    await network.people.manage('PATCH', `/external-jwt-signers/${signerId}`, { externalAuthUrl: other.issuer })
    await other.stop()
    const browser = newBrowser()
    const page = await follow(browser, await browser.open(beginUrl()))
    expect([page.status, errorOf(page)]).toEqual([401, expect.stringMatching(/does not respond as it should/)])
    await network.people.manage('PATCH', `/external-jwt-signers/${signerId}`, { externalAuthUrl: provider.issuer })
  })

  it('is not sent on by an issuer whose document names another one', async () => {
    const document = await fetchDocument(provider.issuer)
    const impostor = await openEndpoint((_request, response) => {
      response.end(JSON.stringify({ ...document, token_endpoint: `${impostor.url}/token` }))
    })
    await network.people.manage('PATCH', `/external-jwt-signers/${signerId}`, { externalAuthUrl: impostor.url })
    const browser = newBrowser()

    const page = await follow(browser, await browser.open(beginUrl()))

    expect([page.status, errorOf(page)]).toEqual([401, expect.stringMatching(/does not respond as it should/)])
    await network.people.manage('PATCH', `/external-jwt-signers/${signerId}`, { externalAuthUrl: provider.issuer })
    await impostor.close()
  })

  it.each(['null', '[]', '"token"', '{"access_token":1}'])(
    'is not signed in by an issuer that responds %s to its code',
    async (response) => {
      const issuer = await openEndpoint((request, reply) => {
        const [url, isToken] = [issuer.url, request.url === '/token']
        const document = { issuer: url, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token` }
        reply.setHeader('content-type', 'application/json')
        reply.end(isToken ? response : JSON.stringify(document))
      })
      await network.people.manage('PATCH', `/external-jwt-signers/${signerId}`, { externalAuthUrl: issuer.url })
      const browser = newBrowser()
      const state = await readState(browser, await browser.open(beginUrl()))

      const page = await browser.open(`${network.url}/oidc/login/external/callback?code=any&state=${state}`)

      expect([page.status, errorOf(page)]).toEqual([401, expect.stringMatching(/does not respond as it should/)])
      await network.people.manage('PATCH', `/external-jwt-signers/${signerId}`, { externalAuthUrl: provider.issuer })
      await issuer.close()
    },
  )

  it('makes no request to an issuer that did not respond a moment ago', async () => {
    const broken = await openEndpoint((_request, response) => {
      response.writeHead(500).end()
    })
    await network.people.manage('PATCH', `/external-jwt-signers/${signerId}`, { externalAuthUrl: broken.url })
    const browser = newBrowser()
    const link = readLink(await browser.open(beginUrl()))
    for (let count = 0; count < 5; count++) expect((await browser.open(link)).status).toBe(401)
    const firstCount = broken.requests.length
    network.world.clock.advance(10_000)
    await browser.open(link)

    expect([firstCount, broken.requests.length]).toEqual([1, 2])
    await network.people.manage('PATCH', `/external-jwt-signers/${signerId}`, { externalAuthUrl: provider.issuer })
    await broken.close()
  })
})

describe('the way back from the provider is refused', () => {
  const expectOver = async (browser: Browser, query: string) => {
    const { status, text } = await browser.open(`${network.url}/oidc/login/external/callback?${query}`)
    expect([status, /<title>This sign-in is over<\/title>/.test(text)]).toEqual([401, true])
  }

  it('to another browser, with another state, from another issuer, and a second time', async () => {
    const browser = newBrowser()
    const begun = await browser.open(beginUrl())
    const state = await readState(browser, begun)
    await expectOver(newBrowser(), `code=any&state=${state}`)
    await expectOver(browser, `code=any&state=${state}x`)
    await expectOver(browser, `code=any&state=${state.split('.')[0]}.`)
    await expectOver(browser, `code=any&state=${state}&iss=${encodeURIComponent('https://evil.example.com')}`)
    await expectOver(browser, 'code=any')
    const page = await browser.open(`${network.url}/oidc/login/external/callback?code=wrong&state=${state}`)
    expect([page.status, errorOf(page)]).toEqual([401, expect.stringMatching(/does not respond as it should/)])
    await expectOver(browser, `code=wrong&state=${state}`)
  })

  it('for a while, if one source begins too often', async () => {
    const browser = newBrowser()
    const link = readLink(await browser.open(beginUrl()))
    const statuses = new Set<number>()
    const begin = async () => statuses.add((await browser.openWithoutRedirects(link)).status)
    for (let at = 0; at < 13 && !statuses.has(429); at++) await Promise.all(Array.from({ length: 20 }, begin))
    expect(statuses).toEqual(new Set([302, 429]))
    network.world.clock.advance(60_000)
    expect((await browser.openWithoutRedirects(link)).status).toBe(302)
  })

  it('to programs, and to browsers that were shown no page', async () => {
    const { pathname, search } = new URL(beginUrl())
    const begun = await requestOverTls(network.url + pathname + search, { rootPem: network.rootPem })
    const id = new URL(String(begun.headers.location), network.url).searchParams.get('authRequestID')
    const path = `/oidc/login/external?id=${id}&signer=${signerId}`
    expect((await requestOverTls(network.url + path, { rootPem: network.rootPem })).status).toBe(401)
  })
})

/** The audit records of refusals of an identity. */
function listRefusals(identityId: string): Promise<object[]> {
  return network.world.controller.store.db
    .selectFrom('audit_records')
    .select(['resource', 'entityId', 'method', 'reason'])
    .where('operation', '=', 'refuse')
    .where('actorId', '=', identityId)
    .execute()
}

async function fetchDocument(issuer: string): Promise<object> {
  const { text } = await new Browser(authority.pem).open(`${issuer}/.well-known/openid-configuration`)
  return JSON.parse(text)
}

/** The state with which the browser would come back. */
async function readState(browser: Browser, page: Page): Promise<string> {
  const { headers } = await browser.openWithoutRedirects(readLink(page))
  return new URL(String(headers.location)).searchParams.get('state') ?? ''
}
