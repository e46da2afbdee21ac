// The time by which clients learn that their services changed: it moves if they did, and only then.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { useController } from '../world/use-controller.ts'
import { type Person, type SmallNetwork, smallNetwork } from './network.ts'

const world = useController()
let network: SmallNetwork
let who: Person
let service: string
let policy: string
let count = 0
let tag: string

beforeAll(async () => {
  network = await smallNetwork(world)
})

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

const domain = () => network.make('posture-checks', { name: `demanded ${tag}`, typeId: 'DOMAIN', domains: ['a.b'] })

const demand = (check: string) => patch(`/service-policies/${policy}`, { postureCheckRoles: [`@${check}`] })
const demandDomain = async () => demand(await domain())
const demandMfa = async (more: object = {}) =>
  demand(await network.make('posture-checks', { name: `MFA ${tag}`, typeId: 'MFA', timeoutSeconds: 60, ...more }))

/** Completes MFA in the API session of a person, without a code. */
async function passMfa({ token }: Person) {
  const { id } = (await network.ask({ token }, 'GET', '/current-api-session')).body.data
  await world.system.write((tx) => world.controller.auth.apiSessions.totp.complete(tx, id))
}

describe('the time moves after a list of services that was served between two changes', () => {
  const listOf = async () => (await network.ask(who, 'GET', '/services')).body.data as { name: string }[]

  it('even if the second one takes the first one back', async () => {
    const before = await lastChange()
    await patch(`/service-policies/${policy}`, { serviceRoles: ['#none'] })
    expect(await listOf()).toEqual([])
    await patch(`/service-policies/${policy}`, { serviceRoles: [`#web-${tag}`] })

    const after = await lastChange()

    expect(Date.parse(after)).toBeGreaterThan(Date.parse(before))
    expect(await listOf()).toHaveLength(1)
    expect(await lastChange()).toBe(after)
  })

  it('even if a single service was shown', async () => {
    const before = await lastChange()
    await patch(`/services/${service}`, { name: `renamed ${tag}` })
    await network.ask(who, 'GET', `/services/${service}`)
    await patch(`/services/${service}`, { name: `web ${tag}` })

    expect(Date.parse(await lastChange())).toBeGreaterThan(Date.parse(before))
  })
})

describe('the time moves for an identity when', () => {
  it.each([
    ['a policy begins to grant it something', () => network.servicePolicy('Bind', [`@${who.id}`], ['#all'])],
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
      'a config type of a service that it reaches is renamed',
      async () => {
        const type = await network.make('config-types', { name: `type ${tag}` })
        const id = await network.make('configs', { name: `of type ${tag}`, configTypeId: type, data: {} })
        await patch(`/services/${service}`, { configs: [id] })
        await lastChange()
        await patch(`/config-types/${type}`, { name: `renamed ${tag}` })
      },
    ],
    [
      'its machine reports what a posture check demands',
      async () => {
        await demandDomain()
        await lastChange()
        await network.report(who, { typeId: 'DOMAIN', domain: 'a.b' })
      },
    ],
    [
      'its MFA times out, before anything judges its sessions',
      async () => {
        await demandMfa()
        await passMfa(who)
        await lastChange()
        world.clock.advance(61_000)
      },
    ],
    [
      'it passes MFA again before the timeout',
      async () => {
        await demandMfa()
        await passMfa(who)
        await lastChange()
        world.clock.advance(30_000)
        await passMfa(who)
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
    ['a policy matches it, but no service', () => network.servicePolicy('Bind', [`@${who.id}`], ['#nothing'])],
    [
      'a policy with a posture check matches it, but no service',
      async () =>
        network.servicePolicy('Bind', [`@${who.id}`], ['#nothing'], { postureCheckRoles: [`@${await domain()}`] }),
    ],
    ['a policy grants it once more what it has', () => network.servicePolicy('Dial', [`@${who.id}`], [`@${service}`])],
    ['its policy is renamed', () => patch(`/service-policies/${policy}`, { name: `renamed ${tag}` })],
    [
      'an attribute that no policy names is added',
      () => patch(`/identities/${who.id}`, { roleAttributes: [`staff-${tag}`, 'unused'] }),
    ],
    [
      'it gets a config of its own for a service that it does not reach',
      async () => {
        const hidden = await network.service(`hidden ${tag}`)
        const body = [{ serviceId: hidden, configId: await config() }]
        await network.change('POST', `/identities/${who.id}/service-configs`, body)
      },
    ],
    ['its machine reports what nothing demands', () => network.report(who, { typeId: 'DOMAIN', domain: 'a.b' })],
  ])('%s', async (_what, change) => {
    const before = await lastChange()

    await change()

    expect(await lastChange()).toBe(before)
  })
})

describe('the time stays for an identity that shares a role with others when', () => {
  it('a policy that demands both roles grants something to them alone', async () => {
    const both = await network.person(`both ${tag}`, [`staff-${tag}`, `night-${tag}`])
    const [before, beforeOfBoth] = [await lastChange(), await lastChange(both)]

    const roles = [`#staff-${tag}`, `#night-${tag}`]
    await network.servicePolicy('Bind', roles, ['#all'], { semantic: 'AllOf' })

    expect(await lastChange()).toBe(before)
    expect(await lastChange(both)).not.toBe(beforeOfBoth)
  })

  it('the machine of another one reports what a posture check demands', async () => {
    await demandDomain()
    const other = await network.person(`other ${tag}`, [`staff-${tag}`])
    const [before, beforeOfOther] = [await lastChange(), await lastChange(other)]

    await network.report(other, { typeId: 'DOMAIN', domain: 'a.b' })

    expect(await lastChange()).toBe(before)
    expect(await lastChange(other)).not.toBe(beforeOfOther)
  })

  it('a config that a service carries gets another name', async () => {
    const id = await config()
    await patch(`/services/${service}`, { configs: [id] })
    const before = await lastChange()

    await patch(`/configs/${id}`, { name: `renamed ${tag}` })

    expect(await lastChange()).toBe(before)
  })

  it('it administers, and a service changes that no policy grants it', async () => {
    const administrator = await network.person(`administrator ${tag}`, [], true)
    const before = await lastChange(administrator)

    await patch(`/services/${service}`, { name: `renamed ${tag}` })

    expect(await lastChange(administrator)).toBe(before)
  })
})

describe('of several API sessions of an identity', () => {
  it('the one that passes MFA sees a change, and the other does not', async () => {
    await demandMfa()
    const again = { id: who.id, ...(await world.signInAgain(who.id)) }
    const [before, beforeOfAgain] = [await lastChange(), await lastChange(again)]

    await passMfa(again)

    expect(await lastChange()).toBe(before)
    expect(await lastChange(again)).not.toBe(beforeOfAgain)
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
    await world.reopen()
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

describe('setting the clock', () => {
  it('moves the time for a client that sees when its machine woke', async () => {
    await demandMfa({ promptOnWake: true })
    await passMfa(who)
    await network.report(who, { typeId: 'ENDPOINT_STATE', woken: true })
    const before = await lastChange()

    world.clock.set(3_600_000)

    const after = await lastChange()
    expect(after).not.toBe(before)
    expect(await lastChange()).toBe(after)
  })

  it('does not move the time for others', async () => {
    const before = await lastChange()

    world.clock.set(-3_600_000)

    expect(await lastChange()).toBe(before)
  })
})
