// A router at three controllers that are stopped, killed, cut off from the others and started again at random, while rights change and clients
// dial. After each step its data model is that of every controller, all give the same rights, and no circuit was ended by a
// controller that it does not belong to.
import { expect, it } from 'vitest'
import { FaultSubject } from '../../server/control-channel/messages/control_pb.ts'
import { encodeState } from '../../server/control-channel/model-encoding.ts'
import { readModelState } from '../../src/network/router-model/model-state.ts'
import type { TestController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { type Random, random } from '../world/random.ts'
import type { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { ModelAtAll } from '../world/router/model-at-all.ts'
import { ModelReplica } from '../world/router/model-replica.ts'
import { type TestClient, TestNetwork } from '../world/router/network.ts'
import { letPass, RoutedCluster, waitUntilEqual } from '../world/router/routed-cluster.ts'
import type { RouterAtAll } from '../world/router/router-at-all.ts'
import type { TcpProxy } from '../world/tcp-proxy.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

// A run of its own may try far more, with other seeds.
const ROUNDS = Number(process.env.CONTROLLER_TEST_ROUNDS ?? 6)
// A step takes less than a second, and may wait for the lease of a controller that is gone.
const TIMEOUT_MS = 120_000 + ROUNDS * 10_000
const SEED = Number(process.env.CONTROLLER_TEST_SEED ?? 1)

// Each of the first steps begins with one of these in their order, each later one with any.
const FAILURES = ['cut off', 'kill', 'return', 'return', 'stop'] as const
const ACTIONS_OF_A_STEP = 10
const SOON = { timeout: 30_000, interval: 20 }
const LEASE_MS = 3_000
const SESSION_GRACE_MS = 10_000
const NAMES = ['first', 'second', 'third']
const ATTRIBUTES = ['a', 'b', 'c']

const world = useClusterPerTest(RoutedCluster)

interface Node {
  readonly name: string
  node: TestController
  manage: Management
  proxy: TcpProxy
  state: 'serving' | 'cut off' | 'stopped'
  /** It is opened again on this one, if it was stopped. */
  directory: string
}

interface Person extends Pick<TestClient, 'identityId' | 'apiSessionToken'> {}

interface DialedCircuit {
  readonly owner: string
  readonly identityId: string
  readonly serviceId: string
  /** Whether its right was lost at any time since. */
  isDoomed: boolean
  /** Whether the process that created it has ended. */
  isOrphaned: boolean
}

class Experiment {
  readonly #dice: Random
  readonly #nodes = new Map<string, Node>()
  #router!: RouterAtAll
  readonly #model = new ModelAtAll()
  readonly #serviceIds: string[] = []
  readonly #people: Person[] = []
  readonly #policyIds: string[] = []
  readonly #circuits = new Map<string, DialedCircuit>()
  /** The routes that controllers had the router drop, by the one that did. */
  readonly #dropped: { readonly by: string; readonly circuitId: string; readonly wasOwnerServing: boolean }[] = []
  #highestIndex = 0
  readonly done = new Map<string, number>()

  constructor(seed: number) {
    this.#dice = random(seed)
  }

  async begin(): Promise<void> {
    for (const name of NAMES) await this.#open(name)
    const [first] = this.#serving()
    const network = await TestNetwork.over(first!.node, world.cluster.addresses.get('first')!)
    // The policies that permit everything are replaced by those of the steps.
    for (const { id } of await first!.manage.get('/service-policies'))
      await first!.manage.change('DELETE', `/service-policies/${id}`)
    this.#router = await world.cluster.router(first!.node)
    for (const name of NAMES) await this.#connect(name)
    for (const attribute of ATTRIBUTES) {
      const serviceId = await network.service({ roleAttributes: [attribute] })
      await network.terminator(serviceId, this.#router.at('first'))
      this.#serviceIds.push(serviceId)
      const identity = await first!.node.signIn({ name: newName('client') })
      const body = { roleAttributes: [attribute] }
      await first!.manage.change('PATCH', `/identities/${identity.id}`, body)
      this.#people.push({ identityId: identity.id, apiSessionToken: identity.token })
    }
    await this.validate()
  }

  /** One failure or return, then changes, dials, and reports of routers, in any order. */
  async step(round: number): Promise<void> {
    await this.#run(FAILURES[round] ?? this.#dice.pick(FAILURES))
    for (let count = 0; count < ACTIONS_OF_A_STEP; count += 1)
      await this.#run(this.#dice.pick(['change', 'dial', 'dial', 'dial', 'report', 'fault']))
    await this.validate()
  }

  async #run(action: keyof Experiment['actions']): Promise<void> {
    if (await this.actions[action]()) this.done.set(action, (this.done.get(action) ?? 0) + 1)
  }

  /** By name. Each resolves with whether there was anything to do. */
  readonly actions = {
    change: () => this.#changeRights(),
    dial: () => this.#dial(),
    report: () => this.#report(),
    fault: () => this.#reportFaults(),
    stop: () => this.#stop(),
    kill: () => this.#kill(),
    'cut off': () => this.#cutOff(),
    return: () => this.#bringBack(),
  }

  #serving(): Node[] {
    return [...this.#nodes.values()].filter(({ state }) => state === 'serving')
  }

  #waitUntilEqual(): Promise<void> {
    return waitUntilEqual(...(this.#serving().map(({ node }) => node) as [TestController, ...TestController[]]))
  }

  async #open(name: string, directory?: string): Promise<void> {
    const { node, proxy } = await world.cluster.openBehindProxy(name, directory)
    await waitForContact(node)
    this.#nodes.set(name, {
      name,
      node,
      proxy,
      manage: await managementOf(node),
      state: 'serving',
      directory: node.directory,
    })
  }

  async #connect(name: string): Promise<void> {
    const channel = await this.#router.connect(name, world.cluster.addresses.get(name)!)
    this.#watch(name, channel)
    this.#model.add(channel)
  }

  /** Notes what a controller has the router drop. */
  #watch(by: string, { wire, unroutes }: ForwardingRouter): void {
    const take = wire.takeAtOnce
    wire.takeAtOnce = (message) => {
      const before = unroutes.length
      const isTaken = take(message)
      for (const { circuitId } of unroutes.slice(before)) {
        const owner = this.#nodes.get(this.#circuits.get(circuitId)?.owner ?? '')
        this.#dropped.push({ by, circuitId, wasOwnerServing: owner?.state === 'serving' })
      }
      return isTaken
    }
  }

  async #changeRights(): Promise<boolean> {
    const { manage } = this.#dice.pick(this.#serving())
    const isEnd = this.#policyIds.length > 5 || (this.#policyIds.length > 0 && this.#dice.oneIn(3))
    if (isEnd) {
      const [id] = this.#policyIds.splice(this.#dice.below(this.#policyIds.length), 1)
      await manage.change('DELETE', `/service-policies/${id}`)
    } else {
      const toRoles = () => [this.#dice.pick(['#all', ...ATTRIBUTES.map((one) => `#${one}`)])]
      const values = { name: newName('policy'), type: 'Dial', semantic: 'AnyOf' }
      const body = { ...values, identityRoles: toRoles(), serviceRoles: toRoles() }
      this.#policyIds.push(await manage.make('service-policies', body))
    }
    return true
  }

  async #dial(): Promise<boolean> {
    const { name, node } = this.#dice.pick(this.#serving())
    const person = this.#dice.pick(this.#people)
    const serviceId = this.#dice.pick(this.#serviceIds)
    await this.#waitUntilEqual()
    const isPermitted = this.#permits(node, person.identityId, serviceId)
    const request = { method: 'POST', path: '/edge/client/v1/sessions', token: person.apiSessionToken }
    const { status, body } = await node.send({ ...request, body: { serviceId, type: 'Dial' } })
    expect(status === 201, `a session for a dial that is ${isPermitted ? '' : 'not '}permitted`).toBe(isPermitted)
    if (!isPermitted) return false
    const { apiSessionToken } = person
    const { circuitId, text } = await this.#router.at(name).dial({ token: body.data.token, apiSessionToken })
    expect(circuitId, text).not.toBe('')
    const { identityId } = person
    this.#circuits.set(circuitId, { owner: name, identityId, serviceId, isDoomed: false, isOrphaned: false })
    return true
  }

  /** Tells a controller of circuits that are idle, as routers tell each of all. */
  async #report(): Promise<boolean> {
    const { name } = this.#dice.pick(this.#serving())
    const ids = this.#dice.some([...this.#circuits.keys()].filter((id) => this.#router.tables.has(id)))
    if (ids.length === 0) return false
    this.#router.at(name).reportIdle(Object.fromEntries(ids.map((id) => [id, 1_000])))
    await this.#router.at(name).settle()
    return true
  }

  /** Tells a controller that circuits of others carry no data: it leaves them to these, as long as they run. */
  async #reportFaults(): Promise<boolean> {
    const { name } = this.#dice.pick(this.#serving())
    const isRunning = ({ owner, isOrphaned }: DialedCircuit) =>
      owner !== name && !isOrphaned && this.#nodes.get(owner)?.state === 'serving'
    const ids = [...this.#circuits].flatMap(([id, circuit]) => (isRunning(circuit) ? [id] : []))
    for (const id of this.#dice.some(ids, 5)) this.#router.at(name).sendFault(FaultSubject.ForwardFault, id)
    await this.#router.at(name).settle()
    return ids.length > 0
  }

  #stop(): Promise<boolean> {
    return this.#end(({ node }) => world.cluster.stop(node))
  }

  /** Without a farewell. */
  #kill(): Promise<boolean> {
    return this.#end(async (one) => {
      one.directory = await world.cluster.kill(one.node, one.proxy)
    })
  }

  async #end(end: (one: Node) => Promise<void>): Promise<boolean> {
    const serving = this.#serving()
    if (serving.length < 2) return false
    const one = this.#dice.pick(serving)
    one.state = 'stopped'
    await end(one)
    for (const circuit of this.#circuits.values()) if (circuit.owner === one.name) circuit.isOrphaned = true
    return true
  }

  async #cutOff(): Promise<boolean> {
    const serving = this.#serving()
    if (serving.length < 2) return false
    const one = this.#dice.pick(serving)
    const { closed } = this.#router.at(one.name).wire
    one.state = 'cut off'
    one.proxy.isHolding = true
    one.node.clock.advance(LEASE_MS)
    await closed
    return true
  }

  async #bringBack(): Promise<boolean> {
    const away = [...this.#nodes.values()].filter(({ state }) => state !== 'serving')
    if (away.length === 0) return false
    const one = this.#dice.pick(away)
    if (one.state === 'stopped') await this.#open(one.name, one.directory)
    else {
      one.proxy.isHolding = false
      // Their bytes of that time are lost, so the connections are of no use.
      one.proxy.breakConnections()
      await waitForContact(one.node)
      one.state = 'serving'
    }
    // The others learn at their next contact that it runs; until then they decide about its circuits.
    for (const { node } of this.#serving())
      await expect.poll(() => node.controller.cluster?.listLiveNames().includes(one.name), SOON).toBe(true)
    await this.#connect(one.name)
    return true
  }

  #permits({ controller: { access } }: TestController, identityId: string, serviceId: string): boolean {
    const attribute = ATTRIBUTES[this.#people.findIndex((person) => person.identityId === identityId)]!
    const policies = access.index.findServicePolicies({ id: identityId, attributes: [attribute] })
    return access.index.filterGrantingService(policies, serviceId).some(({ type }) => type === 'Dial')
  }

  async validate(): Promise<void> {
    await this.#waitUntilEqual()
    const serving = this.#serving()
    await this.#validateModel(serving)
    this.#validateRights(serving)
    this.#validateCircuits()
  }

  async #validateModel(serving: readonly Node[]): Promise<void> {
    const { replica } = this.#model
    for (const { node } of serving) {
      const { index } = node.controller.routers.model
      expect(index).toBeGreaterThanOrEqual(this.#highestIndex)
      this.#highestIndex = index
      await expect.poll(() => replica.index, SOON).toBe(index)
      const whole = new ModelReplica()
      whole.takeState(Buffer.concat(await encodeState(await readModelState(node.controller.store, index))))
      expect(replica.timeline).toBe(whole.timeline)
      expect(replica.contents()).toEqual({ ...whole.contents(), publicKey: replica.contents().publicKey })
    }
    expect(replica.faults).toEqual([])
  }

  #validateRights(serving: readonly Node[]): void {
    for (const { identityId } of this.#people)
      for (const serviceId of this.#serviceIds) {
        const isPermitted = this.#model.replica.permits(identityId, serviceId, 'DialPolicy')
        for (const { node } of serving) expect(this.#permits(node, identityId, serviceId)).toBe(isPermitted)
        if (isPermitted) continue
        for (const circuit of this.#circuits.values())
          if (circuit.identityId === identityId && circuit.serviceId === serviceId) circuit.isDoomed = true
      }
  }

  #validateCircuits(): void {
    for (const { by, circuitId, wasOwnerServing } of this.#dropped) {
      const { owner, isDoomed, isOrphaned } = this.#circuits.get(circuitId)!
      if (wasOwnerServing && !isOrphaned) expect(by, `a circuit of ${owner} that serves`).toBe(owner)
      expect(isDoomed, `the circuit ${circuitId} of ${owner} was ended by ${by}`).toBe(true)
    }
    for (const [circuitId, { isDoomed }] of this.#circuits)
      if (!isDoomed) expect(this.#router.tables.has(circuitId)).toBe(true)
  }

  /** Brings all back: each ends the circuits that it created and whose right is lost, and no others. */
  async end(): Promise<void> {
    while (this.#serving().length < NAMES.length) await this.#bringBack()
    await this.validate()
    for (const { node } of this.#serving()) {
      await letPass(node, SESSION_GRACE_MS)
      node.controller.fabric.tick()
    }
    const due = [...this.#circuits].filter(([, { isDoomed, isOrphaned }]) => isDoomed && !isOrphaned)
    for (const [circuitId] of due) await expect.poll(() => this.#router.tables.has(circuitId), SOON).toBe(false)
    this.#validateCircuits()
  }

  get circuitCount(): number {
    return this.#circuits.size
  }
}

const waitForContact = ({ controller }: TestController) =>
  expect.poll(() => controller.cluster?.lease.isHeld, SOON).toBe(true)

it('a router has the same model and rights at every controller, and keeps the circuits of each', {
  timeout: TIMEOUT_MS,
}, async () => {
  allowFaults(/log of the cluster|duty|contact|routers are (connected|away)|could not be told/)
  const experiment = new Experiment(SEED)
  await experiment.begin()
  for (let round = 0; round < ROUNDS; round += 1) await experiment.step(round)
  await experiment.end()
  expect(experiment.circuitCount).toBeGreaterThan(0)
  expect([...experiment.done.keys()].sort()).toEqual(Object.keys(experiment.actions).sort())
})
