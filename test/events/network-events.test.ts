// Events of the network: routers, links and circuits, while they are watched and soon after.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type TestWatcher, watchEvents } from '../world/event-stream.ts'
import { TestNetwork } from '../world/router/network.ts'

let network: TestNetwork
beforeAll(async () => {
  network = await TestNetwork.start()
})
afterAll(() => network.close())

const watchers: TestWatcher[] = []
afterEach(async () => {
  for (const watcher of watchers.splice(0)) await watcher.close()
})

async function watch(query: string): Promise<TestWatcher> {
  const watcher = await watchEvents(network.address, await network.world.admin(), query)
  watchers.push(watcher)
  await expect.poll(() => watcher.cursor).not.toBe('')
  return watcher
}

const typesOf = ({ events }: TestWatcher) => events.map(({ type }) => type)

describe('a watcher', () => {
  it('receives that a router is online, and offline', async () => {
    const watcher = await watch('?type=router-online&type=router-offline')
    const router = await network.router()
    await expect.poll(() => typesOf(watcher)).toEqual(['router-online'])
    await router.wire.close()

    await expect.poll(() => typesOf(watcher)).toEqual(['router-online', 'router-offline'])
    expect(watcher.events[0]!.data).toMatchObject({ resource: 'edge-routers', id: router.id })
  })

  it('receives that a link is up once paths use it, and down once it has failed', async () => {
    const [one, two] = [await network.router(), await network.router()]
    const watcher = await watch(`?subject=${two.id}`)
    const id = network.link(one, two)
    expect(typesOf(watcher)).toEqual([])
    network.fabric.links.tick()
    await expect.poll(() => typesOf(watcher)).toEqual(['link-up'])
    network.fabric.links.recordLatency(one.id, id, 2_000_000)
    network.fabric.links.fail(one.id, id, 0)

    await expect.poll(() => typesOf(watcher)).toEqual(['link-up', 'link-down'])
    expect(watcher.events[1]!.data).toMatchObject({ id, sourceId: one.id, destinationId: two.id, reason: 'failed' })
  })

  it('receives that an administrator sets a link down, and up again', async () => {
    const [one, two] = [await network.router(), await network.router()]
    const id = network.link(one, two)
    network.fabric.links.tick()
    const watcher = await watch('?subject=links')
    await network.manage.change('PATCH', `/controller/links/${id}`, { isDown: true })
    await network.manage.change('PATCH', `/controller/links/${id}`, { isDown: false })

    await expect
      .poll(() => typesOf(watcher).filter((type) => type.startsWith('link-')))
      .toEqual(['link-down', 'link-up'])
  })

  it('receives that a circuit begins and ends', async () => {
    const router = await network.router()
    const serviceId = await network.service()
    await network.terminator(serviceId, router)
    const client = await network.client(serviceId)
    const watcher = await watch(`?subject=${client.identityId}`)
    const { circuitId } = await router.dial(client)
    network.fabric.circuits.remove(circuitId, true)

    await expect.poll(() => typesOf(watcher)).toEqual(['circuit-begun', 'circuit-ended'])
    expect(watcher.events[0]!.data).toMatchObject({
      id: circuitId,
      serviceId,
      identityId: client.identityId,
      routerIds: [router.id],
    })
    expect(JSON.stringify(watcher.events)).not.toContain(client.token)
  })

  it('receives that a circuit could not be created, and why', async () => {
    const router = await network.router()
    const serviceId = await network.service()
    const client = await network.client(serviceId)
    const watcher = await watch('?type=circuit-failed')
    await router.dial(client).catch(() => {})

    await expect
      .poll(() => watcher.events.map(({ data }) => [data.serviceId, data.cause]))
      .toEqual([[serviceId, 'NO_TERMINATORS']])
  })
})

describe('a watcher that returns', () => {
  it('receives what happened since, if that is little and not long ago', async () => {
    const first = await watch('?type=router-online')
    await first.close()
    const router = await network.router()
    const second = await watch(`?type=router-online&since=${first.cursor}`)

    await expect.poll(() => second.events.map(({ data }) => data.id)).toEqual([router.id])
  })

  it('receives all that is kept, also if that is more than may wait for a watcher', async () => {
    const { events } = network.world.controller
    const first = await watch('?type=link-up')
    await first.close()
    await expect.poll(() => events.watcherCount).toBe(0)
    const happened = { type: 'link-up', resource: 'links', related: [], details: { text: 'x'.repeat(2_000) } } as const
    for (let n = 0; n < 900; n++) events.add({ ...happened, id: `link ${n}` })
    const second = await watch(`?type=link-up&since=${first.cursor}`)

    await expect.poll(() => second.events.length, { timeout: 10_000 }).toBe(900)
    expect(second.events.map(({ data }) => data.id)).toEqual(Array.from({ length: 900 }, (_, n) => `link ${n}`))
  })

  it('is told about a gap if it was away for long, because nothing is kept without a watcher', async () => {
    const { events } = network.world.controller
    const first = await watch('?type=router-online')
    await first.close()
    await expect.poll(() => events.watcherCount).toBe(0)
    network.world.clock.advance(10 * 60_000)
    events.beat()
    expect(events.isWatched).toBe(false)
    const second = await watch(`?type=router-online&since=${first.cursor}`)

    await expect.poll(() => second.events.map(({ data }) => data)).toEqual([{ type: 'gap', missed: ['network'] }])
  })

  it('is told about a gap if more happened than is kept', async () => {
    const { events } = network.world.controller
    const first = await watch('?type=link-up')
    await first.close()
    const happened = { type: 'link-up', resource: 'links', related: [], details: {} } as const
    for (let n = 0; n < 1_001; n++) events.add({ ...happened, id: `link ${n}` })
    const second = await watch(`?type=link-up&since=${first.cursor}`)

    await expect.poll(() => second.events.map(({ data }) => data)).toEqual([{ type: 'gap', missed: ['network'] }])
  })
})
