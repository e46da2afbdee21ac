// The plan of a network file: what would be created, changed and deleted, and who would gain or lose which access.
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { configureNetwork } from '../world/configured-network.ts'
import { contentsOf } from '../world/contents.ts'
import { MANAGEMENT } from '../world/controller.ts'
import { type FileSection, readExport, requestPlan } from '../world/network-files.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world, 'operator')
  await configureNetwork(people)
})

const policy = (name: string, more: object = {}) => ({
  ...{
    name,
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#staff'],
    serviceRoles: ['#web'],
    postureCheckRoles: [],
  },
  ...more,
})

async function planOf(sections: readonly FileSection[], isPruning = false) {
  const { items, summary } = await requestPlan(people, sections, isPruning)
  const of = (kind: string) => items.filter((item) => item.kind === kind)
  return { items, summary, of }
}

describe('the plan of an export', () => {
  it('changes nothing in the network that it is of, even if it prunes', async () => {
    const { items, summary } = await planOf(await readExport(people), true)

    expect(items.filter(({ kind }) => kind !== 'retain')).toEqual([])
    expect(summary).toMatchObject({ creates: 0, changes: 0, deletes: 0, sessions: 0, isComplete: true })
    expect(summary.gains).toEqual({ identities: 0, services: 0, pairs: 0 })
  })

  it('stores nothing', async () => {
    const before = await contentsOf(world)

    await planOf([{ resource: 'services', records: [{ name: 'new' }] }], true)

    expect(await contentsOf(world)).toBe(before)
  })
})

describe('a plan', () => {
  it('creates what does not exist, with defaults for what the file leaves out', async () => {
    const { of } = await planOf([{ resource: 'services', records: [{ name: 'mail', roleAttributes: ['mail'] }] }])

    expect(of('create')).toMatchObject([{ resource: 'services', name: 'mail' }])
    expect(of('create')[0]?.members).toContainEqual({ name: 'encryptionRequired', after: true, isDefault: true })
    expect(of('create')[0]?.members).toContainEqual({ name: 'roleAttributes', after: ['mail'] })
  })

  it('names what a new record refers to by default', async () => {
    const { of } = await planOf([{ resource: 'identities', records: [{ name: 'tablet' }] }])

    expect(of('create')[0]?.members).toContainEqual({ name: 'authPolicy', after: 'Default', isDefault: true })
  })

  it('shows a change member by member, and keeps the members that the file leaves out', async () => {
    const record = { name: 'web', roleAttributes: ['web', 'internal'], configs: [] }

    const { of, summary } = await planOf([{ resource: 'services', records: [record] }])

    expect(of('change')).toEqual([
      {
        ...{ kind: 'change', resource: 'services', name: 'web' },
        members: [
          { name: 'roleAttributes', before: ['web'], after: ['internal', 'web'] },
          { name: 'configs', before: ['web-client'], after: [] },
        ],
      },
    ])
    expect(summary).toMatchObject({ creates: 0, changes: 1, deletes: 0 })
  })

  it('deletes nothing unless it prunes, and then only in the sections of the file', async () => {
    const sections = [{ resource: 'posture-checks', records: [{ name: 'domain' }] }]

    expect((await planOf(sections)).of('delete')).toEqual([])
    const { of } = await planOf(sections, true)
    expect(of('delete')).toEqual([
      { kind: 'delete', resource: 'posture-checks', name: 'os' },
      { kind: 'delete', resource: 'posture-checks', name: 'mfa' },
    ])
  })

  it('counts the records that the file does not name, and names them if it is asked to', async () => {
    const sections = [{ resource: 'posture-checks', records: [{ name: 'domain' }] }]
    const response = await people.ask('POST', '/controller/network/plan?unlisted=true', sections)
    const items: { kind: string; resource: string; name: string }[] = response.body.data
    const { summary } = await planOf(sections)

    const namesOf = (plural: string) =>
      items.filter(({ kind, resource }) => kind === 'unlisted' && resource === plural).map(({ name }) => name)
    const counts = summary.resources as { resource: string; unlisted: number; hasSection: boolean }[]
    expect(namesOf('posture-checks').sort()).toEqual(['mfa', 'os'])
    expect(counts).toContainEqual(
      expect.objectContaining({ resource: 'posture-checks', unlisted: 2, hasSection: true }),
    )
    for (const { resource, records } of await readExport(people)) {
      const count = counts.find((of) => of.resource === resource)?.unlisted ?? 0
      expect([resource, count]).toEqual([resource, namesOf(resource).length])
      if (resource !== 'posture-checks') expect(count).toBe(records.length)
    }
  })

  it('counts nothing but records without a section if it prunes', async () => {
    const { summary } = await planOf([{ resource: 'posture-checks', records: [{ name: 'domain' }] }], true)

    const ofResource = (name: string) => summary.resources.find((of: { resource: string }) => of.resource === name)
    expect(ofResource('posture-checks')).toMatchObject({ deletes: 2, unlisted: 0, hasSection: true })
    expect(ofResource('services')).toMatchObject({ deletes: 0, unlisted: 1, hasSection: false })
  })

  it('orders records after those that they refer to, whatever the order of the file', async () => {
    const { of } = await planOf([
      { resource: 'services', records: [{ name: 'print', configs: ['printer'] }] },
      { resource: 'configs', records: [{ name: 'printer', configType: 'fax.v1', data: {} }] },
      { resource: 'config-types', records: [{ name: 'fax.v1' }] },
    ])

    expect(of('create').map(({ name }) => name)).toEqual(['fax.v1', 'printer', 'print'])
  })

  it('has the same digest for the same changes, and another one for others', async () => {
    const digestOf = async (name: string) =>
      (await planOf([{ resource: 'services', records: [{ name }] }])).summary.digest

    expect(await digestOf('one')).toBe(await digestOf('one'))
    expect(await digestOf('one')).not.toBe(await digestOf('other'))
  })

  it('refuses an identity of the file whose edge router loses its tunneler', async () => {
    const routerIdentity = { resource: 'identities', records: [{ name: 'edge', type: 'Router' }] }
    const files: [FileSection, string][] = [
      [{ resource: 'edge-routers', records: [{ name: 'edge', isTunnelerEnabled: false }] }, ''],
      [{ resource: 'edge-routers', records: [] }, '?prune=true'],
    ]
    for (const [section, query] of files) {
      const identities = query
        ? { ...routerIdentity, records: [...routerIdentity.records, { name: 'jane' }, { name: 'laptop' }] }
        : routerIdentity
      const { status, body } = await people.ask('POST', `/controller/network/plan${query}`, [section, identities])

      expect(status).toBe(400)
      expect(body.error.cause).toMatchObject({ field: '1.records.0.name', reason: expect.stringContaining('tunneler') })
    }
  })
})

describe('a file with more than a network has', () => {
  const repeat = (count: number, render: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => render(at)).join()
  const recordsOf = (records: string) => `[{"resource":"services","records":[${records}]}]`

  it.each([
    ['records', /500000 records/, () => recordsOf(repeat(600_000, () => '{}'))],
    ['members in a record', /1000 members of records/, () => recordsOf(`{${repeat(1_100, (at) => `"m${at}":1`)}}`)],
    [
      'references in a record',
      /100000 values of members/,
      () => recordsOf(`{"name":"a","configs":[${repeat(110_000, (at) => `"c${at}"`)}]}`),
    ],
    [
      'values in all',
      /3000000 values/,
      () => recordsOf(`{"name":"a","tags":{"a":[${repeat(40, () => `[${'0,'.repeat(90_000)}0]`)}]}}`),
    ],
    ['depth', /values/, () => recordsOf(`{"tags":${'['.repeat(4_000_000)}`)],
  ])('is refused for its %s before it is parsed', async (_what, reason, makeBody) => {
    const body = makeBody()
    const parse = vi.spyOn(JSON, 'parse')

    const response = await world.send({
      ...{ method: 'POST', path: `${MANAGEMENT}/controller/network/plan`, token: people.token },
      ...{ body, headers: { 'content-type': 'application/json' } },
    })

    expect(response.status).toBe(400)
    expect(response.body.error.cause).toMatchObject({ field: 'body', reason: expect.stringMatching(reason) })
    expect(parse.mock.calls.some(([text]) => text.length === body.length)).toBe(false)
    parse.mockRestore()
  })
})

describe('the roles of a plan that select nothing', () => {
  const unmatchedOf = async (sections: readonly FileSection[], isPruning = false) =>
    (await planOf(sections, isPruning)).of('unmatched').map(({ resource, role, near }) => [resource, role, near])

  it('are named, with similar ones of the network and of the file', async () => {
    const sections = [
      { resource: 'identities', records: [{ name: 'new', type: 'Default', roleAttributes: ['engineers'] }] },
      {
        resource: 'service-policies',
        records: [policy('roles', { identityRoles: ['#enginers', '@new'], serviceRoles: ['#weeb', '#nothing'] })],
      },
    ]

    expect(await unmatchedOf(sections)).toEqual([
      ['identities', '#enginers', ['#engineers']],
      ['services', '#nothing', []],
      ['services', '#weeb', ['#web']],
    ])
  })

  it('are those of the network after the plan', async () => {
    const selecting = { resource: 'service-policies', records: [policy('roles', { identityRoles: ['#brand-new'] })] }
    const bearer = { name: 'new', type: 'Default', roleAttributes: ['brand-new'] }

    expect(await unmatchedOf([selecting])).toEqual([['identities', '#brand-new', []]])
    expect(await unmatchedOf([selecting, { resource: 'identities', records: [bearer] }])).toEqual([])
    // The only service with the attribute loses it.
    const stripped = { resource: 'services', records: [{ name: 'web', roleAttributes: [] }] }
    const web = { resource: 'service-policies', records: [policy('roles', { identityRoles: ['#all'] })] }
    expect(await unmatchedOf([web])).toEqual([])
    expect(await unmatchedOf([web, stripped])).toEqual([['services', '#web', []]])
  })
})

describe('the access of a plan', () => {
  it('names who would gain a right by a new policy', async () => {
    const { of, summary } = await planOf([{ resource: 'service-policies', records: [policy('more')] }])

    expect(of('gain')).toEqual(
      expect.arrayContaining([
        { kind: 'gain', identity: 'jane', service: 'web', type: 'Dial' },
        { kind: 'gain', identity: 'laptop', service: 'web', type: 'Dial' },
      ]),
    )
    expect(summary.gains).toEqual({ identities: 2, services: 1, pairs: 2 })
    expect(summary.loses.pairs).toBe(0)
  })

  it('is that of all changes together', async () => {
    // The policy alone would grant the service to all of the staff, the new attribute alone nothing.
    const { of } = await planOf([
      { resource: 'services', records: [{ name: 'new', roleAttributes: ['fresh'] }] },
      {
        resource: 'identities',
        records: [
          { name: 'phone', roleAttributes: ['staff'] },
          { name: 'jane', roleAttributes: [] },
        ],
      },
      { resource: 'service-policies', records: [policy('fresh', { serviceRoles: ['@new'] })] },
    ])

    expect(
      of('gain')
        .map(({ identity, service, blockedBy }) => `${identity} ${service}${blockedBy ? ' blocked' : ''}`)
        .sort(),
    ).toEqual(['laptop new', 'phone new', 'phone web blocked'])
  })

  it('includes the identity of a router that gets a tunneler by the plan', async () => {
    const { of } = await planOf([
      { resource: 'edge-routers', records: [{ name: 'west', isTunnelerEnabled: true }] },
      { resource: 'identities', records: [{ name: 'west', type: 'Router', roleAttributes: ['staff'] }] },
      { resource: 'service-policies', records: [policy('routers', { identityRoles: ['@west'] })] },
    ])

    expect(of('change')).toMatchObject([{ resource: 'identities', name: 'west' }])
    expect(of('gain')).toEqual([{ kind: 'gain', identity: 'west', service: 'web', type: 'Dial' }])
  })

  it('names what a policy grants also if posture blocks it at the moment, with the posture checks', async () => {
    const gated = policy('gated', { serviceRoles: ['@wiki'], postureCheckRoles: ['@mfa', '@domain'] })

    const { of, summary } = await planOf([
      { resource: 'services', records: [{ name: 'wiki' }] },
      { resource: 'identities', records: [{ name: 'laptop', roleAttributes: [] }] },
      { resource: 'service-policies', records: [gated, { name: 'dial', identityRoles: ['#staff'] }] },
    ])

    expect(of('gain')).toEqual([
      { kind: 'gain', identity: 'jane', service: 'wiki', type: 'Dial', blockedBy: ['domain', 'mfa'] },
    ])
    expect(of('loss')).toEqual([
      { kind: 'loss', identity: 'laptop', service: 'web', type: 'Dial', blockedBy: ['domain'] },
    ])
    expect(summary).toMatchObject({ gains: { pairs: 0 }, blockedGains: { pairs: 1 }, blockedLosses: { pairs: 1 } })
  })

  it('names the policies that would demand less of machines', async () => {
    const { of } = await planOf([{ resource: 'service-policies', records: [{ name: 'dial', postureCheckRoles: [] }] }])

    expect(of('gate')).toEqual([{ kind: 'gate', name: 'dial', identities: 2, remainingChecks: 0 }])
  })
})

describe('pruning', () => {
  it('never deletes the caller, the default administrator, identities of routers, built-in and system records', async () => {
    const sections = (await readExport(people)).map(({ resource }) => ({ resource, records: [] }))

    const { of } = await planOf([...new Map(sections.map((section) => [section.resource, section])).values()], true)

    const deletedNames = of('delete').map(({ resource, name }) => `${resource} ${name}`)
    expect(deletedNames).toContain('identities laptop')
    expect(deletedNames).toContain('edge-routers edge')
    expect(deletedNames).not.toContain('identities operator')
    expect(deletedNames).not.toContain('identities Default Admin')
    expect(deletedNames).not.toContain('identities edge')
    expect(deletedNames).not.toContain('config-types host.v1')
    expect(deletedNames).not.toContain('auth-policies Default')
    expect(deletedNames.filter((name) => name.includes('-system'))).toEqual([])
    expect(of('retain')).toContainEqual(
      expect.objectContaining({
        resource: 'identities',
        name: 'operator',
        reason: expect.stringContaining('your own'),
      }),
    )
  })

  // Takes the password of the default administrator away, so that jane alone can sign in.
  it('deletes no administrator if no other one could sign in', async () => {
    const [authenticator] = await people.manage('GET', '/authenticators?filter=updbUsername="admin"')
    await people.manage('DELETE', `/authenticators/${authenticator.id}`)

    const { of } = await planOf([{ resource: 'identities', records: [{ name: 'laptop' }] }], true)

    expect(of('delete')).toEqual([])
    expect(of('retain').map(({ name }) => name)).toContain('jane')
  })

  it('names what changes because it names a deleted record', async () => {
    const { of, summary } = await planOf(
      [
        { resource: 'services', records: [] },
        { resource: 'posture-checks', records: [{ name: 'os' }, { name: 'mfa' }] },
        { resource: 'service-policies', records: [{ name: 'host' }, { name: 'dial', serviceRoles: ['#web'] }] },
      ],
      true,
    )

    expect(of('clear')).toEqual([
      {
        ...{ kind: 'clear', resource: 'identities', name: 'laptop' },
        members: [
          { name: 'serviceHostingCosts', before: { web: 7 }, after: {} },
          { name: 'serviceHostingPrecedences', before: { web: 'required' }, after: {} },
        ],
      },
      {
        ...{ kind: 'clear', resource: 'service-policies', name: 'dial' },
        members: [{ name: 'postureCheckRoles', before: ['@domain'], after: [] }],
      },
      {
        ...{ kind: 'clear', resource: 'service-edge-router-policies', name: 'web-north' },
        members: [{ name: 'serviceRoles', before: ['@web'], after: [] }],
      },
    ])
    expect(summary).toMatchObject({ changes: 1, deletes: 2 })
  })

  it('names policies that name a deleted router, and not that of the router itself', async () => {
    const { of } = await planOf([{ resource: 'edge-routers', records: [] }], true)

    expect(of('clear')).toEqual([
      {
        ...{ kind: 'clear', resource: 'edge-router-policies', name: 'all-edge' },
        members: [{ name: 'edgeRouterRoles', before: ['@edge'], after: [] }],
      },
    ])
  })

  it('refuses a file that names a record that it would delete', async () => {
    const response = await people.ask('POST', '/controller/network/plan?prune=true', [
      { resource: 'posture-checks', records: [] },
      { resource: 'service-policies', records: [{ name: 'dial', postureCheckRoles: ['@domain'] }] },
    ])

    expect(response.status).toBe(400)
    expect(response.body.error.cause).toMatchObject({ field: '1.records.0.postureCheckRoles.0' })
  })
})

describe('a file is refused by its place', () => {
  it.each<[string, FileSection[], string, RegExp]>([
    ['an unknown resource', [{ resource: 'printers', records: [] }], '0.resource', /is not a resource/],
    ['credentials', [{ resource: 'authenticators', records: [] }], '0.resource', /is not a resource/],
    [
      'an unknown member',
      [{ resource: 'services', records: [{ name: 'web', colour: 'red' }] }],
      '0.records.0.colour',
      /not known/,
    ],
    ['an id', [{ resource: 'services', records: [{ name: 'web', id: 'x' }] }], '0.records.0.id', /not known/],
    ['no name', [{ resource: 'services', records: [{}] }], '0.records.0.name', /required/],
    ['a name that is a number', [{ resource: 'services', records: [{ name: 7 }] }], '0.records.0.name', /text/],
    [
      'a name that stands twice, in two sections',
      [
        { resource: 'services', records: [{ name: 'web' }] },
        { resource: 'services', records: [{ name: 'mail' }, { name: 'web' }] },
      ],
      '1.records.1.name',
      /twice/,
    ],
    [
      'a reference to what does not exist',
      [{ resource: 'services', records: [{ name: 'web', configs: ['absent'] }] }],
      '0.records.0.configs.0',
      /neither the file nor the network/,
    ],
    [
      'a role that names what does not exist',
      [{ resource: 'service-policies', records: [policy('p', { identityRoles: ['@absent'] })] }],
      '0.records.0.identityRoles.0',
      /neither the file nor the network/,
    ],
    [
      'a role without a sign',
      [{ resource: 'service-policies', records: [policy('p', { identityRoles: ['#staff', 'night'] })] }],
      '0.records.0.identityRoles.1',
      /did you mean "#night"\?/,
    ],
    ['a misspelt resource', [{ resource: 'service', records: [] }], '0.resource', /did you mean services\b.*\?/],
    [
      'a misspelt member',
      [{ resource: 'services', records: [{ name: 'web', roleAtributes: [] }] }],
      '0.records.0.roleAtributes',
      /did you mean roleAttributes\?/,
    ],
    [
      'a misspelt word of a choice',
      [{ resource: 'service-policies', records: [policy('p', { type: 'bind' })] }],
      '0.records.0.type',
      /did you mean Bind\?/,
    ],
    [
      'a misspelt name of a record of the network',
      [{ resource: 'services', records: [{ name: 'new', configs: ['web-clint'] }] }],
      '0.records.0.configs.0',
      /did you mean web-client\?/,
    ],
    [
      'a misspelt name of a record of the file',
      [
        { resource: 'services', records: [{ name: 'accounting' }] },
        { resource: 'service-policies', records: [policy('p', { serviceRoles: ['@acounting'] })] },
      ],
      '1.records.0.serviceRoles.0',
      /did you mean accounting\?/,
    ],
    [
      'a value of another type',
      [{ resource: 'services', records: [{ name: 'web', roleAttributes: 'x' }] }],
      '0.records.0.roleAttributes',
      /./,
    ],
    [
      'a value that breaks a rule',
      [{ resource: 'services', records: [{ name: 'web', roleAttributes: ['#x'] }] }],
      '0.records.0.roleAttributes',
      /may not begin/,
    ],
    [
      'a missing member',
      [{ resource: 'configs', records: [{ name: 'c', configType: 'printer.v1' }] }],
      '0.records.0.data',
      /required/,
    ],
    [
      'a member that is fixed',
      [{ resource: 'services', records: [{ name: 'web', encryptionRequired: false }] }],
      '0.records.0.encryptionRequired',
      /cannot change .*: rename the record in the file, or delete it first/,
    ],
    [
      'another variant',
      [{ resource: 'posture-checks', records: [{ name: 'mfa', typeId: 'DOMAIN' }] }],
      '0.records.0.typeId',
      /cannot change/,
    ],
    [
      'a value that only one record can have, twice',
      [
        {
          resource: 'identities',
          records: [
            { name: 'a', externalId: 'x' },
            { name: 'b', externalId: 'x' },
          ],
        },
      ],
      '0.records.1.externalId',
      /also that of a/,
    ],
    [
      'the name of an edge router',
      [{ resource: 'routers', records: [{ name: 'edge' }] }],
      '0.records.0.name',
      /edge-routers/,
    ],
    [
      'a demotion of the caller',
      [{ resource: 'identities', records: [{ name: 'operator', isAdmin: false }] }],
      '0.records.0.isAdmin',
      /your own right/,
    ],
  ])('that has %s', async (_what, sections, field, reason) => {
    const response = await people.ask('POST', '/controller/network/plan', sections)

    expect(response.status).toBe(400)
    expect(response.body.error.cause.field).toBe(field)
    expect(response.body.error.cause.reason).toMatch(reason)
  })

  it('with all its mistakes, also those of one record', async () => {
    const services = [{ name: 'a', colour: 'red', roleAttributes: 7, configs: ['absent'] }, { name: 7 }, { name: 'b' }]
    const policies = [policy('p', { type: 'bind', serviceRoles: ['@a', '@b'] })]

    const { body } = await people.ask('POST', '/controller/network/plan', [
      { resource: 'service-policies', records: policies },
      { resource: 'services', records: services },
    ])

    const { others, ...first } = body.error.cause
    expect([first, ...others].map(({ field }) => field).sort()).toEqual([
      '0.records.0.type',
      '1.records.0.colour',
      '1.records.0.configs.0',
      '1.records.0.roleAttributes',
      '1.records.1.name',
    ])
  })

  it('with the mistakes of a section whose name is misspelt, and with the rules that other records break', async () => {
    const { body } = await people.ask('POST', '/controller/network/plan', [
      { resource: 'servces', records: [{ name: 'a', colour: 'red' }] },
      { resource: 'service-policies', records: [policy('p', { serviceRoles: ['@a'], identityRoles: ['@absent'] })] },
      { resource: 'configs', records: [{ name: 'c', configType: 'printer.v1', data: { queue: 7 } }] },
    ])

    const { others, ...first } = body.error.cause
    expect([first, ...others].map(({ field }) => field).sort()).toEqual([
      '0.records.0.colour',
      '0.resource',
      '1.records.0.identityRoles.0',
      '2.records.0.data.queue',
    ])
  })

  it('without the references to records in a section of no resource, which may be right', async () => {
    const { body } = await people.ask('POST', '/controller/network/plan', [
      { resource: 'printers', records: [{ name: 'a' }] },
      { resource: 'service-policies', records: [policy('p', { type: 'bind', serviceRoles: ['@a'] })] },
    ])

    const { others, ...first } = body.error.cause
    expect([first, ...others].map(({ field }) => field).sort()).toEqual(['0.resource', '1.records.0.type'])
  })

  it('with at most 100 mistakes', async () => {
    const records = Array.from({ length: 130 }, (_, at) => ({ name: `service ${at}`, colour: 'red' }))

    const { body } = await people.ask('POST', '/controller/network/plan', [{ resource: 'services', records }])

    expect(body.error.cause.others).toHaveLength(99)
  })

  it('that is not a list of sections', async () => {
    for (const body of [{}, [1], [{ resource: 'services' }], [{ resource: 'services', records: [1] }]]) {
      expect((await people.ask('POST', '/controller/network/plan', body)).status).toBe(400)
    }
  })
})

describe('the size of a file', () => {
  const section = (bytes: number) => JSON.stringify([{ resource: 'services', records: [{ name: 'x'.repeat(bytes) }] }])

  const plan = (token: string | undefined, body: string) =>
    world.send({
      ...{ method: 'POST', path: `${MANAGEMENT}/controller/network/plan`, token, body },
      headers: { 'content-type': 'application/json' },
    })

  it('can be larger than that of other bodies, up to a limit', async () => {
    expect((await plan(people.token, section(2 * 1024 * 1024))).status).toBe(200)
    expect((await plan(people.token, section(33 * 1024 * 1024))).status).toBe(413)
  })

  it('does not matter to callers without the right, whose body is not read', async () => {
    const { token } = await world.signIn({ name: 'ordinary' })

    expect((await plan(token, '{'.repeat(2 * 1024 * 1024))).status).toBe(401)
    expect((await plan(undefined, section(65 * 1024))).status).toBe(413)
  })
})
