// The time by which clients learn that their services changed: no change that concerns them is missed.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type TestController, testController } from '../world/controller.ts'
import { type Person, type SmallNetwork, smallNetwork } from './network.ts'

let world: TestController
let network: SmallNetwork
let who: Person
let service: string
let policy: string
let count = 0
let tag: string

beforeAll(async () => {
  world = await testController()
  network = await smallNetwork(world)
})
afterAll(() => world.close())

beforeEach(async () => {
  tag = `t${++count}`
  service = await network.service(`web ${tag}`, [`web-${tag}`])
  who = await network.person(`laptop ${tag}`, [`staff-${tag}`])
  policy = await network.servicePolicy('Dial', [`#staff-${tag}`], [`#web-${tag}`])
})

/** The clock stands still in these tests: what happens within one millisecond is seen all the same. */
const lastChange = async (person = who) =>
  (await network.ask(person, 'GET', '/current-api-session/service-updates')).body.data.lastChangeAt as string

const patch = (path: string, body: object) => network.change('PATCH', path, body)
const config = async () =>
  network.make('configs', {
    name: `config ${tag}`,
    configTypeId: (await network.get('/config-types?filter=name="host.v1"'))[0].id,
    data: { protocol: 'tcp', address: 'localhost', port: 80 },
  })

describe('the time moves for an identity when', () => {
  it.each([
    ['a policy begins to grant it something', () => network.servicePolicy('Bind', [`@${who.id}`], ['#anything'])],
    ['its policy changes', () => patch(`/service-policies/${policy}`, { serviceRoles: ['#all'] })],
    ['its policy is deleted', () => network.change('DELETE', `/service-policies/${policy}`)],
    ['it is let go by its policy', () => patch(`/service-policies/${policy}`, { identityRoles: ['#others'] })],
    ['its attributes change', () => patch(`/identities/${who.id}`, { roleAttributes: [] })],
    ['a service comes', () => network.service(`new ${tag}`, [`web-${tag}`])],
    ['a service goes', () => network.change('DELETE', `/services/${service}`)],
    ['a service that it reaches is renamed', () => patch(`/services/${service}`, { name: `renamed ${tag}` })],
    ['a service loses the attribute it is reached by', () => patch(`/services/${service}`, { roleAttributes: [] })],
    ['a service gets a config', async () => patch(`/services/${service}`, { configs: [await config()] })],
    [
      'a config of a service that it reaches changes',
      async () => {
        const id = await config()
        await patch(`/services/${service}`, { configs: [id] })
        await lastChange()
        await patch(`/configs/${id}`, { data: { protocol: 'tcp', address: 'localhost', port: 81 } })
      },
    ],
    [
      'it gets a config of its own for a service, and that config changes',
      async () => {
        const id = await config()
        const before = await lastChange()
        await network.change('POST', `/identities/${who.id}/service-configs`, [{ serviceId: service, configId: id }])
        expect(await lastChange()).not.toBe(before)
        await patch(`/configs/${id}`, { data: { protocol: 'tcp', address: 'localhost', port: 81 } })
      },
    ],
    [
      'a posture check of its policy changes',
      async () => {
        const id = await network.make('posture-checks', { name: `domain ${tag}`, typeId: 'DOMAIN', domains: ['a.b'] })
        await patch(`/service-policies/${policy}`, { postureCheckRoles: [`@${id}`] })
        await lastChange()
        await patch(`/posture-checks/${id}`, { typeId: 'DOMAIN', domains: ['c.d'] })
      },
    ],
  ])('%s', async (_what, change) => {
    const before = await lastChange()

    await change()

    const after = await lastChange()
    expect(Date.parse(after)).toBeGreaterThan(Date.parse(before))
    expect(await lastChange()).toBe(after)
  })
})

describe('the time stays for an identity when', () => {
  it.each([
    ['a router policy changes', () => network.edgeRouterPolicy([`#staff-${tag}`], ['#all'])],
    ['a service router policy changes', () => network.serviceEdgeRouterPolicy([`#web-${tag}`], ['#all'])],
    ['its own name changes', () => patch(`/identities/${who.id}`, { name: `renamed ${tag}` })],
    ['a service that it does not reach changes', () => network.service(`hidden ${tag}`, [`hidden-${tag}`])],
    ['a policy for others changes', () => network.servicePolicy('Dial', [`#others-${tag}`], ['#all'])],
    ['it looks at its services', () => network.ask(who, 'GET', '/services')],
  ])('%s', async (_what, change) => {
    const before = await lastChange()

    await change()

    expect(await lastChange()).toBe(before)
  })
})

describe('without a change', () => {
  it('is when the sign-in began', async () => {
    world.clock.advance(5000)
    const fresh = await network.person(`fresh ${tag}`)

    expect(Date.parse(await lastChange(fresh))).toBe(world.clock.now())
  })

  it('is the start of the controller, for sign-ins that are older', async () => {
    world.clock.advance(5000)
    await world.stop()
    world = await testController({ directory: world.directory, clock: world.clock })
    network = await smallNetwork(world)

    expect(Date.parse(await lastChange())).toBe(world.clock.now())
  })

  it('is shared by the sign-ins of an identity', async () => {
    const { apiSessions } = world.controller.auth
    const again = await world.system.write(async (tx) => {
      const identity = {
        id: who.id,
        name: '',
        isAdmin: false,
        authPolicyId: 'default',
        externalId: null,
        roleAttributes: [`staff-${tag}`],
      }
      return apiSessions.insert(tx, { identity, authenticatorId: 'none', ipAddress: '', configTypes: [] })
    })
    await patch(`/services/${service}`, { name: `shared ${tag}` })

    expect(await lastChange({ id: who.id, token: apiSessions.deriveToken(again.id) })).toBe(await lastChange())
  })
})
