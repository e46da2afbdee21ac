// The real binary on a terminal of its own, as a person sees it.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { cleanEnvironment } from '../world/binary.ts'
import { ADMIN, MANAGEMENT } from '../world/controller.ts'
import { writeProfiles } from '../world/profiles.ts'
import { CTRL_C, ENTER, onTerminal, type PromptInput, plainText } from '../world/terminal.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let url: string
let rootPem: string
let env: NodeJS.ProcessEnv
let operatorToken: string

beforeAll(async () => {
  ;({ url, rootPem } = await world.listen())
  const { token } = await world.signIn({ name: 'operator', isAdmin: true })
  operatorToken = token
  const { NO_COLOR: _unset, ...coloured } = cleanEnvironment()
  env = coloured
  writeProfiles(env, { test: { url, rootPem, token }, gone: { url: 'https://127.0.0.1:9', rootPem, token } })
  await world.signIn({ name: 'laptop', roleAttributes: ['staff', 'abroad', 'a-rather-long-role-attribute'] })
})

const ESCAPE = '\u001b'

describe('tables', () => {
  it.each([60, 100, 160])('are no wider than a terminal of %i columns', async (columns) => {
    const { screen, code } = await onTerminal(['identity', 'list'], env, { columns })

    const lines = plainText(screen).trimEnd().split('\n')
    expect(code).toBe(0)
    expect(lines[0]).toMatch(/^NAME +TYPE/)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns)
    expect(lines.some((line) => line.includes('laptop'))).toBe(true)
  })

  it('show ids whole that other commands take, however narrow the terminal is', async () => {
    const { data } = (
      await world.send({ method: 'GET', path: `${MANAGEMENT}/api-sessions?limit=1`, token: operatorToken })
    ).body
    const { screen } = await onTerminal(['api-session', 'list'], env, { columns: 60 })
    const { screen: audit } = await onTerminal(['audit', 'list', '--limit', '1'], env, { columns: 40 })

    expect(plainText(screen)).toContain(data[0].id)
    const [, id = ''] = / (\d+)$/m.exec(plainText(audit)) ?? []
    expect((await onTerminal(['audit', 'get', id], env)).code).toBe(0)
  })

  it('tell times as people do', async () => {
    const { screen } = await onTerminal(['identity', 'get', 'laptop'], env)

    expect(plainText(screen)).toMatch(/^created at +(now|\d+ (?:second|minute)s? ago)$/m)
  })

  it('are never rewritten by what a record holds', async () => {
    await world.signIn({ name: `evil${ESCAPE}[2J${ESCAPE}]0;title\u0007` })

    for (const format of ['table', 'json', 'jsonl', 'yaml', 'name']) {
      const { screen } = await onTerminal(['identity', 'list', '-o', format], env)
      expect(screen).not.toContain(`${ESCAPE}[2J`)
      expect(screen).not.toContain('\u0007')
    }
  })

  it('are preceded by no sentence that is rewritten so', async () => {
    const { token } = await world.signIn({ name: `sly${ESCAPE}[2J`, isAdmin: true })
    const sly = cleanEnvironment()
    writeProfiles(sly, { test: { url, rootPem, token } })

    const { screen, code } = await onTerminal(['whoami'], sly)

    expect(code).toBe(0)
    expect(screen).toContain('sly')
    expect(screen).not.toContain(`${ESCAPE}[2J`)
  })

  it('carry colour where it says something, and none with NO_COLOR', async () => {
    const { screen } = await onTerminal(['identity', 'get', 'laptop'], env)
    const { screen: without } = await onTerminal(['identity', 'get', 'laptop'], { ...env, NO_COLOR: '1' })

    expect(screen).toContain(`${ESCAPE}[32mno${ESCAPE}[39m`)
    expect(without).not.toContain(ESCAPE)
  })
})

describe('lines with a mark', () => {
  it('have it in color, and none with NO_COLOR', async () => {
    const words = ['policy', 'advise', 'laptop', 'nowhere']
    await onTerminal(['service', 'create', 'nowhere'], env)
    const { screen } = await onTerminal(words, env)
    const { screen: plain } = await onTerminal(words, { ...env, NO_COLOR: '1' })

    expect(screen).toContain(`  ${ESCAPE}[32m✓${ESCAPE}[39m identity`)
    expect(screen).toMatch(new RegExp(` {2}${ESCAPE}\\[31m✗${ESCAPE}\\[39m `))
    expect(plain).toContain('  ✓ identity')
    expect(plain).not.toContain(ESCAPE)
  })

  it('are those of a plan, too, but not what names say', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'plan-')), 'network.yaml')
    writeFileSync(file, 'version: 1\nservices:\n  - name: "✓ planned"\n')

    const { screen } = await onTerminal(['plan', '-f', file], env)

    expect(screen).toContain(`${ESCAPE}[32m+${ESCAPE}[39m create service ✓ planned`)
  })
})

describe('failures', () => {
  it('are red, and their remedy is not', async () => {
    const words = ['identity', 'list', '--limt', '3']
    const { screen } = await onTerminal(words, env)
    const { screen: plain } = await onTerminal(words, { ...env, NO_COLOR: '1' })

    expect(screen.replaceAll('\r', '')).toBe(`${ESCAPE}[31munknown flag: --limt${ESCAPE}[39m\nTry: --limit\n`)
    expect(plain).not.toContain(ESCAPE)
  })

  it.each<[what: string, args: string[], code: number, says: RegExp]>([
    ['a wrong flag', ['identity', 'list', '--limt', '3'], 2, /^unknown flag: --limt\nTry: --limit\n$/],
    [
      'no profile',
      ['identity', 'list', '--profile', 'none'],
      4,
      /^there is no profile none\nTry: controller profile list\n$/,
    ],
    ['an unknown record', ['identity', 'get', 'labtop'], 5, /no identity "labtop"\nTry: laptop\n$/],
    [
      'a name that is taken',
      ['identity', 'create', 'laptop', '--ott'],
      6,
      /name "laptop" is taken\nTry: controller identity list\n/,
    ],
    [
      'nothing that listens',
      ['identity', 'list', '--profile', 'gone'],
      8,
      /cannot be reached: connection refused\nTry: /,
    ],
    ['a JSON error', ['identity', 'get', 'labtop', '-o', 'json'], 5, /^\{"code":"NOT_FOUND",.*\}\n$/],
  ])('of %s look as they do elsewhere, with their exit code', async (_what, args, code, says) => {
    const ended = await onTerminal(args, env)

    expect(plainText(ended.screen)).toMatch(says)
    expect(ended.code).toBe(code)
  })

  it('for lack of a right say so', async () => {
    const { token } = await world.signIn({ name: 'jane' })
    const limited = cleanEnvironment()
    writeProfiles(limited, { test: { url, rootPem, token } })

    const { screen, code } = await onTerminal(['identity', 'list'], limited)

    expect(plainText(screen)).toMatch(
      /: not permitted: this needs identity.read\nTry: controller login https:.* as an administrator/,
    )
    expect(code).toBe(7)
  })
})

describe('a list that was cut', () => {
  it('says so beside the table', async () => {
    const { screen, code } = await onTerminal(['identity', 'list', '--limit', '1'], env)

    expect(plainText(screen)).toMatch(/\nShowing 1 of \d+\.\n$/)
    expect(code).toBe(0)
  })
})

describe('deleting', () => {
  const question = 'Delete the service'

  it('says what the record is linked with, asks, and accepts a refusal', async () => {
    await onTerminal(['service', 'create', 'web', '--role', 'web'], env)
    await onTerminal(
      ['service-policy', 'create', 'use', '--type', 'Dial', '--service-roles', '#web', '--identity-roles', '#staff'],
      env,
    )

    const refused = await onTerminal(['service', 'delete', 'web'], env, { inputs: [[question, `n${ENTER}`]] })
    const interrupted = await onTerminal(['service', 'delete', 'web'], env, { inputs: [[question, CTRL_C]] })
    const deleted = await onTerminal(['service', 'delete', 'web'], env, { inputs: [[question, `y${ENTER}`]] })

    expect(plainText(refused.screen)).toMatch(/service web is linked with 1 service policy, 1 identity\./)
    expect(plainText(refused.screen)).toMatch(/nothing was changed/)
    expect(plainText(deleted.screen)).toMatch(/Deleted service web\./)
    expect([refused.code, interrupted.code, deleted.code]).toEqual([130, 130, 0])
  })
})

describe('signing in', () => {
  const username: PromptInput = ['Username', `${ADMIN.username}${ENTER}`]
  const password: PromptInput = ['Password', `${ADMIN.password}${ENTER}`]

  it('shows the root to be compared, and asks for everything else', async () => {
    const { screen, code } = await onTerminal(['login', url], cleanEnvironment(), {
      inputs: [['expect', `y${ENTER}`], username, password],
    })

    expect(plainText(screen)).toMatch(/has the SHA-256 [0-9a-f]{64}/)
    expect(plainText(screen)).toMatch(/Signed in to https/)
    expect(screen).not.toContain(ADMIN.password)
    expect(code).toBe(0)
  })

  it('lets a mistyped password be corrected', async () => {
    const { screen, code } = await onTerminal(['login', url, '--yes', '-u', ADMIN.username], cleanEnvironment(), {
      inputs: [
        ['Password', `mistyped${ENTER}`],
        ['not accepted: try again[\\s\\S]*Password', `${ADMIN.password}${ENTER}`],
      ],
    })

    expect(plainText(screen)).toMatch(/Signed in to https/)
    expect(code).toBe(0)
  })

  it('goes no further when the root is not the expected one', async () => {
    const { screen, code } = await onTerminal(['login', url], cleanEnvironment(), {
      inputs: [['expect', `n${ENTER}`]],
    })

    expect(plainText(screen)).toMatch(/was not accepted/)
    expect(code).toBe(130)
  })

  it('ends with 130 when it is interrupted', async () => {
    const { screen, code } = await onTerminal(['login', url, '--yes'], cleanEnvironment(), {
      inputs: [['Username', CTRL_C]],
    })

    expect(plainText(screen)).toMatch(/interrupted/)
    expect(code).toBe(130)
  })
})

describe('a list that is watched', () => {
  it('is printed again and again until it is interrupted', async () => {
    const { screen, code } = await onTerminal(['identity', 'list', '--watch', '1'], env, {
      inputs: [['laptop[\\s\\S]*\\x1b\\[H\\x1b\\[2J[\\s\\S]*laptop', CTRL_C]],
    })

    expect(screen.split('NAME').length).toBeGreaterThan(2)
    expect(plainText(screen)).toMatch(/^\d\d:\d\d:\d\d, every second until Ctrl-C\n\nNAME/)
    expect(code).toBe(130)
  })

  it('is printed every two seconds if no number is given', async () => {
    const { screen } = await onTerminal(['identity', 'list', '--watch'], env, { inputs: [['laptop', CTRL_C]] })

    expect(plainText(screen)).toMatch(/^\d\d:\d\d:\d\d, every 2 seconds until Ctrl-C\n\nNAME/)
  })
})

describe('new credentials', () => {
  it('of the first administrator are asked for twice, and judged when they are typed', async () => {
    const directory = join(mkdtempSync(join(tmpdir(), 'init-')), 'data')

    const { screen, code } = await onTerminal(['init', '--data-dir', directory, '--admin-username', 'admin'], env, {
      inputs: [
        ['New password', `abc${ENTER}`],
        ['5 to 100 characters[\\s\\S]*New password', `a fresh start${ENTER}`],
        ['Repeat', `another start${ENTER}`],
        ['passwords differ[\\s\\S]*New password', `a fresh start${ENTER}`],
        ['Repeat', `a fresh start${ENTER}`],
      ],
    })

    expect(plainText(screen)).toMatch(/Created a controller in/)
    expect(code).toBe(0)
  })

  it('of a recovered administrator are, too', async () => {
    const directory = join(mkdtempSync(join(tmpdir(), 'recover-')), 'data')
    const file = join(directory, '../password')
    writeFileSync(file, 'a fresh start')
    await onTerminal(['init', '--data-dir', directory, '--admin-username', 'admin', '--admin-password-file', file], env)

    const { screen, code } = await onTerminal(['admin', 'recover', '--data-dir', directory], env, {
      inputs: [
        ['Username', ENTER],
        ['4 to 100 characters[\\s\\S]*Username', `boss${ENTER}`],
        ['New password', `another start${ENTER}`],
        ['Repeat', `another start${ENTER}`],
      ],
    })

    expect(plainText(screen)).toMatch(/it signs in as boss/)
    expect(code).toBe(0)
  })
})

describe('a command that waits for its input', () => {
  it('ends with 130 when it is interrupted', async () => {
    const { code } = await onTerminal(['identity', 'create', '--data', '-'], env, {
      inputs: [['Ctrl-D', CTRL_C]],
    })

    expect(code).toBe(130)
  })
})
