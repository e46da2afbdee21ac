// Applying a network file: the network becomes as the file says, as planned, in transactions, and applying it again changes nothing.
import { afterEach, describe, expect, it } from 'vitest'
import type { PolicyType } from '../../src/policy/policy-index.ts'
import { configureNetwork } from '../world/configured-network.ts'
import { contentsOf } from '../world/contents.ts'
import { MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { type FileSection, readExport, requestPlan } from '../world/network-files.ts'
import { People } from '../world/people.ts'

const worlds: TestController[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

async function openWorld() {
  const world = await testController()
  worlds.push(world)
  return { world, people: await People.in(world, 'operator') }
}

const applyFile = (people: People, sections: readonly FileSection[], query = '') =>
  people.ask('POST', `/controller/network/apply${query}`, sections)

/** The last progress of an apply that must succeed. */
async function applied(people: People, sections: readonly FileSection[], query = '') {
  const { body } = await applyFile(people, sections, query)
  expect(body.error).toBeUndefined()
  return body.data.at(-1)
}

const services = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => ({ name: `service ${String(from + at).padStart(4, '0')}` }))

describe('a file', () => {
  it('makes another network the same, so that its export is equal', async () => {
    const { people } = await openWorld()
    await configureNetwork(people)
    const exported = await readExport(people)
    const other = await openWorld()

    const { failure, creates } = await applied(other.people, exported, '?prune=true')

    expect(failure).toBeNull()
    expect(creates).toBeGreaterThan(15)
    expect(await readExport(other.people)).toEqual(exported)
  })

  it('that is applied again changes nothing', async () => {
    const { world, people } = await openWorld()
    await configureNetwork(people)
    const exported = await readExport(people)
    const before = await contentsOf(world)

    expect(await applied(people, exported, '?prune=true')).toMatchObject({ total: 0, failure: null })

    expect(await contentsOf(world)).toBe(before)
  })

  it('holds the settings of all controllers', async () => {
    const { people } = await openWorld()
    const oidc = { redirectUris: ['https://app.example.com/callback'] }
    await people.manage('PATCH', '/controller-settings/global', { oidc })
    const exported = await readExport(people)
    const other = await openWorld()

    expect(await applied(other.people, exported)).toMatchObject({ changes: 1, failure: null })

    expect(await other.people.manage('GET', '/controller-settings/global')).toMatchObject({ oidc })
    expect(await applied(other.people, exported)).toMatchObject({ total: 0 })
  })

  it('sets tags as a whole, also those that are null', async () => {
    const { people } = await openWorld()
    const sections = [{ resource: 'services', records: [{ name: 'mail', tags: { a: null, b: true } }] }]

    expect(await applied(people, sections)).toMatchObject({ creates: 1 })

    expect(await applied(people, sections)).toMatchObject({ total: 0 })
    expect(await applied(people, await readExport(people))).toMatchObject({ total: 0 })
    const without = [{ resource: 'services', records: [{ name: 'mail', tags: { b: true } }] }]
    expect(await applied(people, without)).toMatchObject({ changes: 1 })
    const [mail] = await people.manage('GET', '/services')
    expect(mail.tags).toEqual({ b: true })
  })

  it('that is written by hand changes nothing either when it is applied again', async () => {
    const { people } = await openWorld()
    await configureNetwork(people)
    const [ca] = await people.manage('GET', '/cas')
    const sections: FileSection[] = [
      { resource: 'services', records: [{ name: 'mail', roleAttributes: ['z', 'a', 'z'], tags: { b: '1', a: '2' } }] },
      { resource: 'identities', records: [{ name: 'phone', externalId: ' ', serviceHostingCosts: { mail: 1 } }] },
      { resource: 'cas', records: [{ name: 'factory', certPem: `\n\n${ca.certPem.replaceAll('\n', '\r\n')}` }] },
      {
        resource: 'posture-checks',
        records: [{ name: 'addresses', typeId: 'MAC', macAddresses: ['AA:BB', '00-11'] }],
      },
    ]

    expect(await applied(people, sections)).toMatchObject({ creates: 3 })
    expect(await applied(people, sections)).toMatchObject({ total: 0 })
  })

  it('keeps the members that it leaves out, and clears those that are null', async () => {
    const { people } = await openWorld()
    await configureNetwork(people)

    await applied(people, [{ resource: 'identities', records: [{ name: 'laptop', externalId: null }] }])

    const [laptop] = await people.manage('GET', '/identities?filter=name="laptop"')
    expect(laptop).toMatchObject({ externalId: null, roleAttributes: ['staff'], appData: { floor: 3 } })
  })

  it('is audited record by record', async () => {
    const { people } = await openWorld()

    await applied(people, [{ resource: 'services', records: services(3) }])

    const records = await people.manage('GET', '/controller/audit?filter=resource="services"')
    expect(records.map(({ operation }: { operation: string }) => operation)).toEqual(['create', 'create', 'create'])
  })

  it('lets the identity of a router be configured together with its router', async () => {
    const { people } = await openWorld()
    const sections: FileSection[] = [
      { resource: 'edge-routers', records: [{ name: 'west', isTunnelerEnabled: true }] },
      { resource: 'identities', records: [{ name: 'west', type: 'Router', roleAttributes: ['hosts'] }] },
    ]

    await applied(people, sections)

    const [identity] = await people.manage('GET', '/identities?filter=name="west"')
    const [router] = await people.manage('GET', '/edge-routers')
    expect(identity).toMatchObject({ id: router.id, roleAttributes: ['hosts'] })
    expect(await applied(people, sections)).toMatchObject({ total: 0 })
  })

  it('never makes the identity of a router one of its own, nor deletes it', async () => {
    const { people } = await openWorld()
    const router: FileSection = { resource: 'edge-routers', records: [{ name: 'west', isTunnelerEnabled: true }] }
    const retyped: FileSection = { resource: 'identities', records: [{ name: 'west', type: 'Device' }] }

    const atOnce = await applyFile(people, [router, retyped])
    await applied(people, [router])
    const later = await applyFile(people, [retyped])
    await applied(people, [{ resource: 'identities', records: [] }], '?prune=true')

    for (const { status, body } of [atOnce, later])
      expect([status, body.error.cause]).toMatchObject([400, { reason: 'cannot change: it belongs to an edge router' }])
    expect(await people.manage('GET', '/identities?filter=name="west"')).toMatchObject([{ typeId: 'Router' }])
  })
})

describe('access after a file was applied', () => {
  /** Every right that the evaluator allows, or that policies grant whatever posture finds: `laptop Dial web`. */
  async function listRights(
    world: TestController,
    people: People,
    right: 'isAllowed' | 'isGranted' = 'isAllowed',
  ): Promise<Set<string>> {
    const identities = await people.manage('GET', '/identities?limit=500')
    const all = await people.manage('GET', '/services?limit=500')
    const rights = new Set<string>()
    for (const { id, name, roleAttributes } of identities) {
      for (const service of all) {
        for (const type of ['Dial', 'Bind'] as PolicyType[]) {
          const question = { identity: { id, attributes: roleAttributes }, serviceId: service.id, type }
          if (world.controller.access.decide(question)[right]) rights.add(`${name} ${type} ${service.name}`)
        }
      }
    }
    return rights
  }

  const namesOf = (items: readonly Record<string, string>[], kind: string) =>
    items
      .filter((item) => item.kind === kind && !item.blockedBy)
      .map(({ identity, type, service }) => `${identity} ${type} ${service}`)
      .sort()

  it('is what the plan predicted', async () => {
    const { world, people } = await openWorld()
    await configureNetwork(people)
    await applied(people, [
      { resource: 'services', records: [{ name: 'wiki', roleAttributes: ['web'] }] },
      {
        resource: 'service-policies',
        records: [{ name: 'wiki', type: 'Dial', identityRoles: ['#staff'], serviceRoles: ['#web'] }],
      },
    ])
    // Closes the wiki, opens what is new, changes roles on both sides, and deletes an identity and a service.
    const sections: FileSection[] = [
      {
        resource: 'services',
        records: [
          { name: 'web', roleAttributes: ['open'] },
          { name: 'mail', roleAttributes: ['open'] },
        ],
      },
      {
        resource: 'identities',
        records: [
          { name: 'laptop', roleAttributes: ['hosts'] },
          { name: 'phone', roleAttributes: ['staff'] },
          { name: 'tablet', roleAttributes: ['hosts', 'staff'] },
        ],
      },
      {
        resource: 'service-policies',
        records: [
          { name: 'host' },
          {
            name: 'open',
            type: 'Dial',
            semantic: 'AllOf',
            identityRoles: ['#hosts', '#staff'],
            serviceRoles: ['#open'],
          },
          { name: 'wiki', identityRoles: ['#staff', '@laptop'] },
        ],
      },
    ]
    const { items } = await requestPlan(people, sections, true)
    const before = await listRights(world, people)
    const grantsBefore = await listRights(world, people, 'isGranted')

    await applied(people, sections, '?prune=true')

    const after = await listRights(world, people)
    const grantsAfter = await listRights(world, people, 'isGranted')
    // The plan has all rights that policies grant, whether posture lets an identity use them now or not.
    const withoutPosture = items.map(({ blockedBy: _, ...item }) => item)
    for (const right of [...grantsAfter].filter((each) => !grantsBefore.has(each)))
      expect(namesOf(withoutPosture, 'gain')).toContain(right)
    for (const right of [...grantsBefore].filter((each) => !grantsAfter.has(each)))
      expect(namesOf(withoutPosture, 'loss')).toContain(right)
    const gainedRights = [...after].filter((right) => !before.has(right)).sort()
    const lostRights = [...before].filter((right) => !after.has(right)).sort()
    expect(gainedRights.length).toBeGreaterThan(2)
    expect(lostRights.length).toBeGreaterThan(2)
    expect(namesOf(items, 'gain')).toEqual(gainedRights)
    expect(namesOf(items, 'loss')).toEqual(lostRights)
  })
})

describe('pruning', () => {
  it('deletes what the file does not name, and hands unique values over', async () => {
    const { people } = await openWorld()
    await configureNetwork(people)
    const sections: FileSection[] = [
      { resource: 'identities', records: [{ name: 'notebook', externalId: 'laptop@example' }, { name: 'jane' }] },
      { resource: 'service-configs', records: [] },
    ]

    const { creates, deletes } = await applied(people, sections, '?prune=true')

    expect({ creates, deletes }).toEqual({ creates: 1, deletes: 2 })
    const names = (await people.manage('GET', '/identities?limit=100')).map(({ name }: { name: string }) => name)
    expect(names.sort()).toEqual(['Default Admin', 'edge', 'jane', 'notebook', 'operator'])
  })

  it('empties a network but for what it protects, and can be filled again', async () => {
    const { people } = await openWorld()
    await configureNetwork(people)
    const exported = await readExport(people)
    const empty = [...new Set(exported.map(({ resource }) => resource))].map((resource) => ({ resource, records: [] }))

    await applied(people, empty, '?prune=true')

    const records = (await readExport(people)).flatMap((section) => section.records)
    expect(records.map(({ name }) => name)).toEqual(['operator'])
    await applied(people, exported, '?prune=true')
    expect(await readExport(people)).toEqual(exported)
  })
})

describe('a file that changes at most 200 records', () => {
  it('is one transaction: a rule that one record breaks leaves nothing of it', async () => {
    const { world, people } = await openWorld()
    const before = await contentsOf(world)
    const certPem = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'

    const response = await applyFile(people, [
      { resource: 'services', records: services(150) },
      { resource: 'cas', records: [{ name: 'broken', certPem }] },
    ])

    expect(response.status).toBe(400)
    expect(response.body.error.cause.field).toBe('1.records.0.certPem')
    expect(await contentsOf(world)).toBe(before)
  })

  it('judges data by a config type of the same file', async () => {
    const { world, people } = await openWorld()
    const before = await contentsOf(world)
    const schema = { type: 'object', properties: { pages: { type: 'integer' } } }

    const response = await applyFile(people, [
      { resource: 'config-types', records: [{ name: 'fax.v1', schema }] },
      { resource: 'configs', records: [{ name: 'fax', configType: 'fax.v1', data: { pages: 'many' } }] },
    ])

    expect(response.status).toBe(400)
    expect(response.body.error.cause.field).toBe('1.records.0.data.pages')
    expect(await contentsOf(world)).toBe(before)
  })
})

describe('a larger file', () => {
  it('is applied in several transactions, and continues after a failure', async () => {
    const { world, people } = await openWorld()
    const commitsBefore = world.controller.store.stats().transactions
    const broken = [
      { resource: 'services', records: services(450) },
      { resource: 'identities', records: [{ name: 'Default Admin', isAdmin: false }] },
    ]

    const { status, body } = await applyFile(people, broken)

    expect(status).toBe(200)
    expect(body.data.map(({ creates }: { creates: number }) => creates)).toEqual([200, 400, 400])
    expect(body.data.at(-1)).toMatchObject({ total: 451, failure: { code: 'LAST_ADMINISTRATOR' } })
    expect(world.controller.store.stats().transactions - commitsBefore).toBe(2)

    const rest = await applied(people, [{ resource: 'services', records: services(450) }])

    expect(rest).toMatchObject({ creates: 50, total: 50, failure: null })
  })

  it('changes nothing if config data breaks the schema of its type, stored or of the same file', async () => {
    const { world, people } = await openWorld()
    await configureNetwork(people)
    const before = await contentsOf(world)
    const schema = { type: 'object', properties: { queue: { type: 'string' }, port: { type: 'integer' } } }
    const config = (configType: string, data: object) => ({
      resource: 'configs',
      records: [{ name: 'late', configType, data }],
    })
    const filler = { resource: 'services', records: services(450) }
    const types = (name: string) => ({ resource: 'config-types', records: [{ name, schema }] })

    for (const [sections, field] of [
      [[filler, config('host.v1', { protocol: 'tcp', address: 'a', port: '80' })], '1.records.0.data.port'],
      [[filler, types('new.v1'), config('new.v1', { port: '80' })], '2.records.0.data.port'],
      [[filler, types('printer.v1'), config('printer.v1', { port: '80' })], '2.records.0.data.port'],
    ] as const) {
      for (const operation of ['plan', 'apply']) {
        const { status, body } = await people.ask('POST', `/controller/network/${operation}`, sections)
        expect(status).toBe(400)
        expect(body.error.cause).toMatchObject({ field, reason: 'must be an integer, not the text "80"' })
      }
    }
    expect(await contentsOf(world)).toBe(before)
  })

  it('changes config data together with the schema that it needs', async () => {
    const { people } = await openWorld()
    const printer = (type: string): FileSection[] => [
      { resource: 'configs', records: [{ name: 'printer', configType: 'printer.v1', data: { queue: 1 } }] },
      {
        resource: 'config-types',
        records: [{ name: 'printer.v1', schema: { type: 'object', properties: { queue: { type } } } }],
      },
    ]
    await applied(people, printer('integer'))
    const changed = printer('string').map((section) =>
      section.resource === 'configs' ? { ...section, records: [{ name: 'printer', data: { queue: 'a' } }] } : section,
    )

    expect(await applied(people, changed)).toMatchObject({ changes: 2, failure: null })
  })

  it('changes nothing if a record breaks a rule that no other record decides', async () => {
    const { world, people } = await openWorld()
    const before = await contentsOf(world)
    const sections = [
      { resource: 'services', records: services(450) },
      { resource: 'cas', records: [{ name: 'broken', certPem: 'no certificate' }] },
    ]

    for (const operation of ['plan', 'apply']) {
      const { status, body } = await people.ask('POST', `/controller/network/${operation}`, sections)
      expect(status).toBe(400)
      expect(body.error.cause.field).toBe('1.records.0.certPem')
    }
    expect(await contentsOf(world)).toBe(before)
  })
})

describe('a config of an identity for a service', () => {
  const configFor = (config: string): FileSection[] => [
    {
      resource: 'configs',
      records: [{ name: 'other', configType: 'ziti-tunneler-client.v1', data: { hostname: 'a', port: 1 } }],
    },
    { resource: 'service-configs', records: [{ identity: 'laptop', service: 'web', config }] },
  ]

  it('makes way for another one of its type if the file prunes', async () => {
    const { people } = await openWorld()
    await configureNetwork(people)
    const sections = configFor('other').map((section) =>
      section.resource === 'configs' ? { ...section, records: [...section.records, { name: 'web-client' }] } : section,
    )

    expect(await applied(people, sections, '?prune=true')).toMatchObject({ creates: 2, deletes: 1, failure: null })
  })

  it('is refused beside another one of its type', async () => {
    const { people } = await openWorld()
    await configureNetwork(people)

    const { status, body } = await applyFile(people, configFor('other'))

    expect(status).toBe(400)
    expect(body.error.cause).toMatchObject({
      field: '1.records.0.config',
      reason: expect.stringContaining('web-client'),
    })
  })
})

describe('an apply', () => {
  it('is refused if the network changed since its plan', async () => {
    const { people } = await openWorld()
    const sections = [{ resource: 'services', records: services(2) }]
    const { summary } = await requestPlan(people, sections)
    await applied(people, [{ resource: 'services', records: services(1) }])

    const response = await applyFile(people, sections, `?digest=${summary.digest}`)

    expect(response.status).toBe(409)
    expect(response.body.error.code).toBe('NETWORK_CHANGED')
    expect((await requestPlan(people, sections)).summary).toMatchObject({ creates: 1 })
  })

  it('is refused if it would change access in another way than its plan, or delete what was changed since', async () => {
    const { world, people } = await openWorld()
    await configureNetwork(people)
    const sections = [
      { resource: 'services', records: [{ name: 'web', roleAttributes: ['web', 'prod'] }] },
      { resource: 'posture-checks', records: [{ name: 'os' }, { name: 'mfa' }] },
    ]
    const requestDigest = async () => (await requestPlan(people, sections, true)).summary.digest as string
    const applyPlan = (digest: string) => applyFile(people, sections, `?prune=true&digest=${digest}`)
    const first = await requestDigest()
    await people.manage('POST', '/service-policies', {
      ...{ name: 'to all', type: 'Dial', semantic: 'AnyOf' },
      ...{ identityRoles: ['#all'], serviceRoles: ['#prod'] },
    })

    expect((await applyPlan(first)).status).toBe(409)

    const second = await requestDigest()
    const [domain] = await people.manage('GET', '/posture-checks?filter=name="domain"')
    world.clock.advance(1)
    await people.manage('PATCH', `/posture-checks/${domain.id}`, { tags: { keep: true } })

    expect((await applyPlan(second)).status).toBe(409)
    expect((await applyPlan(await requestDigest())).status).toBe(200)
  })

  it('needs the right of an administrator, before its body is read', async () => {
    const { world, people } = await openWorld()
    const { token } = await world.signIn({ name: 'ordinary' })

    const { status } = await world.send({
      ...{ method: 'POST', path: `${MANAGEMENT}/controller/network/apply`, token, body: '{ this is not JSON' },
      headers: { 'content-type': 'application/json' },
    })

    expect(status).toBe(401)
    expect((await readExport(people)).find(({ resource }) => resource === 'services')?.records).toEqual([])
  })

  it('never takes the last administrator', async () => {
    const { world, people } = await openWorld()
    const before = await contentsOf(world)

    const response = await applyFile(people, [
      { resource: 'identities', records: [{ name: 'Default Admin', isAdmin: false }] },
    ])

    expect(response.status).toBe(409)
    expect(await contentsOf(world)).toBe(before)
  })

  it('is stopped between two transactions, says how far it came, and continues when it is applied again', async () => {
    const { world, people } = await openWorld()
    const sections = [{ resource: 'services', records: services(4_000) }]
    const { summary } = await requestPlan(people, sections)
    const count = async () => {
      const { db } = world.controller.store
      const { total } = await db
        .selectFrom('services')
        .select((eb) => eb.fn.countAll().as('total'))
        .executeTakeFirstOrThrow()
      return Number(total)
    }

    const applying = applyFile(people, sections, `?digest=${summary.digest}`)
    await expect.poll(count, { interval: 1, timeout: 60_000 }).toBeGreaterThan(0)
    const stopped = await people.ask('POST', `/controller/network/apply/stop?digest=${summary.digest}`)
    const last = (await applying).body.data.at(-1)
    const countAtEnd = await count()

    expect(stopped.status).toBe(200)
    expect(last).toMatchObject({ creates: countAtEnd, total: 4_000, failure: null })
    expect(countAtEnd).toBeLessThan(4_000)
    expect(await applied(people, sections)).toMatchObject({ creates: 4_000 - countAtEnd, failure: null })
    const again = await people.ask('POST', `/controller/network/apply/stop?digest=${summary.digest}`)
    expect(again.status).toBe(404)
  }, 120_000)
})
