// `controller passwd`: people change their own passwords.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { cleanEnvironment, controller } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { PASSWORD, People, type Person } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'
import { ENTER, onTerminal, plainText } from '../world/terminal.ts'
import { useController } from '../world/use-controller.ts'

const NEW_PASSWORD = 'wrong mare capacitor'
const files = mkdtempSync(join(tmpdir(), 'passwd-'))

const world = useController()
let people: People
let at: { url: string; rootPem: string }

beforeAll(async () => {
  at = await world.listen()
  people = await People.in(world)
  for (const [name, text] of Object.entries({ old: PASSWORD, new: NEW_PASSWORD, short: 'abc', wrong: 'mistaken' })) {
    writeFileSync(join(files, name), `${text}\n`)
  }
})

/** A person who is signed in on a machine of their own. */
async function signedIn(): Promise<{ person: Person; env: NodeJS.ProcessEnv }> {
  const person = await people.person()
  const env = cleanEnvironment()
  writeProfiles(env, { test: { ...at, token: await people.sessionOf(person) } })
  return { person, env }
}

const passwords = (current: string, next: string) => [
  ...['--current-password-file', join(files, current)],
  ...['--password-file', join(files, next)],
]

const statusOf = async ({ username }: Person, password: string) => (await people.signIn({ username, password })).status

describe('on a terminal', () => {
  it('asks for the current password, and twice for the new one', async () => {
    const { person, env } = await signedIn()

    const { screen, code } = await onTerminal(['passwd'], env, {
      inputs: [
        ['Current password', `${PASSWORD}${ENTER}`],
        ['New password', `${NEW_PASSWORD}${ENTER}`],
        ['Repeat', `${NEW_PASSWORD}${ENTER}`],
      ],
    })

    expect(plainText(screen)).toMatch(new RegExp(`Changed the password of ${person.username} at https:`))
    expect([code, await statusOf(person, NEW_PASSWORD), await statusOf(person, PASSWORD)]).toEqual([0, 200, 401])
    expect(screen).not.toContain(NEW_PASSWORD)
  })

  it('asks again, if a rule of the auth policy is broken, with the reason', async () => {
    const authPolicyId = await people.policy({ updb: { requireNumberChar: true, minPasswordLength: 8 } })
    const { person, env } = await signedIn()
    await people.manage('PATCH', `/identities/${person.id}`, { authPolicyId })

    const { screen, code } = await onTerminal(['passwd'], env, {
      inputs: [
        ['Current password', `${PASSWORD}${ENTER}`],
        ['New password', `short1${ENTER}`],
        ['Repeat', `short1${ENTER}`],
        ['at least 8 characters[\\s\\S]*New password', `letters only${ENTER}`],
        ['Repeat', `letters only${ENTER}`],
        ['must hold a digit[\\s\\S]*New password', `letters and 1${ENTER}`],
        ['Repeat', `letters and 1${ENTER}`],
      ],
    })

    expect(plainText(screen)).toMatch(/Changed the password/)
    expect([code, await statusOf(person, 'letters and 1')]).toEqual([0, 200])
  })
})

describe('a wrong current password on a terminal', () => {
  it('can be corrected, before the new one is typed', async () => {
    const { person, env } = await signedIn()

    const { screen, code } = await onTerminal(['passwd'], env, {
      inputs: [
        ['Current password', `mistyped${ENTER}`],
        ['is wrong: try again[\\s\\S]*Current password', `${PASSWORD}${ENTER}`],
        ['New password', `${NEW_PASSWORD}${ENTER}`],
        ['Repeat', `${NEW_PASSWORD}${ENTER}`],
      ],
    })

    expect(plainText(screen)).toMatch(/Changed the password/)
    expect([code, await statusOf(person, NEW_PASSWORD)]).toEqual([0, 200])
  })

  it('can be typed three times', async () => {
    const { person, env } = await signedIn()
    const wrong = ['is wrong: try again[\\s\\S]*Current password', `mistyped${ENTER}`] as const

    const { screen, code } = await onTerminal(['passwd'], env, {
      inputs: [['Current password', `mistyped${ENTER}`], wrong, wrong],
    })

    expect(plainText(screen)).toMatch(/the current password is wrong\nTry: run the command again/)
    expect([code, await statusOf(person, PASSWORD)]).toEqual([4, 200])
  })
})

describe('in a script', () => {
  it('reads both passwords from files, and says what changed', async () => {
    const { person, env } = await signedIn()

    const { code, stdout } = await commandLine(['passwd', ...passwords('old', 'new'), '-o', 'json'], env)

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      url: at.url,
      username: person.username,
      authenticatorId: person.authenticatorId,
    })
    expect(await statusOf(person, NEW_PASSWORD)).toBe(200)
  })

  it('reads one of them from stdin', async () => {
    const { person, env } = await signedIn()
    const words = ['passwd', '--current-password-file', '-', '--password-file', join(files, 'new')]

    expect((await controller(words, env, PASSWORD)).code).toBe(0)

    expect(await statusOf(person, NEW_PASSWORD)).toBe(200)
  })

  it.each<[what: string, args: () => string[], code: number, reason: RegExp]>([
    ['a wrong current password', () => passwords('wrong', 'new'), 4, /the current password is wrong/],
    ['a new password that is too short', () => passwords('old', 'short'), 2, /password .*5/],
    ['no terminal and no file', () => [], 2, /without a terminal\nTry: --current-password-file/],
    ['a file that does not exist', () => passwords('lost', 'new'), 2, /--current-password-file cannot be read/],
    [
      'both from stdin',
      () => ['--current-password-file', '-', '--password-file', '-'],
      2,
      /cannot both come from stdin/,
    ],
  ])('is refused with %s, and nothing changes', async (_what, args, code, reason) => {
    const { person, env } = await signedIn()

    const refused = await commandLine(['passwd', ...args()], env)

    expect(refused.stderr).toMatch(reason)
    expect([refused.code, refused.stdout, await statusOf(person, PASSWORD)]).toEqual([code, '', 200])
  })

  it('keeps the session that changes the password, and ends the others', async () => {
    const { person, env } = await signedIn()
    const other = cleanEnvironment()
    writeProfiles(other, { test: { ...at, token: await people.sessionOf(person) } })

    await commandLine(['passwd', ...passwords('old', 'new')], env)

    const codes = [await commandLine(['whoami'], env), await commandLine(['whoami'], other)].map(({ code }) => code)
    expect(codes).toEqual([0, 4])
  })
})

it('an identity without a password is told so', async () => {
  const env = cleanEnvironment()
  const { token } = await world.signIn()
  writeProfiles(env, { test: { ...at, token } })

  const { code, stderr } = await commandLine(['passwd'], env)

  expect(stderr).toMatch(/you sign in without a password\nTry: ask an administrator/)
  expect(code).toBe(5)
})

it('a caller without a session is told to sign in', async () => {
  const env = cleanEnvironment()
  writeProfiles(env, { test: at })

  expect((await commandLine(['passwd', ...passwords('old', 'new')], env)).code).toBe(4)
})
