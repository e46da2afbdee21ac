// Dials that a router kept while it was not connected to the controller, or did not reach it: their clients may have given up.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { newName } from '../world/names.ts'
import type { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { TestNetwork } from '../world/router/network.ts'

const READING_MS = 1_000

let network: TestNetwork

beforeEach(async () => {
  network = await TestNetwork.start()
})
afterEach(async () => {
  vi.useRealTimers()
  await network.close()
})

/** A service that an identity hosts by an SDK. */
async function host(router: ForwardingRouter, sdkInfo: Record<string, string>): Promise<string> {
  const { world } = network
  const { id: hostId } = await world.signIn({ name: newName('host') })
  await world.system.write(({ db }) =>
    db
      .updateTable('identities')
      .set({ sdkInfo: JSON.stringify(sdkInfo) })
      .where('id', '=', hostId)
      .execute(),
  )
  const serviceId = await network.service()
  await network.terminator(serviceId, router, { hostId })
  return serviceId
}

const goSdk = (version: string) => ({ type: 'ziti-sdk-golang', version })

/** Loses the connection of a router, and connects it again after a time. */
async function reconnect(router: ForwardingRouter, absentMs: number, release: 1 | 2 = 1): Promise<ForwardingRouter> {
  await router.wire.close()
  await expect.poll(() => network.world.controller.routers.connected.size).toBe(0)
  network.world.clock.advance(absentMs)
  return network.reconnect(router.id, router, release)
}

describe('a dial that a router may have kept for as long as its client waits', () => {
  it.each([
    [1, 'v1.2.0'],
    [1, 'v1.7.0'],
    [2, 'v1.7.0'],
  ] as const)(
    'is refused if the host could accept no other one then: router %i, Go SDK %s',
    async (release, version) => {
      const router = await network.router(release)
      const serviceId = await host(router, goSdk(version))
      const again = await reconnect(router, 5_000, release)
      const client = await network.client(serviceId)

      const refused = await again.dial(client)
      network.world.clock.advance(READING_MS)
      const accepted = await again.dial(client)

      expect(refused.text).toContain('waited at its router')
      expect(again.routes.map(({ circuitId }) => circuitId)).toEqual([accepted.circuitId])
    },
  )

  it.each([1, 2] as const)('is refused if its connection was held up that long: router %i', async (release) => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    await network.close()
    network = await TestNetwork.start()
    const { clock } = network.world
    const passSeconds = (count: number) => {
      for (let second = 1; second <= count; second += 1) {
        clock.advance(1_000)
        vi.advanceTimersByTime(1_000)
      }
    }
    const router = await network.router(release)
    const serviceId = await host(router, goSdk('v1.7.0'))
    const client = await network.client(serviceId)
    passSeconds(1)
    await router.wire.takeReply(router.wire.send(1))
    // From now on nothing arrives, until all of it does.
    router.wire.respondsToHeartbeats = false
    passSeconds(6)

    const refused = await router.dial(client)
    expect(router.wire.respondToHeartbeat()).toBe(true)
    router.wire.respondsToHeartbeats = true
    const following = await router.dial(client)
    passSeconds(1)
    const accepted = await router.dial(client)

    expect(refused.text).toContain('waited at its router')
    expect(following.text).toContain('waited at its router')
    expect(router.routes.map(({ circuitId }) => circuitId)).toEqual([accepted.circuitId])
  })

  it.each([goSdk('v1.1.2'), goSdk('v0.26.1'), { type: 'ziti-sdk-c', version: '1.10.0' }, {}])(
    'creates a circuit if the host bears it: %j',
    async (sdkInfo) => {
      const router = await network.router()
      const serviceId = await host(router, sdkInfo)
      const again = await reconnect(router, 5_000)
      expect((await again.dial(await network.client(serviceId))).circuitId).not.toBe('')
    },
  )

  it.each([1, 2] as const)('creates a circuit if the router was away for less: release %i', async (release) => {
    const router = await network.router(release)
    const serviceId = await host(router, goSdk('v1.7.0'))
    const again = await reconnect(router, 3_000, release)
    expect((await again.dial(await network.client(serviceId))).circuitId).not.toBe('')
  })

  it('creates a circuit if the router is another process', async () => {
    const router = await network.router(2)
    const serviceId = await host(router, goSdk('v1.7.0'))
    await router.wire.close()
    network.world.clock.advance(5_000)
    const again = await network.reconnect(router.id, undefined, 2)
    expect((await again.dial(await network.client(serviceId))).circuitId).not.toBe('')
  })
})
