// Tables, CSV, chosen columns and queries: what people read, and what they cut out of it.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeAuthority } from '../world/authorities.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { CLIENT } from '../world/controller.ts'
import { writeProfiles } from '../world/profiles.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let at: { url: string; rootPem: string }
const env = cleanEnvironment()

beforeAll(async () => {
  at = await world.listen()
  writeProfiles(env, { test: { ...at, token: await world.admin() } })
  await cli('service', 'create', 'web', '--role', 'web', '--role', 'internal')
  await cli('service', 'create', 'mail, "old"', '--role', 'mail')
  await cli('identity', 'create', 'laptop', '--role', 'staff', '--ott')
  await cli(
    'service-policy',
    'create',
    'use',
    '--type',
    'Dial',
    '--identity-roles',
    '@laptop',
    '--service-roles',
    '#web',
  )
})

const cli = (...args: string[]) => commandLine(args, env)
const readOut = async (...args: string[]) => {
  const { code, stdout, stderr } = await cli(...args)
  expect(code, stderr).toBe(0)
  return stdout
}

/** Opens a session of a new identity for a new service. */
async function openSession() {
  const { id: identityId, token } = await world.signIn({ name: 'dialer' })
  const service = JSON.parse(await readOut('service', 'create', 'reports', '-o', 'json'))
  await readOut('edge-router', 'create', 'edge')
  const [identities, services] = [
    ['--identity-roles', '@dialer'],
    ['--service-roles', '@reports'],
  ]
  await readOut('service-policy', 'create', 'report', '--type', 'Dial', ...identities, ...services)
  const routers = ['--edge-router-roles', '#all']
  await readOut('edge-router-policy', 'create', 'report', ...identities, ...routers)
  await readOut('service-edge-router-policy', 'create', 'report', ...services, ...routers)
  const body = { serviceId: service.id, type: 'Dial' }
  const created = await world.send({ method: 'POST', path: `${CLIENT}/sessions`, token, body })
  expect(created.status).toBe(201)
  return { identityId, id: created.body.data.id, token: created.body.data.token }
}

describe('sessions', () => {
  let session: Awaited<ReturnType<typeof openSession>>
  beforeAll(async () => {
    session = await openSession()
  })
  afterAll(() => readOut('service', 'delete', 'reports', '--yes'))

  it('are listed with identities and services by name', async () => {
    const table = await readOut('session', 'list')
    const [item] = JSON.parse(await readOut('session', 'list', '-o', 'json')).items

    expect(table).toMatch(/^TYPE +IDENTITY +SERVICE +CREATED-AT +ID\nDial +dialer +reports +\S+ +\S+\n$/)
    expect(item).toMatchObject({ identityId: session.identityId, service: { name: 'reports' } })
    expect(item.identity).toBeUndefined()
  })

  it('are shown without their tokens in every format', async () => {
    const { id, token } = session
    const own = await world.admin()
    writeProfiles(env, { test: { ...at, token: own } })

    for (const format of ['table', 'wide', 'csv', 'json', 'jsonl', 'yaml', 'name']) {
      const printed = [
        await readOut('session', 'list', '-o', format),
        await readOut('session', 'get', id, '-o', format),
        await readOut('api-session', 'list', '-o', format),
        await readOut('current-api-session', 'get', '-o', format),
      ]
      expect(printed[1]).toContain(id)
      for (const text of printed) {
        expect(text).not.toContain(token)
        expect(text).not.toContain(own)
      }
    }
  })
})

describe('a table', () => {
  it('is one line per record below one line of titles, with the name first and no ids', async () => {
    const lines = (await readOut('service', 'list', '--filter', 'name = "web"')).trimEnd().split('\n')

    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatch(/^NAME +ROLE-ATTRIBUTES +TERMINATOR-STRATEGY +ENCRYPTION-REQUIRED$/)
    expect(lines[1]).toMatch(/^web +internal, web +\S+ +yes$/)
  })

  it('has the id last with -o wide', async () => {
    expect(await readOut('service', 'list', '--filter', 'name = "web"', '-o', 'wide')).toMatch(
      /^NAME .* ID\nweb .* [0-9A-Z]{26}\n$/,
    )
  })

  it('of records without names ends with their ids, and shows what they refer to by name', async () => {
    expect(await readOut('enrollment', 'list', '--filter', 'identity.name = "laptop"')).toMatch(
      /^METHOD +IDENTITY +EXPIRES-AT +ID\nott +laptop +\S+ +[0-9A-Z]{26}\n$/,
    )
  })

  it('shows roles by the names of the records', async () => {
    expect(await readOut('service-policy', 'list', '--filter', 'name = "use"')).toMatch(/^use .* @laptop +#web$/m)
  })

  it('of who reaches a service names permissions, policies and what is allowed', async () => {
    expect(await readOut('policy', 'who', 'web')).toMatch(
      /^NAME +PERMISSIONS +ALLOWED +POLICIES +GRANTED-BY\nlaptop +Dial +Dial +use +@laptop → #web\n$/,
    )
  })

  it('has the columns that are named, in any spelling', async () => {
    const columns = ['--columns', 'name,ENCRYPTION-REQUIRED', '--columns', 'roleattributes']

    const lines = (await readOut('service', 'list', '--filter', 'name = "web"', ...columns)).split('\n')

    expect(lines[0]).toMatch(/^NAME +ENCRYPTION-REQUIRED +ROLE-ATTRIBUTES$/)
  })

  it('says which columns there are if one is unknown', async () => {
    const { code, stderr } = await cli('service', 'list', '--columns', 'nmae')

    expect(code).toBe(2)
    expect(stderr).toMatch(/there is no column "nmae"\nTry: name/)
  })
})

describe('one record', () => {
  it('is shown with its name first, and each reference once', async () => {
    const lines = (await readOut('identity', 'get', 'laptop')).split('\n')

    expect(lines[0]).toMatch(/^name +laptop$/)
    expect(lines.filter((line) => line.startsWith('auth policy'))).toHaveLength(1)
    expect(lines.find((line) => line.startsWith('auth policy'))).toMatch(/Default \(default\)/)
  })

  it('names what is not set in one line, and leaves tokens to the format that prints them', async () => {
    const lines = (await readOut('identity', 'get', 'laptop')).trimEnd().split('\n')

    expect(lines.at(-1)).toMatch(/^not set +tags, permissions, external id, app data, /)
    expect(lines.find((line) => line.startsWith('    jwt'))).toMatch(/ {2}\(-o jwt prints it\)$/)
    expect(lines.some((line) => /^is admin +no$/.test(line))).toBe(true)
    expect(lines.some((line) => line.length > 200)).toBe(false)
  })

  it('is shown in full with -o wide', async () => {
    const text = await readOut('identity', 'get', 'laptop', '-o', 'wide')

    expect(text).toMatch(/^external id +-$/m)
    expect(text).toMatch(/^ {4}jwt +eyJ\S+$/m)
    expect(text).not.toMatch(/^not set/m)
  })

  it('has no value for a time that does not exist', async () => {
    const keys = [
      '--issuer',
      'https://issuer.example',
      '--audience',
      'controller',
      '--jwks-endpoint',
      'https://issuer.example/keys',
    ]
    await readOut('external-jwt-signer', 'create', 'issuer', '--enabled', ...keys)

    expect(await readOut('external-jwt-signer', 'get', 'issuer')).not.toContain('0001-01-01')
  })

  it('has texts of several lines below their label', async () => {
    const { pem } = await makeAuthority()
    const file = join(mkdtempSync(join(tmpdir(), 'tables-')), 'ca.pem')
    writeFileSync(file, pem)
    await readOut('ca', 'create', 'factory', '--cert', file)

    const text = await readOut('ca', 'get', 'factory', '-o', 'wide')

    expect(await readOut('ca', 'get', 'factory')).toMatch(/^cert pem +\(-o wide shows it\)$/m)
    const indented = pem.trimEnd().split('\n').join('\n  ')
    expect(text).toContain(`\ncert pem\n  ${indented}\n`)
    expect(text).toMatch(/^name {5,}factory$/m)
  })

  it('has objects and lists of objects below their labels', async () => {
    const data = {
      protocols: ['tcp'],
      addresses: ['a.example'],
      portRanges: [
        { low: 80, high: 81 },
        { low: 443, high: 443 },
      ],
    }
    await readOut('config', 'create', 'nested', '--config-type', 'intercept.v1', '--data', JSON.stringify(data))

    const lines = (await readOut('config', 'get', 'nested'))
      .split('\n')
      .map((line) => line.trimEnd().replace(/(\S) +(?=\S)/g, '$1 '))

    const at = lines.indexOf('  portRanges')
    expect(lines.slice(at, at + 7)).toEqual([
      '  portRanges',
      '    1',
      '      low 80',
      '      high 81',
      '    2',
      '      low 443',
      '      high 443',
    ])
  })

  it('spells what users and other programs name as they do', async () => {
    const data = { allowedProtocols: ['tcp'], forwardProtocol: true, address: 'a.example', port: 80 }
    const config = ['--config-type', 'host.v1', '--data', JSON.stringify(data), '--tag', 'costCenter=7']
    const labelsOf = (text: string) => text.split('\n').map((line) => line.trim().split(/ {2,}/)[0])

    const tags = ['siteName=north', 'nameDisplay=x', 'evil\u001b[2J=1'].flatMap((tag) => ['--tag', tag])
    await readOut('identity', 'create', 'tagged', ...tags, '--app-data', 'homeDir=/')
    await readOut('config', 'create', 'spelled', ...config)

    expect(labelsOf(await readOut('config', 'get', 'spelled'))).toEqual(
      expect.arrayContaining(['costCenter', 'allowedProtocols', 'forwardProtocol', 'config type']),
    )
    expect(labelsOf(await readOut('config-type', 'get', 'host.v1'))).toContain('forwardProtocol')
    expect(labelsOf(await readOut('identity', 'get', 'tagged'))).toEqual(
      expect.arrayContaining(['siteName', 'nameDisplay', 'evil�[2J', 'homeDir', 'auth policy']),
    )
  })

  it('of the audit has the times of a record as times', async () => {
    const [{ id }] = JSON.parse(
      await readOut('audit', 'list', '--filter', 'entityName = "laptop" and operation = "create"', '-o', 'json'),
    ).items

    expect(await readOut('audit', 'get', String(id))).toMatch(/^ {2}created at +\d{4}-\d\d-\d\dT\S+Z$/m)
  })

  it('names the records in its sets', async () => {
    await readOut(
      'config',
      'create',
      'web-host',
      '--config-type',
      'host.v1',
      '--data',
      '{"protocol":"tcp","address":"a.example","port":80}',
    )
    await readOut('service', 'update', 'web', '--configs', 'web-host')

    expect(await readOut('service', 'get', 'web')).toMatch(/^configs +web-host$/m)
  })
})

describe('comma-separated values', () => {
  it('have a line of titles, and quotes where a value needs them', async () => {
    const csv = await readOut('service', 'list', '--sort', 'name', '-o', 'csv', '--columns', 'name,roleAttributes')

    expect(csv).toBe('name,roleAttributes\r\n"mail, ""old""",mail\r\nweb,"internal, web"\r\n')
  })

  it('have a quote before what a spreadsheet would take for a formula, unless a program reads them', async () => {
    const ofOne = ['--filter', 'name = "use"', '--columns', 'name,identityRoles']
    const formula = '=HYPERLINK("https://a.example")'
    await readOut('service', 'create', formula)
    const words = ['service', 'list', '-o', 'csv', '--columns', 'name', '--filter', 'name contains "="']
    const guarded = await readOut(...words)
    const bare = await readOut(...words, '--no-csv-guard')
    await readOut('service', 'delete', formula, '--yes')

    expect(guarded).toBe('name\r\n"\'=HYPERLINK(""https://a.example"")"\r\n')
    expect(bare).toBe('name\r\n"=HYPERLINK(""https://a.example"")"\r\n')
    expect(await readOut('service-policy', 'list', '-o', 'csv', ...ofOne)).toBe(
      "name,identityRoles\r\nuse,'@laptop\r\n",
    )
  })

  it('have the columns of the table and the id', async () => {
    expect(await readOut('service', 'list', '-o', 'csv', '--filter', 'name = "none"')).toBe(
      'name,roleAttributes,terminatorStrategy,encryptionRequired,id\r\n',
    )
  })
})

describe('a query', () => {
  it('prints texts one per line, and other values as JSON', async () => {
    const names = await readOut('service', 'list', '--sort', 'name', '--query', 'items[].name')
    const objects = await readOut('service', 'get', 'web', '--query', '{n: name, r: roleAttributes}')

    expect(names).toBe('mail, "old"\nweb\n')
    expect(JSON.parse(objects)).toEqual({ n: 'web', r: ['internal', 'web'] })
  })

  it('that cannot be read is refused', async () => {
    const { code, stderr } = await cli('service', 'list', '--query', 'items[')

    expect(code).toBe(2)
    expect(stderr).toMatch(/^--query: /)
  })
})
