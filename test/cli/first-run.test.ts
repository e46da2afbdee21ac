// The first commands of a new user on an empty directory, with the real binary except where a row of a table is one more command.
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cleanEnvironment, controller, type Served, serve } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { findFreePort } from '../world/free-port.ts'
import { writeProfiles } from '../world/profiles.ts'
import { ENTER, onTerminal, plainText } from '../world/terminal.ts'

const home = mkdtempSync(join(tmpdir(), 'first-run-'))
const env = cleanEnvironment(home)
const data = join(home, 'data')
const passwordFile = join(home, 'password')
let served: Served

beforeAll(async () => {
  writeFileSync(passwordFile, 'correct horse battery\n')
  served = await serve(['--data-dir', data, '--listen', `127.0.0.1:${await findFreePort()}`], env)
})
afterAll(() => served?.stop())

const cli = (...args: string[]) => controller(args, env)
/** The same without a process of its own. */
const inProcess = (...args: string[]) => commandLine(args, env)

/** The bootstrap token that a start printed, on a line of its own. */
const findToken = ({ announced }: Served) => /^ {2}([\w-]{100,})$/m.exec(announced)?.[1] ?? ''

describe('a first start', () => {
  it('says where it is, how to recognise it, what it wrote and what to do next', () => {
    expect(served.announced).toMatch(/^Controller +https:\/\/127\.0\.0\.1:\d+$/m)
    expect(served.announced).toMatch(/^Root SHA-256 +[0-9a-f]{64}$/m)
    for (const file of ['config.yaml', 'controller.db', 'token.key', 'audit.key', 'secrets.key', 'pki/root.crt'])
      expect(served.announced).toContain(join(data, file))
    expect(served.announced).toMatch(/^Next: controller login --bootstrap$/m)
    expect(served.announced.split(findToken(served))).toHaveLength(2)
  })

  it('leaves nothing for others to read', () => {
    expect(statSync(data).mode & 0o777).toBe(0o700)
    for (const file of ['config.yaml', 'token.key', 'audit.key', 'secrets.key', 'pki/root.key', 'pki/server.key']) {
      expect(statSync(join(data, file)).mode & 0o777).toBe(0o600)
    }
  })

  it('holds the directory for itself', async () => {
    const second = await cli('serve', '--data-dir', data, '--listen', '127.0.0.1:0')

    expect(second.code).toBe(8)
    expect(second.stderr).toMatch(/works on/)
  })
})

describe('the commands that follow', () => {
  it('ask for the username of the first administrator, also where a profile of an earlier controller has one', async () => {
    const other = cleanEnvironment()
    const [, url = ''] = /^Controller +(\S+)$/m.exec(served.announced) ?? []
    writeProfiles(other, {
      earlier: { url, rootPem: readFileSync(join(data, 'pki/root.crt'), 'utf8'), username: 'anna' },
    })
    const words = ['login', '--bootstrap-file', '-', '--password-file', passwordFile]

    const { code, stderr } = await controller(words, other, `${findToken(served)}\n`)

    expect([code, stderr]).toEqual([2, expect.stringMatching(/cannot prompt for "Username of the new administrator"/)])
  })

  it('go from the bootstrap token to a device that may dial a service', async () => {
    const words = ['login', '--bootstrap-file', '-', '--username', 'admin', '--password-file', passwordFile]

    const login = await controller(words, env, `${findToken(served)}\n`)
    const identity = await cli('identity', 'create', 'laptop', '--role', 'staff', '-o', 'jwt')
    const service = await cli('service', 'create', 'web', '--role', 'web')
    const policy = await cli(
      'service-policy',
      'create',
      'web-users',
      '--type',
      'Dial',
      '--identity-roles',
      '#staff',
      '--service-roles',
      '#web',
    )

    expect([login, identity, service, policy].map(({ code, stderr }) => (code === 0 ? 0 : stderr))).toEqual([
      0, 0, 0, 0,
    ])
    expect(login.stdout).toMatch(/^Signed in to https/)
    expect(identity.stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    expect(identity.stderr).toMatch(/^Created identity laptop \(type Default, is-admin false\)\.$/m)
    expect(service.stderr).toMatch(/encryption-required true/)
    expect(policy.stderr).toMatch(/semantic AnyOf/)
  })

  it('tell what is still missing, and what to type next', async () => {
    const { code, stdout } = await cli('policy', 'advise', 'laptop', 'web')

    expect(code).toBe(3)
    expect(stdout).toMatch(/✓ service policy +web-users \(#staff → #web\)$/m)
    expect(stdout).toMatch(
      /✗ edge router policy +there is no edge router\n +next: +controller edge-router create edge-1 --config-file edge-1\.yml --advertise HOST:PORT$/m,
    )
  })

  it('refuse the bootstrap token the second time', async () => {
    const tokenFile = join(home, 'token')
    writeFileSync(tokenFile, findToken(served))

    const second = await cli('login', '--bootstrap-file', tokenFile, '-u', 'other', '--password-file', passwordFile)

    expect(second.code).toBe(2)
    expect(second.stderr).toMatch(/the bootstrap token was used already/)
    const third = await cli('login', '--bootstrap-file', tokenFile)
    expect(third.stderr, 'before a username and a password are asked for').toMatch(
      /the bootstrap token was used already/,
    )
  })

  it('take no bootstrap token as an argument, because other accounts read arguments', async () => {
    const token = findToken(served)

    const typed = await cli('login', '--bootstrap', token, '--username', 'other', '--password-file', passwordFile)
    const asUrl = await cli('login', token)

    expect([typed.code, asUrl.code]).toEqual([2, 2])
    for (const { stderr } of [typed, asUrl]) {
      expect(stderr).toMatch(/other accounts .*\nTry: controller login --bootstrap, .*--bootstrap-file FILE/)
      expect(stderr).not.toContain(token)
    }
  })

  it('read one secret from stdin, not two', async () => {
    const words = ['login', '--bootstrap-file', '-', '--username', 'other', '--password-file', '-']

    const { code, stderr } = await controller(words, env, findToken(served))

    expect([code, stderr]).toEqual([2, expect.stringMatching(/--bootstrap-file and --password-file.* stdin/)])
  })

  it.each([
    [
      'json',
      (text: string) =>
        expect(JSON.parse(text)).toMatchObject({
          apiVersion: 'v1',
          kind: 'identities',
          items: [{}, { name: 'laptop' }],
        }),
    ],
    [
      'jsonl',
      (text: string) =>
        expect(
          text
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line).name),
        ).toContain('laptop'),
    ],
    ['yaml', (text: string) => expect(text).toMatch(/^kind: identities$/m)],
    ['name', (text: string) => expect(text.split('\n')).toContain('laptop')],
    ['table', (text: string) => expect(text).toMatch(/^NAME +TYPE/)],
  ])('print lists as %s, and nothing else on stdout', async (format, check) => {
    const { stdout, stderr, code } = await inProcess('identity', 'list', '-o', format)

    expect(code).toBe(0)
    expect(stderr).toBe('')
    check(stdout)
  })

  it('take names where ids are asked, inside roles too', async () => {
    const policy = await cli('service-policy', 'update', 'web-users', '--service-roles', '@web', '-o', 'json')
    const { id } = JSON.parse((await cli('service', 'get', 'web', '-o', 'json')).stdout)

    expect(JSON.parse(policy.stdout).serviceRoles).toEqual([`@${id}`])
  })

  it.each([
    ['an unknown record', ['service', 'get', 'nothing'], 5],
    ['a name that is taken', ['service', 'create', 'web'], 6],
    ['an invalid value', ['identity', 'create', 'bad', '--role', '#x'], 2],
    ['an unknown flag', ['service', 'list', '--colour', 'red'], 2],
    ['an unknown command', ['colour', 'list'], 2],
    ['a broken filter', ['service', 'list', '--filter', 'name ='], 2],
    ['a deletion that cannot be confirmed', ['service', 'delete', 'web'], 2],
    ['an unknown profile', ['service', 'list', '--profile', 'unknown'], 4],
    ['a record in use', ['auth-policy', 'delete', 'Default', '--yes'], 6],
  ])('end for %s with its exit code, and say why on stderr', async (_what, args, code) => {
    const ended = await inProcess(...args)

    expect(ended.code).toBe(code)
    expect(ended.stdout).toBe('')
    expect(ended.stderr).not.toBe('')
  })

  it('give errors as JSON where JSON was asked for', async () => {
    const { stderr } = await cli('service', 'create', 'web', '-o', 'json')

    expect(JSON.parse(stderr)).toMatchObject({
      code: 'CONFLICT',
      field: 'name',
      requestId: expect.any(String),
    })
  })
})

describe('a bootstrap token on a terminal', () => {
  it('is asked for, and so is the password of the administrator, twice', async () => {
    const directory = join(home, 'other')
    const other = await serve(['--data-dir', directory, '--listen', `127.0.0.1:${await findFreePort()}`], env)
    const password = 'correct horse battery'

    const { screen, code } = await onTerminal(['login', '--bootstrap'], cleanEnvironment(), {
      inputs: [
        ['Bootstrap token', `${findToken(other)}${ENTER}`],
        ['Username of the new administrator', `root${ENTER}`],
        ['New password', `${password}${ENTER}`],
        ['Repeat', `${password}!${ENTER}`],
        ['differ[\\s\\S]*New password', `${password}${ENTER}`],
        ['Repeat', `${password}${ENTER}`],
      ],
    })
    await other.stop()

    expect(plainText(screen)).toMatch(/Signed in to .* as /)
    expect(screen).not.toContain(password)
    expect(screen).not.toContain(findToken(other))
    expect(code).toBe(0)
  })
})

describe('a second start', () => {
  it('finds everything, writes nothing, and asks for no administrator', async () => {
    await served.stop()
    const filesOfItsOwn = () =>
      readdirSync(data)
        .filter((name) => !/-(wal|shm|journal)$/.test(name))
        .sort()
    const before = filesOfItsOwn()

    served = await serve(['--data-dir', data], env)

    expect(served.announced).not.toMatch(/Wrote|bootstrap/)
    expect(filesOfItsOwn()).toEqual(before)
  })

  it('knows the sessions of before', async () => {
    expect((await cli('service', 'list', '-o', 'name')).stdout).toBe('web\n')
  })

  it('exits without failure on SIGTERM', async () => {
    expect(await served.stop()).toBe(0)
  })

  it('leaves a controller that cannot be reached with its own exit code', async () => {
    const { code, stderr } = await cli('service', 'list')

    expect(code).toBe(8)
    expect(stderr).toMatch(/cannot be reached/)
  })
})

describe('init', () => {
  it('makes a directory with an administrator, once', async () => {
    const directory = join(home, 'made')
    const args = ['init', '--data-dir', directory, '--admin-username', 'root', '--admin-password-file', passwordFile]

    const first = await cli(...args)
    const second = await cli(...args)

    expect(first.code).toBe(0)
    expect(second.code).toBe(6)
    expect(second.stderr).toMatch(/already/)
  })

  it('does not take over a directory that holds other files', async () => {
    const { code } = await cli('init', '--data-dir', home)

    expect(code).toBe(6)
  })
})
