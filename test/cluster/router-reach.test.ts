// Routers that some controllers of a cluster do not reach: dials, advice, the doctor and lists name the controllers that do.
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { MANAGEMENT, type TestController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { letPass, RoutedCluster, waitUntilAt, waitUntilEqual } from '../world/router/routed-cluster.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const SOON = { timeout: 30_000, interval: 20 }
const LEASE_MS = 3_000
const REMOVED_AFTER_MS = 20_000
const world = useClusterPerTest(RoutedCluster)

interface Link {
  readonly link: string
  readonly outcome: string
  readonly message: string
  readonly warning?: string
  readonly hint?: string
}

interface Node {
  readonly name: string
  readonly routerNames: readonly string[]
}

async function advise({ send, admin }: TestController, identityId: string, serviceId: string): Promise<Link> {
  const path = `${MANAGEMENT}/controller/policy/advise/${identityId}/${serviceId}?type=Dial`
  const { body } = await send({ method: 'GET', path, token: await admin() })
  return body.data.links.find(({ link }: Link) => link === 'terminator')
}

async function diagnose({ send, admin }: TestController): Promise<{ subject: string; message: string }[]> {
  const { body } = await send({ method: 'GET', path: `${MANAGEMENT}/controller/doctor`, token: await admin() })
  return body.data.diagnoses.filter(({ check }: { check: string }) => check === 'router connections')
}

describe('a dial', () => {
  it('names the controller that has the router of the only host', async () => {
    const [first, second] = await world.cluster.openBoth()
    const atBoth = await world.cluster.router(first, 'first', 'second')
    const hosting = await world.cluster.router(first, 'first')
    const { network, serviceId } = await world.cluster.host(first, hosting)
    await waitUntilEqual(first, second)
    await expect.poll(() => second.controller.routers.presence?.listNodesOf(hosting.id), SOON).toEqual(['first'])
    const refused = await atBoth.at('second').dial(await network.client(serviceId))
    expect(refused.text).toContain('its routers are connected to the controller first, and not to this one')
  })

  it('names the controller that has a router over which a path may lead', async () => {
    const [first, second] = await world.cluster.openBoth()
    const [client, hosting] = [
      await world.cluster.router(first, 'first', 'second'),
      await world.cluster.router(first, 'first', 'second'),
    ]
    // Both have a link to it, and not to each other.
    const between = await world.cluster.router(first, 'first')
    const { network, serviceId } = await world.cluster.host(first, hosting)
    network.link(client.at('first'), between.at('first'))
    network.link(between.at('first'), hosting.at('first'))
    await waitUntilEqual(first, second)
    await expect.poll(() => second.controller.routers.presence?.listNodesOf(between.id), SOON).toEqual(['first'])
    const refused = await client.at('second').dial(await network.client(serviceId))
    expect(refused.text).toContain('no path leads to a terminator')
    expect(refused.text).toContain('connected to the controller first, and not to this one')
    expect((await client.at('first').dial(await network.client(serviceId))).circuitId).not.toBe('')
  })
})

describe('advice on a dial', () => {
  it('warns of the controllers whose dials fail, because they do not reach the router of the host', async () => {
    const [first, second] = await world.cluster.openBoth()
    const atBoth = await world.cluster.router(first, 'first', 'second')
    const hosting = await world.cluster.router(first, 'first')
    const { network, serviceId } = await world.cluster.host(first, hosting)
    const { identityId } = await network.client(serviceId)
    await waitUntilAt(atBoth, first, second)
    await waitUntilEqual(first, second)
    for (const node of [first, second]) {
      await expect.poll(() => node.controller.routers.presence?.listNodesOf(hosting.id), SOON).toEqual(['first'])
      const { outcome, warning, hint } = await advise(node, identityId, serviceId)
      expect(outcome).toBe('passed')
      expect(warning).toContain(
        `a dial that second decides fails, because ${hosting.enrolled.name} is connected to first`,
      )
      expect(hint).toContain('controller router list')
    }
    await hosting.connect('second', world.cluster.addresses.get('second')!)
    await waitUntilAt(hosting, first, second)
    expect(await advise(second, identityId, serviceId)).not.toHaveProperty('warning')
  })

  it('denies it if no controller has both a router of the client and one of the host', async () => {
    const [first, second] = await world.cluster.openBoth()
    const client = await world.cluster.router(first, 'second')
    const hosting = await world.cluster.router(first, 'first')
    const { network, serviceId } = await world.cluster.host(first, hosting)
    // The client uses one router, and the host another one.
    const { identityId } = await network.client(serviceId)
    const policies = await network.manage.get('/edge-router-policies')
    for (const { id } of policies) await network.manage.change('DELETE', `/edge-router-policies/${id}`)
    await network.manage.make('edge-router-policies', {
      ...{ name: 'clients', semantic: 'AnyOf', identityRoles: ['#all'] },
      edgeRouterRoles: [`@${client.id}`],
    })
    await waitUntilEqual(first, second)
    await expect.poll(() => first.controller.routers.presence?.listNodesOf(client.id), SOON).toEqual(['second'])
    const { outcome, message } = await advise(first, identityId, serviceId)
    expect(outcome).toBe('failed')
    expect(message).toContain('no controller has both')
    expect(message).toContain(`${client.enrolled.name} is connected to second`)
    expect(message).toContain(`${hosting.enrolled.name} is connected to first`)
  })
})

/** Two controllers, with a router at both and one at the first alone, of which both know. */
async function openWithRouters() {
  const [first, second] = await world.cluster.openBoth()
  const atBoth = await world.cluster.router(first, 'first', 'second')
  const atOne = await world.cluster.router(first, 'first')
  await waitUntilAt(atBoth, first, second)
  await waitUntilEqual(first, second)
  for (const node of [first, second])
    await expect.poll(() => node.controller.routers.presence?.listNodesOf(atOne.id), SOON).toEqual(['first'])
  return { first, second, atBoth, atOne }
}

it('the doctor names routers that do not reach a controller which runs, and no others', async () => {
  const { first, second, atOne } = await openWithRouters()
  for (const node of [first, second]) {
    const [diagnosis, ...others] = await diagnose(node)
    expect(others).toEqual([])
    expect(diagnosis?.subject).toBe(`edge-router ${atOne.enrolled.name}`)
    expect(diagnosis?.message).toContain('it is connected to first, and not to second')
  }
  await world.cluster.stop(second)
  await expect.poll(() => diagnose(first), SOON).toEqual([])
})

it('the list of controllers names the routers of each', async () => {
  const { first, second, atBoth, atOne } = await openWithRouters()
  for (const node of [first, second]) {
    const path = `${MANAGEMENT}/controller/nodes`
    const { body } = await node.send({ method: 'GET', path, token: await node.admin() })
    expect(body.data.map(({ name, routerNames }: Node) => [name, routerNames])).toEqual([
      ['first', [atBoth.enrolled.name, atOne.enrolled.name].sort()],
      ['second', [atBoth.enrolled.name]],
    ])
  }
})

describe('a controller that the others have lost', () => {
  it('is known again once it is back, though nothing has changed at it', { timeout: 60_000 }, async () => {
    allowFaults(/contact|duty|log of the cluster|routers are connected/)
    const first = await world.cluster.open('first')
    await expect.poll(() => first.controller.routers.presence?.isHere, SOON).toBe(true)
    const { node: second, proxy } = await world.cluster.openBehindProxy('second')
    await waitUntilEqual(first, second)
    const { id } = await enrolledRouter(first)
    const { presence } = first.controller.routers
    await expect.poll(() => presence?.getPresence(id), SOON).toBe('offline')
    const isKnown = () => presence!.isComplete && first.controller.cluster!.listLiveNames().includes('second')
    await expect.poll(isKnown, SOON).toBe(true)
    const loss = new Promise<void>((resolve) => presence?.addObserver({ nodeLost: () => resolve() }))
    proxy.isHolding = true
    second.clock.advance(LEASE_MS)
    await loss
    await letPass(first, REMOVED_AFTER_MS)
    // It looks through the other controllers ten times a second.
    await setTimeout(300)
    proxy.isHolding = false
    proxy.breakConnections()
    await expect.poll(() => first.controller.cluster!.listLiveNames(), SOON).toContain('second')
    await expect.poll(isKnown, SOON).toBe(true)
    expect(presence?.getPresence(id)).toBe('offline')
  })
})
