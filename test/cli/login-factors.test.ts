// Second factors at `controller login`: by a prompt, by flags, by a recovery code, and set up after a first login.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AuthenticatorApp, STEP_MS } from '../world/authenticator-app.ts'
import { cleanEnvironment, type Finished } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { CLIENT } from '../world/controller.ts'
import {
  enrolledFile,
  type ReachableController,
  reachableController,
  readIdentityFileText,
  signInByFile,
} from '../world/enrollments.ts'
import { Issuer } from '../world/issuers.ts'
import { PASSWORD, type Person } from '../world/people.ts'
import { ENTER, onTerminal, plainText } from '../world/terminal.ts'

let network: ReachableController
let passwordFile: string

beforeAll(async () => {
  network = await reachableController()
  passwordFile = join(mkdtempSync(join(tmpdir(), 'login-')), 'password')
  writeFileSync(passwordFile, `${PASSWORD}\n`)
})
afterAll(() => network?.stop())

const now = () => network.world.clock.now()

/** Sets up the second factor of the identity whose session this is. */
async function setUp(token: string): Promise<{ app: AuthenticatorApp; recoveryCodes: string[] }> {
  const send = (method: string, path: string, body: object | undefined = undefined) =>
    network.world.send({ method, path: `${CLIENT}/current-identity/mfa${path}`, token, ...(body ? { body } : {}) })
  await send('POST', '', {})
  const { provisioningUrl, recoveryCodes } = (await send('GET', '')).body.data
  const app = new AuthenticatorApp(provisioningUrl)
  expect((await send('POST', '/verify', { code: app.code(now()) })).status).toBe(200)
  network.world.clock.advance(STEP_MS)
  return { app, recoveryCodes }
}

/** A person with a second factor. */
async function enrolledPerson() {
  const person = await network.people.person()
  return { person, ...(await setUp(await network.people.sessionOf(person))) }
}

const flagsOf = ({ username }: Person) => [network.url, '-u', username, '--password-file', passwordFile, '--yes']

/** A file with a secret. */
function secretFile(secret: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'secret-')), 'secret')
  writeFileSync(path, `${secret}\n`)
  return path
}

function expectRefused({ code, stdout, stderr }: Finished, exitCode: number, reason: RegExp) {
  expect(stderr).toMatch(reason)
  expect(code).toBe(exitCode)
  expect(stdout).toBe('')
}

async function countSessions(identityId: string): Promise<number> {
  const filter = encodeURIComponent(`identity = "${identityId}"`)
  return (await network.people.manage('GET', `/api-sessions?filter=${filter}`)).length
}

describe('a code of the second factor', () => {
  it('is asked for on a terminal, and asked for again after a wrong one', async () => {
    const { person, app } = await enrolledPerson()
    const env = cleanEnvironment()
    const code = app.code(now())

    const { screen, code: exitCode } = await onTerminal(['login', ...flagsOf(person)], env, {
      inputs: [
        ['Code of the second factor', `${app.wrongCode(now())}${ENTER}`],
        ['not accepted[\\s\\S]*Code of the second factor', `${code.slice(0, 3)} ${code.slice(3)}${ENTER}`],
      ],
    })

    expect(plainText(screen)).toMatch(/Signed in to/)
    expect(exitCode).toBe(0)
    expect((await commandLine(['whoami'], env)).code).toBe(0)
  })

  it('comes from a flag in scripts', async () => {
    const { person, app } = await enrolledPerson()

    const { code } = await commandLine(['login', ...flagsOf(person), '--mfa-code', app.code(now())], cleanEnvironment())

    expect(code).toBe(0)
  })

  it('may be a recovery code, once', async () => {
    const { person, recoveryCodes } = await enrolledPerson()
    const words = ['login', ...flagsOf(person), '--recovery-code-file', secretFile(recoveryCodes[0] ?? '')]

    const first = await commandLine(words, cleanEnvironment())
    const second = await commandLine(words, cleanEnvironment())

    expect(first.code).toBe(0)
    expectRefused(second, 4, /the code of the second factor is not accepted\nTry: .*recovery code can be used once/)
  })

  it('may be a recovery code in lower case', async () => {
    const { person, recoveryCodes } = await enrolledPerson()
    const file = secretFile((recoveryCodes[0] ?? '').toLowerCase())

    const login = await commandLine(['login', ...flagsOf(person), '--recovery-code-file', file], cleanEnvironment())

    expect(login.code).toBe(0)
  })

  it('that is a recovery code comes from no argument, because other accounts read arguments', async () => {
    const { person, recoveryCodes } = await enrolledPerson()
    const words = ['login', ...flagsOf(person), '--recovery-code', recoveryCodes[0] ?? '']

    expectRefused(await commandLine(words, cleanEnvironment()), 2, /--recovery-code-file/)
  })

  it('that is wrong ends the session, and says what to do', async () => {
    const { person, app } = await enrolledPerson()
    const before = await countSessions(person.id)
    const words = ['login', ...flagsOf(person), '--mfa-code', app.wrongCode(now())]

    const refused = await commandLine(words, cleanEnvironment())

    expectRefused(refused, 4, /is not accepted\nTry: each code can be used once, for half a minute/)
    expect(await countSessions(person.id)).toBe(before)
  })

  it('cannot be asked for without a terminal: the flag is named, and the session ended', async () => {
    const { person } = await enrolledPerson()
    const before = await countSessions(person.id)

    expectRefused(await commandLine(['login', ...flagsOf(person)], cleanEnvironment()), 2, /Try: --mfa-code/)

    expect(await countSessions(person.id)).toBe(before)
  })

  it('is one or the other', async () => {
    const words = ['login', network.url, '--mfa-code', '123456', '--recovery-code-file', '-']

    expectRefused(await commandLine(words, cleanEnvironment()), 2, /exclude each other/)
  })
})

describe('a second factor that the auth policy requires, and the person has not set up', () => {
  it('leaves a session that can set it up, and works from then on', async () => {
    const authPolicyId = await network.people.policy({ requireTotp: true })
    const person = await network.people.person({ authPolicyId })
    const env = cleanEnvironment()
    const codesFile = join(mkdtempSync(join(tmpdir(), 'codes-')), 'codes')

    const login = await commandLine(['login', ...flagsOf(person)], env)
    const early = [await commandLine(['whoami'], env), await commandLine(['passwd'], env)]
    const started = await commandLine(['mfa', 'enroll', '-o', 'json'], env)
    const app = new AuthenticatorApp(JSON.parse(started.stdout).provisioningUrl)
    const words = ['mfa', 'enroll', '--mfa-code', app.code(now()), '--recovery-codes-file', codesFile]
    const finished = await commandLine(words, env)
    const whoami = await commandLine(['whoami'], env)

    expectRefused(login, 4, /requires a second factor, which you have not set up yet\nTry: controller mfa enroll/)
    for (const refused of early) {
      expectRefused(refused, 4, /which you have not set up yet\nTry: controller mfa enroll\n/)
    }
    expect([started.code, finished.code, whoami.code]).toEqual([0, 0, 0])
    expect(readFileSync(codesFile, 'utf8')).not.toBe('')
  })

  it('is not set up before the token of a signer that the auth policy requires as well', async () => {
    const { people } = network
    const requireExtJwtSigner = await new Issuer().trustedBy(people)
    const authPolicyId = await people.policy({ requireTotp: true, requireExtJwtSigner })
    const person = await people.person({ authPolicyId })
    const before = await countSessions(person.id)

    const login = await commandLine(['login', ...flagsOf(person)], cleanEnvironment())

    expectRefused(login, 4, /requires a JWT of an external signer as second factor.*\nTry: --ext-jwt-file FILE/)
    expect(await countSessions(person.id)).toBe(before)
  })
})

describe('an identity file', () => {
  async function enrolledDevice() {
    const enrolled = await enrolledFile(network)
    const { token } = (await signInByFile(network, enrolled.file)).body.data
    return { ...enrolled, ...(await setUp(token)) }
  }

  it('signs in with a code', async () => {
    const { file, app } = await enrolledDevice()
    const env = cleanEnvironment()

    const without = await commandLine(['login', '--identity', file], env)
    const { code } = await commandLine(['login', '--identity', file, '--mfa-code', app.code(now())], env)

    expectRefused(without, 2, /Try: --mfa-code/)
    expect(code).toBe(0)
  })

  it('is renewed with a code', async () => {
    const { file, app } = await enrolledDevice()
    const { cert } = readIdentityFileText(file).id

    const without = await commandLine(['renew', file], cleanEnvironment())
    const { code, stderr } = await commandLine(['renew', file, '--mfa-code', app.code(now())], cleanEnvironment())

    expectRefused(without, 2, /Try: --mfa-code/)
    expect([code, stderr]).toEqual([0, ''])
    expect(readIdentityFileText(file).id.cert).not.toBe(cert)
  })
})
