// The data model that routers of release 2 follow: everything at first, then what each commit changes, also after an interruption.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  DataState_ChangeSetSchema,
  DataStateSchema,
  SubscribeToDataModelRequestSchema,
} from '../../server/control-channel/messages/edge_pb.ts'
import { encodeState } from '../../server/control-channel/model-encoding.ts'
import { readModelState } from '../../src/network/router-model/model-state.ts'
import { computeFingerprint } from '../../src/pki/certificates.ts'
import { registerAuthority } from '../world/authorities.ts'
import { type TestController, testController } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { People } from '../world/people.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import { FollowingRouter } from '../world/router/following-router.ts'
import { ModelReplica } from '../world/router/model-replica.ts'
import { SimulatedRouter } from '../world/router/simulated-router.ts'

const LISTENERS = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]

let world: TestController
let manage: Management
let address: { url: string; rootPem: string }
const open: FollowingRouter[] = []

async function start(options: Parameters<typeof testController>[0] = {}): Promise<void> {
  world = await testController({ ...options, settings: { listeners: LISTENERS } })
  await world.controller.membership.announce(world.system, {})
  address = await world.listen()
  manage = await managementOf(world)
}

beforeAll(() => start())
afterEach(async () => {
  await Promise.all(open.splice(0).map(({ wire }) => wire.close()))
})
afterAll(() => world.close())

const model = () => world.controller.routers.model
const enroll = () => enrolledRouter(world, { name: newName('router') })

async function connect(enrolled: EnrolledRouter, replica?: ModelReplica): Promise<FollowingRouter> {
  const router = await FollowingRouter.connect(address, enrolled, replica)
  open.push(router)
  return router
}

/** A new router that has the model. */
async function follow(): Promise<FollowingRouter> {
  const router = await connect(await enroll())
  router.subscribe()
  await router.reach(model().index)
  return router
}

/** Everything, as a router has it that receives it now. */
async function readAll(): Promise<ModelReplica> {
  const replica = new ModelReplica()
  const state = await readModelState(world.controller.store, model().index)
  const keys = world.controller.routers.publicKeys.list()
  replica.takeState(Buffer.concat(await encodeState(state)))
  for (const { id } of keys) expect(replica.has('publicKey', id)).toBe(false)
  return replica
}

/** Resolves when a router has everything that there is; it must have the same as a router that receives it now. */
async function expectSame(router: FollowingRouter): Promise<void> {
  await router.reach(model().index)
  const { publicKey: _, ...contents } = router.replica.contents()
  const { publicKey: __, ...expected } = (await readAll()).contents()
  expect(contents).toEqual(expected)
  expect(router.replica.faults).toEqual([])
}

const anyone = { semantic: 'AnyOf', identityRoles: ['#all'], serviceRoles: ['#all'] }
const makeIdentity = (values = {}) =>
  manage.make('identities', { name: newName('identity'), type: 'Device', isAdmin: false, ...values })
const makeService = (values = {}) =>
  manage.make('services', { name: newName('service'), encryptionRequired: true, ...values })
const makePolicy = (values = {}) =>
  manage.make('service-policies', { name: newName('policy'), type: 'Dial', ...anyone, ...values })

describe('a router of release 2', () => {
  it('is told that there is a data model, and everything in it when it subscribes', async () => {
    const configType = await manage.make('config-types', { name: newName('type') })
    const config = await manage.make('configs', {
      name: newName('config'),
      configTypeId: configType,
      data: { port: 1 },
    })
    const service = await makeService({ configs: [config], roleAttributes: ['web'] })
    const identity = await makeIdentity({ roleAttributes: ['staff'], appData: { floor: 2 }, defaultHostingCost: 7 })
    const check = await manage.make('posture-checks', {
      name: newName('check'),
      typeId: 'OS',
      operatingSystems: [{ type: 'Linux' }],
      roleAttributes: ['good'],
    })
    const roles = { identityRoles: ['#staff'], serviceRoles: ['#web'], postureCheckRoles: ['#good'] }
    const policy = await makePolicy({ type: 'Bind', ...roles })
    const router = await connect(await enroll())
    const greeting = await router.wire.takeType(20000)
    expect(greeting.headers.get(1024)).toEqual(Buffer.from([1]))
    router.subscribe()
    await expectSame(router)
    const { replica } = router
    expect(router.states).toBe(1)
    expect(replica.get('configType', configType)).toMatchObject({ id: configType })
    expect(replica.get('config', config)).toMatchObject({ typeId: configType, dataJson: '{"port":1}' })
    expect(replica.get('service', service)).toMatchObject({ encryptionRequired: true, configs: [config] })
    expect(replica.get('identity', identity)).toMatchObject({
      defaultHostingCost: 7,
      appDataJson: Buffer.from('{"floor":2}').toString('base64'),
    })
    expect(replica.get('postureCheck', check)).toMatchObject({
      typeId: 'OS',
      osList: { osList: [{ OsType: 'Linux', OsVersions: ['>=0.0.0'] }] },
    })
    expect(replica.get('servicePolicy', policy)).toMatchObject({ policyType: 'BindPolicy' })
    expect(replica.membersOf(policy, 'identity')).toEqual([identity])
    expect(replica.membersOf(policy, 'service')).toEqual([service])
    expect(replica.membersOf(policy, 'postureCheck')).toEqual([check])
    expect(replica.has('publicKey', computeFingerprint(world.controller.authority.root))).toBe(true)
  })

  it('is told each change by a set of its own, which names the one before', async () => {
    const router = await follow()
    const before = router.replica.index
    const identity = await makeIdentity({ roleAttributes: ['clerks'] })
    await expectSame(router)
    const first = router.replica.index
    expect(first).toBeGreaterThan(before)
    const service = await makeService()
    const policy = await makePolicy({ identityRoles: ['#clerks'], serviceRoles: [`@${service}`] })
    await expectSame(router)
    expect(router.replica.membersOf(policy, 'identity')).toEqual([identity])
    expect(router.replica.permits(identity, service, 'DialPolicy')).toBe(true)
    await manage.change('PATCH', `/identities/${identity}`, { roleAttributes: [] })
    await expectSame(router)
    expect(router.replica.membersOf(policy, 'identity')).toEqual([])
    await manage.change('PATCH', `/identities/${identity}`, { roleAttributes: ['clerks'] })
    await manage.change('PATCH', `/service-policies/${policy}`, { type: 'Bind', name: newName('policy') })
    await expectSame(router)
    await manage.change('DELETE', `/service-policies/${policy}`)
    await manage.change('DELETE', `/services/${service}`)
    await manage.change('DELETE', `/identities/${identity}`)
    await expectSame(router)
    expect(router.replica.has('identity', identity)).toBe(false)
    expect(router.states).toBe(1)
    expect(new Set(router.sets)).toEqual(new Set(['applied']))
  })

  it('learns of posture checks before a policy requires them, and that it does not any more before they are deleted', async () => {
    const router = await follow()
    const policy = await makePolicy({ postureCheckRoles: ['#strict'] })
    const values = { name: newName('check'), typeId: 'MFA', roleAttributes: ['strict'], timeoutSeconds: 60 }
    const check = await manage.make('posture-checks', values)
    await expectSame(router)
    expect(router.replica.membersOf(policy, 'postureCheck')).toEqual([check])
    expect(router.replica.get('postureCheck', check)).toMatchObject({ mfa: { TimeoutSeconds: '60' } })
    await manage.change('PATCH', `/posture-checks/${check}`, { typeId: 'MFA', timeoutSeconds: 120 })
    await expectSame(router)
    expect(router.replica.get('postureCheck', check)).toMatchObject({ mfa: { TimeoutSeconds: '120' } })
    await manage.change('DELETE', `/posture-checks/${check}`)
    await expectSame(router)
    expect(router.replica.membersOf(policy, 'postureCheck')).toEqual([])
    await manage.change('DELETE', `/service-policies/${policy}`)
  })

  it('learns of configs that an identity gets in place of those of a service', async () => {
    const router = await follow()
    const configType = await manage.make('config-types', { name: newName('type') })
    const config = await manage.make('configs', { name: newName('config'), configTypeId: configType, data: {} })
    const service = await makeService()
    const identity = await makeIdentity()
    await manage.change('POST', `/identities/${identity}/service-configs`, [{ serviceId: service, configId: config }])
    await expectSame(router)
    expect(router.replica.get('identity', identity)).toMatchObject({
      serviceConfigs: { [service]: { configs: { [configType]: config } } },
    })
    await manage.change('DELETE', `/services/${service}`)
    await manage.change('DELETE', `/configs/${config}`)
    await manage.change('DELETE', `/config-types/${configType}`)
    await expectSame(router)
    expect(router.replica.get('identity', identity)).not.toHaveProperty('serviceConfigs')
  })

  it('is told that an identity is disabled or deleted, and that its tokens from before are revoked until they end', async () => {
    const router = await follow()
    const identity = await makeIdentity()
    const disabledAt = world.clock.now()
    await manage.change('POST', `/identities/${identity}/disable`, { durationMinutes: 0 })
    await expectSame(router)
    expect(router.replica.get('identity', identity)).toMatchObject({ disabled: true })
    const revocation = { type: 'IDENTITY', issuedBefore: new Date(disabledAt).toISOString().replace('.000', '') }
    expect(router.replica.get('revocation', identity)).toMatchObject(revocation)
    await manage.change('POST', `/identities/${identity}/enable`)
    await expectSame(router)
    expect(router.replica.get('identity', identity)).not.toHaveProperty('disabled')
    expect(router.replica.get('revocation', identity)).toMatchObject(revocation)
    world.clock.advance(1_000)
    await manage.change('DELETE', `/identities/${identity}`)
    await expectSame(router)
    expect(router.replica.get('revocation', identity)).not.toMatchObject(revocation)
  })

  it('is not told that an identity is disabled for a time, because time alone enables it again, but its tokens are revoked', async () => {
    const router = await follow()
    const identity = await makeIdentity()
    await manage.change('POST', `/identities/${identity}/disable`, { durationMinutes: 5 })
    await expectSame(router)
    expect(router.replica.get('identity', identity)).not.toHaveProperty('disabled')
    expect(router.replica.has('revocation', identity)).toBe(true)
  })

  it('does not trust an authority any more that was deleted while it was away', async () => {
    const people = await People.in(world)
    const authority = await registerAuthority(people)
    const id = computeFingerprint({ raw: Buffer.from(authority.certificate.rawData) })
    const enrolled = await enroll()
    const router = await connect(enrolled)
    router.subscribe()
    await router.reach(model().index)
    expect(router.replica.has('publicKey', id)).toBe(true)
    await router.wire.close()
    await people.ask('DELETE', `/cas/${authority.id}`)
    const later = await connect(enrolled, router.replica)
    later.subscribe()
    await expectSame(later)
    expect(later.states).toBe(0)
    expect(later.replica.has('publicKey', id)).toBe(false)
  })

  it('learns nothing that does not concern it', async () => {
    const router = await follow()
    const { id } = await world.signIn({ name: newName('person') })
    const before = model().index
    const roles = { identityRoles: ['#all'], edgeRouterRoles: ['#all'] }
    await manage.make('edge-router-policies', { semantic: 'AnyOf', name: newName('policy'), ...roles })
    await world.signInAgain(id)
    expect(model().index).toBe(before)
    await expectSame(router)
  })
})

describe('a router that was away', () => {
  it('is told what it missed, and nothing if it missed nothing', async () => {
    const enrolled = await enroll()
    const router = await connect(enrolled)
    router.subscribe()
    await router.reach(model().index)
    await router.wire.close()
    await makeIdentity()
    await makeService()
    const back = await connect(enrolled, router.replica)
    back.subscribe()
    await expectSame(back)
    expect([back.states, back.sets]).toEqual([0, ['applied', 'applied']])
    await back.wire.close()
    const again = await connect(enrolled, back.replica)
    again.subscribe()
    await again.wire.takeReply(again.wire.send(1))
    expect([again.states, again.sets]).toEqual([0, []])
  })

  it('receives everything if it was away for a day', async () => {
    const enrolled = await enroll()
    const router = await connect(enrolled)
    router.subscribe()
    await router.reach(model().index)
    await router.wire.close()
    await makeIdentity()
    world.clock.advance(25 * 60 * 60_000)
    manage = await managementOf(world)
    const back = await connect(enrolled, router.replica)
    back.subscribe()
    await expectSame(back)
    expect(back.states).toBe(1)
  })

  it.each([
    ['of another timeline', { timelineId: 'another' }],
    ['that nothing led to', { currentIndex: 1n }],
    ['of the future', { currentIndex: 2n ** 52n }],
    ['beyond all numbers', { currentIndex: 2n ** 64n - 1n }],
    ['of nothing', { currentIndex: 0n }],
  ])('receives everything if it names an index %s', async (_name, values) => {
    const router = await follow()
    world.clock.advance(5_000)
    const { replica } = router
    const index = replica.index
    replica.index = 0
    router.subscribe({ currentIndex: BigInt(index), timelineId: replica.timeline, ...values })
    await expectSame(router)
    expect(router.states).toBe(2)
  })
})

describe('a subscription', () => {
  it('is named by all that is sent for it', async () => {
    const router = await follow()
    const sets: (string | undefined)[] = []
    const { takeAtOnce } = router.wire
    router.wire.takeAtOnce = (message) => {
      if (message.type === 20501) sets.push(message.headers.get(1026)?.toString())
      return takeAtOnce(message)
    }
    await makeIdentity()
    await expectSame(router)
    expect(sets).toEqual([router.subscriptionId])
  })

  it('ends after six minutes, and goes on if it is renewed before', async () => {
    const router = await follow()
    const { subscriptionId } = router
    world.clock.advance(5 * 60_000)
    router.subscribe({ renew: true, subscriptionId })
    await router.wire.takeReply(router.wire.send(1))
    world.clock.advance(5 * 60_000)
    model().tick()
    await makeIdentity()
    await expectSame(router)
    expect(router.states).toBe(1)
    world.clock.advance(6 * 60_000)
    model().tick()
    const { index } = router.replica
    await makeIdentity()
    await router.wire.takeReply(router.wire.send(1))
    expect(router.replica.index).toBe(index)
    router.subscribe()
    await expectSame(router)
    expect(router.states).toBe(1)
  })

  it('can be replaced a thousand times, and everything is sent again after some seconds only', async () => {
    const router = await follow()
    for (let nth = 0; nth < 1_000; nth += 1) router.subscribe({ currentIndex: 0n })
    await router.wire.takeReply(router.wire.send(1))
    expect(router.states).toBe(1)
    await makeIdentity()
    world.clock.advance(5_000)
    model().tick()
    await expectSame(router)
    expect(router.states).toBe(2)
  })

  it('of another router is not disturbed by one that does not read', async () => {
    const [router, stuck] = [await follow(), await follow()]
    stuck.wire.stopReading()
    for (let nth = 0; nth < 40; nth += 1) {
      const data = { text: 'x'.repeat(50_000), nth }
      await manage.make('configs', {
        name: newName('config'),
        configTypeId: await anyType(),
        data,
      })
    }
    await expectSame(router)
    expect(router.states).toBe(1)
    stuck.wire.readOn()
    await expectSame(stuck)
    expect(stuck.states).toBe(1)
  })

  it('whose name is too long ends the connection', async () => {
    const router = await follow()
    router.subscribe({ subscriptionId: 'x'.repeat(300) })
    await router.wire.closed
  })

  it('without a name is sent everything without one', async () => {
    const router = await connect(await enroll())
    const states: Buffer[] = []
    router.wire.takeAtOnce = ({ type, headers, body }) => {
      if (type === 20500 && !headers.has(1026)) states.push(body)
      return type === 20500
    }
    router.subscribe({ subscriptionId: '' })
    while (states.length === 0) await router.wire.next()
    expect(fromBinary(DataStateSchema, states[0]!).events.length).toBeGreaterThan(10)
  })
})

let configType: string | undefined
async function anyType(): Promise<string> {
  configType ??= await manage.make('config-types', { name: newName('type') })
  return configType
}

describe('a commit', () => {
  it('that changes too much is told as everything', async () => {
    const router = await follow()
    const policy = await makePolicy({ identityRoles: [], serviceRoles: [] })
    await expectSame(router)
    const enrolled = await enroll()
    const away = await connect(enrolled)
    away.subscribe()
    await away.reach(model().index)
    await away.wire.close()
    world.clock.advance(5_000)
    const data = { text: 'x'.repeat(600_000) }
    await manage.make('configs', { name: newName('config'), configTypeId: await anyType(), data })
    model().tick()
    await expectSame(router)
    expect(router.states).toBe(2)
    await manage.change('DELETE', `/service-policies/${policy}`)
    const back = await connect(enrolled, away.replica)
    back.subscribe()
    await expectSame(back)
    expect(back.states).toBe(1)
  })
})

describe('the index', () => {
  it('is told to every router each half minute if it has moved', async () => {
    const router = await connect(await enroll())
    await router.wire.takeReply(router.wire.send(1))
    const listTold = () => router.wire.received.filter(({ type }) => type === 20506)
    const pass = async (milliseconds: number) => {
      world.clock.advance(milliseconds)
      model().tick()
      await router.wire.takeReply(router.wire.send(1))
    }
    await pass(29_000)
    expect(listTold()).toEqual([])
    await pass(1_000)
    expect(listTold().map(({ headers }) => headers.get(1025)!.readBigUInt64LE())).toEqual([BigInt(model().index)])
    await pass(30_000)
    expect(listTold()).toHaveLength(1)
    await makeIdentity()
    await pass(30_000)
    expect(listTold()).toHaveLength(2)
  })
})

describe('the record of a router', () => {
  const read = async (id: string) => (await manage.get(`/routers/${id}`)).dataModel
  const diagnose = async () => {
    const { diagnoses } = await world.controller.doctor.diagnose(world.system)
    return diagnoses.filter(({ message }) => message.includes('data model'))
  }

  it('says how far it follows the model, and the doctor names it if it lags', async () => {
    const enrolled = await enroll()
    expect(await read(enrolled.id)).toBe(null)
    const router = await connect(enrolled)
    expect(await read(router.id)).toEqual({ mode: 'waiting', index: null, lagSeconds: 0 })
    world.clock.advance(61_000)
    expect(await read(router.id)).toEqual({ mode: 'waiting', index: null, lagSeconds: 61 })
    expect(await diagnose()).toMatchObject([{ check: 'data model', subject: `edge-router ${enrolled.name}` }])
    router.subscribe()
    await expectSame(router)
    await expect.poll(() => read(router.id)).toEqual({ mode: 'following', index: model().index, lagSeconds: 0 })
    expect(await diagnose()).toEqual([])
    world.clock.advance(6 * 60_000)
    model().tick()
    expect(await read(router.id)).toEqual({ mode: 'waiting', index: model().index, lagSeconds: 0 })
  })

  it('says nothing of a model if the router is of release 1', async () => {
    const enrolled = await enroll()
    const router = await SimulatedRouter.open({ ...address, ...enrolled })
    router.introduce(enrolled.id)
    await router.takeType(2)
    expect(await read(enrolled.id)).toEqual({ mode: 'none', index: null, lagSeconds: null })
    world.clock.advance(61_000)
    expect(await diagnose()).toEqual([])
    await router.close()
  })
})

describe('a router of release 1', () => {
  it('receives nothing of the model, though it subscribes', async () => {
    const enrolled = await enroll()
    const router = await SimulatedRouter.open({ ...address, ...enrolled })
    router.introduce(enrolled.id)
    await router.takeType(2)
    router.send(20505, toBinary(SubscribeToDataModelRequestSchema, create(SubscribeToDataModelRequestSchema, {})))
    await makeIdentity()
    await (await follow()).wire.close()
    await router.takeReply(router.send(1))
    expect(router.received.map(({ type }) => type)).not.toContain(20500)
    expect(router.received.map(({ type }) => type)).not.toContain(20501)
    await router.close()
  })
})

describe('everything', () => {
  it('is sent again if a router lost a connection, because the last changes may not have arrived', async () => {
    const router = await follow()
    world.clock.advance(5_000)
    model().sendAgain(world.controller.routers.connected.get(router.id)!)
    while (router.states < 2) await router.wire.next()
    await expectSame(router)
  })

  it('is read once for routers that ask for it together', async () => {
    const routers = await Promise.all([1, 2, 3].map(async () => connect(await enroll())))
    const before = world.controller.store.stats().openStreams
    for (const router of routers) router.subscribe()
    for (const router of routers) await expectSame(router)
    expect(world.controller.store.stats().openStreams).toBe(before)
    for (const { states } of routers) expect(states).toBe(1)
  })
})

it('sets of the log are those that routers are sent', async () => {
  const router = await follow()
  const seenIndexes: number[] = []
  const { takeAtOnce } = router.wire
  router.wire.takeAtOnce = (message) => {
    if (message.type === 20501) seenIndexes.push(Number(fromBinary(DataState_ChangeSetSchema, message.body).index))
    return takeAtOnce(message)
  }
  await makeIdentity()
  await makeService()
  await expectSame(router)
  const rows = await world.controller.store.db
    .selectFrom('model_changes')
    .select('position')
    .orderBy('position', 'desc')
    .limit(2)
    .execute()
  expect(seenIndexes.reverse()).toEqual(rows.map(({ position }) => position))
})

// The last one, because names that tests make begin anew with the controller.
it('a router goes on after a restart of the controller', async () => {
  const enrolled = await enroll()
  const router = await connect(enrolled)
  router.subscribe()
  await router.reach(model().index)
  const { replica } = router
  await router.wire.close()
  await makeIdentity()
  const { directory, clock } = world
  await world.stop()
  await start({ directory, clock })
  await makeService()
  const back = await connect(enrolled, replica)
  back.subscribe()
  await expectSame(back)
  expect(back.states).toBe(0)
  expect(back.sets.length).toBeGreaterThan(1)
})
