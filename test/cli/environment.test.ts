// The controller and the credential that environment variables name, for machines without profiles.
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeAuthority } from '../world/authorities.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { CLIENT } from '../world/controller.ts'
import { type EnrolledFile, enrolledFile, type ReachableController, reachableController } from '../world/enrollments.ts'
import { PASSWORD, type Person } from '../world/people.ts'

interface SignedIn extends Person {
  readonly token: string
}

let network: ReachableController
let person: SignedIn
let device: EnrolledFile
let rootFile: string
let otherRootFile: string
let passwordFile: string

beforeAll(async () => {
  network = await reachableController()
  const signingIn = await network.people.person()
  person = { ...signingIn, token: await openSession(signingIn) }
  device = await enrolledFile(network)
  const folder = mkdtempSync(join(tmpdir(), 'environment-'))
  rootFile = join(folder, 'root.pem')
  writeFileSync(rootFile, network.rootPem)
  otherRootFile = join(folder, 'other.pem')
  writeFileSync(otherRootFile, (await makeAuthority()).pem)
  passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, `${PASSWORD}\n`)
})
afterAll(() => network?.stop())

type Variables = Readonly<Record<string, string>>

/** Runs a command on a machine without profiles, or on the one of an environment. */
async function run(variables: Variables, words: readonly string[], env = cleanEnvironment()) {
  return commandLine(words, { ...env, ...variables })
}

async function whoami(variables: Variables, words: readonly string[] = [], env = cleanEnvironment()) {
  const { stdout, stderr } = await run(variables, ['whoami', '-o', 'json', ...words], env)
  expect(stderr).toBe('')
  return JSON.parse(stdout) as Record<string, unknown>
}

/** The variables for the session of a person. */
function byToken({ token }: SignedIn): Record<string, string> {
  return { CONTROLLER_URL: network.url, CONTROLLER_TOKEN: token, CONTROLLER_ROOT_FILE: rootFile }
}

async function openSession({ username, password }: Person): Promise<string> {
  const body = { username, password }
  const { data } = (await network.world.send({ method: 'POST', path: `${CLIENT}/authenticate?method=password`, body }))
    .body
  return data.token
}

async function countSessions(identityId: string): Promise<number> {
  const filter = encodeURIComponent(`identity = "${identityId}"`)
  return ((await network.people.manage('GET', `/api-sessions?filter=${filter}`)) as unknown as unknown[]).length
}

describe('a machine without profiles', () => {
  it('works with the token of a session, its controller and the root certificate', async () => {
    const env = cleanEnvironment()

    const session = await whoami(byToken(person), [], env)

    expect(session).toMatchObject({ identityId: person.id, url: network.url, profile: null })
    expect(existsSync(join(env.XDG_CONFIG_HOME ?? '', 'controller/profiles.json'))).toBe(false)
  })

  it('works with an identity file alone, whose session ends with the command', async () => {
    const session = await whoami({ CONTROLLER_IDENTITY_FILE: device.file })

    expect(session).toMatchObject({ identityId: device.identityId, url: network.url })
    expect(await countSessions(device.identityId)).toBe(0)
  })

  it('takes the controller and the root of the variables before those of the identity file', async () => {
    const { code, stderr } = await run(
      { CONTROLLER_IDENTITY_FILE: device.file, CONTROLLER_URL: 'https://127.0.0.1:9', CONTROLLER_ROOT_FILE: rootFile },
      ['whoami'],
    )

    expect(stderr).toContain('https://127.0.0.1:9 cannot be reached')
    expect(code).toBe(8)
  })

  it('reads what is public without a credential', async () => {
    const variables = { CONTROLLER_URL: network.url, CONTROLLER_ROOT_FILE: rootFile }

    expect((await run(variables, ['version'])).stdout).toContain(`at ${network.url}`)
    expect(await run(variables, ['whoami'])).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/^neither CONTROLLER_TOKEN nor CONTROLLER_IDENTITY_FILE is set/),
    })
  })

  it('is told that the session of its token has ended, and which variable to set', async () => {
    const variables = { ...byToken(person), CONTROLLER_TOKEN: '8d0b7f0e-6f52-4a5b-9d57-0f6f6c1f6b0a' }

    expect(await run(variables, ['whoami'])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining(
        'your session has ended\nTry: set CONTROLLER_TOKEN to the token of a new session\n',
      ),
    })
  })
})

describe('variables that do not go together, or cannot be used', () => {
  const cases: [
    what: string,
    variables: () => Record<string, string | undefined>,
    exitCode: number,
    message: RegExp,
  ][] = [
    [
      'two credentials',
      () => ({ ...byToken(person), CONTROLLER_IDENTITY_FILE: device.file }),
      2,
      /^CONTROLLER_TOKEN and CONTROLLER_IDENTITY_FILE are both set/,
    ],
    [
      'text that no token can be',
      () => ({ ...byToken(person), CONTROLLER_TOKEN: 'secret' }),
      2,
      /^CONTROLLER_TOKEN is not a token\nTry: set it to what "controller token create" printed, or to the token of a session\n/,
    ],
    ['a token without a controller', () => ({ CONTROLLER_TOKEN: person.token }), 2, /^CONTROLLER_URL is not set/],
    [
      'a controller whose root is not known',
      () => ({ CONTROLLER_TOKEN: person.token, CONTROLLER_URL: network.url }),
      2,
      /^CONTROLLER_ROOT_FILE is not set/,
    ],
    [
      'an address that is not a URL',
      () => ({ ...byToken(person), CONTROLLER_URL: 'http://x' }),
      2,
      /^CONTROLLER_URL: http:\/\/x is not the URL of a controller/,
    ],
    [
      'a root file of another controller, beside a token',
      () => ({ ...byToken(person), CONTROLLER_ROOT_FILE: otherRootFile }),
      1,
      /^https:\S+ cannot be reached: .* root in CONTROLLER_ROOT_FILE\nTry: set CONTROLLER_ROOT_FILE to /,
    ],
    [
      'a root file of another controller, beside an identity file',
      () => ({ CONTROLLER_IDENTITY_FILE: device.file, CONTROLLER_ROOT_FILE: otherRootFile }),
      1,
      /^https:\S+ cannot be reached: .* root in CONTROLLER_ROOT_FILE\nTry: set CONTROLLER_ROOT_FILE to /,
    ],
    [
      'a root file that is missing',
      () => ({ ...byToken(person), CONTROLLER_ROOT_FILE: '/none.pem' }),
      2,
      /^CONTROLLER_ROOT_FILE: \/none\.pem cannot be read/,
    ],
    [
      'a root file without a root',
      () => ({ ...byToken(person), CONTROLLER_ROOT_FILE: passwordFile }),
      2,
      /^CONTROLLER_ROOT_FILE: .* does not contain a root certificate/,
    ],
    [
      'an identity file that is none',
      () => ({ CONTROLLER_IDENTITY_FILE: rootFile }),
      2,
      /^CONTROLLER_IDENTITY_FILE: .* is not an identity file/,
    ],
    [
      'a controller without a profile or a credential',
      () => ({ CONTROLLER_URL: network.url }),
      4,
      /^there is no profile for .*, which CONTROLLER_URL names/,
    ],
    [
      'a profile beside a credential',
      () => ({ ...byToken(person), CONTROLLER_PROFILE: 'other' }),
      2,
      /^CONTROLLER_PROFILE and CONTROLLER_TOKEN are both set/,
    ],
  ]

  it.each(cases)('are named: %s', async (_what, variables, exitCode, message) => {
    const { code, stderr } = await run(variables() as Variables, ['whoami'])

    expect(stderr).toMatch(message)
    expect(code).toBe(exitCode)
  })

  it('are suggested for those that are misspelt', async () => {
    const { stderr } = await run({ ...byToken(person), CONTROLLER_ROOT_FIL: 'x' }, ['whoami'])

    expect(stderr).toContain('CONTROLLER_ROOT_FIL has no effect: did you mean CONTROLLER_ROOT_FILE?')
  })
})

describe('with profiles', () => {
  const env = cleanEnvironment()
  let owner: Person

  beforeAll(async () => {
    owner = await network.people.person()
    const login = ['--username', owner.username, '--password-file', passwordFile, '--yes', '--profile', 'mine']
    expect((await commandLine(['login', network.url, ...login], env)).stderr).toContain('SHA-256')
  })

  it('the variables come before the current profile, and after the flags', async () => {
    expect(await whoami({}, [], env)).toMatchObject({ identityId: owner.id })
    expect(await whoami(byToken(person), [], env)).toMatchObject({ identityId: person.id })
    expect(await whoami(byToken(person), ['--profile', 'mine'], env)).toMatchObject({ identityId: owner.id })
    const elsewhere = { ...byToken(person), CONTROLLER_URL: 'https://127.0.0.1:9' }
    expect(await whoami(elsewhere, ['--controller', network.url], env)).toMatchObject({ identityId: owner.id })
  })

  it('a URL alone chooses the profile, and the root of a profile serves for a token', async () => {
    expect(await whoami({ CONTROLLER_URL: network.url }, [], env)).toMatchObject({ profile: 'mine' })
    const { CONTROLLER_ROOT_FILE: _none, ...others } = byToken(person)
    expect(await whoami(others, [], env)).toMatchObject({ identityId: person.id })
  })

  it('a list of them shows which are signed in, which sessions have ended, and which profiles are signed out', async () => {
    const listed = async () => {
      const { stdout, stderr } = await commandLine(['profile', 'list', '-o', 'json'], env)
      expect(stderr).toBe('')
      const { items } = JSON.parse(stdout) as { items: { name: string; session: string }[] }
      return Object.fromEntries(items.map(({ name, session }) => [name, session]))
    }
    await commandLine(['login', '--identity', device.file], env)
    expect(await listed()).toEqual({ laptop: 'signed in', mine: 'signed in' })

    await commandLine(['logout', '--profile', 'laptop'], env)
    const filter = encodeURIComponent(`identity = "${owner.id}"`)
    const sessions = (await network.people.manage('GET', `/api-sessions?filter=${filter}`)) as unknown as {
      id: string
    }[]
    for (const { id } of sessions) await network.people.manage('DELETE', `/api-sessions/${id}`)

    expect(await listed()).toEqual({ laptop: 'signed out', mine: 'ended' })
    expect((await commandLine(['profile', 'list'], env)).stdout).toMatch(/NAME\s+CURRENT\s+URL\s+USERNAME\s+SESSION/)
  })
})
