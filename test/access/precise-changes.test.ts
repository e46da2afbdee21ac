// Random changes of a small network: the time that a client polls moves just when the list of its services differs.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLIENT, type TestController, testController } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'

const at = fc.nat({ max: 2 })
const names = fc.constantFrom('one', 'two')
const configPlaces = fc.uniqueArray(at, { maxLength: 2 })
const attributes = fc.subarray(['a', 'b'])
const serviceAttributes = fc.subarray(['x', 'y'])
const semantic = fc.constantFrom('AnyOf', 'AllOf')
const MFA_TIMEOUTS = [60, 120, -1]
const DOMAINS = ['a.b', 'c.d']

/** A role, by the place of a record among those of its kind. */
type Role = string | number
const roles = (...named: string[]) =>
  fc.uniqueArray(fc.oneof({ weight: 3, arbitrary: fc.constantFrom<Role>(...named) }, { weight: 1, arbitrary: at }), {
    minLength: 1,
    maxLength: 2,
  })
const identityRoles = roles('#a', '#b', '#all')
const serviceRoles = roles('#x', '#y', '#none', '#all')
const checkRoles = fc.oneof(fc.constant<Role[]>([]), roles('#p'))
const domains = fc.subarray(DOMAINS, { minLength: 1 })

const step = fc.oneof(
  fc.record({ do: fc.constant('make service' as const), roleAttributes: serviceAttributes, configs: configPlaces }),
  fc.record({
    do: fc.constant('change service' as const),
    at,
    body: fc.record({ name: names, roleAttributes: serviceAttributes, maxIdleTimeMillis: at }, { requiredKeys: [] }),
  }),
  fc.record({ do: fc.constant('give configs' as const), at, configs: configPlaces }),
  fc.record({
    do: fc.constant('delete' as const),
    kind: fc.constantFrom('services', 'configs', 'service-policies'),
    at,
  }),
  fc.record({ do: fc.constant('delete' as const), kind: fc.constant('posture-checks'), at }),
  fc.record({ do: fc.constant('make config' as const), at, port: at }),
  fc.record({
    do: fc.constant('change config' as const),
    at,
    body: fc.record({ name: names, data: fc.record({ port: at }) }, { requiredKeys: [] }),
  }),
  fc.record({ do: fc.constant('rename type' as const), at, name: names }),
  fc.record({
    do: fc.constantFrom('override' as const, 'end override' as const),
    who: at,
    service: at,
    config: at,
  }),
  fc.record({ do: fc.constant('change identity' as const), who: at, body: fc.record({ roleAttributes: attributes }) }),
  fc.record({ do: fc.constant('change identity' as const), who: at, body: fc.record({ name: names }) }),
  fc.record({
    do: fc.constant('make policy' as const),
    type: fc.constantFrom('Dial', 'Bind'),
    semantic,
    identityRoles,
    serviceRoles,
    checkRoles,
  }),
  fc.record({
    do: fc.constant('change policy' as const),
    at,
    body: fc.record({ name: names, semantic, identityRoles, serviceRoles, checkRoles }, { requiredKeys: [] }),
  }),
  fc.record({ do: fc.constant('make domain check' as const), domains, roleAttributes: fc.subarray(['p']) }),
  fc.record({ do: fc.constant('make MFA check' as const), timeout: at, promptOnWake: fc.boolean() }),
  fc.record({ do: fc.constant('change domain check' as const), at, domains }),
  fc.record({ do: fc.constant('change MFA check' as const), at, timeout: at }),
  fc.record({ do: fc.constant('report domain' as const), who: at, domain: fc.constantFrom(...DOMAINS) }),
  fc.record({ do: fc.constantFrom('wake' as const, 'pass MFA' as const, 'remove MFA' as const), who: at }),
  fc.record({
    do: fc.constant('let time pass' as const),
    seconds: fc.constantFrom(1, 30, 61, 200),
    isSwept: fc.boolean(),
  }),
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/** Whether the clients poll after a step; otherwise they list alone. */
const isPolledAfter = fc.constantFrom(true, true, true, false)

/** An API session and what it last saw. */
interface Client {
  readonly identityId: string
  readonly apiSessionId: string
  readonly token: string
  seen: { readonly time: number; readonly list: string }
  /** Whether it listed its services since it polled. */
  hasListed: boolean
}

class RandomNetwork {
  readonly #world: TestController
  readonly #manage: Management
  readonly #types: readonly string[]
  readonly clients: Client[] = []
  readonly #ids: Record<string, string[]> = { services: [], configs: [], 'service-policies': [] }
  readonly #checks: Record<'DOMAIN' | 'MFA', string[]> = { DOMAIN: [], MFA: [] }
  #sequence = 0

  private constructor(world: TestController, manage: Management, types: readonly string[]) {
    this.#world = world
    this.#manage = manage
    this.#types = types
  }

  static async create(world: TestController): Promise<RandomNetwork> {
    const manage = await managementOf(world)
    const types = [
      await manage.make('config-types', { name: 'first' }),
      await manage.make('config-types', { name: 'second' }),
    ]
    const network = new RandomNetwork(world, manage, types)
    // Two API sessions of one identity, and another identity.
    const identities = [await world.signIn({ roleAttributes: ['a'] }), await world.signIn({ roleAttributes: ['b'] })]
    for (const { id } of [identities[0], identities[0], identities[1]] as { id: string }[]) {
      network.clients.push({
        ...(await world.signInAgain(id)),
        identityId: id,
        seen: { time: 0, list: '' },
        hasListed: false,
      })
    }
    return network
  }

  /** Lists the services of each client, which does not poll. */
  async list(): Promise<void> {
    for (const client of this.clients) {
      client.seen = { ...client.seen, list: await this.#list(client) }
      client.hasListed = true
    }
  }

  /**
   * Polls as each client, and lists its services. Returns who was told about a change, and whose list differs. A client that listed
   * without polling may be told about what it has seen by then.
   */
  async look(): Promise<{ readonly moved: boolean[]; readonly differs: boolean[] }> {
    const moved: boolean[] = []
    const differs: boolean[] = []
    for (const client of this.clients) {
      const time = Date.parse((await this.#ask(client, '/current-api-session/service-updates')).lastChangeAt)
      const list = await this.#list(client)
      expect(time, 'the time never goes back').toBeGreaterThanOrEqual(client.seen.time)
      const isDifferent = list !== client.seen.list
      moved.push(time !== client.seen.time && (isDifferent || !client.hasListed))
      differs.push(isDifferent)
      client.seen = { time, list }
      client.hasListed = false
    }
    return { moved, differs }
  }

  /** A list may come from the cache; one with a filter is rendered for its request. */
  async #list(client: Client): Promise<string> {
    const path = '/services?limit=500&configTypes=all'
    const list = await this.#ask(client, path)
    expect(JSON.stringify(list), 'the list is what it is if it is rendered').toBe(
      JSON.stringify(await this.#ask(client, `${path}&filter=true`)),
    )
    return this.#normalize(list)
  }

  async #ask({ token }: Client, path: string) {
    return (await this.#world.send({ method: 'GET', path: CLIENT + path, token })).body.data
  }

  /** The list as text, with the end of each timeout in place of the time that is left. */
  #normalize(services: readonly object[]): string {
    return JSON.stringify(services, (member, value) => {
      if (member === 'timeoutRemaining') return undefined
      if (typeof value !== 'object' || value === null || !('timeoutRemaining' in value)) return value
      const { isPassing, timeoutRemaining } = value as { isPassing: boolean; timeoutRemaining: number }
      const endsAt = isPassing ? this.#world.clock.now() + timeoutRemaining * 1_000 : 0
      return { ...value, endsAt: timeoutRemaining === -1 ? -1 : endsAt }
    })
  }

  async run(step: Step): Promise<void> {
    const { clock, controller, system } = this.#world
    const { apiSessions } = controller.auth
    switch (step.do) {
      case 'make service': {
        const { roleAttributes } = step
        return this.#make('services', {
          encryptionRequired: true,
          roleAttributes,
          configs: this.#configs(step.configs),
        })
      }
      case 'change service':
        return this.#change('services', step.at, step.body)
      case 'give configs':
        return this.#change('services', step.at, { configs: this.#configs(step.configs) })
      case 'delete': {
        const list =
          step.kind === 'posture-checks' ? this.#checks[step.at === 0 ? 'MFA' : 'DOMAIN'] : this.#ids[step.kind]
        const id = list?.[step.at]
        if (!list || id === undefined) return
        const { status } = await this.#manage.call('DELETE', `/${step.kind}/${id}`)
        if (status === 200) list.splice(step.at, 1)
        return
      }
      case 'make config':
        return this.#make('configs', { configTypeId: this.#types[step.at % 2], data: { port: step.port } })
      case 'change config':
        return this.#change('configs', step.at, step.body)
      case 'rename type': {
        const name = `${step.name} ${step.at % 2}`
        return void (await this.#manage.call('PATCH', `/config-types/${this.#types[step.at % 2]}`, { name }))
      }
      case 'override':
      case 'end override': {
        const { identityId } = this.#client(step.who)
        const [serviceId, configId] = [this.#ids.services?.[step.service], this.#ids.configs?.[step.config]]
        if (serviceId === undefined || configId === undefined) return
        const method = step.do === 'override' ? 'POST' : 'DELETE'
        return void (await this.#manage.call(method, `/identities/${identityId}/service-configs`, [
          { serviceId, configId },
        ]))
      }
      case 'change identity':
        return void (await this.#manage.call('PATCH', `/identities/${this.#client(step.who).identityId}`, step.body))
      case 'make policy': {
        const { do: _, ...policy } = step
        return this.#make('service-policies', this.#policy(policy))
      }
      case 'change policy':
        return this.#change('service-policies', step.at, this.#policy(step.body))
      case 'make domain check': {
        const { roleAttributes } = step
        return this.#makeCheck('DOMAIN', { domains: step.domains, roleAttributes })
      }
      case 'make MFA check': {
        const { promptOnWake } = step
        return this.#makeCheck('MFA', {
          timeoutSeconds: MFA_TIMEOUTS[step.timeout],
          promptOnWake,
          roleAttributes: ['p'],
        })
      }
      case 'change domain check':
        return this.#changeCheck('DOMAIN', step.at, { domains: step.domains })
      case 'change MFA check':
        return this.#changeCheck('MFA', step.at, { timeoutSeconds: MFA_TIMEOUTS[step.timeout] })
      case 'report domain':
        return this.#report(step.who, { typeId: 'DOMAIN', domain: step.domain })
      case 'wake':
        return this.#report(step.who, { typeId: 'ENDPOINT_STATE', woken: true })
      case 'pass MFA':
        return system.write((tx) => apiSessions.totp.complete(tx, this.#client(step.who).apiSessionId))
      case 'remove MFA':
        return system.write((tx) => apiSessions.totp.reset(tx, this.#client(step.who).identityId))
      case 'let time pass':
        clock.advance(step.seconds * 1_000)
        if (step.isSwept) await controller.posture.deadlines.revokeExpired(controller.contexts)
    }
  }

  #client(who: number): Client {
    return this.clients[who] as Client
  }

  #configs(places: readonly number[]): string[] {
    return [...new Set(places.flatMap((place) => this.#ids.configs?.[place] ?? []))]
  }

  #policy({ checkRoles, ...body }: Record<string, unknown>): Record<string, unknown> {
    const named = (list: unknown, ids: readonly string[]) =>
      (list as readonly Role[]).flatMap((role) => (typeof role === 'string' ? role : ids[role] ? `@${ids[role]}` : []))
    const { identityRoles, serviceRoles } = body
    const people = this.clients.map(({ identityId }) => identityId)
    return {
      ...body,
      ...(identityRoles ? { identityRoles: named(identityRoles, [...new Set(people)]) } : {}),
      ...(serviceRoles ? { serviceRoles: named(serviceRoles, this.#ids.services ?? []) } : {}),
      ...(checkRoles ? { postureCheckRoles: named(checkRoles, Object.values(this.#checks).flat()) } : {}),
    }
  }

  /** Makes a record, unless there are three of its kind. */
  async #make(kind: string, body: object): Promise<void> {
    const list = this.#ids[kind] as string[]
    if (list.length < 3) await this.#create(kind, body, list)
  }

  async #makeCheck(typeId: 'DOMAIN' | 'MFA', body: object): Promise<void> {
    if (this.#checks[typeId].length < 2) await this.#create('posture-checks', { typeId, ...body }, this.#checks[typeId])
  }

  async #create(kind: string, body: object, list: string[]): Promise<void> {
    const { status, body: response } = await this.#manage.call('POST', `/${kind}`, {
      name: `${++this.#sequence}`,
      ...body,
    })
    if (status === 201) list.push(response.data.id)
  }

  async #change(kind: string, place: number, body: Record<string, unknown>): Promise<void> {
    const id = this.#ids[kind]?.[place]
    const named = body.name === undefined ? body : { ...body, name: `${body.name} ${place}` }
    if (id !== undefined) await this.#manage.call('PATCH', `/${kind}/${id}`, named)
  }

  async #changeCheck(typeId: 'DOMAIN' | 'MFA', place: number, body: object): Promise<void> {
    const id = this.#checks[typeId][place]
    if (id !== undefined) await this.#manage.call('PATCH', `/posture-checks/${id}`, { typeId, ...body })
  }

  async #report(who: number, response: object): Promise<void> {
    const body = { id: 'any', ...response }
    const { token } = this.#client(who)
    const { status } = await this.#world.send({ method: 'POST', path: `${CLIENT}/posture-response`, token, body })
    expect(status).toBe(201)
  }
}

/** Every network begins with these steps, so that the first changes are seen already. */
const FIRST_STEPS: readonly Step[] = [
  { do: 'make config', at: 0, port: 0 },
  { do: 'make config', at: 1, port: 0 },
  { do: 'make config', at: 1, port: 1 },
  { do: 'make service', roleAttributes: ['x'], configs: [0] },
  { do: 'make service', roleAttributes: ['x', 'y'], configs: [0, 1] },
  { do: 'make domain check', domains: ['a.b'], roleAttributes: ['p'] },
  { do: 'make MFA check', timeout: 1, promptOnWake: true },
  {
    do: 'make policy',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#a', '#b'],
    serviceRoles: ['#x'],
    checkRoles: ['#p'],
  },
  // Nothing but this carries the third config.
  { do: 'override', who: 0, service: 0, config: 2 },
]

describe('the time of the last change', () => {
  let world: TestController
  let shownChanges = 0

  beforeAll(async () => {
    world = await testController({ settings: { 'session.timeout': '1000h' } })
  })
  afterAll(() => world.close())

  it('moves for a client just when its list of services differs', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(step, isPolledAfter), { minLength: 30, maxLength: 60, size: 'max' }),
        async (steps) => {
          await world.close()
          world = await testController({ settings: { 'session.timeout': '1000h' } })
          const network = await RandomNetwork.create(world)
          for (const each of FIRST_STEPS) await network.run(each)
          await network.look()
          for (const [number, [each, isPolled]] of steps.entries()) {
            await network.run(each)
            if (!isPolled) {
              await network.list()
              continue
            }
            const { moved, differs } = await network.look()
            expect(moved, `after step ${number + 1}, ${JSON.stringify(each)}`).toEqual(differs)
            shownChanges += differs.filter(Boolean).length
          }
        },
      ),
      // Shrinking would repeat hundreds of networks: the message names the step.
      { numRuns: 12, endOnFailure: true },
    )
    // Otherwise the comparisons say nothing.
    expect(shownChanges).toBeGreaterThan(100)
  }, 240_000)
})
