// The messages of failures: the cause, who has to act, and the command that helps.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { beforeAll, describe, expect, it } from 'vitest'
import { readOwnCertificate } from '../../commands/client/own-certificates.ts'
import { BINARY, cleanEnvironment, run } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { ADMIN } from '../world/controller.ts'
import { serverCertificate } from '../world/endpoints.ts'
import { lacks } from '../world/machine.ts'
import { writeProfiles } from '../world/profiles.ts'
import { useController } from '../world/use-controller.ts'

const files = mkdtempSync(join(tmpdir(), 'failures-'))
const env = cleanEnvironment()
const world = useController()
let url: string
let rootPem: string

beforeAll(async () => {
  ;({ url, rootPem } = await world.listen())
  writeProfiles(env, { test: { url, rootPem, token: await world.admin() } })
})

const cli = (...args: string[]) => commandLine(args, env)

describe('a file that cannot be used', () => {
  it.each([
    ['does not exist', () => '/nowhere/file', /--data cannot be read: \/nowhere\/file: no such file or directory/],
    ['is a directory', () => files, /: it is a directory/],
    [
      'is below a file',
      () => {
        writeFileSync(join(files, 'plain'), '')
        return join(files, 'plain', 'file')
      },
      /a part of the path is not a directory/,
    ],
  ])('is named with the reason if it %s', async (_what, path, reason) => {
    const { code, stderr } = await cli('identity', 'create', 'x', '--data', `@${path()}`)

    expect(code).toBe(2)
    expect(stderr).toMatch(reason)
    expect(stderr).not.toMatch(/ENOENT|EISDIR|ENOTDIR/)
  })

  it.skipIf(lacks('an account other than root', process.geteuid?.() !== 0))(
    'is named with its owner if access is denied',
    async () => {
      const path = join(files, 'closed')
      writeFileSync(path, '{}')
      chmodSync(path, 0)

      const { stderr } = await cli('identity', 'create', 'x', '--data', `@${path}`)

      expect(stderr).toMatch(/permission denied: .* belongs to the account \d+, and this command runs as/)
    },
  )
})

describe('config data with several mistakes', () => {
  it('is refused with all of them, and the members that were meant', async () => {
    const data = '{"adress":"127.0.0.1","protocol":"tpc","port":80}'

    const { code, stderr } = await cli('config', 'create', 'x', '--config-type', 'host.v1', '--data', data)

    expect(code).toBe(2)
    expect(stderr).toContain('adress is not known here: did you mean address?')
    expect(stderr).toMatch(/^protocol must be one of .*: did you mean tcp\?$/m)
  })
})

describe('the file of a JWT', () => {
  it('is written by commands that issue one, and by those that read one', async () => {
    await cli('identity', 'create', 'jwt-1', '--ott')
    const { stdout } = await cli('identity', 'enrollments', 'jwt-1', '-o', 'json')
    const [{ id }] = JSON.parse(stdout).items
    const [got, refreshed] = [join(files, 'got.jwt'), join(files, 'refreshed.jwt')]

    const get = await cli('enrollment', 'get', id, '--jwt-file', got)
    const refresh = await cli('enrollment', 'refresh', id, '--jwt-file', refreshed)
    const printed = await cli('enrollment', 'refresh', 'jwt-1', '-o', 'jwt')

    expect([get.code, refresh.code, printed.code]).toEqual([0, 0, 0])
    for (const file of [got, refreshed]) expect(readFileSync(file, 'utf8')).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    expect(printed.stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  })

  it('is judged before the older token becomes invalid', async () => {
    await cli('identity', 'create', 'jwt-2', '--ott')
    const read = async () => (await cli('enrollment', 'get', 'jwt-2', '-o', 'jwt')).stdout
    const before = await read()

    const { code, stderr } = await cli('enrollment', 'refresh', 'jwt-2', '--jwt-file', files)

    expect(code).toBe(2)
    expect(stderr).toMatch(/is not a regular file/)
    expect(await read()).toBe(before)
  })

  it('stays a link if it is one, and the file behind it is replaced with its mode', async () => {
    const [target, link] = [join(files, 'target.jwt'), join(files, 'link.jwt')]
    writeFileSync(target, 'old')
    chmodSync(target, 0o640)
    symlinkSync(target, link)

    await cli('identity', 'create', 'jwt-3', '--jwt-file', link, '--force')

    expect(readFileSync(target, 'utf8')).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  })

  it.each([['/dev/null'], ['/proc/self/jwt']])('is refused at %s', async (path) => {
    const { code } = await cli('identity', 'create', `jwt${path.replaceAll('/', '-')}`, '--jwt-file', path)

    expect(code).not.toBe(0)
    expect((await cli('identity', 'get', `jwt${path.replaceAll('/', '-')}`)).code).toBe(5)
  })

  it('is not replaced if it has another content, before anything is created', async () => {
    const file = join(files, 'first.jwt')
    await cli('edge-router', 'create', 'first', '--jwt-file', file)
    const before = readFileSync(file, 'utf8')

    const refused = await cli('edge-router', 'create', 'second', '--jwt-file', file)
    const other = await cli('edge-router', 're-enroll', 'first', '--yes', '--jwt-file', join(files, 'target.jwt'))

    expect([refused.code, other.code]).toEqual([6, 6])
    expect(refused.stderr).toMatch(/first\.jwt exists already: nothing was changed\nTry: --jwt-file .* --force/)
    expect(readFileSync(file, 'utf8')).toBe(before)
    expect((await cli('edge-router', 'get', 'second')).code).toBe(5)
    expect((await cli('edge-router', 'create', 'second', '--jwt-file', file, '--force')).code).toBe(0)
    expect(readFileSync(file, 'utf8')).not.toBe(before)
  })

  it('is replaced by a newer token of the same record', async () => {
    const [router, identity] = [join(files, 'same-router.jwt'), join(files, 'same-identity.jwt')]
    await cli('edge-router', 'create', 'same', '--jwt-file', router)
    await cli('identity', 'create', 'same', '--jwt-file', identity)

    const codes = [
      await cli('edge-router', 're-enroll', 'same', '--yes', '--jwt-file', router),
      await cli('enrollment', 'refresh', 'same', '--jwt-file', identity),
      await cli('identity', 'get', 'same', '--jwt-file', identity),
    ].map(({ code }) => code)

    expect(codes).toEqual([0, 0, 0])
  })

  it('is named with what helps if it cannot be written, before anything is created', async () => {
    const { code, stderr } = await cli('identity', 'create', 'unwritten', '--jwt-file', join(files, 'none', 'x.jwt'))

    expect(code).toBe(2)
    expect(stderr).toMatch(/its directory does not exist\nTry: name a file in a directory that exists/)
    expect((await cli('identity', 'get', 'unwritten')).code).toBe(5)
  })

  it('is not offered by commands that have none', async () => {
    const { code, stderr } = await cli('identity', 'posture-data', 'x', '--jwt-file', 'y')

    expect(code).toBe(2)
    expect(stderr).toMatch(/unknown flag/)
  })
})

describe('an error of the controller', () => {
  it('names the records that use another one', async () => {
    await cli('auth-policy', 'create', 'strict')
    await cli('identity', 'create', 'user-1', '--auth-policy', 'strict')

    const { code, stderr } = await cli('auth-policy', 'delete', 'strict', '--yes')

    expect(code).toBe(6)
    expect(stderr).toMatch(/: the auth policy is in use by identities: user-1\n/)
  })

  it('names a value that is taken', async () => {
    await cli('service', 'create', 'twice')

    const { stderr } = await cli('service', 'create', 'twice')

    expect(stderr).toMatch(/name "twice" is taken/)
  })

  it.each([
    ['create', ['rolled', '--role', '#staff', '--role=#abroad'], 'create rolled --role staff --role=abroad'],
    ['update', ['jwt-1', '--add-role', '#staff'], 'update jwt-1 --add-role staff'],
  ])('names role attributes as they are meant: %s', async (verb, words, meant) => {
    const { code, stderr } = await cli('identity', verb, ...words)

    expect(code).toBe(2)
    expect(stderr).toContain(`Try: controller identity ${meant}\n`)
  })

  it('has a code that agrees with the exit code', async () => {
    await cli('service', 'create', 'taken')

    const { code, stderr } = await cli('service', 'create', 'taken', '-o', 'json')

    expect(code).toBe(6)
    expect(JSON.parse(stderr)).toMatchObject({ code: 'CONFLICT', field: 'name' })
  })

  it('clears a member that may be null', async () => {
    await cli('identity', 'create', 'cleared', '--external-id', 'subject')

    const { stdout } = await cli('identity', 'update', 'cleared', '--data', '{"externalId":null}', '-o', 'json')

    expect(JSON.parse(stdout).externalId ?? null).toBeNull()
  })

  it('about a session that has ended renews the profile in use', async () => {
    const ended = cleanEnvironment()
    const token = '00000000-0000-4000-8000-000000000000'
    writeProfiles(ended, { first: { url, rootPem, token }, second: { url, rootPem, token } })

    const current = await commandLine(['identity', 'list'], ended)
    const byFlag = await commandLine(['identity', 'list', '--profile', 'second'], ended)
    const byVariable = await commandLine(['identity', 'list'], { ...ended, CONTROLLER_PROFILE: 'second' })

    expect(current.stderr).toContain('Try: controller login --profile first\n')
    expect(byFlag.stderr).toContain('Try: controller login --profile second\n')
    expect(byVariable.stderr).toContain('Try: controller login --profile second\n')
  })
})

describe('another program at the address', () => {
  it('is told from a controller, whatever it makes of the handshake', async () => {
    const router = createTlsServer({ ...serverCertificate(), requestCert: true, rejectUnauthorized: true })
    await new Promise<void>((resolve) => router.listen(0, '127.0.0.1', resolve))
    const { port } = router.address() as AddressInfo
    const claims = { em: 'ott', iss: `https://127.0.0.1:${port}`, sub: 'id', jti: 'secret' }
    const token = ['{"alg":"none"}', JSON.stringify(claims), ''].map((part) => Buffer.from(part).toString('base64url'))
    writeFileSync(join(files, 'elsewhere.jwt'), token.join('.'))

    const login = await commandLine(['login', `127.0.0.1:${port}`, '-u', 'x', '--yes'], cleanEnvironment())
    const enrollment = await commandLine(['enroll', join(files, 'elsewhere.jwt')], cleanEnvironment())
    router.close()

    for (const { code, stderr } of [login, enrollment]) {
      expect(code).toBe(1)
      expect(stderr).toMatch(
        /is not a controller: what listens there does not speak HTTPS\nTry: .*not that of a router/,
      )
      expect(stderr).not.toMatch(/SSL|alert|EPROTO/)
    }
  })
})

describe('several profiles', () => {
  it('of which none is the current one are proposed', async () => {
    const several = cleanEnvironment()
    writeProfiles(several, { first: { url, rootPem }, second: { url, rootPem }, third: { url, rootPem } })

    const deletion = await commandLine(['profile', 'delete', 'first'], several)
    const { code, stderr } = await commandLine(['identity', 'list'], several)

    const hint = 'controller profile use second, or another one of second, third'
    expect(deletion.stdout).toBe(`Deleted the profile first. Now no profile is the current one: ${hint}\n`)
    expect([code, stderr]).toEqual([4, `no profile is the current one\nTry: ${hint}\n`])
  })
})

describe('the version', () => {
  it('is that of the command line if no controller is known', async () => {
    const text = await commandLine(['version'], cleanEnvironment())
    const json = await commandLine(['version', '-o', 'json'], cleanEnvironment())

    expect([text.code, json.code]).toEqual([0, 0])
    expect(text.stdout).toMatch(/^command line +v\d+\.\d+\.\d+ \(node v/)
    expect(text.stderr).toMatch(/unknown, because there is no profile yet\.\nTry: controller login /)
    expect(JSON.parse(json.stdout)).toEqual({ commandLineVersion: expect.stringMatching(/^v\d/) })
  })

  it('of the controller is beside it if one is known', async () => {
    const { code, stdout } = await cli('version')

    expect(code).toBe(0)
    expect(stdout).toMatch(/^command line .*\ncontroller +v\d+\.\d+\.\d+ \(revision .*\) at https:/)
  })
})

describe('the version of a controller that does not run', () => {
  it('is missing, and that of the command line is shown', async () => {
    const stopped = cleanEnvironment()
    writeProfiles(stopped, { gone: { url: 'https://127.0.0.1:9', rootPem, token: 'x' } })

    const { code, stdout, stderr } = await commandLine(['version'], stopped)

    expect(code).toBe(8)
    expect(stdout).toMatch(/^command line +v\d+\.\d+\.\d+ \(node v\S+\)\n$/)
    expect(stderr).toMatch(/cannot be reached/)
  })
})

describe.skipIf(lacks('/dev/full', existsSync('/dev/full')))('a full disk behind stdout', () => {
  const onFullDisk = (words: string) =>
    run('bash', ['-c', `"$0" "$1" ${words} > /dev/full`, process.execPath, BINARY], env)

  it('is reported in one line, with the command that prints the result of a change again', async () => {
    const { code, stderr } = await onFullDisk('identity create full -o jwt')
    const again = /is shown by: controller (.*)\n/.exec(stderr)?.[1] ?? ''

    expect(code).toBe(1)
    expect(stderr).toMatch(/stdout cannot be written: the disk is full\nTry: the change is made/)
    expect(stderr).not.toMatch(/ {4}at /)
    expect((await cli(...again.split(' '))).stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  })

  it.each(['identity list', '--help', 'version'])('is reported by %s', async (words) => {
    const { code, stderr } = await onFullDisk(words)

    expect(code).toBe(1)
    expect(stderr).toMatch(/stdout cannot be written: the disk is full\n/)
    expect(stderr).not.toMatch(/ {4}at /)
  })
})

describe('words', () => {
  it('that begin with a dash are proposed as a name', async () => {
    const { code, stderr } = await cli('service', 'get', '-lodd')

    expect(code).toBe(2)
    expect(stderr).toMatch(/-- -lodd/)
  })

  it('of other command lines are understood', async () => {
    await cli('service', 'create', 'alias')

    const ls = await cli('service', 'ls', '--filter', 'name = "alias"', '-o', 'name')
    const show = await cli('services', 'show', 'alias', '-o', 'name')
    const edit = await cli('service', 'edit', 'alias', '--add-role', 'web', '-o', 'name')
    const rm = await cli('service', 'rm', 'alias', '--yes')

    expect([ls.stdout, show.stdout, edit.stdout, rm.stdout]).toEqual([
      'alias\n',
      'alias\n',
      'alias\n',
      'Deleted service alias.\n',
    ])
  })

  it('for choices may be typed in any case, also those of flags with an equals sign and of arguments', async () => {
    const policy = await cli('service-policy', 'create', 'cased', '--type', 'dial', '--semantic=ALLOF', '-oJSON')
    const impact = await cli('policy', 'impact', 'Service-Policy', 'cased')

    expect(JSON.parse(policy.stdout)).toMatchObject({ type: 'Dial', semantic: 'AllOf' })
    expect([policy.code, impact.code]).toEqual([0, 0])
  })

  it('for roles are explained where they are typed, and on a page', async () => {
    const flag = await cli('service-policy', 'create', '--help')
    const page = await cli('help', 'roles')

    expect(flag.stdout.replace(/\s+/g, ' ')).toContain('#NAME selects by role attribute, @NAME names a record')
    expect(page.stdout).toMatch(/#staff +the records with the role attribute "staff"/)
  })

  it('of the first page begin with the way from nothing to an explained policy', async () => {
    const { stdout } = await cli('--help')

    expect(stdout).toMatch(/GETTING STARTED\n +serve .*\n(?: +.*\n)* +policy advise /)
  })
})

describe('JSON', () => {
  it('has no links', async () => {
    await cli('identity', 'create', 'linked')

    for (const format of ['json', 'jsonl', 'yaml']) {
      const { stdout } = await cli('identity', 'get', 'linked', '-o', format)
      const list = await cli('identity', 'list', '-o', format)
      expect(stdout + list.stdout).not.toContain('_links')
    }
  })
})

describe('a directory', () => {
  it('for profiles that cannot be written is named', async () => {
    const blocked = cleanEnvironment()
    mkdirSync(blocked.XDG_CONFIG_HOME ?? '', { recursive: true })
    writeFileSync(join(blocked.XDG_CONFIG_HOME ?? '', 'controller'), 'a file')
    const passwordFile = join(files, 'password')
    writeFileSync(passwordFile, ADMIN.password)
    const words = ['login', url, '-u', ADMIN.username, '--password-file', passwordFile, '--yes']

    const { code, stderr } = await commandLine(words, blocked)

    expect(code).toBe(1)
    expect(stderr).toMatch(/profiles\.json cannot be .*: a part of the path is not a directory/)
  })
})

describe('a path with a space', () => {
  const spaced = join(files, 'a b')

  it('is quoted in the commands that are proposed for a data directory', async () => {
    const missing = await cli('identity', 'list', '--offline', '--data-dir', spaced)
    const creation = await cli('init', '--data-dir', spaced)
    const again = await cli('init', '--data-dir', spaced)

    expect(missing.stderr).toContain(`controller init --data-dir '${spaced}'\n`)
    expect(creation.stdout).toContain(`Next: controller serve --data-dir '${spaced}'\n`)
    expect([again.code, again.stderr]).toEqual([6, expect.stringContaining(`controller serve --data-dir '${spaced}'`)])
  })

  it('is quoted in the command that decrypts a key', async () => {
    const [cert, key] = [join(files, 'a b.pem'), join(files, 'a b.key')]
    writeFileSync(cert, '')
    writeFileSync(key, '-----BEGIN ENCRYPTED PRIVATE KEY-----\n')

    await expect(readOwnCertificate({ cert, key })).rejects.toMatchObject({
      hint: `openssl pkey -in '${key}' -out FILE.key writes it without a password`,
    })
  })
})
