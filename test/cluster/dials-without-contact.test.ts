// A dial that waits for its routers while the lease of the controller ends: another one may have revoked the right meanwhile.
import { expect, it } from 'vitest'
import { allowFaults } from '../world/faults.ts'
import { RoutedCluster } from '../world/router/routed-cluster.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const SOON = { timeout: 30_000, interval: 20 }
const LEASE_MS = 3_000
const world = useClusterPerTest(RoutedCluster)

it('is refused when they report, and they drop the circuit', async () => {
  allowFaults(/contact|duty|log of the cluster|routers are (connected|away)/)
  const { node, proxy } = await world.cluster.openBehindProxy('first')
  const { lease } = node.controller.cluster!
  await expect.poll(() => node.controller.routers.presence?.isHere, SOON).toBe(true)
  const router = await world.cluster.router(node, 'first')
  const { network, serviceId } = await world.cluster.host(node, router)
  const client = await network.client(serviceId)
  const wire = router.at('first')
  wire.reply = () => 'silence'
  const dial = wire.sendDial(client)
  await expect.poll(() => wire.withheld.length, SOON).toBe(1)
  // The next proof of contact begins a third of the lease after this one, by the time of the machine.
  node.clock.advance(1)
  await expect.poll(() => lease.silentMs, SOON).toBe(0)
  proxy.isHolding = true
  node.clock.advance(LEASE_MS)

  wire.sendResult(wire.withheld[0]!)

  expect((await wire.takeDialResponse(dial)).text).toContain('no contact with the other ones')
  await expect.poll(() => wire.unroutes.length, SOON).toBe(1)
  proxy.isHolding = false
  proxy.breakConnections()
  await lease.waitForContact()
})
