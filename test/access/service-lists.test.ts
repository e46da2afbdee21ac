// Lists of services are rendered once for all clients that are shown the same, and for each request where they may differ.
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { Access } from '../../src/access/access.ts'
import { unknownPosture } from '../../src/access/posture/reported-posture.ts'
import { ServiceChanges } from '../../src/access/services/service-changes.ts'
import type { ReadContext } from '../../src/storage/transactions/context.ts'
import { CLIENT, TestClock, type TestController, testController } from '../world/controller.ts'
import { type Person, type SmallNetwork, smallNetwork } from './network.ts'

describe('a list of services', () => {
  let world: TestController
  let network: SmallNetwork
  let who: Person
  let colleague: Person
  let service: string
  let policy: string
  let count = 0
  let tag: string
  /** How many lists were rendered to be cached. */
  let rendered = 0

  beforeAll(async () => {
    world = await testController()
    network = await smallNetwork(world)
    const { serviceChanges } = world.controller
    const find = serviceChanges.findList.bind(serviceChanges)
    vi.spyOn(serviceChanges, 'findList').mockImplementation((context, apiSession, viewer, shape, render) =>
      find(context, apiSession, viewer, shape, () => {
        rendered += 1
        return render()
      }),
    )
  })
  afterAll(() => world.close())

  beforeEach(async () => {
    tag = `t${++count}`
    service = await network.service(`web ${tag}`, [`web-${tag}`])
    who = await network.person(`laptop ${tag}`, [`staff-${tag}`])
    colleague = await network.person(`desktop ${tag}`, [`staff-${tag}`])
    policy = await network.servicePolicy('Dial', [`#staff-${tag}`], [`#web-${tag}`])
    rendered = 0
  })

  const patch = (path: string, body: object) => network.change('PATCH', path, body)
  const list = async (person = who, query = '') =>
    (await network.ask(person, 'GET', `/services${query}`)).body.data as { id: string; name: string }[]
  const demand = async (check: object) => {
    const id = await network.make('posture-checks', { name: `demanded ${tag} ${++count}`, ...check })
    await patch(`/service-policies/${policy}`, { postureCheckRoles: [`@${id}`] })
  }
  const report = (person: Person, domain: string) =>
    network.ask(person, 'POST', '/posture-response', { id: 'any', typeId: 'DOMAIN', domain })

  it('is rendered once for all clients that are shown the same', async () => {
    const first = await list()

    expect(first.map(({ name }) => name)).toEqual([`web ${tag}`])
    expect(await list(colleague)).toEqual(first)
    expect(await list()).toEqual(first)
    expect(rendered).toBe(1)
  })

  it('is rendered once more after a change', async () => {
    await list()
    await patch(`/services/${service}`, { name: `renamed ${tag}` })

    expect((await list()).map(({ name }) => name)).toEqual([`renamed ${tag}`])
    expect((await list(colleague)).map(({ name }) => name)).toEqual([`renamed ${tag}`])
    expect(rendered).toBe(2)
  })

  it('is found again after a change that was undone', async () => {
    const before = await list()
    await patch(`/service-policies/${policy}`, { serviceRoles: ['#none'] })
    expect(await list()).toEqual([])
    await patch(`/service-policies/${policy}`, { serviceRoles: [`#web-${tag}`] })

    expect(await list()).toEqual(before)
    expect(rendered).toBe(2)
  })

  it('is another one for another window, and for other config types', async () => {
    const configTypeId = await network.make('config-types', { name: `type ${tag}` })
    const config = await network.make('configs', { name: `config ${tag}`, configTypeId, data: { port: 1 } })
    await patch(`/services/${service}`, { configs: [config] })
    const listText = async (query: string) => JSON.stringify(await list(who, query))

    for (const query of ['', '?offset=1', '?configTypes=all', `?configTypes=${configTypeId}`]) {
      expect(await listText(query), query).toBe(await listText(`${query}${query ? '&' : '?'}filter=true`))
    }
    expect(await listText('')).not.toBe(await listText('?configTypes=all'))
    expect(await listText('?offset=1')).toBe('[]')
    expect(rendered).toBe(4)
  })

  it('shows a config type by its new name', async () => {
    const configTypeId = await network.make('config-types', { name: `type ${tag}` })
    const config = await network.make('configs', { name: `config ${tag}`, configTypeId, data: { port: 1 } })
    await patch(`/services/${service}`, { configs: [config] })
    expect(await list(who, `?configTypes=type%20${tag}`)).toMatchObject([{ config: { [`type ${tag}`]: { port: 1 } } }])
    await patch(`/config-types/${configTypeId}`, { name: `renamed ${tag}` })

    expect(await list(who, `?configTypes=type%20${tag}`)).toMatchObject([{ config: {} }])
    expect(await list(who, `?configTypes=${configTypeId}`)).toMatchObject([
      { config: { [`renamed ${tag}`]: { port: 1 } } },
    ])
  })

  it('is shared by clients whose machines pass the same posture checks', async () => {
    await demand({ typeId: 'DOMAIN', domains: ['a.b'] })
    const failing = await list()
    expect(await list(colleague)).toEqual(failing)
    await report(who, 'a.b')

    const passing = await list()

    expect(passing).toMatchObject([{ postureQueries: [{ isPassing: true }] }])
    expect(await list(colleague)).toEqual(failing)
    await report(colleague, 'a.b')
    expect(await list(colleague)).toEqual(passing)
    expect(rendered).toBe(2)
  })

  it('shows a later sign-in what an earlier one reported, and nothing that it proved', async () => {
    const { totp } = world.controller.auth.apiSessions
    await demand({ typeId: 'DOMAIN', domains: ['a.b'] })
    await report(who, 'a.b')
    await network.ask(who, 'DELETE', '/current-api-session')
    const proving = await world.signInAgain(who.id)
    expect(await list({ ...who, ...proving })).toMatchObject([{ postureQueries: [{ isPassing: true }] }])

    await demand({ typeId: 'MFA' })
    await world.system.write((tx) => totp.complete(tx, proving.apiSessionId))
    expect(await list({ ...who, ...proving })).toMatchObject([{ postureQueries: [{ isPassing: true }] }])
    await network.ask(proving, 'DELETE', '/current-api-session')

    const again = { ...who, ...(await world.signInAgain(who.id)) }
    expect(await list(again)).toMatchObject([{ postureQueries: [{ isPassing: false }] }])
  })

  it.each([
    ['a filter', '?filter=true'],
    ['an order', '?sort=name'],
    ['a role', '?roleFilter=%23none'],
    ['no limit', '?limit=-1'],
  ])('with %s is rendered for each request', async (_, query) => {
    const render = vi.mocked(world.controller.serviceChanges.findList)
    render.mockClear()

    await list(who, query)

    expect(render).not.toHaveBeenCalled()
  })

  it('is rendered for each request of an administrator', async () => {
    const render = vi.mocked(world.controller.serviceChanges.findList)
    render.mockClear()
    const administrator = await world.signIn({ isAdmin: true })

    expect((await list({ ...who, ...administrator }, '?limit=500')).map(({ id }) => id)).toContain(service)
    expect(render).not.toHaveBeenCalled()
  })

  it('is rendered for each request if it shows the time that is left of a timeout', async () => {
    await demand({ typeId: 'MFA', timeoutSeconds: 60 })
    await list()
    await list()

    expect(rendered).toBe(2)
  })

  it('is rendered for each request of an identity with configs of its own', async () => {
    const configTypeId = await network.make('config-types', { name: `type ${tag}` })
    const config = await network.make('configs', { name: `config ${tag}`, configTypeId, data: { port: 1 } })
    await network.change('POST', `/identities/${who.id}/service-configs`, [{ serviceId: service, configId: config }])
    await list(colleague, '?configTypes=all')
    rendered = 0

    for (const _ of [1, 2])
      expect(await list(who, '?configTypes=all')).toMatchObject([{ config: { [`type ${tag}`]: { port: 1 } } }])
    expect(rendered).toBe(2)
    expect(await list(colleague, '?configTypes=all')).toMatchObject([{ config: {} }])
  })

  it('has the entity tag of its bytes', async () => {
    const ask = (tags: string) =>
      world.send({ method: 'GET', path: `${CLIENT}/services`, token: who.token, headers: { 'if-none-match': tags } })
    const entityTag = String((await ask('""')).headers.etag)
    expect(await ask(entityTag)).toMatchObject({ status: 304, text: '' })
    await patch(`/services/${service}`, { name: `renamed ${tag}` })

    const changed = await ask(entityTag)

    expect(changed).toMatchObject({ status: 200 })
    expect(changed.headers.etag).not.toBe(entityTag)
    await patch(`/services/${service}`, { tags: { again: 1 } })
    expect((await ask(String(changed.headers.etag))).status).toBe(200)
  })
})

describe('a rendered list', () => {
  const context = undefined as unknown as ReadContext
  const form = { limit: 10, offset: 0, configTypes: [], form: 'documented' as const }
  const client = (id: string) => ({
    apiSession: { id: `session ${id}`, createdAt: 0 },
    viewer: { identity: { id, attributes: ['staff'] }, isAdmin: false },
  })

  function makeLists({ maxBytes = 10_000 } = {}) {
    const access = new Access(unknownPosture)
    const contents = new Map<string, string>()
    const transitions = { lastAt: 0, nextAt: Number.POSITIVE_INFINITY, now: 0 }
    const digests = {
      compute: async (_: ReadContext, { identity }: { identity: { id: string } }) => ({
        digest: contents.get(identity.id) ?? '',
        isExact: true,
        transitions,
      }),
    }
    const clock = new TestClock(1_000)
    const changes = new ServiceChanges({ access, clock, digests, maxListBytes: maxBytes })
    let rendered = 0
    const find = async (id: string, meanwhile: () => void = () => {}) => {
      const { apiSession, viewer } = client(id)
      const body = await changes.findList(context, apiSession, viewer, form, async () => {
        rendered += 1
        meanwhile()
        return Buffer.from(`${contents.get(id)} `.repeat(100))
      })
      return String(body)
    }
    let at = clock.now()
    const change = (id: string, content: string) => {
      contents.set(id, content)
      access.updates.stampIdentity(id, ++at)
    }
    return { change, changes, find, countRendered: () => rendered }
  }

  it('is not cached if something changed while it was rendered', async () => {
    const { change, find, countRendered } = makeLists()
    change('one', 'before')
    change('other', 'before')

    const mixed = await find('one', () => change('one', 'after'))

    expect(mixed).toContain('after')
    expect(await find('other')).toContain('before')
    expect(countRendered()).toBe(2)
  })

  it('counts as shown if something changed while it was rendered, even if that is undone', async () => {
    const { change, changes, find } = makeLists()
    change('one', 'before')
    const { apiSession, viewer } = client('one')
    const poll = () => changes.getLastChange(context, apiSession, viewer)
    const before = await poll()
    await find('one', () => change('one', 'after'))
    change('one', 'before')

    expect(await poll()).toBeGreaterThan(before)
  })

  it('is dropped for others if there is no room', async () => {
    const { change, find, countRendered } = makeLists({ maxBytes: 2_000 })
    change('one', 'first')
    change('other', 'other')
    for (const id of ['one', 'one', 'other', 'other'])
      expect(await find(id)).toContain(id === 'one' ? 'first' : 'other')
    expect(countRendered()).toBe(2)

    change('third', 'third')
    await find('third')
    expect(await find('one')).toContain('first')
    expect(countRendered()).toBe(4)
  })
})
