// `controller login --browser`: signing in at the pages of the controller, with a session that renews itself.
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Profile } from '../../commands/client/profiles.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { Browser } from '../world/browser.ts'
import { commandLine } from '../world/command-line.ts'
import {
  enrolledFile,
  type ReachableController,
  reachableController,
  readIdentityFileText,
} from '../world/enrollments.ts'
import type { Person } from '../world/people.ts'
import { SignInWithBrowser } from '../world/sign-in-with-browser.ts'

let network: ReachableController

beforeAll(async () => {
  network = await reachableController({ apis: ['client', 'management', 'oidc'] })
})
afterAll(() => network?.stop())

class User {
  readonly env = cleanEnvironment()

  run(...args: string[]) {
    return commandLine(args, this.env)
  }

  /** Signs in at the pages, as this person. */
  async login({ username, password }: Person, ...args: string[]) {
    const login = new SignInWithBrowser(['login', ...args], this.env)
    const browser = new Browser(network.rootPem)
    const page = await browser.submit(await browser.open(await login.url), { username, password })
    return { page, ...(await login.finished) }
  }

  get path(): string {
    return join(this.env.XDG_CONFIG_HOME ?? '', 'controller/profiles.json')
  }

  get profile(): Profile {
    const { current, profiles } = JSON.parse(readFileSync(this.path, 'utf8'))
    return profiles[current]
  }

  /** Sets a member of the profile, as time would. */
  change(values: Partial<Profile>): void {
    const content = JSON.parse(readFileSync(this.path, 'utf8'))
    content.profiles[content.current] = { ...this.profile, ...values }
    writeFileSync(this.path, JSON.stringify(content))
  }

  expire(): void {
    this.change({ accessToken: { token: this.profile.accessToken?.token ?? '', expiresAt: Date.now() + 1_000 } })
  }
}

async function listSessions(identityId: string): Promise<{ id: string }[]> {
  return network.people.manage('GET', `/api-sessions?filter=${encodeURIComponent(`identity = "${identityId}"`)}`)
}

describe('a sign-in at the pages of the controller', () => {
  it('makes a profile with tokens that only its owner can read, and no session header', async () => {
    const [user, person] = [new User(), await network.people.person()]
    const { code, stdout, page } = await user.login(person, network.url, '--browser', '--yes')

    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(`^Signed in to ${network.url} as `))
    expect(page.text).toMatch(/You are signed in/)
    expect(statSync(user.path).mode & 0o777).toBe(0o600)
    expect(user.profile).not.toHaveProperty('token')
    const whoami = await user.run('whoami', '-o', 'json')
    expect(JSON.parse(whoami.stdout)).toMatchObject({ identityId: person.id })
    expect(await listSessions(person.id)).toHaveLength(1)
  })

  it('renews its token before it expires, and stores the new ones', async () => {
    const [user, person] = [new User(), await network.people.person()]
    await user.login(person, network.url, '--browser', '--yes')
    user.expire()
    const before = user.profile

    expect(await user.run('whoami')).toMatchObject({ code: 0, stderr: '' })

    expect(user.profile.accessToken?.token).not.toBe(before.accessToken?.token)
    expect(user.profile.grant?.refreshToken).not.toBe(before.grant?.refreshToken)
    expect(statSync(user.path).mode & 0o777).toBe(0o600)
    expect((await user.run('profile', 'list', '-o', 'json')).stdout).toMatch(/"session": "signed in"/)
    expect(await listSessions(person.id)).toHaveLength(1)
  })

  it('shows no token in the requests that it prints', async () => {
    const [user, person] = [new User(), await network.people.person()]
    await user.login(person, network.url, '--browser', '--yes')
    user.expire()
    const { refreshToken = '' } = user.profile.grant ?? {}
    const { stderr } = await user.run('whoami', '--show-request')
    expect(stderr).toMatch(/grant_type=refresh_token/)
    for (const token of [refreshToken, user.profile.accessToken?.token ?? '']) expect(stderr).not.toContain(token)
  })

  it('ends at the controller with the logout, and a later login uses the browser again', async () => {
    const [user, person] = [new User(), await network.people.person()]
    await user.login(person, network.url, '--browser', '--yes')
    user.expire()

    expect((await user.run('logout')).code).toBe(0)

    expect(await listSessions(person.id)).toEqual([])
    for (const member of ['accessToken', 'grant', 'token']) expect(user.profile).not.toHaveProperty(member)
    expect((await user.run('whoami')).stderr).toMatch(/is not signed in/)
    expect((await user.login(person)).code).toBe(0)
    expect((await user.run('whoami')).code).toBe(0)
  })

  it('names the login if its session was ended', async () => {
    const [user, person] = [new User(), await network.people.person()]
    await user.login(person, network.url, '--browser', '--yes')
    for (const { id } of await listSessions(person.id)) await network.people.manage('DELETE', `/api-sessions/${id}`)

    const { code, stderr } = await user.run('whoami')

    expect([code, stderr]).toEqual([4, expect.stringMatching(/your session has ended\nTry: controller login/)])
    expect((await user.run('profile', 'list', '-o', 'json')).stdout).toMatch(/"session": "ended"/)
  })

  it('by the certificate of the browser is refused, because its tokens are good only for the browser', async () => {
    const { file } = await enrolledFile(network)
    const { id } = readIdentityFileText(file)
    const [cert = '', key = ''] = [id.cert, id.key].map((value) => value.slice('pem:'.length))
    const user = new User()
    const login = new SignInWithBrowser(['login', network.url, '--browser', '--yes'], user.env)
    const browser = new Browser(network.rootPem, { cert, key })
    await browser.submit(await browser.open(await login.url))

    const { code, stderr } = await login.finished

    expect(stderr).toMatch(/by a certificate, whose tokens are good only for the browser\nTry: .*login --identity FILE/)
    expect(code).toBe(2)
    expect(existsSync(user.path)).toBe(false)
  })

  it('is not offered at an address whose listener does not carry it', async () => {
    const other = await reachableController()
    const { code, stderr } = await new SignInWithBrowser(['login', other.url, '--browser', '--yes'], new User().env)
      .finished
    expect([code, stderr]).toEqual([1, expect.stringMatching(/does not serve sign-in by OpenID Connect/)])
    await other.stop()
  })
})
