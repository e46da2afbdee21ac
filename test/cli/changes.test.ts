// Changes from the command line: single entries of sets, what a replacement removes, values of tags, and several records at once.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, it } from 'vitest'
import { BINARY, cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { lacks } from '../world/machine.ts'
import { writeProfiles } from '../world/profiles.ts'
import { TcpProxy } from '../world/tcp-proxy.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
const env = cleanEnvironment()
let url: string
let rootPem: string
let sequence = 0

beforeAll(async () => {
  ;({ url, rootPem } = await world.listen())
  writeProfiles(env, { test: { url, rootPem, token: await world.admin() } })
})

const cli = (...args: string[]) => commandLine(args, env)

/** The record that a command prints. */
async function readJson(...args: string[]) {
  const { stdout, stderr, code } = await cli(...args, '-o', 'json')
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout)
}

/** Creates a record under a name of its own. */
async function create(noun: string, ...flags: string[]): Promise<string> {
  const name = `changed-${noun}-${++sequence}`
  const { code, stderr } = await cli(noun, 'create', name, ...flags)
  expect(code, stderr).toBe(0)
  return name
}

describe('a role that matches nothing', () => {
  it('is noted after the change, with the nearest one that is in use', async () => {
    await create('identity', '--role', 'engineers')
    const createPolicy = (name: string, roles: string) =>
      cli('service-policy', 'create', name, '--type', 'Dial', '--identity-roles', roles, '--service-roles', '#all')

    const misspelt = await createPolicy('misspelt', '#enginers')
    const unused = await createPolicy('unused', '#nothing-like-it')
    const right = await createPolicy('right', '#engineers')
    const changed = await cli('service-policy', 'update', 'right', '--add-identity-roles', '#enginers')

    const note = 'No identity has the role #enginers yet: did you mean #engineers?\n'
    expect([misspelt.code, unused.code, right.code, changed.code]).toEqual([0, 0, 0, 0])
    expect(misspelt.stderr).toContain(note)
    expect(changed.stderr).toContain(note)
    expect(unused.stderr).toContain('No identity has the role #nothing-like-it yet.\n')
    expect(right.stderr).not.toContain('yet')
  })
})

describe('a change of single entries', () => {
  it('adds roles to those that the record has, and removes others', async () => {
    const name = await create('identity', '--role', 'staff', '--role', 'abroad')

    const after = await readJson('identity', 'update', name, '--add-role', 'night', '--remove-role', 'abroad')

    expect(after.roleAttributes.sort()).toEqual(['night', 'staff'])
  })

  it('adds a record to a policy by its name, and removes it by its name', async () => {
    const web = await create('service', '--role', 'web')
    const policy = await create('service-policy', '--type', 'Dial', '--service-roles', '#mail')

    const added = await readJson('service-policy', 'update', policy, '--add-service-roles', `@${web}`)
    const removed = await readJson('service-policy', 'update', policy, '--remove-service-roles', `@${web}`)

    expect(added.serviceRoles).toEqual(expect.arrayContaining(['#mail', expect.stringMatching(/^@/)]))
    expect(removed.serviceRoles).toEqual(['#mail'])
  })

  it('adds and removes tags, and leaves the others', async () => {
    const name = await create('service', '--tag', 'site=north', '--tag', 'rack=7')

    const after = await readJson('service', 'update', name, '--add-tag', 'owner=jane', '--remove-tag', 'rack')

    expect(after.tags).toEqual({ site: 'north', owner: 'jane' })
  })

  it('ends with 5 if there is no such entry, and names those that there are', async () => {
    const name = await create('identity', '--role', 'staff')

    const { code, stderr } = await cli('identity', 'update', name, '--remove-role', 'stuff')

    expect(code).toBe(5)
    expect(stderr).toMatch(/the record does not have the role "stuff"\nTry: one of staff/)
  })

  it.skipIf(lacks('/proc', existsSync('/proc')))(
    'says that a directory takes no new files, not that it does not exist',
    async () => {
      const { code, stderr } = await cli('identity', 'create', 'unwritten', '--jwt-file', '/proc/unwritten.jwt')

      expect(code).toBe(1)
      expect(stderr).toMatch(/no file can be created in its directory/)
    },
  )

  it('says that a set is empty if an entry of it is to be removed', async () => {
    const name = await create('identity')

    const { code, stderr } = await cli('identity', 'update', name, '--remove-role', 'staff')

    expect(code).toBe(5)
    expect(stderr).toBe(
      '--remove-role: the record does not have the role "staff", and no other one either\nTry: omit --remove-role\n',
    )
  })

  it('cannot be combined with a replacement of the same set', async () => {
    const { code, stderr } = await cli('identity', 'update', 'x', '--role', 'a', '--add-role', 'b')

    expect(code).toBe(2)
    expect(stderr).toMatch(/--role.*--add-role|--add-role.*--role/)
  })
})

describe('a replacement', () => {
  it('names the entries that went', async () => {
    const web = await create('service')
    const name = await create('identity', '--role', 'staff', '--role', 'abroad', '--tag', 'site=north')
    const policy = await create('service-policy', '--type', 'Dial', '--service-roles', `@${web}`)

    const roles = await cli('identity', 'update', name, '--role', 'staff', '--tag', 'rack=7')
    const names = await cli('service-policy', 'update', policy, '--service-roles', '#all')

    expect(roles.stderr).toBe(`Updated identity ${name}. Removed: tag site, role abroad.\n`)
    expect(names.stderr).toBe(`Updated service policy ${policy}. Removed: service-roles @${web}.\n`)
  })

  it('of a whole record names them too', async () => {
    const name = await create('service', '--role', 'web', '--tag', 'site=north')

    const { stderr } = await cli('service', 'replace', name, '--name', name, '--role', 'mail')

    expect(stderr).toContain('role web')
  })
})

describe('the value of a tag', () => {
  it.each([
    ['5', 5],
    ['-0.5', -0.5],
    ['true', true],
    ['1.10', '1.10'],
    ['007', '007'],
    ['12345678901234567890', '12345678901234567890'],
    ['1e3', '1e3'],
    ['-0', '-0'],
    ['"5"', '5'],
    ['north', 'north'],
  ])('%s is a number or a boolean only if it is written back identically', async (text, value) => {
    const name = await create('service', '--tag', `key=${text}`)

    expect((await readJson('service', 'get', name)).tags).toEqual({ key: value })
  })
})

describe('a list in one value', () => {
  it.each([
    [['identity', 'create', 'x', '--role', 'a,b'], /--role a --role b/],
    [
      ['service-policy', 'create', 'x', '--type', 'Dial', '--identity-roles', '#a,#b'],
      /--identity-roles '#a' --identity-roles '#b'/,
    ],
    [['service-policy', 'update', 'x', '--add-service-roles', '#a, @b'], /--add-service-roles '#a'/],
  ])('is refused with the form that is meant', async (args, hint) => {
    const name = await create('service-policy', '--type', 'Dial')

    const { code, stderr } = await cli(...args.map((word) => (args[1] === 'update' && word === 'x' ? name : word)))

    expect(code).toBe(2)
    expect(stderr).toMatch(hint)
  })

  it('is one attribute with a comma if --data says so', async () => {
    const after = await readJson('identity', 'create', 'comma', '--data', '{"roleAttributes":["a,b"]}')

    expect(after.roleAttributes).toEqual(['a,b'])
  })
})

describe('several records', () => {
  it('are changed by their names, one after the other', async () => {
    const names = [await create('identity'), await create('identity')]

    const changed = await readJson('identity', 'update', ...names, '--add-role', 'both')

    expect(changed).toMatchObject({ kind: 'identities', items: [{ name: names[0] }, { name: names[1] }] })
    expect(changed.items.map(({ roleAttributes }: { roleAttributes: string[] }) => roleAttributes)).toEqual([
      ['both'],
      ['both'],
    ])
  })

  it('are deleted, each with its own sentence', async () => {
    const names = [await create('service'), await create('service')]

    const { stdout, code } = await cli('service', 'delete', ...names, '--yes')

    expect(code).toBe(0)
    expect(stdout).toBe(names.map((name) => `Deleted service ${name}.\n`).join(''))
  })

  it('are selected by a filter, which asks unless it is told not to', async () => {
    const names = [await create('service', '--role', 'old'), await create('service', '--role', 'old')]
    const filter = ['--filter', 'anyOf(roleAttributes) = "old"']

    const unconfirmed = await cli('service', 'update', ...filter, '--add-tag', 'kept=false')
    const confirmed = await cli('service', 'delete', ...filter, '--yes', '-o', 'jsonl')
    const none = await cli('service', 'delete', ...filter, '--yes')

    expect(unconfirmed.code).toBe(2)
    expect(unconfirmed.stderr).toMatch(/Update 2 services \(.*\)\?.*without a terminal\nTry: --yes/)
    expect(confirmed.stdout.trim().split('\n')).toHaveLength(names.length)
    expect(none.code).toBe(5)
  })

  it('that are refused do not stop the others, and their exit code counts', async () => {
    const name = await create('auth-policy')

    const { code, stdout, stderr } = await cli('auth-policy', 'delete', 'Default', name, '--yes')

    expect(code).not.toBe(0)
    expect(stderr).toMatch(/^Default: /m)
    expect(stdout).toBe(`Deleted auth policy ${name}.\n`)
  })

  it('that are done are printed, also if a failure ends the command', async () => {
    const signIn = async (isAdmin: boolean) => {
      const { id } = await world.signIn({ isAdmin })
      return world.signInAgain(id)
    }
    const [first, own, last] = [await signIn(false), await signIn(true), await signIn(false)]
    const leaver = cleanEnvironment()
    writeProfiles(leaver, { test: { url, rootPem, token: own.token } })
    const ids = [first, own, last].map(({ apiSessionId }) => apiSessionId)

    const { code, stdout, stderr } = await commandLine(['api-session', 'delete', ...ids, '--yes'], leaver)

    expect([code, stdout]).toEqual([
      4,
      `Deleted api session ${first.apiSessionId}.\nDeleted api session ${own.apiSessionId}.\n`,
    ])
    expect(stderr).toContain(`Stopped at ${last.apiSessionId}: 2 of 3 requests are done.\n`)
  })

  it('that are done before Ctrl-C are printed, and no other one is begun', async () => {
    const names = [await create('identity'), await create('identity'), await create('identity')]
    const [name = ''] = names
    const { proxy, url: slowUrl } = await TcpProxy.before(url)
    proxy.delayMs = 300
    const slow = cleanEnvironment()
    writeProfiles(slow, { test: { url: slowUrl, rootPem, token: await world.admin() } })
    const words = ['identity', 'update', ...names, '--add-tag', 'kept=true', '-o', 'name']
    const child = spawn(process.execPath, [BINARY, ...words], { env: slow })
    const [stdout, stderr] = [text(child.stdout), text(child.stderr)]
    const ended = once(child, 'close')
    while ((await readJson('identity', 'get', name)).tags.kept === undefined && child.exitCode === null);
    child.kill('SIGINT')
    const [code] = await ended
    proxy.close()

    expect([code, await stdout]).toEqual([130, `${name}\n`])
    expect(await stderr).toMatch(/^interrupted: 1 of 3 requests is done$/m)
    expect((await readJson('identity', 'get', names[2] ?? '')).tags).toEqual({})
  }, 30_000)

  it('are all that there are with --all, which takes no names', async () => {
    const { code, stderr } = await cli('service', 'delete', 'web', '--all', '--yes')

    expect(code).toBe(2)
    expect(stderr).toMatch(/--filter and --all take no names, such as web/)
  })

  it('do not share one file for a JWT', async () => {
    const names = [await create('edge-router'), await create('edge-router')]

    const { code, stderr } = await cli('edge-router', 're-enroll', ...names, '--yes', '--jwt-file', 'x.jwt')

    expect(code).toBe(2)
    expect(stderr).toMatch(/--jwt-file and --qr are for one record/)
  })
})

describe('a change that drops credentials', () => {
  it('asks, and says which ones', async () => {
    const policy = await create('auth-policy', '--primary-cert-allowed')

    const unconfirmed = await cli('auth-policy', 'update', policy, '--no-primary-cert-allowed')
    const confirmed = await cli('auth-policy', 'update', policy, '--no-primary-cert-allowed', '--yes')
    const opened = await cli('auth-policy', 'update', policy, '--primary-cert-allowed')

    expect([unconfirmed.code, confirmed.code, opened.code]).toEqual([2, 0, 0])
    expect(unconfirmed.stderr).toMatch(/can no longer sign in by that method\.\n.*without a terminal\nTry: --yes/)
  })

  it('asks before a re-enrollment, and says that the credential is rejected at once', async () => {
    const router = await create('edge-router')

    const { code, stderr } = await cli('edge-router', 're-enroll', router)

    expect(code).toBe(2)
    expect(stderr).toMatch(/--yes/)
  })

  it('asks before posture checks of a policy are removed, with the gate that opens', async () => {
    await cli('posture-check', 'create', 'domain', '--type', 'DOMAIN', '--domains', 'a.b', '--role', 'guard')
    const name = await create('identity', '--role', 'gated')
    const service = await create('service')
    const roles = ['--identity-roles', `@${name}`, '--service-roles', `@${service}`, '--posture-check-roles', '#guard']
    const policy = await create('service-policy', '--type', 'Dial', ...roles)

    const { code, stderr } = await cli('service-policy', 'update', policy, '--posture-check-roles', '')

    expect(code).toBe(2)
    expect(stderr).toMatch(
      /would demand no posture check of 1 identity\.\n1 identity would gain the right[^?]*\?.*\nTry: --yes/,
    )
  })
})

describe('a change that ends access', () => {
  /** An identity that may dial a service, both by roles of their own. */
  async function createPair() {
    const role = `ending-${++sequence}`
    const identity = await create('identity', '--role', role)
    const service = await create('service', '--role', role)
    const policy = await create(
      'service-policy',
      '--type',
      'Dial',
      '--identity-roles',
      `#${role}`,
      '--service-roles',
      `#${role}`,
    )
    return { role, identity, service, policy }
  }

  it.each<[string, (pair: Awaited<ReturnType<typeof createPair>>) => string[]]>([
    ['the roles of an identity', ({ identity }) => ['identity', 'update', identity, '--role', '']],
    ['a role of a service', ({ service, role }) => ['service', 'update', service, '--remove-role', role]],
    ['the subjects of a policy', ({ policy }) => ['service-policy', 'update', policy, '--identity-roles', '#none']],
    ['a whole identity', ({ identity }) => ['identity', 'replace', identity, '--name', identity, '--type', 'Default']],
  ])('by %s shows the impact and asks, unless --yes says so', async (_what, toWords) => {
    const pair = await createPair()
    const words = toWords(pair)

    const question = await cli(...words)
    const confirmed = await cli(...words, '--yes')

    expect([question.code, confirmed.code]).toEqual([2, 0])
    expect(question.stderr).toMatch(
      new RegExp(`^1 identity would lose the right to 1 service \\(${pair.identity}\\)\\.\n.*\nTry: --yes`, 's'),
    )
  })

  it('is not assumed of one that only adds access', async () => {
    const { role } = await createPair()
    const other = await create('identity')

    expect((await cli('identity', 'update', other, '--role', role)).code).toBe(0)
  })

  it('is that of a router that is disabled', async () => {
    const router = await create('edge-router')

    const question = await cli('edge-router', 'update', router, '--disabled')
    const confirmed = await cli('edge-router', 'update', router, '--disabled', '--yes')
    const enabled = await cli('edge-router', 'update', router, '--no-disabled')

    expect([question.code, confirmed.code, enabled.code]).toEqual([2, 0, 0])
    expect(question.stderr).toMatch(/^The router is disconnected at once.*Try: --yes/s)
  })
})

describe('an operation without a record', () => {
  it('says what goes on after it, or where its result is', async () => {
    const check = await cli('database', 'check-data-integrity')
    const snapshot = await cli('database', 'snapshot')
    const removal = await cli('identity', 'remove-mfa', await create('identity'), '--yes')

    expect(check.stdout).toBe('Started a check of the data; its results: controller database data-integrity-results.\n')
    expect(snapshot.stdout).toMatch(/^Made a verified backup, .* backups in its data directory\.\n$/)
    expect(removal.stderr).toMatch(/^Removed mfa of identity \S+\.\n/)
  })
})

describe('an operation with a duration', () => {
  it('disables an identity for that time', async () => {
    const name = await create('identity')

    const { stderr } = await cli('identity', 'disable', name, '--duration', '1h30m')
    const after = await readJson('identity', 'get', name)

    expect(stderr).toBe(`Disabled identity ${name}.\n`)
    const minutes = (Date.parse(after.disabledUntil) - Date.parse(after.disabledAt)) / 60_000
    expect(Math.round(minutes)).toBe(90)
  })

  it.each([
    [['--duration', '90s'], /^--duration is not a duration in whole minutes: 90s\n/],
    [['--duration', 'long'], /^--duration is not a duration in whole minutes: long\n/],
    [['--duration-minutes', '5'], /^unknown flag: --duration-minutes\n/],
  ])('refuses %j', async (words, message) => {
    const { code, stderr } = await cli('identity', 'disable', 'any', ...words)

    expect(stderr).toMatch(message)
    expect(code).toBe(2)
  })
})

describe('an operation without a duration', () => {
  it('disables an identity until it is enabled', async () => {
    const name = await create('identity')

    const { stderr } = await cli('identity', 'disable', name)
    const after = await readJson('identity', 'get', name)
    const table = (await cli('identity', 'list', '--filter', `name = "${name}"`)).stdout

    expect(stderr).toBe(`Disabled identity ${name}.\n`)
    expect(after).toMatchObject({ disabled: true })
    expect(after.disabledUntil ?? null).toBeNull()
    expect(table).toMatch(/ DISABLED\n.* yes\n$/)
  })
})
