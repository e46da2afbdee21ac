// A controller with routers, a service, a host and clients that may dial it.
import { terminators } from '../../../src/definitions/resources/terminators.ts'
import { newEntity } from '../../../src/storage/entities/entities.ts'
import { CLIENT, type TestController, type TestOptions, testController } from '../controller.ts'
import { type Management, managementOf } from '../management.ts'
import { newName } from '../names.ts'
import { type EnrolledRouter, enrolledRouter } from './enrolled-router.ts'
import { type ClientTokens, ForwardingRouter } from './forwarding-router.ts'

export interface TestClient extends ClientTokens {
  readonly identityId: string
  readonly sessionId: string
}

const LISTENERS = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]

export class TestNetwork {
  world: TestController
  manage: Management
  readonly #routers: ForwardingRouter[] = []
  readonly #enrolled = new Map<string, EnrolledRouter>()
  #address: { url: string; rootPem: string }

  private constructor(world: TestController, manage: Management, address: { url: string; rootPem: string }) {
    this.world = world
    this.manage = manage
    this.#address = address
  }

  /** Starts a controller whose policies permit everything. */
  static async start(options: TestOptions = {}): Promise<TestNetwork> {
    const world = await testController({ ...options, settings: { listeners: LISTENERS, ...options.settings } })
    return TestNetwork.over(world, await world.listen())
  }

  /** Over a controller that listens, and the address at which it takes routers. */
  static async over(world: TestController, address: { url: string; rootPem: string }): Promise<TestNetwork> {
    await world.controller.membership.announce(world.system, {})
    const manage = await managementOf(world)
    const network = new TestNetwork(world, manage, address)
    const all = { semantic: 'AnyOf' }
    const [identityRoles, serviceRoles, edgeRouterRoles] = [['#all'], ['#all'], ['#all']]
    await manage.make('service-policies', { ...all, name: newName('dial'), type: 'Dial', identityRoles, serviceRoles })
    await manage.make('edge-router-policies', { ...all, name: newName('policy'), identityRoles, edgeRouterRoles })
    const servicePolicy = { ...all, name: newName('policy'), serviceRoles, edgeRouterRoles }
    await manage.make('service-edge-router-policies', servicePolicy)
    return network
  }

  get fabric() {
    return this.world.controller.fabric
  }

  get address(): { url: string; rootPem: string } {
    return this.#address
  }

  async router(release: 1 | 2 = 1): Promise<ForwardingRouter> {
    const enrolled = await enrolledRouter(this.world, { name: newName('router') })
    const router = await ForwardingRouter.connect(this.#address, enrolled, undefined, release)
    this.#routers.push(router)
    this.#enrolled.set(router.id, enrolled)
    return router
  }

  /** Connects a router again: the same process, or without `earlier` a new one. */
  async reconnect(id: string, earlier?: ForwardingRouter, release: 1 | 2 = 1): Promise<ForwardingRouter> {
    const router = await ForwardingRouter.connect(this.#address, this.#enrolled.get(id)!, earlier, release)
    this.#routers.push(router)
    return router
  }

  /**
   * Replaces the process of the controller by another one, on the same data. Routers lose their connections.
   * @param meanwhile runs while there is no process
   */
  async restart(meanwhile?: () => Promise<unknown>): Promise<void> {
    const { directory, clock } = this.world
    await this.world.stop()
    await meanwhile?.()
    clock.advance(5_000)
    this.world = await testController({ directory, clock, settings: { listeners: LISTENERS } })
    await this.world.controller.membership.announce(this.world.system, {})
    this.manage = await managementOf(this.world)
    this.#address = await this.world.listen()
  }

  /**
   * Has a router report a link to another one, which both measure. Paths use it when this returns. Returns its id.
   * @param latencyMs as each end measures it
   */
  link(from: ForwardingRouter, to: ForwardingRouter, latencyMs = 1): string {
    const { links } = this.fabric
    const id = newName('link')
    const reporter = this.world.controller.routers.connected.get(from.id)
    if (!reporter) throw new Error('the router is not connected')
    const report = { destinationId: to.id, protocol: 'tls', dialAddress: `tls:${id}:6000`, iteration: 1 }
    links.report(reporter, [{ id, ...report }])
    for (const router of [from, to]) links.recordLatency(router.id, id, latencyMs * 1_000_000)
    this.world.clock.advance(1_000)
    return id
  }

  service(values: Record<string, unknown> = {}): Promise<string> {
    return this.manage.make('services', { name: newName('service'), encryptionRequired: false, ...values })
  }

  /** Stores a terminator as the router of a host does. */
  async terminator(serviceId: string, router: ForwardingRouter, values: Record<string, unknown> = {}): Promise<string> {
    const { id: hostId } = await this.world.signIn({ name: newName('host') })
    const { controller, system } = this.world
    return system.write(async (tx) => {
      const address = newName('address')
      const defaults = { binding: 'edge', address, hostId, isSystem: true, peerData: {} }
      const record = newEntity(tx, terminators, { ...defaults, serviceId, routerId: router.id, ...values })
      return (await controller.entities.insert(tx, terminators, record, { audit: 'none' })).id
    })
  }

  /** A new identity with a session for the service. */
  async client(serviceId: string, type = 'Dial'): Promise<TestClient> {
    const { id: identityId, token: apiSessionToken } = await this.world.signIn({ name: newName('client') })
    const request = { method: 'POST', path: `${CLIENT}/sessions`, token: apiSessionToken, body: { serviceId, type } }
    const { body } = await this.world.send(request)
    if (body.error) throw new Error(JSON.stringify(body.error))
    return { identityId, sessionId: body.data.id, token: body.data.token, apiSessionToken }
  }

  /** Lets time pass, and the controller do what is due. */
  advance(milliseconds: number): void {
    this.world.clock.advance(milliseconds)
    this.fabric.tick()
  }

  async close(): Promise<void> {
    await Promise.all(this.#routers.splice(0).map(({ wire }) => wire.close()))
    await this.world.close()
  }
}
