// `controller login --signer`: signing in with a browser at the issuer of an external JWT signer.
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Profile } from '../../commands/client/profiles.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { Browser, type Page } from '../world/browser.ts'
import { commandLine } from '../world/command-line.ts'
import { authorityFile, openEndpoint } from '../world/endpoints.ts'
import { type ReachableController, reachableController } from '../world/enrollments.ts'
import { IdentityProvider, RESOURCE } from '../world/identity-provider.ts'
import { SignInWithBrowser } from '../world/sign-in-with-browser.ts'

const CLIENT_ID = 'command-line'

const authority = authorityFile()
let provider: IdentityProvider
let issuer: string
let network: ReachableController
let signerId: string
beforeAll(async () => {
  provider = await IdentityProvider.start([
    { clientId: CLIENT_ID, type: 'native', redirectUri: 'http://localhost/auth/callback' },
  ])
  issuer = provider.issuer
  network = await reachableController({ settings: { 'signers.caFile': authority.path } })
  signerId = await addSigner('staff', {})
})
afterAll(async () => {
  await network?.stop()
  await provider?.stop()
  authority.remove()
})

async function addSigner(name: string, more: object): Promise<string> {
  const { id } = await network.people.manage('POST', '/external-jwt-signers', {
    name,
    issuer,
    audience: RESOURCE,
    enabled: true,
    jwksEndpoint: `${issuer}/jwks`,
    useExternalId: true,
    externalAuthUrl: issuer,
    clientId: CLIENT_ID,
    scopes: ['offline_access'],
    ...more,
  })
  return id
}

let logins = 0

/** A person with a login at the provider. */
async function addPerson(): Promise<{ readonly id: string; readonly login: string }> {
  const login = `anna-${++logins}`
  const body = { name: login, type: 'User', isAdmin: false, externalId: login }
  const { id } = await network.people.manage('POST', '/identities', body)
  return { id, login }
}

/** Signs in at the pages of the provider, and comes back. */
async function signInAtProvider(url: string, login: string): Promise<Page> {
  const browser = new Browser()
  return provider.signIn(browser, await browser.open(url), login)
}

class User {
  readonly env = cleanEnvironment()

  login(...args: string[]): SignInWithBrowser {
    const flags = ['--yes', '--callback-port', '0', '--issuer-ca-file', authority.path]
    return new SignInWithBrowser(['login', network.url, ...flags, ...args], this.env)
  }

  run(...args: string[]) {
    return commandLine(args, this.env)
  }

  get path(): string {
    return join(this.env.XDG_CONFIG_HOME ?? '', 'controller/profiles.json')
  }

  get profile(): Profile {
    const { current, profiles } = JSON.parse(readFileSync(this.path, 'utf8'))
    return profiles[current]
  }
}

async function endSessions(identityId: string): Promise<void> {
  const filter = encodeURIComponent(`identity = "${identityId}"`)
  const sessions = (await network.people.manage('GET', `/api-sessions?filter=${filter}`)) as unknown as { id: string }[]
  for (const { id } of sessions) await network.people.manage('DELETE', `/api-sessions/${id}`)
}

describe('a sign-in at the issuer of a signer', () => {
  it('begins at the address that is printed, uses PKCE, and makes a profile that only its owner can read', async () => {
    const user = new User()
    const person = await addPerson()
    const login = user.login('--signer', 'staff')
    const url = await login.url
    const page = await signInAtProvider(url, person.login)
    const { code, stdout, stderr } = await login.finished

    const parameters = Object.fromEntries(new URL(url).searchParams)
    expect(parameters).toMatchObject({
      response_type: 'code',
      client_id: CLIENT_ID,
      scope: 'openid offline_access',
      code_challenge_method: 'S256',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
    })
    expect(page.text).toMatch(/You are signed in/)
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'/)
    expect(stderr).toContain(url)
    expect(stdout).toMatch(new RegExp(`^Signed in to ${network.url} as ${person.login} `))
    expect(code).toBe(0)
    expect(statSync(user.path).mode & 0o777).toBe(0o600)
    const whoami = JSON.parse((await user.run('whoami', '-o', 'json')).stdout)
    expect(whoami).toMatchObject({ identityId: person.id })
  })

  it('is renewed by its refresh token when the session has ended, and ends with the logout', async () => {
    const user = new User()
    const person = await addPerson()
    const login = user.login('--signer', 'staff')
    await signInAtProvider(await login.url, person.login)
    expect((await login.finished).code).toBe(0)
    const before = user.profile
    await endSessions(person.id)
    provider.grants.length = 0

    const renewed = await user.run('whoami', '-o', 'json')

    expect(renewed).toMatchObject({ code: 0, stderr: '' })
    expect(provider.grants).toEqual(['refresh_token'])
    expect(user.profile.token).not.toBe(before.token)
    expect(user.profile.grant?.refreshToken).not.toBe(before.grant?.refreshToken)
    expect((await user.run('whoami')).code).toBe(0)
    expect((await user.run('logout')).code).toBe(0)
    expect(user.profile).not.toHaveProperty('grant')
    expect(user.profile).not.toHaveProperty('token')
    const sessions = await network.people.manage(
      'GET',
      `/api-sessions?filter=${encodeURIComponent(`identity = "${person.id}"`)}`,
    )
    expect(sessions).toEqual([])
  })

  it('may be by the ID token, if the signer says so', async () => {
    const user = new User()
    const person = await addPerson()
    const changeSigner = (values: object) => network.people.manage('PATCH', `/external-jwt-signers/${signerId}`, values)
    await changeSigner({ audience: CLIENT_ID, targetToken: 'ID', scopes: [] })
    const login = user.login('--signer', 'staff')
    await signInAtProvider(await login.url, person.login)
    expect((await login.finished).code).toBe(0)
    expect(user.profile).not.toHaveProperty('grant')
    await endSessions(person.id)
    const ended = await user.run('whoami')
    expect([ended.code, ended.stderr]).toEqual([4, expect.stringMatching(/your session has ended/)])
    await changeSigner({ audience: RESOURCE, targetToken: 'ACCESS', scopes: ['offline_access'] })
  })

  it('ignores browsers that come back with the state of another sign-in', async () => {
    const user = new User()
    const person = await addPerson()
    const login = user.login('--signer', 'staff')
    const url = await login.url
    const redirectUri = new URL(url).searchParams.get('redirect_uri') ?? ''
    const statuses = []
    for (const query of ['?code=stolen&state=other', '?code=stolen', '', '?error=access_denied&state=']) {
      statuses.push((await fetch(redirectUri + query)).status)
    }
    expect(statuses).toEqual([404, 404, 404, 404])
    await signInAtProvider(url, person.login)
    expect((await login.finished).code).toBe(0)
  })

  it('fails with the reason of the issuer if the person declines', async () => {
    const login = new User().login('--signer', 'staff')
    const url = new URL(await login.url)
    const [redirectUri, state] = [url.searchParams.get('redirect_uri'), url.searchParams.get('state')]
    const page = await fetch(`${redirectUri}?error=access_denied&error_description=declined&state=${state}`)
    const { code, stderr } = await login.finished
    expect(await page.text()).toMatch(/The sign-in failed/)
    expect([code, stderr]).toEqual([4, expect.stringMatching(/the sign-in failed: declined \(access_denied\)/)])
  })

  it('fails if the response names another issuer', async () => {
    const login = new User().login('--signer', 'staff')
    const url = new URL(await login.url)
    const [redirectUri, state] = [url.searchParams.get('redirect_uri'), url.searchParams.get('state')]
    await fetch(`${redirectUri}?code=any&state=${state}&iss=${encodeURIComponent('https://other.example')}`)
    const { code, stderr } = await login.finished
    expect([code, stderr]).toEqual([4, expect.stringMatching(/the response is of another issuer/)])
  })

  it('fails if the document of the issuer names another one', async () => {
    const impostor = await openEndpoint((_request, response) => {
      const [authorization_endpoint, token_endpoint] = [`${issuer}/auth`, `${impostor.url}/token`]
      response.end(JSON.stringify({ issuer, authorization_endpoint, token_endpoint }))
    })
    const id = await addSigner('impostor', { issuer: impostor.url, externalAuthUrl: impostor.url })
    const { code, stderr } = await new User().login('--signer', 'impostor').finished
    expect([code, stderr]).toEqual([1, expect.stringMatching(/names another issuer, https:/)])
    await network.people.manage('DELETE', `/external-jwt-signers/${id}`)
    await impostor.close()
  })

  it('names the signers that there are, and what one lacks', async () => {
    const user = new User()
    const unknown = await user.login('--signer', 'stuff').finished
    expect([unknown.code, unknown.stderr]).toEqual([5, expect.stringMatching(/no enabled signer stuff\n.*staff/)])
    const id = await addSigner('bare', { issuer: 'https://bare.example', externalAuthUrl: null, clientId: null })
    const bare = await user.login('--signer', 'bare').finished
    expect([bare.code, bare.stderr]).toEqual([2, expect.stringMatching(/does not say where .*--client-id/s)])
    await network.people.manage('DELETE', `/external-jwt-signers/${id}`)
  })
})
