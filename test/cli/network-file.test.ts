// The network as a file on the command line, over HTTPS and offline.
import { spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { fileResources } from '../../src/maintenance/network-file/file-resources.ts'
import { BINARY, cleanEnvironment, controller } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { configureNetwork } from '../world/configured-network.ts'
import { TestClock, type TestController, testController } from '../world/controller.ts'
import { listServer } from '../world/list-server.ts'
import { People } from '../world/people.ts'
import { writeProfiles } from '../world/profiles.ts'
import { ENTER, onTerminal, plainText } from '../world/terminal.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
const env = cleanEnvironment()
let people: People

beforeAll(async () => {
  const { url, rootPem } = await world.listen()
  people = await People.in(world, 'operator')
  writeProfiles(env, { test: { url, rootPem, token: people.token } })
  await configureNetwork(people)
})

const cli = (...args: string[]) => commandLine(args, env)

const files = mkdtempSync(join(tmpdir(), 'controller-test-'))
let sequence = 0

/** A file with this text. */
function fileOf(text: string): string {
  const file = join(files, `network-${++sequence}.yaml`)
  writeFileSync(file, text)
  return file
}

const CHANGES = `
version: 1
services:
  - name: mail
    roleAttributes: [mail]
service-policies:
  - name: dial
    identityRoles: ['#staff']
    postureCheckRoles: []
  - {name: mail-users, type: Dial, identityRoles: ['@jane'], serviceRoles: ['@mail']}
`

describe('plan', () => {
  it('calls a file that it reads from stdin by that name', async () => {
    const { code, stderr } = await controller(['plan', '-f', '-'], env, 'services: []\n')

    expect(code).toBe(2)
    expect(stderr).toMatch(/^standard input:1:1: the version is missing/)
  })

  it('shows nothing and exits with 0 for the export of the same network', async () => {
    const file = fileOf((await cli('export')).stdout)

    const { code, stdout, stderr } = await cli('plan', '-f', file, '--prune')

    expect(stderr).toBe('')
    expect(stdout).toBe('Nothing would change.\n')
    expect(code).toBe(0)
  })

  it('shows nothing for the export of large numbers, which are stored exactly', async () => {
    const numbers = '[1000000000000000000, 1e21, 9007199254740994, -9007199254740992, 0.1, 5e-324]'
    const type = await people.manage('POST', '/config-types', { name: 'numbers' })
    const body = { name: 'numbers', configTypeId: type.id, data: { numbers: JSON.parse(numbers) } }
    const config = await people.manage('POST', '/configs', body)
    const file = fileOf((await cli('export')).stdout)

    const { stdout, stderr } = await cli('plan', '-f', file, '--prune')

    await people.manage('DELETE', `/configs/${config.id}`)
    await people.manage('DELETE', `/config-types/${type.id}`)
    expect(stderr).toBe('')
    expect(stdout).toBe('Nothing would change.\n')
  })

  it('shows each change and who would gain and lose access, and exits with 3', async () => {
    const { code, stdout } = await cli('plan', '-f', fileOf(CHANGES))

    expect(code).toBe(3)
    expect(stdout).toContain('+ create service mail\n')
    expect(stdout).toContain('~ change service policy dial\n    identityRoles: ["#staff","@laptop"] → ["#staff"]\n')
    expect(stdout).toContain('  jane gains dialing mail\n')
    expect(stdout).toContain('2 to create, 1 to change, 0 to delete.\n')
    expect(stdout).toContain('The policy dial would demand no posture check')
  })

  it('draws what it adds, changes and removes, and the rights that identities gain and lose', async () => {
    const drawn = await cli('plan', '-f', fileOf(CHANGES), '-o', 'svg')

    expect(drawn.code).toBe(3)
    expect(drawn.stdout).toMatch(/^<svg /)
    const { stdout } = await cli('plan', '-f', fileOf(CHANGES), '-o', 'dot')
    expect(stdout).toMatch(/label="\+ mail\\nservice" .*class="service added"/)
    expect(stdout).toMatch(/label="~ dial\\nservice policy\\npostureCheckRoles" .*class="policy changed"/)
    expect(stdout).toMatch(/n\d+ -> n\d+ \[label="-" class="removed"\]/)
    expect(stdout).toMatch(/n\d+ -> n\d+ \[label="\+ gains dialing" class="added"\]/)
    expect((await cli('plan', '-f', fileOf('version: 1\n'), '-o', 'mermaid')).stdout).toContain('Nothing would change')
  })

  it('draws the roles of a policy as what they select', async () => {
    const roles = "identityRoles: ['#staff'], serviceRoles: ['#web']"
    const file = `version: 1\nservice-policies:\n  - { name: new, type: Dial, semantic: AnyOf, ${roles} }\n`
    const { stdout } = await cli('plan', '-f', fileOf(file), '-o', 'dot')

    expect(stdout).toMatch(/label="#staff" shape=ellipse class="role"/)
    expect(stdout).toMatch(/label="#web" shape=box class="service"/)
  })

  it('begins with a summary by resource, and with what the file does not name, which --show-unlisted names', async () => {
    const { stdout } = await cli('plan', '-f', fileOf(CHANGES), '--show-unlisted')

    const lines = stdout.split('\n')
    expect(lines[0]).toBe('2 to create, 1 to change, 0 to delete.')
    expect(lines).toContain('  services: 1 to create, 0 to change, 0 to delete')
    expect(stdout).toMatch(/^Not in the file, and left as they are: .*services \(1\).*--show-unlisted/m)
    expect(stdout).toMatch(/^Without a section in the file, and left as they are: .*identities \(\d+\)/m)
    expect(lines).toContain('  not in the file: service web')
    expect(lines.indexOf('  not in the file: service web')).toBeGreaterThan(lines.indexOf('+ create service mail'))
  })

  it('reads several files and directories as one network, and names the file of each mistake', async () => {
    const folder = mkdtempSync(join(files, 'parts-'))
    writeFileSync(join(folder, 'a.yaml'), 'version: 1\nservices:\n  - {name: mail, colour: red}\n')
    writeFileSync(join(folder, 'b.yml'), 'version: 1\nservices:\n  - {name: fax}\n')
    writeFileSync(join(folder, 'notes.txt'), 'not a network file')
    const policies = fileOf(
      "version: 1\nservice-policies:\n  - {name: p, type: Dial, identityRoles: ['@jane'], serviceRoles: ['@mail', '@fax', '@none']}\n",
    )

    const refused = await cli('plan', '-f', policies, '-f', folder)
    writeFileSync(join(folder, 'a.yaml'), 'version: 1\nservices:\n  - {name: mail}\n  - {name: none}\n')
    const planned = await cli('plan', '-f', policies, '-f', folder)

    expect(refused.stderr).toContain(`${policies}:3:85: service-policies p: serviceRoles names "none"`)
    expect(refused.stderr).toContain(`\n${join(folder, 'a.yaml')}:3:18: services mail: colour is not known`)
    expect(planned.stdout).toContain('4 to create, 0 to change, 0 to delete.\n')
    expect(planned.stdout).toContain('jane gains dialing fax')
  })

  it('names the mistakes of all files that are no network files', async () => {
    const [one, other] = [fileOf('services: []\n'), fileOf('version: 1\nservices: {}\n')]

    const { stderr } = await cli('plan', '-f', one, '-f', other)

    expect(stderr).toContain(`${one}:1:1: the version is missing`)
    expect(stderr).toContain(`${other}:2:1: services must be a list`)
  })

  it('shows the members of a new record that differ from the defaults, and marks administrators', async () => {
    const file = fileOf(
      'version: 1\nservices:\n  - {name: mail, roleAttributes: [mail]}\nidentities:\n  - {name: boss, isAdmin: true}\n',
    )

    const { stdout } = await cli('plan', '-f', file)

    expect(stdout).toContain('+ create service mail\n    roleAttributes: ["mail"]\n')
    expect(stdout).toContain('+ create identity boss, which becomes an administrator\n    isAdmin: true\n')
    expect(stdout).not.toContain('encryptionRequired')
  })

  it('says that a deleted identity loses its credentials, and which policies lose a role with it', async () => {
    const { stdout } = await cli('plan', '--prune', '-f', fileOf('version: 1\nidentities: [{name: jane}]\n'))

    expect(stdout).toContain('- delete identity laptop, which loses its credentials\n')
    expect(stdout).toContain(
      '~ change service policy dial, which names what is deleted\n    identityRoles: ["#staff","@laptop"] → ["#staff"]\n',
    )
  })

  it('marks what posture blocks at the moment', async () => {
    const { stdout } = await cli(
      'plan',
      '-f',
      fileOf('version: 1\nidentities:\n  - name: printer\n    roleAttributes: [staff]\n'),
    )

    expect(stdout).toContain('  printer gains dialing web, once it passes domain\n')
    expect(stdout).toContain('1 identity would gain the right to 1 service (printer), once it passes domain.\n')
  })

  it('names a role that nothing has, with the one that is most likely meant', async () => {
    const policy = '{name: dial, identityRoles: ["#staf"]}'

    const { stdout } = await cli('plan', '-f', fileOf(`version: 1\nservice-policies:\n  - ${policy}\n`))

    expect(stdout).toContain('  No identity has the role #staf yet: did you mean #staff?\n')
  })

  it('says how many rights it does not name', async () => {
    const services = Array.from({ length: 1_010 }, (_, at) => `  - {name: many ${at}, roleAttributes: [many]}\n`).join(
      '',
    )
    const policies =
      "service-policies:\n  - {name: many, type: Dial, identityRoles: ['@jane'], serviceRoles: ['#many']}\n"

    const { stdout } = await cli('plan', '-f', fileOf(`version: 1\nservices:\n${services}${policies}`))

    expect(stdout).toContain('  … and 10 more gained rights\n')
  })

  it('shows a name with line breaks in one line', async () => {
    const name = 'web\n- delete identity admin\n0 to create, 0 to change, 0 to delete.'
    const records = `services:\n  - {name: ${JSON.stringify(name)}, roleAttributes: [web]}\n`

    const { stdout } = await cli('plan', '-f', fileOf(`version: 1\n${records}`))

    expect(stdout).toContain('+ create service web�- delete identity admin�0 to create')
    expect(stdout.split('\n')).not.toContain('- delete identity admin')
    expect(stdout).not.toMatch(/^0 to create/m)
  })

  it('gives programs the same as JSON', async () => {
    const { code, stdout } = await cli('plan', '-f', fileOf(CHANGES), '-o', 'json')

    const { kind, items } = JSON.parse(stdout)
    expect(code).toBe(3)
    expect(kind).toBe('plan')
    expect(items).toContainEqual({ kind: 'gain', identity: 'jane', service: 'mail', type: 'Dial' })
    expect(items.at(-1)).toMatchObject({ kind: 'summary', creates: 2, changes: 1, deletes: 0 })
  })

  it.each<[string, string, string, RegExp]>([
    ['an unknown resource', 'version: 1\nservices: []\nprinters: []\n', '3:1', /printers is not a resource/],
    [
      'an unknown member',
      'version: 1\nservices:\n  - name: web\n    colour: red\n',
      '4:5',
      /services web: colour is not known/,
    ],
    [
      'a member that stands twice, below one that does',
      'version: 1\nservices:\n  - name: a\n    tags: {x: 1, y: 2, x: 3}\n    name: b\n',
      '4:24',
      /this member stands twice: names must be unique\n/,
    ],
    ['a second record of a name', 'version: 1\nservices:\n  - name: a\n  - name: a\n', '4:5', /twice/],
    [
      'a name that nothing has',
      'version: 1\nservices:\n  - name: a\n    configs: [x]\n',
      '4:15',
      /services a: configs names "x", but neither the file nor the network has configs of that name\n/,
    ],
    ['a member that stands twice', 'version: 1\nservices:\n  - name: a\n    name: b\n', '4:5', /unique/i],
    ['no version', 'services: []\n', '1:1', /version/],
    ['another version', 'version: 2\n', '1:1', /version/],
    ['a section without a list', 'version: 1\nservices:\n', '2:1', /services must be a list/],
    ['a section that is a record', 'version: 1\nservices:\n  name: web\n', '2:1', /services must be a list/],
    [
      'a role without quotes',
      `version: 1\nx:\n  - identityRoles:\n      - #staff\n`,
      '4:9',
      /write "#staff" in quotes/,
    ],
    ['such a role in brackets', 'version: 1\nx:\n  - identityRoles: [#staff]\n', '3:21', /# begins a comment/],
    ['a wrong indentation', 'version: 1\nservices:\n  - name: a\n   x: b\n', '4:1', /the indentation is wrong/],
    ['a tab', 'version: 1\nservices:\n\t- name: a\n', '3:1', /with spaces, not with tabs/],
    ['two documents', 'version: 1\n---\nversion: 1\n', '2:1', /must be one document\n/],
    ['the tag of a plain value', 'version: 1\nx:\n  - name: !!str 5\n', '3:17', /tags \(!\) are not supported/],
    ['nothing', '# nothing\n', '1:1', /the file is empty/],
    ['a record without members', 'version: 1\nservices:\n  - web\n', '3:5', /must have members/],
    ['no sections', '- a\n', '1:1', /section/],
    ['text that is not YAML', 'version: 1\nservices: [\n', '3:1', /./],
    ['aliases that expand', 'version: 1\na: &a [x, x]\nservices: [*a, *a]\n', '3:12', /aliases/],
    ['an alias of itself', 'version: 1\nservices: &a\n  - configs: *a\n', '3:14', /aliases/],
    [
      'a number that cannot be exact',
      'version: 1\nservices:\n  - name: a\n    tags: {n: 12345678901234567890}\n',
      '4:15',
      /exactly/,
    ],
    [
      'a number with more digits than are stored',
      'version: 1\nservices:\n  - name: a\n    tags: {n: 9007199254740993}\n',
      '4:15',
      /exactly/,
    ],
    [
      'such a fraction',
      'version: 1\nservices:\n  - name: a\n    tags: {n: 3.14159265358979323846}\n',
      '4:15',
      /exactly/,
    ],
    ['such a hexadecimal number', 'version: 1\nx:\n  - tags: {n: 0x20000000000001}\n', '3:15', /exactly/],
    ['a number that is too large', 'version: 1\nx:\n  - tags: {n: 1e400}\n', '3:15', /exactly/],
    ['an unknown tag', 'version: 1\nservices: !code []\n', '2:11', /tag/],
  ])('refuses a file with %s by line and column', async (_what, text, place, reason) => {
    const file = fileOf(text)

    const { code, stdout, stderr } = await cli('plan', '-f', file)

    expect(stderr).toContain(`${file}:${place}: `)
    expect(stderr).toMatch(reason)
    expect(stdout).toBe('')
    expect(code).toBe(2)
  })

  it('reports all mistakes in the order of their lines, with the words that are most likely meant', async () => {
    const file = fileOf(
      [
        'version: 1',
        'service-policies:',
        '  - {name: p, type: bind, identityRoles: [staff], serviceRoles: ["@wbe"]}',
        'services:',
        '  - name: web',
        '    roleAtributes: [web]',
        '    encryptionRequired: false',
        '',
      ].join('\n'),
    )

    const { code, stderr } = await cli('plan', '-f', file)

    expect(code).toBe(2)
    expect(stderr.split('\n').slice(0, 5)).toEqual([
      `${file}:3:15: service-policies p: type must be one of Dial, Bind: did you mean Bind?`,
      `${file}:3:43: service-policies p: identityRoles must begin with # (a role) or @ (a name), and not be "staff": did you mean "#staff"?`,
      `${file}:3:66: service-policies p: serviceRoles names "wbe", but neither the file nor the network has services of that name: did you mean web?`,
      `${file}:6:5: services web: roleAtributes is not known here: did you mean roleAttributes?`,
      `${file}:7:5: services web: encryptionRequired cannot change once the record exists: rename the record in the file, or delete it first`,
    ])
  })

  it('reports each section that is not a list', async () => {
    const file = fileOf('version: 1\nservices:\nidentities: {}\n')

    const { stderr } = await cli('plan', '-f', file)

    expect(stderr).toContain(`${file}:2:1: services must be a list`)
    expect(stderr).toContain(`\n${file}:3:1: identities must be a list`)
  })

  it.each([
    ['nested without end', () => `version: 1\nservices: ${'['.repeat(200_000)}`],
    ['of 100 MB', () => `version: 1\nservices:\n${'# filler\n'.repeat(12_000_000)}`],
    ['with bytes that are not text', () => 'version: 1\u0000'],
  ])('refuses a file %s', async (_what, makeText) => {
    const { code, stdout } = await cli('plan', '-f', fileOf(makeText()))

    expect(code).toBe(2)
    expect(stdout).toBe('')
  })

  it('refuses a file that does not exist, and a directory without files', async () => {
    for (const file of [join(files, 'absent.yaml'), mkdtempSync(join(files, 'empty-'))]) {
      const { code, stderr } = await cli('plan', '-f', file)
      expect(code).toBe(2)
      expect(stderr).toContain(file)
    }
  })
})

describe('apply', () => {
  it('asks first, so it needs a terminal or --yes', async () => {
    const { code, stderr, stdout } = await cli('apply', '-f', fileOf(CHANGES))

    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toContain('+ create service mail\n')
    expect(stderr).toContain('--yes')
  })

  it('needs neither if nothing would change', async () => {
    const { code, stdout } = await cli('apply', '-f', fileOf('version: 1\nservices: [{name: web}]\n'))

    expect(stdout).toBe('Nothing to change.\n')
    expect(code).toBe(0)
  })

  it('shows the plan on a terminal, and changes nothing if the person declines', async () => {
    const file = fileOf(CHANGES)

    // Wide enough for the question and the path, in whatever folder temporary files are.
    const inputs = [['Apply .*\\?', `n${ENTER}`]] as const
    const declined = await onTerminal(['apply', '-f', file], env, { columns: 300, inputs })

    expect(plainText(declined.screen)).toContain('+ create service mail\n')
    expect(plainText(declined.screen)).toContain('jane gains dialing mail')
    expect(declined.code).toBe(130)
    expect((await cli('plan', '-f', file)).code).toBe(3)
  })

  it('changes the network, and nothing when it is applied again', async () => {
    const file = fileOf(CHANGES)

    const first = await cli('apply', '-f', file, '--yes')
    const second = await cli('apply', '-f', file, '--yes', '-o', 'json')

    expect(first).toMatchObject({ code: 0, stdout: `Applied ${file}: 2 created, 1 changed, 0 deleted.\n` })
    expect(first.stderr).toContain('+ create service mail\n')
    expect(JSON.parse(second.stdout)).toEqual({ creates: 0, changes: 0, deletes: 0 })
    expect((await cli('plan', '-f', file)).code).toBe(0)
  })

  it('makes the changes of a saved plan, and no others', async () => {
    const plan = join(files, 'saved-plan.json')
    const file = fileOf('version: 1\nservices:\n  - {name: saved, roleAttributes: [a]}\n')
    const saved = await cli('plan', '-f', file, '--out', plan)
    await cli('service', 'create', 'unrelated')
    const applied = await cli('apply', '--plan', plan, '--yes')
    const again = await cli('apply', '--plan', plan, '--yes')

    expect([saved.code, saved.stderr]).toEqual([3, `The plan is saved: controller apply --plan ${plan}\n`])
    expect(applied).toMatchObject({ code: 0, stdout: `Applied ${plan}: 1 created, 0 changed, 0 deleted.\n` })
    expect(again.code).toBe(6)
    expect(again.stderr).toContain('the network has changed since')
    expect((await cli('apply', '--plan', file, '--yes')).stderr).toContain('is not a plan that this program can apply')
  })

  it('refuses a saved plan if what it touches has changed since', async () => {
    const plan = join(files, 'changed-plan.json')
    await cli('service', 'create', 'touched', '--role', 'a')
    await cli('plan', '-f', fileOf('version: 1\nservices:\n  - {name: touched, roleAttributes: [b]}\n'), '--out', plan)
    await cli('service', 'update', 'touched', '--add-role', 'c')

    const { code, stderr } = await cli('apply', '--plan', plan, '--yes')

    expect(code).toBe(6)
    expect(stderr).toContain('Try: save a new plan: controller plan --out')
    expect((await cli('service', 'get', 'touched', '-o', 'json')).stdout).toContain('"c"')
  })

  it('deletes by --prune what the file does not name', async () => {
    const file = fileOf('version: 1\nposture-checks:\n  - name: domain\n')

    expect((await cli('apply', '-f', file, '--yes')).stdout).toBe('Nothing to change.\n')
    expect((await cli('apply', '-f', file, '--yes', '--prune')).stdout).toContain('0 created, 0 changed, 2 deleted')
  })

  it('names the line of a record that breaks a rule', async () => {
    const file = fileOf('version: 1\ncas:\n  - name: broken\n    certPem: none\n')

    const { code, stderr } = await cli('apply', '-f', file, '--yes')

    expect(code).toBe(2)
    expect(stderr).toContain(`${file}:4:5: cas broken: certPem `)
  })

  it('names the line of config data that breaks the schema of a type of the same file', async () => {
    const file = fileOf(
      [
        'version: 1',
        'configs:',
        '  - name: fax',
        '    configType: fax.v1',
        '    data:',
        '      lines: [1]',
        '      port: "80"',
        'config-types:',
        '  - {name: fax.v1, schema: {type: object, properties: {port: {type: integer}}}}',
        '',
      ].join('\n'),
    )

    for (const command of [['plan'], ['apply', '--yes']]) {
      const { code, stderr } = await cli(...command, '-f', file)

      expect(stderr).toContain(`${file}:7:7: configs fax: data.port must be an integer, not the text "80"\n`)
      expect(stderr).not.toContain('run the command again')
      expect(code).toBe(2)
    }
  })

  it('says after a failure how much is made, and that it can be continued', async () => {
    const types = Array.from({ length: 250 }, (_, at) => `  - name: type ${at}\n`).join('')
    // Only the transaction that stores an authority compares its certificate with those of others.
    const [{ certPem }] = parse((await cli('export')).stdout).cas
    const latecomer = `cas:\n  - {name: late, certPem: ${JSON.stringify(certPem)}}\n`
    const file = fileOf(`version: 1\nconfig-types:\n${types}${latecomer}`)

    const { code, stderr } = await cli('apply', '-f', file, '--yes')

    expect(code).toBe(2)
    expect(stderr).toContain('200 of 251 changes are made')
    expect(stderr).toContain('correct the file, then run the command again to continue')
  })
})

describe('Ctrl-C during apply', () => {
  const RECORDS = 4_000
  const ownEnv = cleanEnvironment()
  let ownWorld: TestController

  beforeAll(async () => {
    ownWorld = await testController()
    const { url, rootPem } = await ownWorld.listen()
    const { token } = await People.in(ownWorld, 'operator')
    writeProfiles(ownEnv, { test: { url, rootPem, token } })
  })
  afterAll(() => ownWorld?.close())

  const countServices = async () => {
    const query = ownWorld.controller.store.db.selectFrom('services')
    const { total } = await query.select((eb) => eb.fn.countAll().as('total')).executeTakeFirstOrThrow()
    return Number(total)
  }

  /** Starts `apply`, and waits until the first transaction is committed. */
  async function startApply(file: string) {
    const child = spawn(process.execPath, [BINARY, 'apply', '--yes', '-f', file], { env: ownEnv })
    let stderr = ''
    child.stderr.on('data', (chunk) => (stderr += chunk))
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
    await expect.poll(countServices, { interval: 1, timeout: 120_000 }).toBeGreaterThan(0)
    return { child, ended, errors: () => stderr }
  }

  it('says what is made, what is left and how to continue, once the transaction under way has ended', async () => {
    const records = Array.from({ length: RECORDS }, (_, at) => `  - name: interrupted ${at}\n`).join('')
    const file = fileOf(`version: 1\nservices:\n${records}`)

    const { child, ended, errors } = await startApply(file)
    child.kill('SIGINT')
    const code = await ended
    const count = await countServices()

    expect(errors()).toContain('stopping after the transaction under way')
    expect(errors()).toContain(`interrupted: ${count} of ${RECORDS} changes are made, ${RECORDS - count} are left\n`)
    expect(errors()).toContain('Try: run the command again to continue')
    expect([code, count < RECORDS]).toEqual([130, true])
    expect((await commandLine(['apply', '-f', file, '--yes'], ownEnv)).stdout).toContain(`${RECORDS - count} created`)
  }, 180_000)

  it('ends the command at once when it is pressed twice', async () => {
    const none = { identities: 0, services: 0, pairs: 0 }
    const effects = { gains: none, loses: none, blockedGains: none, blockedLosses: none, unreachable: none }
    const summary = {
      kind: 'summary',
      digest: 'd',
      creates: 9,
      changes: 0,
      deletes: 0,
      resources: [],
      ...effects,
      sessions: 0,
    }
    let requestCount = 0
    const server = await listServer(0, async function* () {
      if (++requestCount === 1) return yield summary
      yield { creates: 3, changes: 0, deletes: 0, total: 9, failure: null }
      await new Promise(() => {})
    })
    const stuck = cleanEnvironment()
    writeProfiles(stuck, { test: { url: server.url, rootPem: server.rootPem, token: 'token' } })
    const args = [BINARY, 'apply', '--yes', '-f', fileOf('version: 1\nservices: []\n')]
    const child = spawn(process.execPath, args, { env: stuck })
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
    let stderr = ''
    child.stderr.on('data', (chunk) => (stderr += chunk))

    await expect.poll(() => requestCount, { timeout: 60_000 }).toBe(2)
    child.kill('SIGINT')
    await expect.poll(() => stderr, { timeout: 60_000 }).toContain('stopping after the transaction under way')
    child.kill('SIGINT')
    const code = await ended
    server.close()

    expect(code).toBe(130)
    expect(stderr).not.toContain('interrupted:')
  })
})

describe('export', () => {
  it('writes YAML with a section for every resource', async () => {
    const { code, stdout, stderr } = await cli('export')

    expect(stderr).toBe('')
    expect(code).toBe(0)
    const content = parse(stdout)
    expect(Object.keys(content)).toEqual(['version', ...fileResources.map(({ resource }) => resource.plural)])
    expect(content.version).toBe(1)
    expect(content.configs).toMatchObject([
      { name: 'web-client', configType: 'ziti-tunneler-client.v1', data: { port: 8080 } },
    ])
    expect(content['controller-settings']).toEqual([])
  })

  it('says in its head what it does not hold', async () => {
    const { stdout } = await cli('export')

    expect(stdout).toMatch(/^# [^\n]*controller export/)
    expect(stdout.split('\nversion:')[0]).toMatch(/credentials/)
  })

  it('writes YAML only', async () => {
    const { code, stdout, stderr } = await cli('export', '-o', 'json')

    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toContain('YAML')
  })

  it('writes the same offline, where plan and apply work too', async () => {
    const online = await cli('export')
    await world.stop()

    const where = ['--offline', '--data-dir', world.directory]
    const offline = await cli('export', ...where)

    expect(offline.stderr).toBe('')
    expect(offline.stdout).toBe(online.stdout)
    const file = fileOf(offline.stdout.replace(/^services: \[\]|^services:$/m, 'services:\n  - name: offline'))
    expect(await cli('plan', '-f', file, ...where)).toMatchObject({ code: 3, stderr: '' })
    expect((await cli('apply', '-f', file, '--yes', ...where)).stdout).toContain('1 created, 0 changed, 0 deleted')
    expect((await cli('plan', '-f', file, ...where)).code).toBe(0)
    await world.reopen({ clock: new TestClock() })
  })
})
