// `controller login` in all its forms, as people use it: by identity file, password and external JWT, with second factors.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Profile } from '../../commands/client/profiles.ts'
import { cleanEnvironment, controller, type Finished } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { enrolledFile, type ReachableController, reachableController } from '../world/enrollments.ts'
import { Issuer, type TokenChanges } from '../world/issuers.ts'
import { PASSWORD, type Person } from '../world/people.ts'

let network: ReachableController
let passwordFile: string

beforeAll(async () => {
  network = await reachableController()
  passwordFile = join(mkdtempSync(join(tmpdir(), 'login-')), 'password')
  writeFileSync(passwordFile, `${PASSWORD}\n`)
})
afterAll(() => network?.stop())

/** A user of the command line, on a machine of their own. */
class User {
  readonly env = cleanEnvironment()

  run(...args: string[]): Promise<Finished> {
    return commandLine(args, this.env)
  }

  login(...args: string[]): Promise<Finished> {
    return this.run('login', ...args)
  }

  async whoami(...args: string[]): Promise<Record<string, unknown>> {
    const { stdout, stderr } = await this.run('whoami', '-o', 'json', ...args)
    expect(stderr).toBe('')
    return JSON.parse(stdout)
  }

  get profiles(): { current?: string; profiles: Record<string, Profile> } {
    return JSON.parse(readFileSync(join(this.env.XDG_CONFIG_HOME ?? '', 'controller/profiles.json'), 'utf8'))
  }

  get session(): string {
    const { current = '', profiles } = this.profiles
    return profiles[current]?.token ?? ''
  }
}

function expectRefused({ code, stdout, stderr }: Finished, exitCode: number, reason: RegExp) {
  expect(stderr).toMatch(reason)
  expect(code).toBe(exitCode)
  expect(stdout).toBe('')
}

/** Ends all sessions of an identity, as idle ones end. */
async function endSessions(identityId: string): Promise<void> {
  const filter = encodeURIComponent(`identity = "${identityId}"`)
  const sessions = (await network.people.manage('GET', `/api-sessions?filter=${filter}`)) as unknown as { id: string }[]
  for (const { id } of sessions) await network.people.manage('DELETE', `/api-sessions/${id}`)
}

describe('a session that has ended', () => {
  it('is renewed by the identity file of its profile, and stored', async () => {
    const user = new User()
    const { identityId, file } = await enrolledFile(network)
    await user.login('--identity', file)
    const ended = user.session
    await endSessions(identityId)

    expect(await user.whoami()).toMatchObject({ identityId })
    expect(user.session).not.toBe(ended)
    expect((await user.run('logout')).code).toBe(0)
    expectRefused(await user.run('whoami'), 4, /is not signed in/)
  })

  it('is named, with the login that renews it, if its profile signs in by a password', async () => {
    const user = new User()
    const person = await network.people.person()
    const login = ['--username', person.username, '--password-file', passwordFile, '--yes', '--profile', 'mine']
    await user.login(network.url, ...login)
    await endSessions(person.id)

    expectRefused(await user.run('whoami'), 4, /: your session has ended\nTry: controller login --profile mine/)
  })
})

describe('with an identity file', () => {
  it('an ordinary identity signs in, without a URL and without a fingerprint', async () => {
    const user = new User()
    const { identityId, file } = await enrolledFile(network)

    const { code, stdout } = await user.login('--identity', file)

    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(`^Signed in to ${network.url} as .* \\(profile laptop\\)`))
    expect(await user.whoami()).toMatchObject({ identityId, isAdmin: false, url: network.url, profile: 'laptop' })
  })

  it('a later login needs no flags, and renews the session', async () => {
    const user = new User()
    const { identityId, file } = await enrolledFile(network)
    await user.login('--identity', file)
    const before = user.session

    const { code } = await user.login()

    expect(code).toBe(0)
    expect(user.session).not.toBe(before)
    expect(Object.keys(user.profiles.profiles)).toEqual(['laptop'])
    expect(await user.whoami()).toMatchObject({ identityId })
  })

  it('the profile of another person at the same controller stays', async () => {
    const user = new User()
    const person = await network.people.person()
    const { file } = await enrolledFile(network)
    await user.login(network.url, '-u', person.username, '--password-file', passwordFile, '--yes')

    await user.login('--identity', file)

    const { current, profiles } = user.profiles
    expect(current).toBe('laptop')
    expect(profiles[new URL(network.url).host]).toMatchObject({ username: person.username, token: expect.any(String) })
  })

  it('an SDK may have written it: the address of the server, and the locations of certificate and key', async () => {
    const user = new User()
    const { identityId, file, folder } = await enrolledFile(network)
    const { id } = JSON.parse(readFileSync(file, 'utf8'))
    for (const member of ['key', 'cert']) writeFileSync(join(folder, member), id[member].slice(4))
    const written = {
      ztAPI: network.url,
      id: { key: `file://${join(folder, 'key')}`, cert: join(folder, 'cert'), ca: id.ca },
    }
    writeFileSync(file, JSON.stringify(written))

    await user.login('--identity', file)

    expect(await user.whoami()).toMatchObject({ identityId })
  })

  it.each<[what: string, change: (content: ReturnType<typeof JSON.parse>) => unknown, reason: RegExp]>([
    ['text', () => 'hello', /is not an identity file: it does not contain a JSON object/],
    ['an empty object', () => ({}), /is not an identity file: id.cert is missing/],
    ['without a key', ({ id, ...rest }) => ({ ...rest, id: { ...id, key: '' } }), /id.key is missing/],
    ['with a damaged certificate', ({ id, ...rest }) => ({ ...rest, id: { ...id, cert: 'pem:x' } }), /unreadable cert/],
    ['with a damaged key', ({ id, ...rest }) => ({ ...rest, id: { ...id, key: 'pem:x' } }), /unreadable private key/],
    ['with a key in hardware', ({ id, ...rest }) => ({ ...rest, id: { ...id, key: 'pkcs11://x' } }), /a pkcs11 store/],
    ['without an address', (content) => ({ ...content, ztAPI: 'ftp://x' }), /ztAPI must be the URL of a controller/],
    ['that refers to a lost key', ({ id, ...rest }) => ({ ...rest, id: { ...id, key: '/nowhere' } }), /cannot be read/],
  ])('what is %s is refused', async (_what, change, reason) => {
    const { file } = await enrolledFile(network)
    const changed = change(JSON.parse(readFileSync(file, 'utf8')))
    writeFileSync(file, typeof changed === 'string' ? changed : JSON.stringify(changed))

    expectRefused(await new User().login('--identity', file), 2, reason)
  })

  it('a key of another certificate is refused', async () => {
    const [first, second] = [await enrolledFile(network), await enrolledFile(network)]
    const content = JSON.parse(readFileSync(first.file, 'utf8'))
    content.id.key = JSON.parse(readFileSync(second.file, 'utf8')).id.key
    writeFileSync(first.file, JSON.stringify(content))

    expectRefused(await new User().login('--identity', first.file), 2, /the key does not belong to the certificate/)
  })

  it('a controller that none of its authorities identifies is refused', async () => {
    const { file } = await enrolledFile(network)
    const content = JSON.parse(readFileSync(file, 'utf8'))
    const { x509 } = await import('../world/certificates.ts')
    const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify'])
    const other = await x509.X509CertificateGenerator.createSelfSigned({ name: 'CN=other', keys: keys as never })
    content.id.ca = `pem:${other.toString('pem')}`
    writeFileSync(file, JSON.stringify(content))

    expectRefused(
      await new User().login('--identity', file),
      1,
      /not issued by the expected root.*names\nTry: .*enroll/,
    )
  })

  it('an identity that was disabled is told whom to ask', async () => {
    const { identityId, file } = await enrolledFile(network)
    await network.people.manage('POST', `/identities/${identityId}/disable`, { durationMinutes: 5 })

    const refused = await new User().login('--identity', file)

    expectRefused(refused, 4, /the certificate in .*laptop\.json is not accepted\nTry: ask an administrator/)
  })

  it('other ways to sign in are refused beside it', async () => {
    const { file } = await enrolledFile(network)

    expectRefused(await new User().login('--identity', file, '--username', 'x'), 2, /exclude each other/)
  })
})

describe('an existing profile', () => {
  let person: Person
  const password = () => ['--password-file', passwordFile]

  beforeAll(async () => {
    person = await network.people.person()
  })

  it('is renewed with its URL and its username, if the login names it', async () => {
    const user = new User()
    await user.login(network.url, '--profile', 'work', '-u', person.username, ...password(), '--yes')
    const before = user.session

    const { code } = await user.login('--profile', 'work', ...password())

    expect(code).toBe(0)
    expect(user.session).not.toBe(before)
    expect(user.profiles.profiles).toMatchObject({ work: { username: person.username, url: network.url } })
  })

  it('is renewed, if it is the current one and the login names nothing, or its URL', async () => {
    const user = new User()
    await user.login(network.url, '--profile', 'work', '-u', person.username, ...password(), '--yes')

    await user.login(...password())
    await user.login(network.url, ...password())

    expect(Object.keys(user.profiles.profiles)).toEqual(['work'])
  })

  it('is what a command names, if its session has ended', async () => {
    const user = new User()
    await user.login(network.url, '--profile', 'work', '-u', person.username, ...password(), '--yes')
    await network.people.manage('POST', `/identities/${person.id}/disable`, { durationMinutes: 5 })
    await network.people.manage('POST', `/identities/${person.id}/enable`)

    const named = await user.run('whoami', '--profile', 'work')
    const current = await user.run('whoami')

    expectRefused(named, 4, /\nTry: controller login --profile work\n/)
    expectRefused(current, 4, /\nTry: controller login --profile work\n/)
  })

  it('is the controller of a new one, if the login names no URL', async () => {
    const user = new User()
    const other = await network.people.person()
    await user.login(network.url, '--profile', 'work', '-u', person.username, ...password(), '--yes')

    const { code } = await user.login('--profile', 'mine', '-u', other.username, ...password())

    expect(code).toBe(0)
    expect(user.profiles).toMatchObject({
      current: 'mine',
      profiles: { work: { username: person.username }, mine: { username: other.username, url: network.url } },
    })
  })

  it('is kept for its username: another one gets the profile of host and port', async () => {
    const user = new User()
    const other = await network.people.person()
    await user.login(network.url, '--profile', 'work', '-u', person.username, ...password(), '--yes')

    await user.login(network.url, '-u', other.username, ...password())

    expect(user.profiles).toMatchObject({
      current: new URL(network.url).host,
      profiles: { work: { username: person.username }, [new URL(network.url).host]: { username: other.username } },
    })
  })
})

describe('the session of another user', () => {
  it('is named, if the login replaces it in the profile', async () => {
    const user = new User()
    const [first, second] = [await network.people.person(), await network.people.person()]
    const login = ({ username }: Person) =>
      user.login(network.url, '-u', username, '--password-file', passwordFile, '--yes')

    const before = await login(first)
    const again = await login(first)
    const replaced = await login(second)

    expect(before.stderr).not.toContain('replaced')
    expect(again.stderr).toBe('')
    expect(replaced.stderr).toContain(`held a session of ${first.username} at ${network.url}, which is replaced.`)
    expect([replaced.code, user.profiles.profiles[new URL(network.url).host]?.username]).toEqual([0, second.username])
  })
})

describe('a file in place of the URL', () => {
  it.each([
    ['jwt', (file: string) => `controller enroll ${file}`],
    ['json', (file: string) => `controller login --identity ${file}`],
  ])('of the kind %s is refused with the command for it', async (extension, toHint) => {
    const file = join(mkdtempSync(join(tmpdir(), 'given-')), `laptop.${extension}`)
    writeFileSync(file, '')

    const refused = await new User().login(file)

    expectRefused(refused, 2, /not the URL of a controller/)
    expect(refused.stderr).toContain(`Try: ${toHint(file)}\n`)
  })
})

describe('a controller that serves one API on an address', () => {
  it.each(['client', 'management'])('is signed in to, described and signed out of over its %s API', async (api) => {
    const user = new User()
    const one = await reachableController({ apis: [api] })
    const person = await one.people.person()

    const signedIn = await user.login(one.url, '-u', person.username, '--password-file', passwordFile, '--yes')
    const view = await user.whoami()
    const signedOut = await user.run('logout')
    await one.stop()

    expect([signedIn.code, signedOut.code]).toEqual([0, 0])
    expect(view).toMatchObject({ identityId: person.id })
    expect(signedOut.stderr).toBe('')
  })
})

describe('with a JWT of an external signer', () => {
  const issuer = new Issuer()
  let signerId: string
  let file: string

  beforeAll(async () => {
    signerId = await issuer.trustedBy(network.people)
    file = join(mkdtempSync(join(tmpdir(), 'jwt-')), 'jwt')
  })

  /** Writes a token of the issuer for this subject into the file, as a program that renews tokens does. */
  function writeJwt(subject: string, changes: TokenChanges = {}): void {
    writeFileSync(file, `${issuer.token(network.world, subject, changes)}\n`)
  }

  it('its subject signs in, and a later login reads the file again', async () => {
    const user = new User()
    const id = await network.people.identity({ externalId: 'anna@example.com' })
    writeJwt('anna@example.com')

    const first = await user.login(network.url, '--ext-jwt-file', file, '--yes')
    writeJwt('anna@example.com', { claims: { jti: 'another' } })
    const second = await user.login()

    expect([first.code, second.code]).toEqual([0, 0])
    expect(await user.whoami()).toMatchObject({ identityId: id })
  })

  it('it may come from stdin', async () => {
    const user = new User()
    await network.people.identity({ externalId: 'bert@example.com' })
    const jwt = issuer.token(network.world, 'bert@example.com')

    const { code } = await controller(['login', network.url, '--ext-jwt-file', '-', '--yes'], user.env, jwt)

    expect(code).toBe(0)
    expect(user.profiles.profiles[new URL(network.url).host]).not.toHaveProperty('extJwtFile')
  })

  it.each<[what: string, changes: TokenChanges, reason: RegExp]>([
    [
      'that expired',
      { claims: { exp: Math.floor(Date.now() / 1000) - 3600 } },
      /the JWT expired \d+ (?:minutes|hour) ago.*\nTry: obtain a new one/,
    ],
    ['for another audience', { claims: { aud: 'another' } }, /the JWT is not accepted\nTry: an administrator finds/],
  ])('one %s is refused', async (_what, changes, reason) => {
    await network.people.identity({ externalId: `carl-${Math.random()}@example.com` })
    writeJwt('carl@example.com', changes)

    expectRefused(await new User().login(network.url, '--ext-jwt-file', file, '--yes'), 4, reason)
  })

  it.each([
    ['text', 'hello', /does not contain a JWT/],
    ['nothing', '', /does not contain a JWT/],
  ])('a file with %s is refused', async (_what, text, reason) => {
    writeFileSync(file, text)

    expectRefused(await new User().login(network.url, '--ext-jwt-file', file, '--yes'), 2, reason)
  })

  describe('as second factor', () => {
    let person: Person

    beforeAll(async () => {
      const authPolicyId = await network.people.policy({ requireExtJwtSigner: signerId })
      person = await network.people.person({ authPolicyId, externalId: 'dora@example.com' })
    })
    const byPassword = () => ['-u', person.username, '--password-file', passwordFile, '--yes']

    it('a session without it is refused and ended, and the flag is named', async () => {
      const user = new User()

      const refused = await user.login(network.url, ...byPassword())

      expectRefused(refused, 4, /requires a JWT of an external signer as second factor\nTry: --ext-jwt-file FILE/)
      const filter = encodeURIComponent(`identity = "${person.id}"`)
      expect(await network.people.manage('GET', `/api-sessions?filter=${filter}`)).toEqual([])
    })

    it('it comes with every request, as it is in the file at that moment', async () => {
      const user = new User()
      writeJwt('dora@example.com')

      const { code } = await user.login(network.url, ...byPassword(), '--ext-jwt-file', file)
      const identity = await user.whoami()
      writeJwt('dora@example.com', { claims: { aud: 'another' } })
      const { code: later } = await user.run('whoami')

      expect(code).toBe(0)
      expect(identity).toMatchObject({ identityId: person.id })
      expect(later).toBe(4)
    })

    it('one that expired is called that, at the login and later', async () => {
      const user = new User()
      const hourAgo = Math.floor(network.world.clock.now() / 1000) - 3_600
      const expired = { claims: { exp: hourAgo, iat: hourAgo - 60, nbf: hourAgo - 60 } }
      writeJwt('dora@example.com')
      await user.login(network.url, ...byPassword(), '--ext-jwt-file', file)
      writeJwt('dora@example.com', expired)

      const later = await user.run('whoami')
      const login = await user.login(network.url, ...byPassword(), '--ext-jwt-file', file)

      expectRefused(later, 4, /the JWT of the second factor expired .*\nTry: obtain a new one from its issuer/)
      expectRefused(login, 4, /the JWT of the second factor expired .*\nTry: obtain a new one from its issuer/)
    })

    it('a later login needs the password only', async () => {
      const user = new User()
      writeJwt('dora@example.com')
      await user.login(network.url, ...byPassword(), '--ext-jwt-file', file)

      expect((await user.login('--password-file', passwordFile)).code).toBe(0)
    })

    it('it cannot come from stdin, because every request reads it', async () => {
      const jwt = issuer.token(network.world, 'dora@example.com')
      const words = ['login', network.url, ...byPassword(), '--ext-jwt-file', '-']

      expectRefused(await controller(words, new User().env, jwt), 2, /must be a file, because every request reads it/)
    })
  })
})
