// A session ends in the moment in which its right does, whatever took it, and no other session with it.

import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findRevokedSessions } from '../../src/access/sessions/revoke-sessions.ts'
import { servicePolicies } from '../../src/definitions/resources/service-policies.ts'
import type { RecordChange } from '../../src/storage/transactions/changes.ts'
import { useController } from '../world/use-controller.ts'
import { type Person, type SmallNetwork, smallNetwork } from './network.ts'

const world = useController()
let network: SmallNetwork
let count = 0
/** Names and attributes of this test alone. */
let tag: string
let service: string
let who: Person
let policy: string
let dial: string

beforeAll(async () => {
  network = await smallNetwork(world)
  await network.router('north')
  await network.openRouters()
})

beforeEach(async () => {
  tag = `t${++count}`
  service = await network.service(`web ${tag}`, [`web-${tag}`])
  who = await network.person(`laptop ${tag}`, [`staff-${tag}`])
  policy = await network.servicePolicy('Dial', [`#staff-${tag}`], [`#web-${tag}`])
  dial = (await network.dial(who, service)).body.data.id
  // Every test begins with a right, and a session that lives by it.
  expect(await isAlive(dial)).toBe(true)
})

/** A posture check that no machine has reported about, so that it does not pass. */
const postureCheck = (roleAttributes: string[] = []) =>
  network.make('posture-checks', { name: `check ${tag}`, typeId: 'DOMAIN', domains: ['a.b'], roleAttributes })

/** Makes the policy demand posture checks that there are none of yet. */
async function demand(postureCheckRoles: string[]): Promise<void> {
  await network.change('PATCH', `/service-policies/${policy}`, { postureCheckRoles })
  expect(await isAlive(dial)).toBe(true)
}

const isAlive = async (id: string) => (await network.sessionIds()).includes(id)

describe('a session ends when', () => {
  it.each([
    ['its policy is deleted', () => network.change('DELETE', `/service-policies/${policy}`)],
    [
      'its policy lets others only',
      () => network.change('PATCH', `/service-policies/${policy}`, { identityRoles: ['#others'] }),
    ],
    [
      'its policy leads to other services only',
      () => network.change('PATCH', `/service-policies/${policy}`, { serviceRoles: ['#others'] }),
    ],
    ['its policy is for hosting now', () => network.change('PATCH', `/service-policies/${policy}`, { type: 'Bind' })],
    [
      'its policy asks for all attributes now, the semantic alone being changed',
      async () => {
        const identityRoles = [`#staff-${tag}`, '#elsewhere']
        await network.change('PATCH', `/service-policies/${policy}`, { identityRoles })
        expect(await isAlive(dial)).toBe(true)
        await network.change('PATCH', `/service-policies/${policy}`, { semantic: 'AllOf' })
      },
    ],
    [
      'the identity loses the attribute',
      () => network.change('PATCH', `/identities/${who.id}`, { roleAttributes: [] }),
    ],
    ['the service loses the attribute', () => network.change('PATCH', `/services/${service}`, { roleAttributes: [] })],
    [
      'its policy demands a posture check that does not pass',
      async () => {
        const check = await postureCheck()
        await network.change('PATCH', `/service-policies/${policy}`, { postureCheckRoles: [`@${check}`] })
      },
    ],
    [
      'a new posture check is one that its policy demands',
      async () => {
        await demand([`#guard-${tag}`])
        await postureCheck([`guard-${tag}`])
      },
    ],
    [
      'a posture check gets the attribute by which its policy demands it',
      async () => {
        const check = await postureCheck()
        await demand([`#guard-${tag}`])
        await network.change('PATCH', `/posture-checks/${check}`, { roleAttributes: [`guard-${tag}`] })
      },
    ],
    [
      'its policy demands any check of several attributes now, the semantic alone being changed',
      async () => {
        await postureCheck([`guard-${tag}`])
        const identityRoles = [`#staff-${tag}`]
        const postureCheckRoles = [`#guard-${tag}`, '#more']
        const wide = { semantic: 'AllOf', identityRoles, serviceRoles: [`#web-${tag}`], postureCheckRoles }
        await network.change('PATCH', `/service-policies/${policy}`, wide)
        expect(await isAlive(dial)).toBe(true)
        await network.change('PATCH', `/service-policies/${policy}`, { semantic: 'AnyOf' })
      },
    ],
  ])('%s', async (_what, change) => {
    await change()

    expect(await isAlive(dial)).toBe(false)
  })

  it('two policies that granted it go at once, each of which would have been enough', async () => {
    const second = await network.servicePolicy('Dial', [`@${who.id}`], [`@${service}`])

    await Promise.all([policy, second].map((id) => world.controller.entities.remove(world.system, servicePolicies, id)))

    expect(await isAlive(dial)).toBe(false)
  })

  it('the right goes in the very moment in which it is made', async () => {
    const other = await network.person(`other ${tag}`, [`staff-${tag}`])

    const [, response] = await Promise.all([
      world.controller.entities.remove(world.system, servicePolicies, policy),
      network.dial(other, service),
    ])

    const { id } = response.body.data ?? { id: 'refused' }
    expect(await isAlive(id)).toBe(false)
  })

  it('its holder administers, as well', async () => {
    const admin = await network.person(`admin ${tag}`, [`staff-${tag}`], true)
    const { id } = (await network.dial(admin, service)).body.data
    expect(await isAlive(id)).toBe(true)

    await network.change('DELETE', `/service-policies/${policy}`)

    expect(await isAlive(id)).toBe(false)
  })
})

describe('a session stays when', () => {
  it.each([
    [
      'one policy demands a posture check, and another one that demands none grants it still',
      async () => {
        await network.servicePolicy('Dial', ['#all'], [`@${service}`])
        const check = await postureCheck()
        await network.change('PATCH', `/service-policies/${policy}`, { postureCheckRoles: [`@${check}`] })
      },
    ],
    [
      'a posture check begins that its policy does not demand',
      async () => {
        await demand([`#guard-${tag}`])
        await postureCheck(['elsewhere'])
      },
    ],
    [
      'another policy grants it still',
      async () => {
        await network.servicePolicy('Dial', ['#all'], [`@${service}`])
        await network.change('DELETE', `/service-policies/${policy}`)
      },
    ],
    [
      'its policy grants more than before',
      () => network.change('PATCH', `/service-policies/${policy}`, { identityRoles: [`#staff-${tag}`, '#more'] }),
    ],
    [
      'its policy gets another name',
      () => network.change('PATCH', `/service-policies/${policy}`, { name: `renamed ${tag}` }),
    ],
    [
      'the identity loses an attribute that does not matter',
      async () => {
        const attributes = { roleAttributes: [`staff-${tag}`, 'spare'] }
        await network.change('PATCH', `/identities/${who.id}`, attributes)
        await network.change('PATCH', `/identities/${who.id}`, { roleAttributes: [`staff-${tag}`] })
      },
    ],
    [
      'the last router in common is gone',
      async () => {
        const policies = (await network.get('/edge-router-policies')) as { id: string }[]
        for (const { id } of policies) await network.change('DELETE', `/edge-router-policies/${id}`)
        expect((await network.get(`/sessions/${dial}`)).edgeRouters).toEqual([])
        await network.edgeRouterPolicy(['#all'], ['#all'])
      },
    ],
    [
      'another identity loses the same right',
      async () => {
        const other = await network.person(`other ${tag}`, [`staff-${tag}`])
        await network.change('PATCH', `/identities/${other.id}`, { roleAttributes: [] })
      },
    ],
  ])('%s', async (_what, change) => {
    await change()

    expect(await isAlive(dial)).toBe(true)
  })

  it('a right to host goes, and it dials', async () => {
    const binding = await network.servicePolicy('Bind', [`#staff-${tag}`], [`#web-${tag}`])
    const bind = (await network.dial(who, service, 'Bind')).body.data.id

    await network.change('DELETE', `/service-policies/${binding}`)

    expect([await isAlive(bind), await isAlive(dial)]).toEqual([false, true])
  })

  it('the change that would have ended it is refused', async () => {
    const change = { identityRoles: ['#others'], serviceRoles: ['@nope'] }

    const { status } = await network.call('PATCH', `/service-policies/${policy}`, change)

    expect([status, await isAlive(dial)]).toEqual([400, true])
  })
})

describe('what is looked at', () => {
  it('is nothing for changes that can take no right', async () => {
    const untouchable = { access: world.controller.access } as never
    const values = {
      semantic: 'AnyOf',
      type: 'Dial',
      identityRoles: ['#a'],
      serviceRoles: ['#b'],
      postureCheckRoles: [],
    }
    const routerPolicy = { semantic: 'AnyOf', identityRoles: ['#a'], edgeRouterRoles: ['#b'] }
    const changes = [
      { resource: 'configs', id: 'x', before: {} },
      { resource: 'edge-router-policies', id: 'x', before: routerPolicy },
      { resource: 'identities', id: 'x', before: { roleAttributes: ['a'] }, after: { roleAttributes: ['a', 'b'] } },
      { resource: 'services', id: 'x', before: { roleAttributes: ['a'] }, after: { roleAttributes: ['a'] } },
      { resource: 'service-policies', id: 'x', after: values },
      { resource: 'service-policies', id: 'x', before: values, after: { ...values, identityRoles: ['#a', '#c'] } },
    ]

    expect(await findRevokedSessions(untouchable, changes as unknown as RecordChange[])).toEqual([])
  })
})
