// The questions `who`, `what`, impact and advice of administrators, for the evaluator that also enforces.
import { beforeAll, describe, expect, it } from 'vitest'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { writeProfiles } from '../world/profiles.ts'
import { useController } from '../world/use-controller.ts'
import { type Person, type SmallNetwork, smallNetwork } from './network.ts'

const world = useController()
let network: SmallNetwork
const env = cleanEnvironment()
let laptop: Person
let phone: Person
let web: string
let mail: string
let router: string
let staff: string
let hosts: string
let routers: string

beforeAll(async () => {
  network = await smallNetwork(world)
  laptop = await network.person('laptop', ['staff', 'north'])
  phone = await network.person('phone', ['staff'])
  await network.person('stranger', ['visitor'])
  web = await network.service('web', ['inner'])
  mail = await network.service('mail', ['inner'])
  await network.service('secret')
  router = await network.router('edge-north', ['north'])
  staff = await network.servicePolicy('Dial', ['#staff'], ['#inner'], { name: 'staff' })
  hosts = await network.servicePolicy('Bind', [`@${laptop.id}`], [`@${web}`], { name: 'hosts' })
  routers = await network.edgeRouterPolicy(['#staff'], ['#north'], { name: 'routers' })
  await network.serviceEdgeRouterPolicy(['#all'], ['#all'])
  const { url, rootPem } = await world.listen()
  writeProfiles(env, { test: { url, rootPem, token: await world.admin() } })
})

describe('who may reach a service', () => {
  it('is listed with the permissions, the policies and the roles that decide', async () => {
    expect(await network.get(`/controller/policy/who/${web}?sort=name`)).toEqual([
      {
        id: laptop.id,
        name: 'laptop',
        permissions: ['Bind', 'Dial'],
        allowed: ['Bind', 'Dial'],
        policies: expect.arrayContaining([
          { id: staff, name: 'staff' },
          { id: hosts, name: 'hosts' },
        ]),
        grantedBy: expect.arrayContaining(['#staff → #inner', '@laptop → @web']),
        grants: expect.arrayContaining([
          { policyId: staff, type: 'Dial', roles: '#staff → #inner', evidence: 'passing', unmetCheckIds: [] },
          { policyId: hosts, type: 'Bind', roles: '@laptop → @web', evidence: 'passing', unmetCheckIds: [] },
        ]),
      },
      {
        id: phone.id,
        name: 'phone',
        permissions: ['Dial'],
        allowed: ['Dial'],
        policies: [{ id: staff, name: 'staff' }],
        grantedBy: ['#staff → #inner'],
        grants: [{ policyId: staff, type: 'Dial', roles: '#staff → #inner', evidence: 'passing', unmetCheckIds: [] }],
      },
    ])
  })

  it('is listed by type, filter and page', async () => {
    const names = async (query: string) =>
      ((await network.get(`/controller/policy/who/${web}?${query}`)) as { name: string }[]).map(({ name }) => name)

    expect(await names('type=Bind')).toEqual(['laptop'])
    expect(await names(`filter=${encodeURIComponent('name = "phone"')}`)).toEqual(['phone'])
    expect(await names('sort=name&limit=1&offset=1')).toEqual(['phone'])
    expect(await names('limit=-1')).toHaveLength(2)
  })

  it('is refused for a service that does not exist, and for a type that is none', async () => {
    expect((await network.call('GET', '/controller/policy/who/nope')).status).toBe(404)
    expect((await network.call('GET', `/controller/policy/who/${web}?type=Fly`)).status).toBe(400)
  })
})

describe('what an identity may reach', () => {
  it('is listed with the permissions, the policies and the roles that decide', async () => {
    expect(await network.get(`/controller/policy/what/${laptop.id}?sort=name`)).toMatchObject([
      { id: mail, permissions: ['Dial'], grantedBy: ['#staff → #inner'] },
      { id: web, permissions: ['Bind', 'Dial'] },
    ])
  })

  it('is refused for an identity that does not exist', async () => {
    expect((await network.call('GET', '/controller/policy/what/nope')).status).toBe(404)
  })
})

describe('the impact of', () => {
  const impact = async (resource: string, id: string, changes?: object) =>
    (await network.call('POST', '/controller/policy/impact', { resource, id, ...(changes ? { changes } : {}) })).body
      .data

  it('deleting a policy is the rights that nothing else grants, and the sessions with them', async () => {
    await network.dial(phone, web)
    await network.dial(laptop, web, 'Bind')

    expect(await impact('service-policies', staff)).toMatchObject({
      loses: { identities: 2, services: 2, pairs: 4 },
      gains: { pairs: 0 },
      unreachable: { pairs: 0 },
      sessions: 1,
      isComplete: true,
    })
    expect(await impact('service-policies', hosts)).toMatchObject({
      loses: { pairs: 1, examples: [{ identity: { id: laptop.id, name: 'laptop' }, serviceId: web, type: 'Bind' }] },
      sessions: 1,
    })
  })

  it('changing a policy is what is lost and what is gained', async () => {
    const changed = await impact('service-policies', staff, { identityRoles: ['#visitor', `@${phone.id}`] })

    expect(changed).toMatchObject({ loses: { identities: 1, pairs: 2 }, gains: { identities: 1, pairs: 2 } })
  })

  it('changing the attributes of an identity is about that identity', async () => {
    expect(await impact('identities', phone.id, { roleAttributes: [] })).toMatchObject({
      loses: { identities: 1, services: 2, pairs: 2 },
      sessions: 1,
    })
    expect(await impact('identities', phone.id, { name: 'another name' })).toMatchObject({ loses: { pairs: 0 } })
  })

  it('deleting an identity is all that it has', async () => {
    expect(await impact('identities', laptop.id)).toMatchObject({ loses: { identities: 1, pairs: 3 }, sessions: 1 })
  })

  it('deleting a service is what others had of it, and changing its attributes as well', async () => {
    expect(await impact('services', web)).toMatchObject({
      loses: { identities: 2, services: 1, pairs: 3 },
      sessions: 2,
    })
    expect(await impact('services', mail, { roleAttributes: [] })).toMatchObject({ loses: { pairs: 2 }, sessions: 0 })
  })

  it('deleting the only router, or what leads to it, leaves rights without a way', async () => {
    const cutOff = { loses: { pairs: 0 }, unreachable: { identities: 2, services: 2, pairs: 5 }, sessions: 0 }

    expect(await impact('edge-routers', router)).toMatchObject(cutOff)
    expect(await impact('edge-router-policies', routers)).toMatchObject(cutOff)
    expect(await impact('edge-routers', router, { roleAttributes: [] })).toMatchObject(cutOff)
  })

  it('leaves everything as it was', async () => {
    expect((await network.dial(laptop, web)).status).toBe(201)
    expect(await network.get(`/identities/${laptop.id}/edge-routers`)).toHaveLength(1)
  })

  it('deleting the only posture check of a policy, or no longer demanding it, is the gate that opens', async () => {
    const check = await network.make('posture-checks', { name: 'gate', typeId: 'DOMAIN', domains: ['a.b'] })
    const gated = await network.service('gated', [])
    const policy = await network.servicePolicy('Dial', [`@${phone.id}`], [`@${gated}`], {
      postureCheckRoles: [`@${check}`],
    })
    const opened = {
      loses: { pairs: 0 },
      gains: { pairs: 1, examples: [{ identity: { id: phone.id, name: 'phone' }, serviceId: gated, type: 'Dial' }] },
      sessions: 0,
    }

    expect(await impact('posture-checks', check)).toMatchObject(opened)
    expect(await impact('service-policies', policy, { postureCheckRoles: [] })).toMatchObject(opened)
    const blocked = {
      pairs: 1,
      examples: [{ identity: { name: 'phone' }, serviceId: gated, type: 'Dial', blockedBy: [{ name: 'gate' }] }],
    }
    for (const [resource, id] of [
      ['service-policies', policy],
      ['identities', phone.id],
    ] as const)
      expect(await impact(resource, id)).toMatchObject({ blockedLosses: blocked })
    expect(await impact('service-policies', policy)).toMatchObject({ loses: { pairs: 0 }, gains: { pairs: 0 } })
    expect(await impact('service-policies', policy, { identityRoles: [`@${laptop.id}`] })).toMatchObject({
      blockedLosses: blocked,
      blockedGains: { pairs: 1, examples: [{ identity: { name: 'laptop' }, blockedBy: [{ name: 'gate' }] }] },
    })
    const { stdout } = await commandLine(['policy', 'impact', 'service-policy', policy], env)
    expect(stdout).toBe('1 identity would lose the right to 1 service (phone), which gate blocks at the moment.\n')
    expect(await network.get(`/controller/policy/what/${phone.id}?filter=id%3D%22${gated}%22`)).toMatchObject([
      { permissions: ['Dial'], allowed: [], policies: [{ id: policy }] },
    ])
    expect(await network.get(`/controller/policy/who/${gated}`)).toMatchObject([{ id: phone.id, allowed: [] }])
  })

  it('a posture check that begins to be demanded is the rights behind it, and their sessions', async () => {
    const check = await network.make('posture-checks', { name: 'new gate', typeId: 'DOMAIN', domains: ['a.b'] })
    const open = await network.service('open', [])
    const roles = { postureCheckRoles: ['#guarding'] }
    await network.servicePolicy('Dial', [`@${phone.id}`], [`@${open}`], roles)
    await network.dial(phone, open)

    expect(await impact('posture-checks', check, { roleAttributes: ['guarding'] })).toMatchObject({
      loses: { identities: 1, pairs: 1 },
      gains: { pairs: 0 },
      sessions: 1,
    })
  })

  it.each([
    ['a record that does not exist', { resource: 'services', id: 'nope' }, 404],
    ['a kind of record that decides nothing', { resource: 'configs', id: 'x' }, 400],
    [
      'a change that the record would refuse',
      { resource: 'service-policies', id: 'staff', changes: { semantic: 'No' } },
      400,
    ],
  ])('%s is refused', async (_what, body, status) => {
    const id = body.id === 'staff' ? staff : body.id

    expect((await network.call('POST', '/controller/policy/impact', { ...body, id })).status).toBe(status)
  })
})

describe('the advice record', () => {
  it('holds rights, routers on each side, and those in common', async () => {
    expect(await network.get(`/identities/${laptop.id}/policy-advice/${web}`)).toEqual({
      identityId: laptop.id,
      identity: expect.objectContaining({ entity: 'identities', id: laptop.id, name: 'laptop' }),
      serviceId: web,
      service: expect.objectContaining({ entity: 'services', id: web, name: 'web' }),
      isDialAllowed: true,
      isBindAllowed: true,
      identityRouterCount: 1,
      serviceRouterCount: 1,
      commonRouters: [
        expect.objectContaining({ entity: 'edge-routers', id: router, name: 'edge-north', isOnline: false }),
      ],
    })
  })

  it('is the same if the record of the identity is cached, and follows its changes', async () => {
    const { id } = await network.person('tablet', ['staff'])
    const path = `/identities/${id}/policy-advice/${web}`
    const read = () => network.get(`/identities/${id}`)
    await network.change('PATCH', `/identities/${id}`, { name: 'tablet "Ä"' })

    const advice = await network.get(path)
    await read()
    expect(await network.get(path)).toEqual(advice)
    expect(advice).toMatchObject({ isDialAllowed: true, isBindAllowed: false, identityRouterCount: 1 })
    const { _links, name } = await read()
    expect(advice.identity).toEqual({ _links, entity: 'identities', id, name })

    await network.change('PATCH', `/identities/${id}`, { name: 'slate', roleAttributes: ['visitor'] })
    for (let time = 0; time < 2; time++) {
      expect(await network.get(path)).toMatchObject({
        identity: { name: 'slate' },
        isDialAllowed: false,
        identityRouterCount: 0,
        commonRouters: [],
      })
      await read()
    }
    await network.change('DELETE', `/identities/${id}`)
    expect((await network.call('GET', path)).status).toBe(404)
  })

  it.each([
    ['identity', () => `/identities/nope/policy-advice/${web}`],
    ['service', () => `/identities/${laptop.id}/policy-advice/nope`],
  ])('is refused for an unknown %s', async (_what, path) => {
    expect((await network.call('GET', path())).status).toBe(404)
  })
})

describe('the command line', () => {
  const run = (...words: string[]) => commandLine(words, env)

  it('draws the chain, and ends with 3 where access is denied', async () => {
    const { code, stdout } = await run('policy', 'advise', 'phone', 'secret')

    expect(code).toBe(3)
    expect(stdout).toMatch(/^phone dials secret: denied$/m)
    expect(stdout).toMatch(/^ {2}✗ service policy +no Dial policy links phone with secret$/m)
    expect(stdout).toMatch(/nearest: staff, but secret lacks #inner$/m)
    expect(stdout).toMatch(
      /remedy: controller service-policy create phone-dials-secret .* --identity-roles @phone --service-roles @secret$/m,
    )
  })

  it('gives the same chain as JSON, and asks about hosting by --bind', async () => {
    const { code, stdout } = await run('policy', 'advise', 'laptop', 'web', '--bind', '-o', 'json')

    const { type, links } = JSON.parse(stdout)
    expect(type).toBe('Bind')
    expect(links[2]).toMatchObject({ link: 'service-policy', outcome: 'passed', policies: [{ name: 'hosts' }] })
    expect(code).toBe(3)
  })

  it('ends with 5 for unknown names', async () => {
    expect((await run('policy', 'advise', 'unknown', 'web')).code).toBe(5)
    expect((await run('policy', 'impact', 'service-policy', 'nothing')).code).toBe(5)
  })

  it('lists who and what, and tells the impact in sentences', async () => {
    expect((await run('policy', 'who', 'web')).stdout).toMatch(/phone +Dial +Dial +staff +#staff → #inner/)
    expect((await run('policy', 'what', 'phone')).stdout).toMatch(/mail +Dial/)
    expect((await run('policy', 'impact', 'service-policy', 'staff')).stdout).toMatch(
      /^2 identities would lose the right to 2 services \(.*\)\.$/m,
    )
    expect((await run('policy', 'impact', 'service', 'secret')).stdout).toBe('No identity would lose or gain access.\n')
  })
})
