// The pages of a sign-in, as a browser without scripts uses them.
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AuthenticatorApp, STEP_MS } from '../world/authenticator-app.ts'
import { Browser, type Page } from '../world/browser.ts'
import { requestOverTls } from '../world/endpoints.ts'
import { type ReachableController, reachableController } from '../world/enrollments.ts'
import type { Person } from '../world/people.ts'

const VERIFIER = 'v'.repeat(43)
const REDIRECT = 'https://app.example.com/callback'

let network: ReachableController

beforeAll(async () => {
  network = await reachableController({ apis: ['client', 'management', 'oidc'] })
  await network.people.manage('PATCH', '/controller-settings/global/effective', { oidc: { redirectUris: [REDIRECT] } })
})
afterAll(() => network?.stop())

/** A browser that stops before it leaves the controller. */
const newBrowser = (cert?: { cert: string; key: string }) => new Browser(network.rootPem, cert)

function authorizeUrl(changes: Readonly<Record<string, string>> = {}): string {
  const parameters = {
    client_id: 'native',
    response_type: 'code',
    scope: 'openid',
    redirect_uri: REDIRECT,
    state: 'the-state',
    code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
    code_challenge_method: 'S256',
    ...changes,
  }
  return `${network.url}/oidc/authorize?${new URLSearchParams(parameters)}`
}

const idOf = ({ text }: Page) => /name="id" value="([^"]+)"/.exec(text)?.[1] ?? ''
const titleOf = ({ text }: Page) => /<title>([^<]*)<\/title>/.exec(text)?.[1]
const errorOf = ({ text }: Page) => /<p class="error" role="alert" id="error">([^<]*)<\/p>/.exec(text)?.[1]

async function signIn(browser: Browser, { username, password }: Person): Promise<Page> {
  return browser.submit(await browser.open(authorizeUrl()), { username, password })
}

/** Checks that a browser came back to the client, with a code. */
function expectCode({ url, status }: Page): void {
  const { searchParams } = new URL(url)
  expect([status, url.startsWith(`${REDIRECT}?code=`), searchParams.get('state')]).toEqual([0, true, 'the-state'])
}

/** Checks what every page has in common. */
function expectSafePage({ headers, text }: Page): void {
  expect(headers['content-type']).toBe('text/html; charset=utf-8')
  const policy = String(headers['content-security-policy'])
  const style = /<style>([\s\S]*)<\/style>/.exec(text)?.[1] ?? ''
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).toContain(`style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`)
  expect(policy).not.toMatch(/unsafe|script-src|\*/)
  expect(headers).toMatchObject({ 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' })
  expect(headers['cache-control']).toBe('no-store')
  expect(text).toMatch(/^<!doctype html>\n<html lang="en">/)
  expect(text).not.toMatch(/<script|<link|<img|<iframe| style=| on\w+=|https?:\/\/(?!www\.w3\.org)/)
  expect(style).toContain('prefers-color-scheme: dark')
  const ids = new Set(Array.from(text.matchAll(/ id="([^"]+)"/g), ([, id]) => id))
  const inputs = Array.from(text.matchAll(/<input (?![^>]*type="hidden")[^>]*>/g), ([input]) => input)
  for (const input of inputs) {
    expect(text).toContain(`<label for="${/ id="([^"]+)"/.exec(input)?.[1]}">`)
    for (const [, described = ''] of input.matchAll(/aria-describedby="([^"]+)"/g))
      for (const id of described.split(' ')) expect(ids).toContain(id)
  }
  expect(text.match(/ autofocus/g)?.length ?? 0).toBeLessThanOrEqual(1)
}

describe('a browser', () => {
  it('is shown a page that says where the sign-in leads to, and goes back to the client with a code', async () => {
    const browser = newBrowser()
    const page = await browser.open(authorizeUrl())
    expect([page.status, titleOf(page)]).toEqual([200, 'Sign in'])
    expectSafePage(page)
    expect(page.text).toContain(
      `You sign in to <strong>${new URL(network.url).host}</strong>. Then you return to app.example.com.`,
    )
    const { username, password } = await network.people.person()
    expectCode(await browser.submit(page, { username, password }))
  })

  it('is shown that it is signed out', async () => {
    const page = await newBrowser().open(`${network.url}/oidc/logged-out`)
    expect([page.status, titleOf(page)]).toEqual([200, 'You are signed out'])
    expectSafePage(page)
  })

  it('may submit its forms to the controller and to the client only', async () => {
    const formTargets = async (redirectUri: string) => {
      const page = await newBrowser().open(authorizeUrl({ redirect_uri: redirectUri }))
      return /form-action ([^;]*)/.exec(String(page.headers['content-security-policy']))?.[1]
    }
    expect(await formTargets(REDIRECT)).toBe("'self' https://app.example.com")
    expect(await formTargets('http://127.0.0.1:4000/auth/callback')).toBe("'self' http://127.0.0.1:4000")
    expect(await formTargets('openziti://auth/callback')).toBe("'self' openziti:")
  })

  it.each([
    ['a wrong password', { password: 'wrong' }, 401, /username or the password is not right/],
    ['a stranger', { username: 'stranger"><script>' }, 401, /username or the password is not right/],
  ])('learns in plain words what is wrong, and keeps the name: %s', async (_what, changes, status, words) => {
    const { username, password } = await network.people.person()
    const browser = newBrowser()
    const inputs = { username, password, ...changes }
    const page = await browser.submit(await browser.open(authorizeUrl()), inputs)
    expect([page.status, titleOf(page), errorOf(page)]).toEqual([
      status,
      'Error: Sign in',
      expect.stringMatching(words),
    ])
    expectSafePage(page)
    expect(page.text).toContain(
      `name="username" value="${inputs.username.replace('">', '&quot;&gt;').replace('<', '&lt;').replace('t>', 't&gt;')}"`,
    )
    expectCode(await browser.submit(page, { username, password }))
  })

  it('learns that a value is too long', async () => {
    const browser = newBrowser()
    const inputs = { username: 'anna', password: 'x'.repeat(10_000) }
    const page = await browser.submit(await browser.open(authorizeUrl()), inputs)
    expect([page.status, titleOf(page)]).toEqual([400, 'The sign-in failed'])
    expect(page.text).toMatch(/Something is missing, or too long/)
    expectSafePage(page)
  })

  it('is asked for the code of the app, and learns that one is wrong', async () => {
    const person = await network.people.person()
    const { app } = await withTotp(person)
    const browser = newBrowser()
    const page = await signIn(browser, person)
    expect([page.status, titleOf(page)]).toEqual([200, 'Second factor'])
    expectSafePage(page)
    const wrong = await browser.submit(page, { code: '000000' })
    expect([wrong.status, errorOf(wrong)]).toEqual([400, expect.stringMatching(/^The code is not right/)])
    expectSafePage(wrong)
    expectCode(await browser.submit(wrong, { code: app.code(nextStep()) }))
  })

  it('sets up the second factor that its policy requires, by a QR code, and learns that a code is wrong', async () => {
    const authPolicyId = await network.people.policy({ requireTotp: true })
    const browser = newBrowser()
    const begin = await signIn(browser, await network.people.person({ authPolicyId }))
    expect([begin.status, titleOf(begin)]).toEqual([200, 'Set up a second factor'])
    expectSafePage(begin)
    const setup = await browser.submit(begin)
    expect([setup.status, setup.url]).toEqual([200, expect.stringContaining('/oidc/login/factor?id=')])
    expectSafePage(setup)
    const [svg = ''] = /<svg[\s\S]*<\/svg>/.exec(setup.text) ?? []
    expect(svg).toContain('viewBox')
    const secret = /<code>([A-Z2-7 ]{32,})<\/code>/.exec(setup.text)?.[1]?.replaceAll(' ', '') ?? ''
    expect(setup.text.match(/<li><code>[^<]+<\/code><\/li>/g)?.length).toBe(20)
    const wrong = await browser.submit(setup, { code: '000000' })
    expect([titleOf(wrong), errorOf(wrong)]).toEqual([
      'Error: Set up a second factor',
      expect.stringMatching(/^The code is not right/),
    ])
    expect(wrong.text).toContain(svg)
    const app = new AuthenticatorApp(`otpauth://totp/x?secret=${secret}`)
    expectCode(await browser.submit(wrong, { code: app.code(nextStep()) }))
  })

  it('begins again after five wrong codes, because the session ended', async () => {
    const person = await network.people.person()
    await withTotp(person)
    const browser = newBrowser()
    let page = await signIn(browser, person)
    for (let at = 0; at < 5; at++) page = await browser.submit(page, { code: '000000' })
    expect([titleOf(page), page.text.includes('name="password"')]).toEqual(['Error: Sign in', true])
  })

  it('learns that a sign-in is over, and that it is shown nothing at another address', async () => {
    const browser = newBrowser()
    for (const path of ['/oidc/login/username?authRequestID=none', '/oidc/login/factor?id=none']) {
      const page = await browser.open(network.url + path)
      expect([page.status, titleOf(page)]).toEqual([401, 'This sign-in is over'])
      expectSafePage(page)
    }
  })

  it('learns that a program asks for something that is refused', async () => {
    const page = await newBrowser().open(authorizeUrl({ redirect_uri: 'https://evil.example.com/' }))
    expect([page.status, titleOf(page)]).toEqual([400, 'The sign-in cannot begin'])
    expectSafePage(page)
  })

  it('that presents a certificate is offered to sign in with it', async () => {
    const { chain, key, id } = await network.people.device({ name: 'laptop <1>' })
    const browser = newBrowser({ cert: chain, key: key.keyPem })
    const page = await browser.open(authorizeUrl())
    expectSafePage(page)
    expect(page.text).toContain(`Use the certificate ${id}`)
    expectCode(await browser.submit(page))
  })
})

describe('a sign-in in a browser belongs to it:', () => {
  const ask = (path: string, headers: Record<string, string> = {}) =>
    requestOverTls(network.url + path, { rootPem: network.rootPem, headers })

  it('a stranger who began it, and had a person complete it, receives no code', async () => {
    const { headers } = await ask(new URL(authorizeUrl()).pathname + new URL(authorizeUrl()).search)
    const location = String(headers.location)
    const id = new URL(location, network.url).searchParams.get('authRequestID')
    const { username, password } = await network.people.person()
    const victim = newBrowser()
    const page = await victim.open(network.url + location)
    expectCode(await victim.submit(page, { username, password }))
    const stolen = await ask(`/oidc/authorize/callback?id=${id}`)
    expect([stolen.status, stolen.headers.location]).toEqual([400, undefined])
    expect((await ask(`/oidc/login/auth-queries?id=${id}`)).status).toBe(401)
  })

  it.each(['https://evil.example.com', 'null'])(
    'a page of the origin %s cannot sign its visitor in by the certificate of the browser',
    async (origin) => {
      const { chain, key } = await network.people.device()
      const { pathname, search } = new URL(authorizeUrl())
      const begin = async () => {
        const { headers } = await ask(pathname + search)
        return new URL(String(headers.location), network.url).searchParams.get('authRequestID') ?? ''
      }
      const submit = (id: string, headers: Record<string, string>) =>
        requestOverTls(`${network.url}/oidc/login/cert`, {
          ...{ method: 'POST', rootPem: network.rootPem, cert: chain, key: key.keyPem },
          headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
          body: new URLSearchParams({ id }).toString(),
        })
      for (const accept of ['text/html', 'application/json']) {
        const id = await begin()
        expect((await submit(id, { accept, origin })).status).toBe(401)
        expect((await ask(`/oidc/authorize/callback?id=${id}`)).headers.location).not.toContain('code=')
        expect((await submit(await begin(), { accept, origin: network.url })).status).toBe(302)
      }
    },
  )

  it('a stranger who knows a password, and has its owner enter the code by a link, receives no code', async () => {
    const authPolicyId = await network.people.policy({ requireTotp: true })
    const { username, password } = await network.people.person({ authPolicyId })
    const { headers } = await ask(new URL(authorizeUrl()).pathname + new URL(authorizeUrl()).search)
    const id = new URL(String(headers.location), network.url).searchParams.get('authRequestID') ?? ''
    const signedIn = await requestOverTls(`${network.url}/oidc/login/password`, {
      ...{ method: 'POST', rootPem: network.rootPem },
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ id, username, password }).toString(),
    })
    expect(signedIn.headers['totp-required']).toBe('true')

    for (const path of ['factor', 'username']) {
      const page = await newBrowser().open(`${network.url}/oidc/login/${path}?id=${id}`)
      expect([page.status, /name="password"/.test(page.text), /name="code"/.test(page.text)]).toEqual([
        200,
        true,
        false,
      ])
      const { headers: incomplete } = await ask(`/oidc/authorize/callback?id=${id}`)
      expect(incomplete.location).toContain('error=interaction_required')
    }
  })

  it('another browser, and one with a cookie of its own, are not shown its pages', async () => {
    const page = await newBrowser().open(authorizeUrl())
    const other = newBrowser()
    await other.open(authorizeUrl())
    for (const browser of [newBrowser(), other]) {
      const refused = await browser.open(`${network.url}/oidc/login/username?authRequestID=${idOf(page)}`)
      expect([refused.status, titleOf(refused)]).toEqual([401, 'This sign-in is over'])
    }
  })

  it('its cookie cannot be read by scripts, or sent by other pages, and ends with the browser', async () => {
    const { headers } = await ask('/oidc/login/username?authRequestID=none', { accept: 'text/html' })
    expect(headers['set-cookie']).toBeUndefined()
    const { headers: begun } = await ask(new URL(authorizeUrl()).pathname + new URL(authorizeUrl()).search)
    expect(begun['set-cookie']).toBeUndefined()
    const page = await ask(String(begun.location), { accept: 'text/html' })
    expect(page.headers['set-cookie']).toEqual([
      expect.stringMatching(/^__Host-sign-in=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Lax$/),
    ])
  })

  it('several in one browser go on beside each other', async () => {
    const browser = newBrowser()
    const pages = [await browser.open(authorizeUrl()), await browser.open(authorizeUrl())]
    const { username, password } = await network.people.person()
    for (const page of pages) expectCode(await browser.submit(page, { username, password }))
  })
})

describe('a program', () => {
  it('that prefers pages, but opens none, goes on without a cookie', async () => {
    const { pathname, search } = new URL(authorizeUrl())
    const begun = await requestOverTls(network.url + pathname + search, { rootPem: network.rootPem })
    const id = new URL(String(begun.headers.location), network.url).searchParams.get('authRequestID') ?? ''
    const { username, password } = await network.people.person()
    const headers = { accept: 'text/html, image/gif, */*; q=.2', 'content-type': 'application/x-www-form-urlencoded' }
    const post = (values: Record<string, string>) =>
      requestOverTls(`${network.url}/oidc/login/password`, {
        ...{ method: 'POST', headers, rootPem: network.rootPem },
        body: new URLSearchParams({ id, username, ...values }).toString(),
      })
    const wrong = await post({ password: 'wrong' })
    expect([wrong.status, wrong.headers['set-cookie']]).toEqual([401, undefined])
    const right = await post({ password })
    expect([right.status, right.headers.location]).toEqual([302, `${network.url}/oidc/authorize/callback?id=${id}`])
  })

  it.each([undefined, '*/*', 'application/json', 'application/json, text/html;q=0.5', 'text/plain'])(
    'is sent no page if it accepts %s',
    async (accept) => {
      const headers: Record<string, string> = accept === undefined ? {} : { accept }
      const { pathname, search } = new URL(authorizeUrl())
      const begun = await requestOverTls(network.url + pathname + search, { rootPem: network.rootPem, headers })
      const page = await requestOverTls(network.url + String(begun.headers.location), {
        rootPem: network.rootPem,
        headers,
      })
      expect([page.status, page.headers['content-type']]).toEqual([200, 'text/plain'])
      expect(page.headers['set-cookie']).toBeUndefined()
      expect(page.headers['auth-request-id']).toMatch(/^[\w-]+$/)
    },
  )
})

const step = 1
/** The beginning of a step whose code was not used yet; the clock of the controller goes there. */
function nextStep(): number {
  const { clock } = network.world
  clock.advance(STEP_MS * step)
  return clock.now()
}

/** Gives a person a second factor. */
async function withTotp(person: Person): Promise<{ app: AuthenticatorApp }> {
  const { token } = await network.world.signInAgain(person.id)
  const { MfaSession } = await import('../world/mfa.ts')
  const session = new MfaSession(network.world, token)
  await session.start()
  const app = await session.app()
  expect((await session.verify(app.code(nextStep()))).status).toBe(200)
  return { app }
}

describe('a console that the controller serves', () => {
  it('may receive codes at the address by which it was loaded, and at no other', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'console-'))
    writeFileSync(join(directory, 'index.html'), '<!doctype html>')
    const other = await reachableController({
      apis: ['client', 'management', 'oidc'],
      settings: { 'console.directory': directory },
    })
    const authorize = (url: string, redirectUri: string) =>
      requestOverTls(authorizeUrl({ redirect_uri: redirectUri }).replace(network.url, url), { rootPem: other.rootPem })
    const named = other.url.replace('127.0.0.1', '[::1]')
    expect((await authorize(other.url, `${other.url}/auth/callback`)).status).toBe(302)
    expect((await authorize(other.url, `${named}/auth/callback`)).status).toBe(400)
    await other.stop()
    rmSync(directory, { recursive: true })
  })
})
