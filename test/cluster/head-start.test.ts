// Routers dial at the controller that responds fastest to heartbeats: those that respond seem faster while another one does not.
import { expect, it } from 'vitest'
import { allowFaults } from '../world/faults.ts'
import type { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { RoutedCluster, waitUntilAt } from '../world/router/routed-cluster.ts'
import type { SimulatedRouter } from '../world/router/simulated-router.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const SOON = { timeout: 30_000, interval: 20 }
// Two controllers open, and one loses its contact twice.
const TIMEOUT_MS = 90_000
const HEARTBEAT = 5
const SENT_AT = 5
const RESPONSE = 6
const SECOND_NS = 1_000_000_000n
const world = useClusterPerTest(RoutedCluster)

const encode = (timeNs: bigint) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(timeNs)
  return bytes
}

async function takeResponse(wire: SimulatedRouter): Promise<bigint> {
  const { headers } = await wire.take(({ headers }) => headers.has(RESPONSE))
  return headers.get(RESPONSE)!.readBigUInt64LE()
}

/** Drops the responses that came unasked, because the other controller has seemed silent for a moment. */
async function dropResponses(router: ForwardingRouter): Promise<void> {
  await router.settle()
  const { received } = router.wire
  received.splice(0, received.length, ...received.filter(({ headers }) => !headers.has(RESPONSE)))
}

/** The time that a controller responds with to a heartbeat of this time. */
async function beat(router: ForwardingRouter, timeNs: bigint): Promise<bigint> {
  await dropResponses(router)
  const { wire } = router
  wire.send(HEARTBEAT, Buffer.alloc(0), [[SENT_AT, encode(timeNs)]])
  return takeResponse(wire)
}

it('a controller has routers take it for the fastest one while another does not respond, and tells them again where all are', {
  timeout: TIMEOUT_MS,
}, async () => {
  allowFaults(/contact|duty|log of the cluster|could not be told/)
  const first = await world.cluster.open('first')
  const { node: second, proxy } = await world.cluster.openBehindProxy('second')
  const router = await world.cluster.router(first, 'first', 'second')
  await waitUntilAt(router, first, second)
  const channel = router.at('first')
  const { wire } = channel
  const silence = () => first.controller.cluster?.silence.names
  await expect.poll(silence, SOON).toEqual([])
  const sentAt = 1_000n * SECOND_NS
  const soonAfter = (timeNs: bigint) => timeNs + SECOND_NS
  await expect.poll(() => beat(channel, sentAt), SOON).toBe(sentAt)
  const CONTROLLERS = 1037
  const lists = () => wire.received.filter(({ type }) => type === CONTROLLERS).length
  await dropResponses(channel)
  const before = lists()

  proxy.isHolding = true
  // Without another heartbeat of the router, which may come ten seconds later.
  const early = await takeResponse(wire)
  expect(early).toBeGreaterThan(soonAfter(sentAt))
  await expect.poll(lists, SOON).toBeGreaterThan(before)
  expect(await beat(channel, sentAt)).toBeGreaterThan(soonAfter(sentAt))

  proxy.isHolding = false
  await expect.poll(silence, SOON).toEqual([])
  await expect.poll(() => beat(channel, sentAt), SOON).toBe(sentAt)

  // Of two controllers that did it, the router turns to the later one.
  first.clock.advance(1_000)
  await dropResponses(channel)
  proxy.isHolding = true
  expect(await takeResponse(wire)).toBeGreaterThanOrEqual(soonAfter(early))
  proxy.isHolding = false
})

it('a controller has a router take it for the fastest one while that does not reach another', {
  timeout: TIMEOUT_MS,
}, async () => {
  const [first, second] = await world.cluster.openBoth()
  const router = await world.cluster.router(first, 'first', 'second')
  await waitUntilAt(router, first, second)
  const channel = router.at('first')
  const { wire } = channel
  const silent = router.at('second').wire
  const sentAt = 1_000n * SECOND_NS
  await expect.poll(() => first.controller.cluster?.silence.names, SOON).toEqual([])
  await expect.poll(() => beat(channel, sentAt), SOON).toBe(sentAt)
  await dropResponses(channel)

  silent.respondsToHeartbeats = false
  const isSilent = () => {
    // Slowly, because a controller that stalls does not judge routers.
    second.clock.advance(20)
    return first.controller.routers.presence?.isSilentElsewhere(router.id)
  }
  await expect.poll(isSilent, SOON).toBe(true)
  expect(await takeResponse(wire)).toBeGreaterThan(sentAt + SECOND_NS)

  silent.respondsToHeartbeats = true
  silent.respondToHeartbeat()
  await expect.poll(() => first.controller.routers.presence?.isSilentElsewhere(router.id), SOON).toBe(false)
  await expect.poll(() => beat(channel, sentAt), SOON).toBe(sentAt)
})
