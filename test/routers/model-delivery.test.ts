// The delivery of the data model under strain: much at once, connections that break in the middle, and routers that take nothing.
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Message } from '../../server/control-channel/message.ts'
import { configs } from '../../src/definitions/resources/configs.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { newName } from '../world/names.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import { encodeSubscription, FollowingRouter } from '../world/router/following-router.ts'
import { ModelReplica } from '../world/router/model-replica.ts'
import { TestNetwork } from '../world/router/network.ts'
import { groupedHeaders, groupOf, SimulatedRouter } from '../world/router/simulated-router.ts'

const MEGABYTE = 2 ** 20

let network: TestNetwork
const open: SimulatedRouter[] = []

beforeEach(async () => {
  network = await TestNetwork.start()
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((wire) => wire.close()))
  await network.close()
})

const model = () => network.world.controller.routers.model
const enroll = () => enrolledRouter(network.world, { name: newName('router') })

async function connect(enrolled: EnrolledRouter): Promise<FollowingRouter> {
  const router = await FollowingRouter.connect(network.address, enrolled)
  open.push(router.wire)
  return router
}

async function follow(): Promise<FollowingRouter> {
  const router = await connect(await enroll())
  router.subscribe()
  await router.reach(model().index)
  return router
}

async function makeConfigType(): Promise<string> {
  return network.manage.make('config-types', { name: newName('type') })
}

/** Creates configs of this length, many in a transaction. */
async function makeConfigs(configTypeId: string, count: number, length: number): Promise<void> {
  const { controller, system } = network.world
  await system.write(async (tx) => {
    for (let nth = 0; nth < count; nth += 1) {
      const data = { text: 'x'.repeat(length) }
      const record = newEntity(tx, configs, { name: newName('config'), configTypeId, data })
      await controller.entities.insert(tx, configs, record, { audit: 'none' })
    }
  })
}

it.each([
  ['one set', 1_000, {}, { sets: 1, states: 1 }],
  ['everything, if the set would be too long', 1_000, { floor: 'x'.repeat(500) }, { sets: 0, states: 2 }],
])('a commit of a thousand identities arrives as %s', async (_name, count, appData, expected) => {
  const router = await follow()
  const roles = { identityRoles: ['#crowd'], serviceRoles: ['#all'] }
  const policy = { name: newName('policy'), type: 'Bind', semantic: 'AnyOf', ...roles }
  const policyId = await network.manage.make('service-policies', policy)
  await router.reach(model().index)
  const setsBefore = router.sets.length
  const { clock, controller, system } = network.world
  clock.advance(5_000)
  const ids = await system.write(async (tx) => {
    const newIds: string[] = []
    for (let nth = 0; nth < count; nth += 1) {
      const values = { name: newName('identity'), typeId: 'Device', isAdmin: false, roleAttributes: ['crowd'], appData }
      const record = await controller.entities.insert(tx, identities, newEntity(tx, identities, values))
      newIds.push(record.id)
    }
    return newIds
  })
  model().tick()

  await router.reach(model().index)

  expect({ sets: router.sets.length - setsBefore, states: router.states }).toEqual(expected)
  expect(router.replica.membersOf(policyId, 'identity')).toEqual([...ids].sort())
  expect(router.replica.faults).toEqual([])
})

it('a router that loses its connection in the middle of everything receives all of it when it returns; others have it', async () => {
  await makeConfigs(await makeConfigType(), 40, MEGABYTE / 2)
  const enrolled = await enroll()
  const router = await connect(enrolled)
  const other = await connect(await enroll())
  router.wire.stopReading()
  router.subscribe()
  other.subscribe()
  await other.reach(model().index)
  const { connected } = network.world.controller.routers
  expect(connected.get(router.id)?.model.index).toBeUndefined()
  await router.wire.close()
  await expect.poll(() => connected.get(router.id)).toBeUndefined()

  const back = await connect(enrolled)
  back.subscribe()
  await back.reach(model().index)

  expect(back.states).toBe(1)
  expect(back.replica.contents()).toEqual(other.replica.contents())
})

it('a router that loses one of two connections in the middle of everything receives all of it over the other one', async () => {
  await makeConfigs(await makeConfigType(), 40, MEGABYTE / 2)
  const enrolled = await enroll()
  const first = await SimulatedRouter.open({ ...network.address, ...enrolled })
  first.introduce(enrolled.id, groupedHeaders())
  const group = groupOf(await first.takeType(2))
  const second = await SimulatedRouter.open({ ...network.address, ...enrolled })
  open.push(first, second)
  second.introduce(enrolled.id, groupedHeaders({ type: 'ctrl.high', group }))
  const states: Message[] = []
  second.takeAtOnce = (message) => message.type === 20500 && states.push(message) > 0
  await second.takeType(2)
  const subscriber = await connect(await enroll())
  first.stopReading()
  first.send(20505, encodeSubscription({ subscriptionId: 'of both' }))
  subscriber.subscribe()
  await subscriber.reach(model().index)

  second.received.splice(0)
  await first.close()
  await second.takeType(20501)
  // Everything is sent once in five seconds.
  network.world.clock.advance(5_000)
  model().tick()
  while (states.length === 0) await second.next()

  const replica = new ModelReplica()
  replica.takeState(states[0]!.body)
  const { publicKey: _, ...contents } = replica.contents()
  const { publicKey: __, ...expected } = subscriber.replica.contents()
  expect(contents).toEqual(expected)
})

it('a router that takes nothing is sent little of what changes, and has its place in the log', async () => {
  const configTypeId = await makeConfigType()
  const enrolled = await enroll()
  const stuck = await SimulatedRouter.open({ ...network.address, ...enrolled, respondsToHeartbeats: false })
  open.push(stuck)
  stuck.introduce(enrolled.id, groupedHeaders())
  await stuck.takeType(2)
  const router = await follow()
  stuck.send(20505, encodeSubscription({ subscriptionId: 'stuck' }))
  await stuck.takeType(20500)
  const begin = model().index
  stuck.stopReading()

  for (let nth = 0; nth < 120; nth += 1) await makeConfigs(configTypeId, 1, MEGABYTE / 4 - 1_000)
  await router.reach(model().index)

  const { routers, store } = network.world.controller
  const rows = await store.db
    .selectFrom('model_changes')
    .select(['position', 'size'])
    .where('position', '>', begin)
    .execute()
  const place = routers.connected.get(enrolled.id)?.model.index ?? 0
  const count = (chosen: typeof rows) => chosen.reduce((sum, { size }) => sum + size, 0)
  expect(count(rows)).toBeGreaterThan(25 * MEGABYTE)
  // The network takes some of it.
  expect(count(rows.filter(({ position }) => position <= place))).toBeLessThan(12 * MEGABYTE)
  expect(router.states).toBe(1)
})

it('a router that asks for the model after the clock was set back has asked later than before', async () => {
  const router = await follow()
  const { clock, controller } = network.world
  const getTime = () => controller.routers.connected.get(router.id)?.subscribedAt
  const before = getTime()!
  // The others are told by a commit.
  await makeConfigType()
  await router.reach(model().index)
  clock.set(-600_000)
  router.subscribe()
  await expect.poll(getTime).not.toBe(before)
  clock.set(600_000)

  expect(getTime()).toBeGreaterThan(before)
})
