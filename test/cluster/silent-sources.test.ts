// A router that follows the data model from a controller that does not respond: the others have it follow one of them.
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { DataStateSchema, RouterDataModelValidateRequestSchema } from '../../server/control-channel/messages/edge_pb.ts'
import type { TestController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { newName } from '../world/names.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { FollowingRouter } from '../world/router/following-router.ts'
import { ModelReplica } from '../world/router/model-replica.ts'
import { TestNetwork } from '../world/router/network.ts'
import { letPass, RoutedCluster, waitUntilEqual } from '../world/router/routed-cluster.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const SOON = { timeout: 30_000, interval: 20 }
const TIMEOUT_MS = 90_000
const COMPARISON = 20503
const MIN_SILENCE_MS = 5_000
const MIN_INTERVAL_MS = 30_000
const MIN_UNKNOWN_MS = 60_000
const world = useClusterPerTest(RoutedCluster)

/** The models that a controller had a router take. */
function takeComparisons({ wire }: FollowingRouter) {
  const messages = wire.received.filter(({ type }) => type === COMPARISON)
  return messages.map(({ body }) => fromBinary(RouterDataModelValidateRequestSchema, body))
}

/** Two controllers, the second one behind a proxy, and routers at both that follow the model from the second one. */
async function followSecond() {
  allowFaults(/contact|duty|log of the cluster|could not be told/)
  const first = await world.cluster.open('first')
  const { cluster, routers } = first.controller
  await expect.poll(() => routers.presence?.isHere, SOON).toBe(true)
  const { node: second, proxy } = await world.cluster.openBehindProxy('second')
  const network = await TestNetwork.over(first, world.cluster.addresses.get('first')!)
  const wires: FollowingRouter['wire'][] = []
  const isSilent = () => cluster?.silence.names.includes('second')
  const follow = async () => {
    const enrolled = await enrolledRouter(first, { name: newName('router') })
    await waitUntilEqual(first, second)
    const atFirst = await FollowingRouter.connect(world.cluster.addresses.get('first')!, enrolled)
    const atSecond = await FollowingRouter.connect(world.cluster.addresses.get('second')!, enrolled)
    wires.push(atFirst.wire, atSecond.wire)
    await network.service()
    await waitUntilEqual(first, second)
    atSecond.subscribe()
    await atSecond.reach(second.controller.routers.model.index)
    await expect.poll(() => routers.presence?.findModelSource(enrolled.id)?.node, SOON).toBe('second')
    await expect.poll(isSilent, SOON).toBe(false)
    return { enrolled, atFirst }
  }
  const fallSilent = async () => {
    // Commits of the last seconds count as not received.
    for (let second = 0; second < 6; second += 1) routers.silentSources?.tick()
    proxy.isHolding = true
    await expect.poll(isSilent, SOON).toBe(true)
  }
  const close = async () => {
    proxy.isHolding = false
    for (const wire of wires) await wire.close()
  }
  return { first, proxy, network, ...(await follow()), follow, isSilent, fallSilent, close }
}

/** Lets a time pass at a controller. */
async function pass(node: TestController, ms: number): Promise<void> {
  const { silentSources } = node.controller.routers
  silentSources?.tick()
  await letPass(node, ms)
  silentSources?.tick()
}

it('is had to take the model of a controller that responds, once it lacks something', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { first, network, atFirst, fallSilent, close } = await followSecond()
  await fallSilent()
  await pass(first, MIN_SILENCE_MS)
  const serviceId = await network.service()
  await pass(first, 0)
  await expect.poll(() => takeComparisons(atFirst).length, SOON).toBe(1)

  const [comparison] = takeComparisons(atFirst)
  expect(comparison?.fix).toBe(true)
  const replica = new ModelReplica()
  replica.takeState(toBinary(DataStateSchema, comparison!.state!))
  expect(replica.has('service', serviceId)).toBe(true)
  expect(replica.count('publicKey')).toBeGreaterThan(0)
  expect(replica.faults).toEqual([])

  atFirst.subscribe({ currentIndex: BigInt(replica.index), timelineId: '' })
  await network.service()
  await atFirst.reach(first.controller.routers.model.index)
  await pass(first, MIN_INTERVAL_MS)
  await pass(first, MIN_SILENCE_MS)
  expect(takeComparisons(atFirst)).toHaveLength(1)
  await close()
})

it('is left alone while it lacks nothing, and for some seconds', { timeout: TIMEOUT_MS }, async () => {
  const { first, proxy, network, atFirst, isSilent, fallSilent, close } = await followSecond()
  await fallSilent()
  await pass(first, MIN_INTERVAL_MS)
  expect(takeComparisons(atFirst)).toEqual([])

  proxy.isHolding = false
  await expect.poll(isSilent, SOON).toBe(false)
  await pass(first, 0)
  await fallSilent()
  await network.service()
  await pass(first, MIN_SILENCE_MS - 1)
  expect(takeComparisons(atFirst)).toEqual([])
  await pass(first, 1)
  await expect.poll(() => takeComparisons(atFirst).length, SOON).toBe(1)
  await close()
})

it('is had to take it again if it follows the silent controller still, and lacks something again', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { first, network, atFirst, fallSilent, close } = await followSecond()
  await fallSilent()
  await network.service()
  await pass(first, MIN_SILENCE_MS)
  await expect.poll(() => takeComparisons(atFirst).length, SOON).toBe(1)
  await pass(first, MIN_INTERVAL_MS)
  await network.service()
  await pass(first, 0)
  await expect.poll(() => takeComparisons(atFirst).length, SOON).toBe(2)
  await close()
})

it('is sent nothing while it does not respond either: others would have to wait for it', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { first, network, atFirst, fallSilent, close } = await followSecond()
  await fallSilent()
  await pass(first, MIN_SILENCE_MS)
  atFirst.wire.respondsToHeartbeats = false
  const isRouterSilent = () => {
    // Slowly, because a controller that stalls does not judge routers.
    first.clock.advance(20)
    return first.controller.routers.connected.get(atFirst.id)?.connection.isSilent
  }
  await expect.poll(isRouterSilent, SOON).toBe(true)
  await network.service()
  await pass(first, 0)
  const serviceId = await network.service()
  await pass(first, 0)

  atFirst.wire.respondsToHeartbeats = true
  atFirst.wire.respondToHeartbeat()
  await expect.poll(isRouterSilent, SOON).toBe(false)
  await pass(first, 0)
  await expect.poll(() => takeComparisons(atFirst).length, SOON).toBe(1)
  const replica = new ModelReplica()
  replica.takeState(toBinary(DataStateSchema, takeComparisons(atFirst)[0]!.state!))
  expect(replica.has('service', serviceId)).toBe(true)
  await close()
})

it('is left alone if the controller is back when its turn comes, after another router', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { first, proxy, network, atFirst, follow, isSilent, fallSilent, close } = await followSecond()
  const { atFirst: nextAtFirst } = await follow()
  const countComparisons = () => [atFirst, nextAtFirst].map((router) => takeComparisons(router).length)
  await fallSilent()
  const { connection } = first.controller.routers.connected.get(atFirst.id)!
  const waitUntilWritable = connection.waitUntilWritable.bind(connection)
  let accept = () => {}
  const acceptance = new Promise<void>((resolve) => {
    accept = resolve
  })
  connection.waitUntilWritable = () => acceptance
  await network.service()
  await pass(first, MIN_SILENCE_MS)

  proxy.isHolding = false
  await expect.poll(isSilent, SOON).toBe(false)
  await pass(first, 0)
  connection.waitUntilWritable = waitUntilWritable
  accept()
  await expect.poll(countComparisons, SOON).toEqual([1, 0])

  await fallSilent()
  const serviceId = await network.service()
  await pass(first, MIN_SILENCE_MS)
  await expect.poll(countComparisons, SOON).toEqual([2, 1])
  const replica = new ModelReplica()
  replica.takeState(toBinary(DataStateSchema, takeComparisons(nextAtFirst)[0]!.state!))
  expect(replica.has('service', serviceId)).toBe(true)
  await close()
})

it('is had to take the model of a controller that began during the silence, and does not know what it follows', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { first, enrolled, fallSilent, close } = await followSecond()
  const other = await enrolledRouter(first, { name: 'other' })
  await fallSilent()
  await world.cluster.stop(first)
  const restarted = await world.cluster.open('first', {}, first.directory)
  const { model, presence } = restarted.controller.routers
  await expect.poll(() => presence?.isComplete, SOON).toBe(true)
  const returned = await FollowingRouter.connect(world.cluster.addresses.get('first')!, enrolled)
  const following = await FollowingRouter.connect(world.cluster.addresses.get('first')!, other)
  following.subscribe()
  await following.reach(model.index)
  expect(presence?.findModelSource(enrolled.id)).toBeUndefined()
  await pass(restarted, MIN_UNKNOWN_MS - 1)
  expect(takeComparisons(returned)).toEqual([])
  await pass(restarted, 1)
  await expect.poll(() => takeComparisons(returned).length, SOON).toBe(1)
  // Routers without an edge section never subscribe.
  const indexBefore = model.index
  await restarted.signIn({ name: 'later' })
  expect(model.index).toBeGreaterThan(indexBefore)
  await pass(restarted, MIN_INTERVAL_MS)

  const replica = new ModelReplica()
  replica.takeState(toBinary(DataStateSchema, takeComparisons(returned)[0]!.state!))
  returned.subscribe({ currentIndex: BigInt(replica.index), timelineId: '' })
  await returned.reach(model.index)
  await pass(restarted, MIN_UNKNOWN_MS)
  expect([returned, following].map((router) => takeComparisons(router).length)).toEqual([1, 0])
  await close()
  for (const { wire } of [returned, following]) await wire.close()
})
