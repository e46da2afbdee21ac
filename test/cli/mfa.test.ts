// `controller mfa …`, as people set up and use their second factor: a camera reads the QR code that the terminal shows.
import { existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { AuthenticatorApp, STEP_MS } from '../world/authenticator-app.ts'
import { cleanEnvironment, type Finished } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { MfaSession, NONE, outcome } from '../world/mfa.ts'
import { PASSWORD, People, type Person } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'
import { readQrCode } from '../world/qr-code.ts'
import { DARK, drawScreen, LIGHT } from '../world/screen.ts'
import { CTRL_C, ENTER, onTerminal, type PromptInput, plainText, type TerminalOptions } from '../world/terminal.ts'
import { useController } from '../world/use-controller.ts'

const world = useController({ settings: { 'totp.issuer': 'controller.example.com' } })
let people: People
let url: string
let rootPem: string
let files: string

beforeAll(async () => {
  people = await People.in(world)
  ;({ url, rootPem } = await world.listen())
  files = mkdtempSync(join(tmpdir(), 'mfa-'))
  writeFileSync(join(files, 'password'), `${PASSWORD}\n`)
})

let fileCount = 0
const newFile = () => join(files, `codes-${++fileCount}`)

/** A file with a recovery code. */
function writeCode(code = ''): string {
  const path = newFile()
  writeFileSync(path, `${code}\n`)
  return path
}

const now = () => world.clock.now()

/** A person at their own machine, signed in by a password. */
class User {
  readonly person: Person
  readonly env: NodeJS.ProcessEnv

  private constructor(person: Person, env: NodeJS.ProcessEnv) {
    this.person = person
    this.env = env
  }

  static async create(values: Record<string, unknown> = {}): Promise<User> {
    const person = await people.person(values)
    const { NO_COLOR: _unset, ...env } = cleanEnvironment()
    writeProfiles(env, { test: { url, rootPem, token: await people.sessionOf(person) } })
    return new User(person, env)
  }

  run(...args: string[]): Promise<Finished> {
    return commandLine(args, this.env)
  }

  type(args: readonly string[], options: TerminalOptions = {}, env: NodeJS.ProcessEnv = {}) {
    return onTerminal(args, { ...this.env, ...env }, { columns: 80, rows: 24, ...options })
  }

  /** Sets up the second factor as a script does. */
  async enroll(): Promise<{ app: AuthenticatorApp; codes: string[] }> {
    const { stdout } = await this.run('mfa', 'enroll', '-o', 'json')
    const app = new AuthenticatorApp(JSON.parse(stdout).provisioningUrl)
    const file = newFile()
    const { code, stderr } = await this.run(
      'mfa',
      'enroll',
      '--mfa-code',
      app.code(now()),
      '--recovery-codes-file',
      file,
    )
    expect([code, stderr]).toEqual([0, expect.stringContaining('Continuing the enrollment')])
    world.clock.advance(STEP_MS)
    return { app, codes: readFileSync(file, 'utf8').trim().split('\n') }
  }

  async status(): Promise<Record<string, unknown>> {
    return JSON.parse((await this.run('mfa', 'status', '-o', 'json')).stdout)
  }
}

const CODE_PROMPT = 'Code of the app'
const SAVED_PROMPT = 'Have you saved'
const interrupted: PromptInput = [CODE_PROMPT, CTRL_C]

describe('enrolling in a terminal', () => {
  it.each([
    ['a dark background', DARK, {}],
    ['a light background', LIGHT, {}],
    ['a dark background with NO_COLOR', DARK, { NO_COLOR: '1' }],
    ['a light background with NO_COLOR', LIGHT, { NO_COLOR: '1' }],
  ])('draws a QR code that a camera reads on %s, within 80 columns and 24 rows', async (_what, theme, env) => {
    const user = await User.create()

    const { screen, code } = await user.type(['mfa', 'enroll'], { inputs: [interrupted] }, env)
    // The screen while the terminal waits for the code.
    const visible = screen.slice(0, screen.indexOf(CODE_PROMPT))
    const read = readQrCode(drawScreen(visible, theme, { columns: 80, rows: 24 }))

    expect(code).toBe(130)
    expect(read).toMatch(/^otpauth:\/\/totp\/controller\.example\.com:/)
    expect(plainText(screen)).toContain('interrupted: your second factor is not set up yet')
    expect(plainText(screen)).toContain('controller mfa enroll')
  })

  it('goes on where it was interrupted, and the decoded secret passes the second factor', async () => {
    const user = await User.create()
    const first = await user.type(['mfa', 'enroll'], { inputs: [interrupted] })
    const visible = first.screen.slice(0, first.screen.indexOf(CODE_PROMPT))
    const app = new AuthenticatorApp(readQrCode(drawScreen(visible, LIGHT, { columns: 80, rows: 24 })) ?? '')
    const wrong = app.wrongCode(now())

    const inputs: PromptInput[] = [
      [CODE_PROMPT, `${wrong}${ENTER}`],
      [CODE_PROMPT, `${app.code(now()).replace(/(...)/, '$1 ')}${ENTER}`],
      [SAVED_PROMPT, `y${ENTER}`],
    ]
    const { screen, code } = await user.type(['mfa', 'enroll'], { inputs })

    const text = plainText(screen)
    expect(code).toBe(0)
    expect(text).toContain('Continuing the enrollment that was started')
    expect(text).toContain('the code is not accepted')
    expect(text).toContain('Your second factor is set up.')
    expect(text.match(/^ {2}([A-Z2-7]{6} {2}){4}[A-Z2-7]{6}$/gm)).toHaveLength(4)
    world.clock.advance(STEP_MS)
    const session = (await people.signIn(user.person)).body.data
    const passed = await world.send({
      method: 'POST',
      path: '/edge/client/v1/authenticate/mfa',
      token: session.token,
      body: { code: app.code(now()) },
    })
    expect(passed.status).toBe(200)
  })

  it('writes the recovery codes to a private file if they are not saved', async () => {
    const user = await User.create()
    const { stdout } = await user.run('mfa', 'enroll', '-o', 'json')
    const app = new AuthenticatorApp(JSON.parse(stdout).provisioningUrl)
    const file = newFile()

    const inputs: PromptInput[] = [
      [CODE_PROMPT, `${app.code(now())}${ENTER}`],
      [SAVED_PROMPT, `n${ENTER}`],
      ['Write them to a file', `${file}${ENTER}`],
    ]
    const { screen, code } = await user.type(['mfa', 'enroll'], { inputs })

    expect(code).toBe(0)
    for (const recoveryCode of readFileSync(file, 'utf8').trim().split('\n')) expect(screen).toContain(recoveryCode)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('says how to see the recovery codes again if it is interrupted after the code', async () => {
    const user = await User.create()
    const app = new AuthenticatorApp(JSON.parse((await user.run('mfa', 'enroll', '-o', 'json')).stdout).provisioningUrl)

    const inputs: PromptInput[] = [
      [CODE_PROMPT, `${app.code(now())}${ENTER}`],
      [SAVED_PROMPT, CTRL_C],
    ]
    const { screen, code } = await user.type(['mfa', 'enroll'], { inputs })

    expect(code).toBe(130)
    expect(plainText(screen)).toMatch(/are valid\nTry: show the recovery codes again: controller mfa recovery-codes/)
    expect(await user.status()).toMatchObject({ isVerified: true })
  })

  it('shows text if the terminal is too small, and a larger code if it is asked to', async () => {
    const user = await User.create()

    const small = await user.type(['mfa', 'enroll'], { columns: 40, rows: 24, inputs: [interrupted] })
    const low = await user.type(['mfa', 'enroll'], { columns: 80, rows: 20, inputs: [interrupted] })
    const text = await user.type(['mfa', 'enroll', '--no-qr'], { inputs: [interrupted] })
    const large = await user.type(['mfa', 'enroll', '--large'], { columns: 120, rows: 60, inputs: [interrupted] })

    for (const { screen } of [small, low, text]) {
      expect(screen).not.toContain('█')
      expect(plainText(screen).replaceAll('\n', '')).toMatch(/otpauth:\/\/totp\//)
      expect(plainText(screen)).toMatch(/secret: ([A-Z2-7]{4} ){7}[A-Z2-7]{4}/)
    }
    const visible = large.screen.slice(0, large.screen.indexOf(CODE_PROMPT))
    for (const theme of [DARK, LIGHT]) {
      const pixels = drawScreen(visible, theme, { columns: 120, rows: 60 })
      expect(readQrCode(pixels)).toMatch(/^otpauth:\/\/totp\//)
    }
  })
})

describe('enrolling by a script', () => {
  it('prints the URL and the secret, then takes a code and a file for the recovery codes', async () => {
    const user = await User.create()

    const { app, codes } = await user.enroll()

    expect(codes).toHaveLength(20)
    expect(await user.status()).toMatchObject({ isEnrolled: true, isVerified: true })
    const again = await user.run('mfa', 'enroll', '--mfa-code', app.code(now()))
    expect([again.code, again.stderr]).toEqual([6, expect.stringContaining('you have a second factor already')])
  })

  it('requires a file for the recovery codes, before it uses the code', async () => {
    const user = await User.create()
    const app = new AuthenticatorApp(JSON.parse((await user.run('mfa', 'enroll', '-o', 'json')).stdout).provisioningUrl)
    const folder = join(files, 'no-such-folder', 'codes')

    const without = await user.run('mfa', 'enroll', '--mfa-code', app.code(now()))
    const elsewhere = await user.run('mfa', 'enroll', '--mfa-code', app.code(now()), '--recovery-codes-file', folder)
    const both = await user.run('mfa', 'enroll', '--large', '--no-qr')

    expect([without.code, without.stderr]).toEqual([2, expect.stringContaining('--recovery-codes-file')])
    expect([elsewhere.code, both.code]).toEqual([2, 2])
    expect(await user.status()).toMatchObject({ isEnrolled: true, isVerified: false })
  })

  it('writes the recovery codes to a file that is private, also if it replaces one that others can read', async () => {
    const user = await User.create()
    const app = new AuthenticatorApp(JSON.parse((await user.run('mfa', 'enroll', '-o', 'json')).stdout).provisioningUrl)
    const file = newFile()
    writeFileSync(file, 'planted', { mode: 0o644 })

    await user.run('mfa', 'enroll', '--mfa-code', app.code(now()), '--recovery-codes-file', file)

    expect(readFileSync(file, 'utf8')).not.toContain('planted')
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('leaves no file if the code is wrong, and says how to go on', async () => {
    const user = await User.create()
    const app = new AuthenticatorApp(JSON.parse((await user.run('mfa', 'enroll', '-o', 'json')).stdout).provisioningUrl)
    const file = newFile()

    const wrong = app.wrongCode(now())
    const { code, stderr } = await user.run('mfa', 'enroll', '--mfa-code', wrong, '--recovery-codes-file', file)

    expect([code, existsSync(file)]).toEqual([2, false])
    expect(stderr).toMatch(/the code is not accepted\n.*go on with: controller mfa enroll/)
  })

  it('shows none that another session has started, and replaces it', async () => {
    const user = await User.create()
    const thief = new MfaSession(world, await people.sessionOf(user.person))
    await thief.start()
    const { provisioningUrl } = (await thief.show()).body.data

    const status = await user.status()
    const { stdout, stderr } = await user.run('mfa', 'enroll', '-o', 'json')

    expect(status).toMatchObject({ isEnrolled: false })
    expect(JSON.parse(stdout).provisioningUrl).toMatch(/^otpauth:/)
    expect(JSON.parse(stdout).provisioningUrl).not.toBe(provisioningUrl)
    expect(stderr).not.toContain('Continuing')
    expect(outcome(await thief.show())).toEqual(NONE)
  })

  it('takes a code only for an enrollment that its session has started', async () => {
    const user = await User.create()
    const thief = new MfaSession(world, await people.sessionOf(user.person))
    await thief.start()
    const code = (await thief.app()).code(now())

    const refused = await user.run('mfa', 'enroll', '--mfa-code', code, '--recovery-codes-file', newFile())

    expect([refused.code, refused.stdout]).toEqual([5, ''])
    expect(refused.stderr).toMatch(/no enrollment of your session to verify.*\nTry: controller mfa enroll, then/)
    expect((await thief.show()).status).toBe(200)
  })

  it('says to sign in again if the session owes another factor', async () => {
    const user = await User.create()
    await user.enroll()
    const later = await User.create()
    writeProfiles(later.env, { test: { url, rootPem, token: await people.sessionOf(user.person) } })
    await people.manage('DELETE', `/identities/${user.person.id}/mfa`)

    const refused = await later.run('mfa', 'enroll')

    expect([refused.code, refused.stdout]).toEqual([4, ''])
    expect(refused.stderr).toMatch(/owes another factor.*\nTry: controller login/)
  })

  it('by an identity that must enroll one goes on after a partial sign-in', async () => {
    const user = await User.create({ authPolicyId: await people.policy({ requireTotp: true }) })

    await user.enroll()

    expect((await user.run('whoami')).code).toBe(0)
  })
})

describe('the status', () => {
  it('tells whether there is a second factor', async () => {
    const user = await User.create()
    const sentence = async () => (await user.run('mfa', 'status')).stdout

    expect(await sentence()).toMatch(/^You have no second factor; set one up with: controller mfa enroll\n$/)
    await user.run('mfa', 'enroll')
    expect(await sentence()).toMatch(/^You started to set up a second factor .*; go on with: controller mfa enroll\n$/)
    await user.enroll()
    expect(await sentence()).toMatch(/^You have a second factor, since /)
  })
})

describe('recovery codes', () => {
  it('are shown for a code of the app, and replaced with one code', async () => {
    const user = await User.create()
    const { app, codes } = await user.enroll()

    const current = await user.run('mfa', 'recovery-codes', '--mfa-code', app.code(now()), '-o', 'json')
    world.clock.advance(STEP_MS)
    const renewed = await user.run('mfa', 'recovery-codes', '--renew', '--mfa-code', app.code(now()), '-o', 'json')
    const byCode = JSON.parse(renewed.stdout).recoveryCodes as string[]
    const file = newFile()
    const [first = ''] = byCode
    const again = await user.run(
      'mfa',
      'recovery-codes',
      '--renew',
      '--recovery-code-file',
      writeCode(first),
      '--recovery-codes-file',
      file,
    )

    expect(JSON.parse(current.stdout).recoveryCodes).toEqual(codes)
    expect(byCode).toHaveLength(20)
    expect(byCode.filter((code) => codes.includes(code))).toEqual([])
    expect(again.code).toBe(0)
    expect(readFileSync(file, 'utf8')).not.toContain(first)
  })

  it('are not shown for a recovery code, a wrong code, or without a second factor', async () => {
    const [user, other] = [await User.create(), await User.create()]
    const { app, codes } = await user.enroll()
    const show = (...args: string[]) => user.run('mfa', 'recovery-codes', ...args)

    expect((await show('--recovery-code-file', writeCode(codes[0]))).code).toBe(2)
    expect((await show('--mfa-code', app.wrongCode(now()))).code).toBe(2)
    expect((await show('--renew', '--mfa-code', '1', '--recovery-code-file', writeCode('2'))).code).toBe(2)
    expect((await show()).stderr).toMatch(/cannot prompt .*without a terminal\n.*--mfa-code/)
    expect((await other.run('mfa', 'recovery-codes', '--mfa-code', '123456')).code).toBe(5)
  })
})

describe('removing a second factor', () => {
  it('requires a code and a confirmation, and an enrollment', async () => {
    const user = await User.create()
    const { app } = await user.enroll()
    const remove = (...args: string[]) => user.run('mfa', 'remove', ...args)

    expect((await remove('--mfa-code', app.code(now()))).code).toBe(2)
    expect((await remove('--yes', '--mfa-code', app.wrongCode(now()))).code).toBe(2)
    expect((await remove('--yes', '--mfa-code', app.code(now()))).code).toBe(0)

    expect(await user.status()).toMatchObject({ isEnrolled: false })
    expect((await remove('--yes')).code).toBe(5)
  })

  it('takes an enrollment that is not verified without a code', async () => {
    const user = await User.create()
    await user.run('mfa', 'enroll')

    expect((await user.run('mfa', 'remove', '--yes')).code).toBe(0)
  })

  it('by an administrator asks first, and names the identity', async () => {
    const [user, administrator] = [await User.create(), await User.create({ isAdmin: true })]
    await user.enroll()
    const { name } = await people.manage('GET', `/identities/${user.person.id}`)

    const declined = await administrator.type(['identity', 'remove-mfa', name], { inputs: [[name, `n${ENTER}`]] })
    const { code } = await administrator.run('identity', 'remove-mfa', name, '--yes')

    expect([declined.code, code]).toEqual([130, 0])
    expect(await user.status()).toMatchObject({ isEnrolled: false })
  })
})
