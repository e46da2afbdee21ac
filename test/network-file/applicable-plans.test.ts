// A plan that is shown can be applied: changes come in an order that works, and what no order allows is refused while planning.
import { afterEach, describe, expect, it } from 'vitest'
import { configureNetwork } from '../world/configured-network.ts'
import { contentsOf } from '../world/contents.ts'
import { type TestController, testController } from '../world/controller.ts'
import { type FileSection, requestPlan } from '../world/network-files.ts'
import { People } from '../world/people.ts'

const worlds: TestController[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

async function openNetwork() {
  const world = await testController()
  worlds.push(world)
  const people = await People.in(world, 'operator')
  await configureNetwork(people)
  return { world, people }
}

/** Plans and applies sections. Both must succeed. */
async function applyAsPlanned(people: People, sections: readonly FileSection[], isPruning = false) {
  const { summary } = await requestPlan(people, sections, isPruning)
  const path = `/controller/network/apply?prune=${isPruning}&digest=${summary.digest}`
  const { body } = await people.ask('POST', path, sections)
  expect(body.error).toBeUndefined()
  expect(body.data.at(-1).failure).toBeNull()
  expect((await requestPlan(people, sections, isPruning)).summary).toMatchObject({ creates: 0, changes: 0, deletes: 0 })
}

/** So many changes that they are not tried in one transaction. */
const filler: FileSection = {
  resource: 'config-types',
  records: Array.from({ length: 201 }, (_, at) => ({ name: `filler ${at}` })),
}

/** Returns the reasons for which the plan of sections is refused, also as a part of a large one. */
async function refusePlan(people: People, sections: readonly FileSection[], isPruning = false) {
  const hasTypes = sections.some(({ resource }) => resource === filler.resource)
  const causes: Record<string, unknown>[] = []
  for (const all of hasTypes ? [sections] : [sections, [...sections, filler]]) {
    const { status, body } = await people.ask('POST', `/controller/network/plan?prune=${isPruning}`, all)
    expect(status).toBe(400)
    causes.push(body.error.cause)
  }
  expect(causes.at(-1)).toEqual(causes[0])
  return causes[0]
}

const clientConfig = (name: string) => ({
  ...{ name, configType: 'ziti-tunneler-client.v1', data: { hostname: 'a', port: 1 } },
})
const override = (config: string) => ({ identity: 'laptop', service: 'web', config })

describe('a config of an identity for a service', () => {
  it('is replaced by another one of its type if the file prunes', async () => {
    const { people } = await openNetwork()

    await applyAsPlanned(
      people,
      [
        { resource: 'configs', records: [clientConfig('other'), { name: 'web-client' }] },
        { resource: 'service-configs', records: [override('other')] },
      ],
      true,
    )
  })

  it('is replaced together with the config itself', async () => {
    const { people } = await openNetwork()

    await applyAsPlanned(
      people,
      [
        { resource: 'configs', records: [clientConfig('other')] },
        { resource: 'services', records: [{ name: 'web', configs: ['other'] }] },
        { resource: 'service-configs', records: [override('other')] },
      ],
      true,
    )
  })

  it('is refused beside another one of its type, of the network or of the file', async () => {
    const { people } = await openNetwork()
    const sections = [
      { resource: 'configs', records: [clientConfig('other')] },
      { resource: 'service-configs', records: [override('other')] },
    ]

    expect(await refusePlan(people, sections)).toMatchObject({
      field: '1.records.0.config',
      reason: expect.stringContaining('web-client'),
    })

    const both = [
      { resource: 'configs', records: [clientConfig('first'), clientConfig('second')] },
      {
        resource: 'service-configs',
        records: [override('first'), override('second')].map((record) => ({ ...record, identity: 'jane' })),
      },
    ]
    expect(await refusePlan(people, both)).toMatchObject({
      field: '1.records.1.config',
      reason: expect.stringContaining('first'),
    })
  })
})

describe('a value that only one record can have', () => {
  it('moves from one record of the file to another, in either order of the file', async () => {
    const { people } = await openNetwork()
    const sections = (of: string, others: readonly string[]) => [
      {
        resource: 'identities',
        records: [
          ...others.map((name) => ({ name, externalId: null })),
          { name: of, externalId: 'laptop@example' },
        ].sort((a, b) => a.name.localeCompare(b.name)),
      },
    ]

    await applyAsPlanned(people, sections('jane', ['laptop']))
    await applyAsPlanned(people, sections('laptop', ['jane']))
    await applyAsPlanned(people, sections('a new one', ['laptop']))
  })

  it('moves along a chain of records', async () => {
    const { people } = await openNetwork()
    const sections = (first: string, second: string, third: string | null) => [
      {
        resource: 'identities',
        records: [
          { name: 'laptop', externalId: first },
          { name: 'jane', externalId: second },
          { name: 'printer', externalId: third },
        ],
      },
    ]
    await applyAsPlanned(people, sections('laptop@example', 'jane@example', null))

    await applyAsPlanned(people, sections('new@example', 'laptop@example', 'jane@example'))
  })

  it('is refused if two records swap it', async () => {
    const { people } = await openNetwork()
    const sections = (ofLaptop: string, ofJane: string) => [
      {
        resource: 'identities',
        records: [
          { name: 'laptop', externalId: ofLaptop },
          { name: 'jane', externalId: ofJane },
        ],
      },
    ]
    await applyAsPlanned(people, sections('laptop@example', 'jane@example'))

    expect(await refusePlan(people, sections('jane@example', 'laptop@example'))).toMatchObject({
      field: '0.records.0.externalId',
      reason: expect.stringContaining('jane'),
    })
  })

  it('is refused if a record that the file does not name has it', async () => {
    const { people } = await openNetwork()

    const sections = [{ resource: 'identities', records: [{ name: 'jane', externalId: 'laptop@example' }] }]

    expect(await refusePlan(people, sections)).toMatchObject({
      field: '0.records.0.externalId',
      reason: expect.stringContaining('laptop'),
    })
  })
})

describe('the name of a router', () => {
  it('is refused for an edge router of the file or of the network', async () => {
    const { people } = await openNetwork()

    for (const name of ['new', 'edge']) {
      const sections = [
        { resource: 'routers', records: [{ name }] },
        { resource: 'edge-routers', records: [{ name }] },
      ]
      expect(await refusePlan(people, sections)).toMatchObject({
        field: expect.stringMatching(/^[01]\.records\.0\.name$/),
      })
      expect(await refusePlan(people, sections.toReversed())).toMatchObject({
        field: expect.stringMatching(/^[01]\.records\.0\.name$/),
      })
    }
  })

  it('is refused for an edge router while the router of that name exists, even if the file prunes', async () => {
    const { people } = await openNetwork()
    const sections = [
      { resource: 'routers', records: [] },
      { resource: 'edge-routers', records: [{ name: 'edge' }, { name: 'transit' }] },
    ]

    expect(await refusePlan(people, sections, true)).toMatchObject({ field: '1.records.1.name' })
  })

  it('is refused if an identity has it that a new tunneler would get', async () => {
    const { people } = await openNetwork()

    expect(
      await refusePlan(people, [{ resource: 'edge-routers', records: [{ name: 'laptop', isTunnelerEnabled: true }] }]),
    ).toMatchObject({ field: '0.records.0.name', reason: expect.stringContaining('identity') })
  })
})

describe('pruning', () => {
  it.each<[string, readonly FileSection[], RegExp]>([
    ['configs that services use', [{ resource: 'configs', records: [] }], /web-client.*services.*web/],
    ['config types that configs use', [{ resource: 'config-types', records: [] }], /./],
    ['auth policies that identities have', [{ resource: 'auth-policies', records: [] }], /strict.*identities.*laptop/],
    [
      'external JWT signers that auth policies allow',
      [{ resource: 'external-jwt-signers', records: [] }],
      /keycloak.*auth policies.*strict/,
    ],
  ])('of %s outside of the file is refused', async (_what, sections, reason) => {
    const { people } = await openNetwork()
    if (sections[0]?.resource === 'config-types') {
      await people.manage('POST', '/configs', {
        ...{ name: 'queue', data: {} },
        configTypeId: (await people.manage('GET', '/config-types?filter=name="printer.v1"'))[0].id,
      })
    }

    expect(await refusePlan(people, sections, true)).toMatchObject({
      field: '0.resource',
      reason: expect.stringMatching(reason),
    })
  })

  it('deletes what records of the file use no longer', async () => {
    const { people } = await openNetwork()

    await applyAsPlanned(
      people,
      [
        { resource: 'configs', records: [] },
        { resource: 'services', records: [{ name: 'web', configs: [] }] },
        { resource: 'service-configs', records: [] },
        { resource: 'auth-policies', records: [] },
        { resource: 'external-jwt-signers', records: [] },
        { resource: 'identities', records: [{ name: 'laptop', authPolicy: 'Default' }, { name: 'jane' }] },
      ],
      true,
    )
  })
})

describe('the rights of the caller', () => {
  const strict = { resource: 'auth-policies', records: [{ name: 'late', secondary: { requireTotp: true } }] }

  it.each<[string, readonly FileSection[], string]>([
    [
      'another auth policy',
      [{ resource: 'identities', records: [{ name: 'operator', authPolicy: 'strict' }] }],
      '0.records.0.authPolicy',
    ],
    [
      'an auth policy of the file',
      [strict, { resource: 'identities', records: [{ name: 'operator', authPolicy: 'late' }] }],
      '1.records.0.authPolicy',
    ],
    [
      'a change of its auth policy',
      [{ resource: 'auth-policies', records: [{ name: 'Default', secondary: { requireTotp: true } }] }],
      '0.records.0.secondary',
    ],
  ])(
    'cannot end by %s that requires a second factor which its session has not passed',
    async (_what, sections, field) => {
      const { people } = await openNetwork()

      expect(await refusePlan(people, sections)).toMatchObject({
        field,
        reason: expect.stringContaining('second factor'),
      })
    },
  )

  it('stay if the other auth policy requires nothing more, or is that of others', async () => {
    const { people } = await openNetwork()
    const sections = [
      {
        resource: 'auth-policies',
        records: [{ name: 'lenient' }, { name: 'strict', secondary: { requireTotp: true } }],
      },
      {
        resource: 'identities',
        records: [
          { name: 'operator', authPolicy: 'lenient' },
          { name: 'jane', authPolicy: 'strict' },
        ],
      },
    ]

    await applyAsPlanned(people, sections)
  })
})

describe('a plan that breaks a rule of the network as a whole', () => {
  it('is refused', async () => {
    const { world, people } = await openNetwork()
    const [authenticator] = await people.manage('GET', '/authenticators?filter=updbUsername="jane"')
    await people.manage('DELETE', `/authenticators/${authenticator.id}`)
    const before = await contentsOf(world)

    const { status, body } = await people.ask('POST', '/controller/network/plan', [
      { resource: 'identities', records: [{ name: 'Default Admin', isAdmin: false }] },
    ])

    expect([status, body.error.code]).toEqual([409, 'LAST_ADMINISTRATOR'])
    expect(await contentsOf(world)).toBe(before)
  })
})
