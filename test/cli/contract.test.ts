// The contract for scripts: for each row, stdout, stderr and exit code without a terminal. Rows that concern the process, and one of
// each exit code that a controller causes, run the real binary.
import { existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Profiles } from '../../commands/client/profiles.ts'
import { BINARY, cleanEnvironment, controller, run } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { ADMIN, type TestController, testController } from '../world/controller.ts'
import { writeProfiles } from '../world/profiles.ts'

const files = mkdtempSync(join(tmpdir(), 'contract-'))
const passwordFile = join(files, 'password')
let world: TestController
let url: string
let rootPem: string
let env: NodeJS.ProcessEnv

beforeAll(async () => {
  writeFileSync(passwordFile, `${ADMIN.password}\n`)
  world = await testController()
  ;({ url, rootPem } = await world.listen())
  env = await signedIn(true)
  await cli('identity', 'create', 'laptop', '--role', 'staff')
  await cli('identity', 'create', 'tablet')
  await cli('identity', 'create', 'invited', '--ott')
  await cli('service', 'create', 'web', '--role', 'web')
})
afterAll(() => world?.close())

/** An environment whose current profile is signed in as a new identity. */
async function signedIn(isAdmin: boolean): Promise<NodeJS.ProcessEnv> {
  const creation = cleanEnvironment()
  const { token } = await world.signIn({ isAdmin })
  writeProfiles(creation, { test: { url, rootPem, token } })
  return creation
}

const cli = (...args: string[]) => commandLine(args, env)

describe('the exit code of a failure', () => {
  it.each<[what: string, args: string[], code: number, says: RegExp, helps: RegExp]>([
    [
      'a command that does not exist',
      ['identity', 'lits'],
      2,
      /unknown command: identity lits/,
      /controller identity list/,
    ],
    [
      'a topic that does not exist',
      ['idntity', 'list'],
      2,
      /unknown command: idntity list/,
      /^controller identity list$/,
    ],
    ['a flag without a command', ['--offline'], 2, /missing command before --offline/, /^controller --help$/],
    [
      'a flag of the program that does not exist',
      ['--hepl'],
      2,
      /missing command before --hepl/,
      /^controller --help$/,
    ],
    [
      'a topic with a flag',
      ['identity', '--limit', '3'],
      2,
      /missing command before --limit/,
      /^controller identity --help$/,
    ],
    ['a flag that does not exist', ['identity', 'list', '--limt', '3'], 2, /unknown flag: --limt/, /--limit/],
    ['a word too many', ['identity', 'list', 'all'], 2, /unexpected argument: all/, /identity list --help/],
    [
      'a filter without its flag',
      ['identity', 'list', 'name="laptop"', '-o', 'table'],
      2,
      /unexpected argument: name="laptop"/,
      /^controller identity list --filter 'name="laptop"' -o table$/,
    ],
    ['a missing argument', ['identity', 'get'], 2, /missing argument: IDENTITY/, /identity get --help/],
    ['a missing name', ['identity', 'create'], 2, /missing argument: NAME/, /identity create --help/],
    ['a missing flag', ['service-policy', 'create', 'x'], 2, /missing flag: --type/, /service-policy create --help/],
    ['a missing flag of a written command', ['plan'], 2, /^missing flag: --file$/m, /plan --help/],
    [
      'a value that is none of its words',
      ['identity', 'create', 'x', '--type', 'Robot'],
      2,
      /^--type Robot is not one of User, Device, /m,
      /--help/,
    ],
    [
      'a value that resembles one of its words',
      ['service-policy', 'create', 'x', '--type', 'Dail'],
      2,
      /^--type Dail is not one of Dial, Bind$/m,
      /^--type Dial$/,
    ],
    [
      'an argument that is none of its words',
      ['completion', 'tcsh'],
      2,
      /^tcsh is not one of bash, zsh, fish, powershell$/m,
      /zsh/,
    ],
    ['a verb without its noun', ['backup'], 2, /unknown command: backup/, /^controller db backup$/],
    [
      'a number that is none',
      ['identity', 'list', '--limit', 'many'],
      2,
      /^--limit must be a whole number, not many$/m,
      /--help/,
    ],
    ['a number that is too small', ['identity', 'list', '--limit', '0'], 2, /^--limit must be at least 1$/m, /--help/],
    ['a flag without its value', ['identity', 'list', '--limit'], 2, /^--limit requires a value$/m, /--help/],
    [
      'a flag that is set twice',
      ['identity', 'list', '--limit', '1', '--limit', '2'],
      2,
      /^--limit is set twice, and takes one value$/m,
      /--help/,
    ],
    [
      'flags that exclude each other',
      ['login', '--identity', 'x', '--username', 'y'],
      2,
      /^--identity and --username exclude each other$/m,
      /login --help/,
    ],
    ['a flag that needs another', ['enroll', 'x', '--key', 'y'], 2, /^--key requires --cert$/m, /enroll --help/],
    [
      'a number that is too large',
      ['identity', 'create', 'x', '--default-hosting-cost', '70000'],
      2,
      /^--default-hosting-cost must be at most 65535$/m,
      /--help/,
    ],
    [
      'broken JSON',
      ['config', 'create', 'x', '--config-type', 'host.v1', '--data', '{'],
      2,
      /--data is not valid JSON/,
      /config create --help/,
    ],
    [
      'a file that is not there',
      ['identity', 'create', 'x', '--data', '@/nowhere'],
      2,
      /--data cannot be read/,
      /identity create --help/,
    ],
    ['a tag without a value', ['identity', 'create', 'x', '--tag', 'north'], 2, /KEY=VALUE/, /identity create --help/],
    ['a path that is none', ['api', 'GET', 'identities'], 2, /must begin with \//, /\/identities/],
    ['a change of nothing', ['identity', 'update', 'laptop'], 2, /nothing to change/, /identity update --help/],
    [
      'what the controller refuses as invalid',
      ['identity', 'create', 'x', '--role', '#x'],
      2,
      /roleAttributes may not begin/,
      /^controller identity create x --role x$/,
    ],
    ['a broken filter', ['identity', 'list', '--filter', 'name ='], 2, /filter/, /help filters/],
    ['a filter on no field', ['identity', 'list', '--filter', 'nme = "x"'], 2, /"nme" is not a field/, /^name$/],
    [
      'a filter on a foreign field',
      ['identity', 'list', '--filter', 'colour = 1'],
      2,
      /not a field/,
      /isAdmin, .*name/,
    ],
    ['an order by no field', ['identity', 'list', '--sort', 'nme desc'], 2, /"nme" is not a field/, /^name$/],
    ['a deletion that cannot be confirmed', ['service', 'delete', 'web'], 2, /without a terminal/, /--yes/],
    ['a deletion of nothing', ['service', 'delete'], 2, /missing argument: SERVICE/, /service delete --help/],
    [
      'a deletion by a filter that cannot be confirmed',
      ['service', 'delete', '--filter', 'name = "web"'],
      2,
      /cannot prompt for the confirmation without a terminal/,
      /^--yes, or first --dry-run$/,
    ],
    [
      'a deletion by an empty filter',
      ['service', 'delete', '--filter', '', '--yes'],
      2,
      /^--filter is empty/m,
      /^--all selects all records$/,
    ],
    [
      'a change by a blank filter',
      ['identity', 'update', '--filter', ' ', '--role', 'staff'],
      2,
      /^--filter is empty/m,
      /^--all selects all records$/,
    ],
    [
      'a reference to an empty name',
      ['identity', 'update', 'laptop', '--auth-policy', ''],
      2,
      /^--auth-policy is empty$/m,
      /^the name or id of a record; for none: --data '\{"authPolicyId":null\}'$/,
    ],
    [
      'a reference to an empty name, where there must be one',
      ['config', 'create', 'x', '--config-type', '', '--data', '{}'],
      2,
      /^--config-type is empty$/m,
      /^the name or id of a record$/,
    ],
    [
      'an output format that a response of its own type does not have',
      ['well-known-ca', 'list', '-o', 'csv'],
      2,
      /^well-known-ca list writes application\/pkcs7-mime only, not csv$/m,
      /well-known-ca list --help/,
    ],
    ['an output format that figures do not have', ['top', '-n', '1', '-o', 'csv'], 2, /writes text only/, /top --help/],
    ['an output format that a unit does not have', ['systemd-unit', '-o', 'csv'], 2, /writes text only/, /--help/],
    ['an output format that a script does not have', ['completion', 'bash', '-o', 'csv'], 2, /writes text/, /--help/],
    ['an output format that an export does not have', ['export', '-o', 'csv'], 2, /writes YAML only/, /--help/],
    [
      'a name that begins with a dash',
      ['service', 'get', '-lodd', '-o', 'table'],
      2,
      /^unknown flag: -lodd$/m,
      /^for a name that begins with a dash, with all flags before --: controller service get -o table -- -lodd; /,
    ],
    [
      'a short flag that does not exist, after a name',
      ['service', 'get', 'web', '-z'],
      2,
      /^unknown flag: -z$/m,
      /^controller service get --help$/,
    ],
    [
      'a short flag that does not exist, of a command without arguments',
      ['whoami', '-z'],
      2,
      /^unknown flag: -z$/m,
      /^controller whoami --help$/,
    ],
    [
      'the short flag of ziti for a role',
      ['identity', 'create', 'x', '-a', 'staff'],
      2,
      /unknown flag: -a/,
      /^--role$/,
    ],
    [
      'the short flag of ziti for a password',
      ['login', 'localhost:1280', '-u', 'x', '-p', 'y'],
      2,
      /unknown flag: -p/,
      /^--password-file$/,
    ],
    [
      'a flag after the end of the flags',
      ['identity', 'create', '--', '-odd', '--role', 'staff'],
      2,
      /^unexpected argument: --role staff$/m,
      /^with all flags before --: controller identity create --role staff -- -odd$/,
    ],
    ['no profile of that name', ['service', 'list', '--profile', 'none'], 4, /no profile none/, /profile list/],
    [
      'no profile for that URL',
      ['service', 'list', '--controller', 'other.example:1280'],
      4,
      /no profile/,
      /login https:\/\/other/,
    ],
    ['an unknown record', ['identity', 'get', 'labtop'], 5, /no identity "labtop"/, /laptop/],
    [
      'an unknown record in a flag',
      ['service', 'update', 'web', '--configs', 'none'],
      5,
      /no config "none"/,
      /config list/,
    ],
    [
      'an unknown record in a role',
      ['service-policy', 'create', 'x', '--type', 'Dial', '--identity-roles', '@labtop'],
      5,
      /no identity "labtop"/,
      /laptop/,
    ],
    ['an unknown path', ['api', 'GET', '/nonsense'], 5, /no path/, /api --help/],
    [
      'a JWT where there is none',
      ['identity', 'get', 'tablet', '-o', 'jwt'],
      5,
      /no enrollment JWT/,
      /enrollment create/,
    ],
    [
      'an enrollment beside one that is outstanding',
      ['enrollment', 'create', '--identity', 'invited', '--method', 'ott'],
      6,
      /method is outstanding already/,
      /^controller enrollment refresh [\w-]+$/,
    ],
    ['a name that is taken', ['identity', 'create', 'laptop'], 6, /name "laptop" is taken/, /identity list/],
    [
      'a record in use',
      ['auth-policy', 'delete', 'Default', '--yes'],
      6,
      /in use by identities/,
      /first delete or change/,
    ],
    [
      'no data directory',
      ['identity', 'list', '--offline', '--data-dir', '/nowhere'],
      5,
      /not the data directory/,
      /controller init/,
    ],
  ])('%s', async (_what, args, code, says, helps) => {
    const ended = await cli(...args)

    const [, hint = ''] = /^Try: (.*)$/m.exec(ended.stderr) ?? []
    expect(ended.stderr).toMatch(says)
    expect(hint).toMatch(helps)
    expect(ended.code).toBe(code)
    expect(ended.stdout).toBe('')
  })

  it.each([
    ['edge list identities', 'controller identity list'],
    ['list identities', 'controller identity list'],
    ['create identity foo', 'controller identity create'],
    ['edge show service web', 'controller service get'],
    ['edge login example.com', 'controller login'],
    ['fabric list routers', 'controller router list'],
    ['edge db snapshot', 'controller database snapshot'],
    ['db snapshot', 'controller database snapshot'],
    ['policy-advisor identities X', 'controller policy advise'],
    ['edge idntity list', 'controller identity list'],
    ['fabric', 'controller --help'],
  ])('is 2 for words of the ziti command line, with the command that does it here: %s', async (words, meant) => {
    const { code, stderr } = await cli(...words.split(' '))

    expect([code, stderr]).toEqual([2, `unknown command: ${words}\nTry: ${meant}\n`])
  })

  it('is 4 if the session has ended, with the command that begins one', async () => {
    const ended = cleanEnvironment()
    writeProfiles(ended, { old: { url, rootPem, token: '00000000-0000-4000-8000-000000000000' } })

    const { code, stderr } = await commandLine(['identity', 'list'], ended)

    expect(code).toBe(4)
    expect(stderr).toContain('Try: controller login --profile old')
  })

  it('is 4 if the profile has no session, without a request to the controller', async () => {
    const signedOut = cleanEnvironment()
    writeProfiles(signedOut, { quiet: { url: 'https://127.0.0.1:9', rootPem } })

    const { code, stderr } = await commandLine(['identity', 'list'], signedOut)

    expect(code).toBe(4)
    expect(stderr).toMatch(/the profile quiet is not signed in/)
  })

  it('is 7 if the identity lacks the right', async () => {
    const { code, stderr } = await commandLine(['identity', 'list'], await signedIn(false))

    expect(code).toBe(7)
    expect(stderr).toMatch(/identity.read/)
    expect(stderr).toMatch(/as an administrator/)
  })

  it('is 8 if nothing listens', async () => {
    const elsewhere = cleanEnvironment()
    writeProfiles(elsewhere, { gone: { url: 'https://127.0.0.1:9', rootPem, token: 'x' } })

    const { code, stderr } = await commandLine(['identity', 'list'], elsewhere)

    expect(code).toBe(8)
    expect(stderr).toMatch(/https:\/\/127\.0\.0\.1:9 cannot be reached: connection refused/)
  })

  it('is 8 if the name of the host cannot be looked up, with what to check', async () => {
    const elsewhere = cleanEnvironment()
    writeProfiles(elsewhere, { gone: { url: 'https://nohost.invalid:1', rootPem, token: 'x' } })

    const { code, stderr } = await commandLine(['identity', 'list'], elsewhere)

    expect(code).toBe(8)
    expect(stderr).toMatch(/^Try: check the name of the host, or use --controller with another URL$/m)
  })

  it('is 1 if the listener is not a controller', async () => {
    const plain = createServer((socket) => socket.end('hello\r\n'))
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
    const address = plain.address()
    const port = typeof address === 'object' && address ? address.port : 0
    const elsewhere = cleanEnvironment()
    writeProfiles(elsewhere, { plain: { url: `https://127.0.0.1:${port}`, rootPem, token: 'x' } })

    const { code, stderr } = await commandLine(['identity', 'list'], elsewhere)
    plain.close()

    expect(code).toBe(1)
    expect(stderr).toMatch(
      /is not a controller: what listens there does not speak HTTPS\nTry: .*"controller serve" prints/,
    )
  })

  it('is 1 if the controller is another than before, with both fingerprints', async () => {
    const other = await testController()
    const { rootPem: otherRoot } = await other.listen()
    await other.close()
    // Every test directory is a copy of one, so the other root is made up of a certificate that is none.
    expect(otherRoot).toBe(rootPem)
    const { x509 } = await import('../world/certificates.ts')
    const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify'])
    const forged = await x509.X509CertificateGenerator.createSelfSigned({ name: 'CN=other', keys: keys as never })
    const deceived = cleanEnvironment()
    writeProfiles(deceived, { other: { url, rootPem: forged.toString('pem'), token: 'x' } })

    const { code, stderr } = await commandLine(['identity', 'list', '-o', 'json'], deceived)

    expect(code).toBe(1)
    expect(JSON.parse(stderr)).toMatchObject({
      code: 'ROOT_CHANGED',
      message: expect.stringMatching(/another host may intercept.*[0-9a-f]{64}, expected [0-9a-f]{64}$/),
      // Without the offered fingerprint: what vouches for a controller must come from elsewhere.
      hint: expect.stringMatching(/"controller serve" prints, then: controller login https\S* --fingerprint SHA-256$/),
    })
  })
})

describe('errors for programs', () => {
  it.each([
    ['json', ['service', 'create', 'web']],
    ['jsonl', ['identity', 'list', '--nonsense']],
    ['yaml', ['nonsense']],
    ['JSON', ['nonsense']],
  ])('are one JSON object with -o %s', async (format, args) => {
    const { stderr, stdout } = await cli(...args, '-o', format)

    const failure = JSON.parse(stderr)
    expect(Object.keys(failure).every((key) => ['code', 'message', 'field', 'hint', 'requestId'].includes(key))).toBe(
      true,
    )
    expect(failure).toMatchObject({ code: expect.any(String), message: expect.any(String) })
    expect(stdout).toBe('')
  })

  it('name the member that is wrong, and the request', async () => {
    const { stderr } = await cli('identity', 'create', 'laptop', '-ojson')

    expect(JSON.parse(stderr)).toEqual({
      code: 'CONFLICT',
      message: `${url}: name "laptop" is taken`,
      field: 'name',
      hint: 'controller identity list',
      requestId: expect.any(String),
    })
  })
})

describe('lists', () => {
  it('are whole by default, in pages of their own making where a limit is asked for', async () => {
    for (let n = 0; n < 12; n++) await world.signIn({ name: `device-${String(n).padStart(2, '0')}` })
    const sorted = ['identity', 'list', '--filter', 'name contains "device-"', '--sort', 'name desc', '-o', 'name']

    const all = await cli(...sorted)
    const some = await cli(...sorted, '--limit', '3', '--offset', '2')

    expect(all.stdout.trim().split('\n')).toHaveLength(12)
    expect(all.stderr).toBe('')
    expect(some.stdout).toBe('device-09\ndevice-08\ndevice-07\n')
    expect(some.stderr).toBe('Showing 3 of 12.\n')
  })

  it('are empty lists where nothing matches', async () => {
    const { stdout, code } = await cli('identity', 'list', '--filter', 'name = "unknown"', '-o', 'json')

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ apiVersion: 'v1', kind: 'identities', items: [] })
  })

  it('end without complaint when the reader has seen enough', async () => {
    const script = `set -o pipefail; "$0" "$1" identity list -o jsonl --filter 'true or name != "x"' | head -1`

    const { code, stdout, stderr } = await run('bash', ['-c', script, process.execPath, BINARY], env)

    expect(stdout.split('\n')).toHaveLength(2)
    expect(stderr).toBe('')
    expect(code).toBe(0)
  })
})

describe('records', () => {
  it('are their own object as JSON, with the record as it is now after a change', async () => {
    const updated = await cli('identity', 'update', 'laptop', '--role', 'staff', '--role', 'abroad', '-o', 'json')
    const cleared = await cli('identity', 'update', 'laptop', '--role', '', '-o', 'json')

    expect(JSON.parse(updated.stdout)).toMatchObject({ name: 'laptop', roleAttributes: ['abroad', 'staff'] })
    expect(updated.stderr).toBe('Updated identity laptop.\n')
    expect(JSON.parse(cleared.stdout)).toMatchObject({ roleAttributes: [] })
  })

  it('can be sent back as they were read', async () => {
    const file = join(files, 'laptop.json')
    writeFileSync(file, (await cli('identity', 'get', 'laptop', '-o', 'json')).stdout)

    const replaced = await cli('identity', 'replace', 'laptop', '--data', `@${file}`, '--role', 'staff', '-o', 'json')

    expect(replaced.code).toBe(0)
    expect(JSON.parse(replaced.stdout)).toMatchObject({
      name: 'laptop',
      roleAttributes: ['staff'],
      type: { id: 'Default' },
    })
  })

  it('are made from JSON on stdin, and flags win over it', async () => {
    const input = JSON.stringify({ name: 'from-stdin', type: 'User', isAdmin: true, roleAttributes: ['a'] })

    const creation = await controller(['identity', 'create', '--data', '-', '--no-is-admin', '-o', 'json'], env, input)

    expect(JSON.parse(creation.stdout)).toMatchObject({
      name: 'from-stdin',
      typeId: 'User',
      isAdmin: false,
      roleAttributes: ['a'],
    })
  })

  it('take a name that begins with a dash behind --', async () => {
    const { stdout } = await cli('service', 'create', '-o', 'name', '--', '-odd')

    expect(stdout).toBe('-odd\n')
  })

  it('are found by id before name, and never guessed where both fit', async () => {
    const { id } = JSON.parse((await cli('service', 'get', 'web', '-o', 'json')).stdout)
    await cli('service', 'create', '--data', JSON.stringify({ name: id, encryptionRequired: true }))

    const guessed = await cli('service', 'get', id)
    const byId = await cli('service', 'get', `id:${id}`, '-o', 'name')
    const byName = await cli('service', 'get', `name:${id}`, '-o', 'name')

    expect(guessed.code).toBe(5)
    expect(guessed.stderr).toContain(`Try: id:${id} or name:${id}`)
    expect([byId.stdout, byName.stdout]).toEqual(['web\n', `${id}\n`])
  })

  it('show what a program gets without anything that a terminal would act on', async () => {
    const evil = 'evil\u001b[2J\u202e'
    await world.signIn({ name: evil })
    const matches = ['identity', 'list', '--filter', 'name contains "evil"']

    const table = await cli(...matches)
    const json = await cli(...matches, '-o', 'json')
    const yaml = await cli(...matches, '-o', 'yaml')

    const acting = ['\u001b', '\u202e']
    for (const { stdout } of [table, json, yaml]) {
      expect(acting.filter((character) => stdout.includes(character))).toEqual([])
    }
    expect(JSON.parse(json.stdout).items[0].name).toBe(evil)
  })
})

describe('enrollment tokens', () => {
  it('are all that -o jwt prints', async () => {
    const { stdout } = await cli('identity', 'create', 'phone', '-o', 'jwt')

    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  })

  it('go to a private file, or are drawn for a camera', async () => {
    const file = join(files, 'watch.jwt')

    const { stdout, stderr } = await cli('identity', 'create', 'watch', '--jwt-file', file, '--qr', '-o', 'name')

    expect(stdout).toBe('watch\n')
    expect(readFileSync(file, 'utf8')).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these begin the colours of a terminal
    expect(stderr).toMatch(/^\u001b\[[\d;]+m█{40,}/m)
  })

  it('are made for a username where --updb names one', async () => {
    const { stdout } = await cli('identity', 'create', 'person', '--updb', 'person', '-o', 'json')

    expect(JSON.parse(stdout).enrollment).toMatchObject({ updb: { token: expect.any(String) } })
  })
})

describe('deleting', () => {
  it('tells a program what is gone', async () => {
    await cli('service', 'create', 'gone')

    const { stdout, code } = await cli('service', 'delete', 'gone', '--yes', '-o', 'json')

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ id: expect.any(String), deleted: true })
  })
})

describe('profiles', () => {
  it('are created by a sign-in, used, signed out and deleted', async () => {
    const own = cleanEnvironment()
    const mine = (...args: string[]) => commandLine(args, own)
    const { fingerprint } = JSON.parse((await commandLine(['profile', 'list', '-o', 'json'], env)).stdout).items[0]
    const login = ['login', url, '--username', ADMIN.username, '--password-file', passwordFile]

    const unknown = await mine(...login)
    const wrong = await mine(...login, '--fingerprint', '0'.repeat(64))
    const first = await mine(...login, '--fingerprint', fingerprint, '-o', 'json')
    const second = await mine(...login, '--profile', 'second')
    const list = await mine('profile', 'list', '-o', 'json')
    const used = await mine('profile', 'use', new URL(url).host)
    const whoami = await mine('whoami', '-o', 'json')
    const out = await mine('logout')
    const after = await mine('identity', 'list')
    const byName = await mine('identity', 'list', '--profile', 'second', '-o', 'name')
    const deletion = await mine('profile', 'delete', new URL(url).host)
    const misspelt = await mine('profile', 'use', 'secnd')

    expect([unknown.code, wrong.code, first.code, second.code]).toEqual([2, 1, 0, 0])
    expect(unknown.stderr).toMatch(/--fingerprint SHA-256, --ca-file FILE, or --yes/)
    expect(JSON.parse(first.stdout)).toMatchObject({
      profile: new URL(url).host,
      expiresAt: expect.stringMatching(/Z$/),
    })
    expect(
      JSON.parse(list.stdout).items.map((profile: { name: string; current: boolean }) => [
        profile.name,
        profile.current,
      ]),
    ).toEqual([
      [new URL(url).host, false],
      ['second', true],
    ])
    expect(list.stdout).not.toMatch(/token/)
    expect(used.code).toBe(0)
    expect(JSON.parse(whoami.stdout)).toMatchObject({
      identityName: 'Default Admin',
      isAdmin: true,
      profile: new URL(url).host,
    })
    expect([out.code, after.code, byName.code, deletion.code, misspelt.code]).toEqual([0, 4, 0, 0, 5])
    expect(misspelt.stderr).toMatch(/Try: second/)
    expect(statSync(join(own.XDG_CONFIG_HOME ?? '', 'controller/profiles.json')).mode & 0o777).toBe(0o600)
  })

  it('trust the root of a file', async () => {
    const file = join(files, 'root.pem')
    writeFileSync(file, rootPem)

    const { code } = await controller(
      ['login', '--controller', url, '-u', ADMIN.username, '--password-file', '-', '--ca-file', file],
      cleanEnvironment(),
      ADMIN.password,
    )

    expect(code).toBe(0)
  })

  it.each(['wrong password', 'wron', 'long'.repeat(50)])('say so when a password is wrong: %s', async (password) => {
    const { code, stderr } = await controller(
      ['login', url, '--username', ADMIN.username, '--password-file', '-', '--yes'],
      cleanEnvironment(),
      password,
    )

    expect(code).toBe(4)
    expect(stderr).toMatch(/username or the password is not accepted\nTry: check the username and the password/)
  })

  it('are chosen by CONTROLLER_PROFILE, and by flags before the command', async () => {
    const several = cleanEnvironment()
    const { token } = await world.signIn({ isAdmin: true })
    writeProfiles(several, { gone: { url: 'https://127.0.0.1:9', rootPem, token }, here: { url, rootPem, token } })

    const byVariable = await commandLine(['version', '-o', 'json'], { ...several, CONTROLLER_PROFILE: 'here' })
    const byFlag = await commandLine(['-o', 'json', '--profile', 'here', 'version'], several)

    expect([byVariable.code, byFlag.code]).toEqual([0, 0])
    expect(byFlag.stdout).toBe(byVariable.stdout)
  })

  it('that another process deletes meanwhile stay deleted', () => {
    const own = cleanEnvironment()
    writeProfiles(own, { gone: { url, rootPem, token: 'x' } })
    const profiles = Profiles.open(own)
    writeProfiles(own, {})

    profiles.signOut('gone')

    expect(Profiles.open(own).names).toEqual([])
  })

  it('that cannot be read are said to be so', async () => {
    const broken = cleanEnvironment()
    writeProfiles(broken, {})
    writeFileSync(join(broken.XDG_CONFIG_HOME ?? '', 'controller/profiles.json'), '{')

    const { code, stderr } = await commandLine(['identity', 'list'], broken)

    expect(code).toBe(1)
    expect(stderr).toMatch(/profiles\.json cannot be read/)
  })
})

describe('the escape hatch', () => {
  it('sends any request', async () => {
    const got = await cli('api', 'GET', '/identities?limit=1')
    const creation = await cli('api', 'post', '/services', '--data', '{"name":"by-api","encryptionRequired":true}')
    const atRoot = await cli('api', 'GET', '/edge/client/v1/version', '-o', 'jsonl')

    expect(JSON.parse(got.stdout).meta.pagination.limit).toBe(1)
    expect(JSON.parse(creation.stdout).data.id).toEqual(expect.any(String))
    expect(JSON.parse(atRoot.stdout).data.version).toMatch(/^v/)
  })

  it('sends a mark of role attributes in the query, which would begin a fragment in a browser', async () => {
    const { stdout } = await cli('api', 'GET', '/identities?roleFilter=#staff')

    expect(JSON.parse(stdout).data.map(({ name }: { name: string }) => name)).toEqual(['laptop'])
  })

  it('shows a request without its secrets', async () => {
    const { stderr } = await cli('identity', 'create', 'shown', '--role', 'staff', '--show-request', '-o', 'name')

    expect(stderr).toContain(`POST ${url}/edge/management/v1/identities`)
    expect(stderr).toContain('net-session: ***')
    expect(stderr).toContain('"name": "shown"')
    expect(stderr).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-4/)
  })
})

describe('help', () => {
  it.each([
    ['--help', /^GETTING STARTED$/m],
    ['', /^GETTING STARTED$/m],
    ['help exit-codes', /^ {2}130 {2}interrupted$/m],
    ['help filters', /anyOf\(roleAttributes\)/],
    ['help output', /-o jsonl/],
    ['help identity', /^COMMANDS$/m],
    ['identities', /^COMMANDS$/m],
    ['identity create --help', /controller identity create laptop/],
    ['help identity create', /controller identity create laptop/],
    ['identities create -h', /controller identities create laptop/],
    ['circuit get -h', /^ +CIRCUIT +Id of the circuit\.$/m],
    ['link delete -h', /^ +LINK +Id of the link\.$/m],
    ['revocation get -h', /^ +REVOCATION +Id of the revocation\.$/m],
    ['audit get -h', /^ +AUDIT +Id of the audit record\.$/m],
    ['node delete -h', /^ +NAME +Name of the controller\.$/m],
    ['spec get -h', /^ +SPEC +Id of the spec\.$/m],
  ])('controller %s', async (line, shows) => {
    const { code, stdout, stderr } = await cli(...line.split(' ').filter(Boolean))

    expect(code).toBe(0)
    expect(stdout).toMatch(shows)
    expect(stderr).toBe('')
  })
})

describe('a file for output', () => {
  it('is not left behind by a command that is refused', async () => {
    const file = join(files, 'never.jwt')

    const { code } = await cli('identity', 'create', 'laptop', '--jwt-file', file)

    expect(code).toBe(6)
    expect(existsSync(file)).toBe(false)
  })
})
