// The time by which clients learn that their services changed: it moves if they did, and only then.
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { Access } from '../../src/access/access.ts'
import { ServiceChanges } from '../../src/access/services/service-changes.ts'
import { ServiceDigests } from '../../src/access/services/service-digests.ts'
import type { LiveApiSession } from '../../src/authentication/api-sessions/live-api-sessions.ts'
import { toIsoTime } from '../../src/foundation/clock.ts'
import { Repairs } from '../../src/maintenance/integrity/repairs.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { readCommitPosition } from '../../src/storage/sqlite/commit-position.ts'
import type { Commit } from '../../src/storage/transactions/changes.ts'
import { followCommits } from '../world/projections.ts'
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

/** Restarts the controller. Returns the time of the newest commit before. */
async function reopen(meanwhile: () => void): Promise<number> {
  await world.stop()
  meanwhile()
  const { at } = readCommitPosition(getDataPaths(world.directory).database)
  await world.reopen()
  network = await smallNetwork(world)
  return at
}

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

  it('is that of the newest commit before the start of the controller, for sign-ins that are older', async () => {
    world.clock.advance(5000)
    const newest = await reopen(() => world.clock.advance(5000))

    expect(Date.parse(await lastChange())).toBe(newest)
  })

  it('is shared by the sign-ins of an identity', async () => {
    const { apiSessions } = world.controller.auth
    const again = await world.system.write(async (tx) => {
      const identity = {
        id: who.id,
        name: '',
        isAdmin: false,
        permissions: [],
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

describe('a restart', () => {
  it('takes no time back although the clock was set back meanwhile, and the next change has a later one', async () => {
    await patch(`/services/${service}`, { name: `renamed ${tag}` })
    const before = Date.parse(await lastChange())

    await reopen(() => world.clock.set(-3_600_000))

    const after = Date.parse(await lastChange())
    expect(after).toBeGreaterThanOrEqual(before)
    await patch(`/services/${service}`, { name: `web ${tag}` })
    expect(Date.parse(await lastChange())).toBeGreaterThan(after)
  })
})

describe('a controller that follows the commits of another one', () => {
  /** Knows rows and commits alone, and what machines reported. */
  async function follow() {
    const { store, posture, records } = world.controller
    const access = new Access(posture.reported)
    await access.rebuild(store.db)
    const digests = new ServiceDigests({ access, cache: records.cache })
    const changes = new ServiceChanges({ access, clock: world.clock, digests })
    const projections = [access, digests, changes]
    await followCommits(store, (_changes, commit) => {
      for (const projection of projections) projection.apply(JSON.parse(JSON.stringify(commit)) as Commit)
    })
    return async (person = who) => {
      const { id } = (await network.ask(person, 'GET', '/current-api-session')).body.data
      const session = world.controller.auth.apiSessions.get(id) as LiveApiSession
      const { roleAttributes: attributes } = session.identity
      const viewer = { identity: { id: person.id, attributes }, isAdmin: false, permissions: [], apiSessionId: id }
      return toIsoTime(await changes.getLastChange(world.system, session, viewer))
    }
  }

  it('tells its clients the same times after the same changes', async () => {
    const followed = await follow()
    await demandMfa()
    const changes = [
      () => patch(`/services/${service}`, { name: `renamed ${tag}` }),
      () => patch(`/service-policies/${policy}`, { semantic: 'AnyOf', serviceRoles: ['#none'] }),
      () => patch(`/service-policies/${policy}`, { serviceRoles: ['#all'] }),
      () => passMfa(who),
      async () => world.clock.advance(61_000),
      () => patch(`/identities/${who.id}`, { roleAttributes: [] }),
    ]
    const times: string[] = []

    for (const change of changes) {
      await change()
      times.push(await lastChange())
      expect(await followed()).toBe(times.at(-1))
    }
    expect([...new Set(times)].sort()).toEqual(times)
  })

  it('tells one that comes to it no earlier time, and of what changed meanwhile', async () => {
    const followed = await follow()
    await servicePolicyOnceMore()
    const before = await lastChange()
    await servicePolicyOnceMore()
    expect(await lastChange()).toBe(before)

    const there = await followed()
    await patch(`/services/${service}`, { name: `renamed ${tag}` })

    expect(Date.parse(there)).toBeGreaterThanOrEqual(Date.parse(before))
    expect(Date.parse(await followed())).toBeGreaterThan(Date.parse(there))
    expect(await lastChange()).toBe(await followed())
  })

  const servicePolicyOnceMore = () => network.servicePolicy('Dial', [`@${who.id}`], [`@${service}`])
})

describe('a repair of what memory holds', () => {
  it('moves the time for a client that was shown services by it', async () => {
    const { access, entities, store, log } = world.controller
    const apply = access.apply.bind(access)
    const lose = vi.spyOn(access, 'apply')
    lose.mockImplementationOnce((commit) => {
      const changes = commit.changes.map((change) =>
        change.resource === 'service-policies' && change.after
          ? { ...change, after: { ...change.after, serviceRoles: [] } }
          : change,
      )
      apply({ ...commit, changes })
    })
    await patch(`/service-policies/${policy}`, { name: `renamed ${tag}` })
    lose.mockRestore()
    const before = await lastChange()
    expect((await network.ask(who, 'GET', '/services')).body.data).toEqual([])

    const repair = { kind: 'rebuild-projection', projection: access.name } as const
    await new Repairs(entities, store, log).attempt(world.system, { description: 'a policy grants nothing', repair })

    expect(Date.parse(await lastChange())).toBeGreaterThan(Date.parse(before))
    expect((await network.ask(who, 'GET', '/services')).body.data).toHaveLength(1)
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
