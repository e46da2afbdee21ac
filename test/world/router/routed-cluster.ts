// Controllers of a cluster that routers reach at an address of each, and at one that leads to all, with simulated routers at them.
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { expect } from 'vitest'
import { TestCluster } from '../cluster.ts'
import type { TestController } from '../controller.ts'
import { findFreePort } from '../free-port.ts'
import { newName } from '../names.ts'
import type { TestPostgres } from '../postgres.ts'
import { TcpProxy } from '../tcp-proxy.ts'
import { enrolledRouter } from './enrolled-router.ts'
import { TestNetwork } from './network.ts'
import { type ControlAddress, RouterAtAll } from './router-at-all.ts'

const SOON = { timeout: 30_000, interval: 20 }

export class RoutedCluster {
  readonly cluster: TestCluster
  /** The port of the address that leads to all. */
  readonly shared: number
  /** By the names of controllers: where routers reach each. */
  readonly addresses = new Map<string, ControlAddress>()
  readonly #routers: RouterAtAll[] = []
  readonly #proxies: TcpProxy[] = []

  private constructor(cluster: TestCluster, shared: number) {
    this.cluster = cluster
    this.shared = shared
  }

  static async create(server: TestPostgres): Promise<RoutedCluster> {
    return new RoutedCluster(await TestCluster.create(server), await findFreePort())
  }

  /** Opens a controller that routers reach, on a directory of its own or that of one that was stopped. */
  async open(name: string, others: Record<string, unknown> = {}, directory?: string): Promise<TestController> {
    const own = this.addresses.get(name)?.url.replace('https://', '') ?? `127.0.0.1:${await findFreePort()}`
    const listeners = [
      { address: '127.0.0.1:0', apis: ['client', 'management', 'fabric'] },
      { address: own, apis: ['control'] },
      { address: `127.0.0.1:${this.shared}`, apis: ['control'], shared: true },
    ]
    const settings = { listeners, 'control.advertise': own, 'control.shared': `127.0.0.1:${this.shared}`, ...others }
    const node = await this.cluster.open(name, { settings, ...(directory === undefined ? {} : { directory }) })
    const { rootPem } = await node.listen()
    await node.controller.membership.announce(node.system, {})
    this.addresses.set(name, { url: `https://${own}`, rootPem })
    return node
  }

  /** The same, with a proxy before the database. */
  async openBehindProxy(name: string, directory?: string): Promise<{ node: TestController; proxy: TcpProxy }> {
    const { proxy, url } = await TcpProxy.before(this.cluster.url)
    this.#proxies.push(proxy)
    return { node: await this.open(name, { 'cluster.database': url }, directory), proxy }
  }

  /** Opens two controllers; the first one leads. */
  async openBoth(): Promise<[TestController, TestController]> {
    const first = await this.open('first')
    await expect.poll(() => first.controller.routers.presence?.isHere, SOON).toBe(true)
    const second = await this.open('second')
    await waitUntilEqual(first, second)
    return [first, second]
  }

  /** Enrolls a router of release 2, and connects it to controllers. */
  async router(world: TestController, ...names: string[]): Promise<RouterAtAll> {
    const router = new RouterAtAll(await enrolledRouter(world, { name: newName('router') }))
    this.#routers.push(router)
    for (const name of names) await router.connect(name, this.addresses.get(name)!)
    return router
  }

  /** A service with a host at the router, which the controller `first` knows of. */
  async host(world: TestController, router: RouterAtAll): Promise<{ network: TestNetwork; serviceId: string }> {
    const network = await TestNetwork.over(world, this.addresses.get('first')!)
    const serviceId = await network.service()
    await network.terminator(serviceId, router.at('first'))
    return { network, serviceId }
  }

  /** Stops a controller, and keeps its directory. */
  async stop(node: TestController): Promise<void> {
    await this.cluster.stop(node)
  }

  /**
   * Ends a controller as if its process was killed: what it does from this moment on reaches neither its directory nor the others.
   * Returns the directory as it was left.
   */
  async kill(node: TestController, proxy: TcpProxy): Promise<string> {
    const left = `${node.directory}-${randomUUID()}`
    // By a process of its own, because SQLite's locks on a file end when this process closes the file.
    execFileSync('cp', ['-a', node.directory, left])
    proxy.close()
    // It cannot commit any more what it would write at its end.
    await this.cluster.stop(node).catch(() => undefined)
    rmSync(node.directory, { recursive: true, force: true })
    return left
  }

  async close(): Promise<void> {
    await Promise.all(this.#routers.map((router) => router.close()))
    await this.cluster.close()
    for (const proxy of this.#proxies) proxy.close()
  }
}

/** Waits until the controllers have the same commits. */
export async function waitUntilEqual(first: TestController, ...others: readonly TestController[]): Promise<void> {
  const positions = () => others.map(({ controller }) => controller.store.position)
  await expect.poll(() => positions().every((one) => one === first.controller.store.position), SOON).toBe(true)
}

/**
 * Lets time pass at a controller, at once, while it proves no contact with the log: a proof that began before would be older than the lease
 * at its end, and routers lose their connections to a controller without one.
 */
export async function letPass({ clock, controller }: TestController, ms: number): Promise<void> {
  const { lease } = controller.cluster!
  if (ms < lease.durationMs) {
    clock.advance(ms)
    return
  }
  clock.advance(1)
  // The next proof begins a third of the lease after this one, by the time of the machine.
  await expect.poll(() => lease.silentMs, SOON).toBe(0)
  clock.advance(ms - 1)
}

/** Waits until the controllers know of each other that they have a router. */
export async function waitUntilAt(router: RouterAtAll, ...nodes: readonly TestController[]): Promise<void> {
  const names = nodes.map(({ controller }) => controller.cluster?.name)
  for (const { controller } of nodes)
    await expect.poll(() => controller.routers.presence?.listNodesOf(router.id), SOON).toEqual(names)
}
