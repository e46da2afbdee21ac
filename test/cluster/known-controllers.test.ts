// The controllers of a cluster as clients and tokens of enrollment know them: their addresses, and whether they run.
import { decodeJwt } from 'jose'
import { describe, expect, it } from 'vitest'
import { listApiPaths } from '../../server/api/mount-points.ts'
import { TestCluster } from '../world/cluster.ts'
import { CLIENT, MANAGEMENT, type TestController } from '../world/controller.ts'
import { newName } from '../world/names.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const SOON = { timeout: 30_000, interval: 20 }
const SERVED = { address: '127.0.0.1:0', apis: ['client', 'management', 'fabric', 'oidc', 'control'] }
const world = useClusterPerTest(TestCluster)

/** A controller that clients reach by a name of all, and one of its own, and routers by that one. */
async function open(name: string, settings: Record<string, unknown> = {}): Promise<TestController> {
  const own = `${name}.example:1280`
  const node = await world.cluster.open(name, {
    settings: { listeners: [SERVED], advertise: ['all.example:1280', own], 'control.advertise': own, ...settings },
  })
  await node.controller.membership.announce(node.system, listApiPaths(node.controller.config))
  return node
}

async function openBoth(settings: Record<string, unknown> = {}): Promise<[TestController, TestController]> {
  const nodes: [TestController, TestController] = [await open('first', settings), await open('second', settings)]
  await waitUntilEqual(...nodes)
  return nodes
}

const waitUntilEqual = (one: TestController, other: TestController) =>
  expect.poll(() => one.controller.store.position === other.controller.store.position, SOON).toBe(true)

async function readControllers({ send, admin }: TestController, base: string) {
  return (await send({ method: 'GET', path: `${base}/controllers`, token: await admin() })).body.data
}

/** A new identity that is to enroll. Returns what reads the addresses of controllers in its token. */
async function addIdentity({ send, admin }: TestController): Promise<() => Promise<unknown>> {
  const body = { name: newName('identity'), type: 'User', isAdmin: false, enrollment: { ott: true } }
  const token = await admin()
  const created = await send({ method: 'POST', path: `${MANAGEMENT}/identities`, token, body })
  const path = `${MANAGEMENT}/identities/${created.body.data.id}`
  return async () => decodeJwt((await send({ method: 'GET', path, token })).body.data.enrollment.ott.jwt).ctrls
}

/** The same of a router. */
async function addRouter({ send, admin }: TestController): Promise<() => Promise<unknown>> {
  const token = await admin()
  const body = { name: newName('router') }
  const created = await send({ method: 'POST', path: `${MANAGEMENT}/edge-routers`, token, body })
  const path = `${MANAGEMENT}/edge-routers/${created.body.data.id}`
  return async () => decodeJwt((await send({ method: 'GET', path, token })).body.data.enrollmentJwt).ctrls
}

describe('the list of controllers', () => {
  it('has the addresses of each, of which the first leads to no other one', async () => {
    const [first, second] = await openBoth()
    const toAddresses = (name: string, path: string) =>
      [`${name}.example`, 'all.example'].map((host) => ({ url: `https://${host}:1280${path}`, version: 'v1' }))
    for (const node of [first, second]) {
      const records = await readControllers(node, CLIENT)
      expect(records.map(({ name }: { name: string }) => name)).toEqual(['first', 'second'])
      for (const { name, apiAddresses } of records)
        expect(apiAddresses).toEqual({
          'edge-client': toAddresses(name, CLIENT),
          'edge-oidc': toAddresses(name, '/oidc'),
        })
      for (const { name, ctrlAddress, apiAddresses } of await readControllers(node, MANAGEMENT)) {
        expect(ctrlAddress).toBe(`tls:${name}.example:1280`)
        expect(apiAddresses['edge-management']).toEqual(toAddresses(name, MANAGEMENT))
        expect(apiAddresses.fabric).toEqual(toAddresses(name, '/fabric/v1'))
      }
    }
  })

  it('says which of them run', async () => {
    const [first, second] = await openBoth()
    const readOnline = async () =>
      (await readControllers(first, CLIENT)).map(({ isOnline }: { isOnline: boolean }) => isOnline)
    await expect.poll(readOnline, SOON).toEqual([true, true])
    await world.cluster.stop(second)
    await expect.poll(readOnline, SOON).toEqual([true, false])
  })

  it('has no address for OpenID Connect while that is not announced', async () => {
    const [first] = await openBoth({ 'oidc.announce': 'never' })
    for (const { apiAddresses } of await readControllers(first, CLIENT))
      expect(Object.keys(apiAddresses)).toEqual(['edge-client'])
  })
})

describe('the token of a new identity', () => {
  it('names all controllers, and that of a router the name by which it finds the network', async () => {
    const shared = {
      listeners: [SERVED, { address: '127.0.0.1:0', apis: ['control'], shared: true }],
      'control.shared': 'routers.example:6262',
    }
    const [first] = await openBoth(shared)
    const [readOfIdentity, readOfRouter] = [await addIdentity(first), await addRouter(first)]
    expect(await readOfIdentity()).toEqual(['tls:first.example:1280', 'tls:second.example:1280'])
    expect(await readOfRouter()).toEqual(['tls:routers.example:6262'])
    const third = await open('third', shared)
    await waitUntilEqual(first, third)
    expect(await readOfIdentity()).toHaveLength(3)
  })

  it('names one controller while OpenID Connect is not announced', async () => {
    const [first] = await openBoth({ 'oidc.announce': 'never' })
    expect(await (await addIdentity(first))()).toEqual(['tls:first.example:1280'])
  })

  it('names one from the moment at which a router of release 1 keeps OpenID Connect from being announced', async () => {
    const [first] = await openBoth()
    const readOfIdentity = await addIdentity(first)
    expect(await readOfIdentity()).toHaveLength(2)
    const { id } = await enrolledRouter(first)
    const release = { version: 'v1.6.5', revision: 'abc', buildDate: '2026-01-01', os: 'linux', arch: 'amd64' }
    await first.controller.routers.provisioner.storeVersion(first.system, id, release)
    expect(await readOfIdentity()).toEqual(['tls:first.example:1280'])
  })
})
