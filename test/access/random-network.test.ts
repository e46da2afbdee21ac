// Random networks under random changes, reports of machines and ticks of the clock, on a real store: the kept index against one
// built anew, both against plain loops over the rows, and the sessions that live against the rights that are left.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Access } from '../../src/access/access.ts'
import { advise } from '../../src/access/advice/advise.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { edgeRouterPolicies } from '../../src/definitions/resources/edge-router-policies.ts'
import { edgeRouters } from '../../src/definitions/resources/edge-routers.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { postureChecks } from '../../src/definitions/resources/posture-checks.ts'
import { serviceEdgeRouterPolicies } from '../../src/definitions/resources/service-edge-router-policies.ts'
import { servicePolicies } from '../../src/definitions/resources/service-policies.ts'
import { services } from '../../src/definitions/resources/services.ts'
import { sessions } from '../../src/definitions/resources/sessions.ts'
import type { PolicyType } from '../../src/policy/policy-index.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { toRecordChange } from '../../src/storage/transactions/changes.ts'
import { untyped } from '../../src/storage/untyped.ts'
import { MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { random } from '../world/random.ts'

const ATTRIBUTES = ['a', 'b', 'c', 'd']
const TYPES: readonly PolicyType[] = ['Dial', 'Bind']
const DOMAINS = ['a.b', 'c.d']
const ADDRESSES = ['aa', 'bb', 'cc']

/** The least numbers that each network must have shown; `lostByReport` and `lostByTime` count sessions. */
const FLOORS = { gained: 20, lost: 10, kept: 100, revokedSessions: 10, lostByReport: 2, lostByTime: 2 }
// Posture checks keep many sessions from being opened, so that few of them are there to be revoked after each change.
const ROUNDS = 150

/** A record as its rows say, without any index. */
interface Plain {
  readonly id: string
  readonly attributes: readonly string[]
}

interface PlainCheck extends Plain {
  readonly typeId: string
  readonly details: {
    readonly domains?: readonly string[]
    readonly macAddresses?: readonly string[]
    readonly timeoutSeconds?: number
    readonly promptOnWake?: boolean
  }
}

/** The last report of the machines of an identity. */
interface PlainMachine {
  domain?: string
  macAddresses?: readonly string[]
  /** By posture check: whether its process runs. */
  readonly processes: Map<string, boolean>
}

interface PlainApiSession {
  readonly id: string
  readonly identityId: string
  readonly mfaPassedAt: number | null
  readonly wokenAt: number | null
}

interface PlainPolicy {
  readonly semantic: string
  readonly type?: string
  readonly subjectRoles: readonly string[]
  readonly objectRoles: readonly string[]
  /** Of service policies: the posture checks that must pass. */
  readonly checkRoles?: readonly string[]
}

function isMatched(semantic: string, roles: readonly string[], { id, attributes }: Plain): boolean {
  for (const role of roles) if (role === '#all' || role === `@${id}`) return true
  let roleCount = 0
  let matchCount = 0
  for (const role of roles) {
    if (!role.startsWith('#')) continue
    roleCount += 1
    for (const attribute of attributes) if (role === `#${attribute}`) matchCount += 1
  }
  return semantic === 'AllOf' ? roleCount > 0 && matchCount === roleCount : matchCount > 0
}

type PlainPolicies = Readonly<Record<'service' | 'router' | 'serviceRouter', readonly PlainPolicy[]>>

/** The network as the rows of the store describe it, read anew each time. */
class PlainNetwork {
  readonly identities: readonly Plain[]
  readonly services: readonly Plain[]
  readonly routers: readonly Plain[]
  readonly apiSessions: readonly PlainApiSession[]
  readonly #checks: readonly PlainCheck[]
  readonly #policies: PlainPolicies
  readonly #machines: ReadonlyMap<string, PlainMachine>
  readonly #now: number

  private constructor(
    records: readonly [readonly Plain[], readonly Plain[], readonly Plain[], readonly PlainCheck[]],
    policies: PlainPolicies,
    posture: {
      readonly apiSessions: readonly PlainApiSession[]
      readonly machines: ReadonlyMap<string, PlainMachine>
      readonly now: number
    },
  ) {
    ;[this.identities, this.services, this.routers, this.#checks] = records
    this.#policies = policies
    this.apiSessions = posture.apiSessions
    this.#machines = posture.machines
    this.#now = posture.now
  }

  static async read(
    { controller: { store }, clock }: TestController,
    machines: ReadonlyMap<string, PlainMachine>,
  ): Promise<PlainNetwork> {
    const { db } = store
    const list = (text: string) => JSON.parse(text) as string[]
    const plain = (rows: readonly { id: string; roleAttributes: string }[]) =>
      rows.map(({ id, roleAttributes }) => ({ id, attributes: list(roleAttributes) }))
    const columns = ['id', 'roleAttributes'] as const
    const service = await db.selectFrom('service_policies').selectAll().execute()
    const router = await db.selectFrom('edge_router_policies').selectAll().execute()
    const serviceRouter = await db.selectFrom('service_edge_router_policies').selectAll().execute()
    return new PlainNetwork(
      [
        plain(await db.selectFrom('identities').select(columns).execute()),
        plain(await db.selectFrom('services').select(columns).execute()),
        plain(await db.selectFrom('routers').select(columns).where('isEdge', '=', 1).execute()),
        await readChecks(db),
      ],
      {
        service: service.map(({ semantic, type, identityRoles, serviceRoles, postureCheckRoles }) => ({
          semantic,
          type,
          subjectRoles: list(identityRoles),
          objectRoles: list(serviceRoles),
          checkRoles: list(postureCheckRoles),
        })),
        router: router.map(({ semantic, identityRoles, edgeRouterRoles }) => ({
          semantic,
          subjectRoles: list(identityRoles),
          objectRoles: list(edgeRouterRoles),
        })),
        serviceRouter: serviceRouter.map(({ semantic, serviceRoles, edgeRouterRoles }) => ({
          semantic,
          subjectRoles: list(serviceRoles),
          objectRoles: list(edgeRouterRoles),
        })),
      },
      {
        apiSessions: await db
          .selectFrom('api_sessions')
          .select(['id', 'identityId', 'mfaPassedAt', 'wokenAt'])
          .execute(),
        machines,
        now: clock.now(),
      },
    )
  }

  /** Whether a policy links the two, whatever it demands of machines. */
  isGranted(identityId: string, serviceId: string, type: PolicyType): boolean {
    return this.#linking(identityId, serviceId, type).length > 0
  }

  /** Whether such a policy has no posture check that does not pass. */
  isAllowed(apiSession: PlainApiSession, serviceId: string, type: PolicyType): boolean {
    return this.#linking(apiSession.identityId, serviceId, type).some(({ semantic, checkRoles = [] }) =>
      this.#checks.every((check) => !isMatched(semantic, checkRoles, check) || this.#passes(check, apiSession)),
    )
  }

  #passes({ id, typeId, details }: PlainCheck, { identityId, mfaPassedAt, wokenAt }: PlainApiSession): boolean {
    const machine = this.#machines.get(identityId)
    const { domains = [], macAddresses = [], timeoutSeconds = -1, promptOnWake = false } = details
    switch (typeId) {
      case 'DOMAIN':
        return machine?.domain !== undefined && domains.includes(machine.domain)
      case 'MAC':
        return machine?.macAddresses?.some((address) => macAddresses.includes(address)) ?? false
      case 'PROCESS':
        return machine?.processes.get(id) ?? false
    }
    if (mfaPassedAt === null) return false
    for (const seconds of [timeoutSeconds, ...this.#mfaTimeouts(identityId)]) {
      if (seconds > 0 && this.#now - mfaPassedAt > seconds * 1000) return false
    }
    return !promptOnWake || wokenAt === null || wokenAt <= mfaPassedAt || this.#now - wokenAt < 300_000
  }

  /** The timeouts of all MFA checks that policies demand of an identity. */
  #mfaTimeouts(identityId: string): number[] {
    const identity = this.identities.find(({ id }) => id === identityId)
    const policies = this.#policies.service.filter(
      ({ semantic, subjectRoles }) => identity && isMatched(semantic, subjectRoles, identity),
    )
    return policies.flatMap(({ semantic, checkRoles = [] }) =>
      this.#checks.flatMap((check) =>
        check.typeId === 'MFA' && isMatched(semantic, checkRoles, check) ? [check.details.timeoutSeconds ?? -1] : [],
      ),
    )
  }

  processChecks(): string[] {
    return this.#checks.flatMap(({ id, typeId }) => (typeId === 'PROCESS' ? [id] : []))
  }

  #linking(identityId: string, serviceId: string, type: PolicyType): PlainPolicy[] {
    const identity = this.identities.find(({ id }) => id === identityId)
    const service = this.services.find(({ id }) => id === serviceId)
    if (!identity || !service) return []
    return this.#policies.service.filter((policy) => policy.type === type && this.#links(policy, identity, service))
  }

  toServicesScope(identity: Plain, type: PolicyType): string[] {
    return sorted(this.services.filter(({ id }) => this.isGranted(identity.id, id, type)).map(({ id }) => id))
  }

  /** Every right that there is, as text that can be compared. */
  listRights(): string[] {
    return this.identities.flatMap((identity) =>
      TYPES.flatMap((type) =>
        this.toServicesScope(identity, type).map((service) => `${identity.id} ${type} ${service}`),
      ),
    )
  }

  commonRouters(identity: Plain, service: Plain): string[] {
    const both = this.routers.filter(
      (router) =>
        this.#policies.router.some((policy) => this.#links(policy, identity, router)) &&
        this.#policies.serviceRouter.some((policy) => this.#links(policy, service, router)),
    )
    return sorted(both.map(({ id }) => id))
  }

  #links({ semantic, subjectRoles, objectRoles }: PlainPolicy, subject: Plain, object: Plain): boolean {
    return isMatched(semantic, subjectRoles, subject) && isMatched(semantic, objectRoles, object)
  }
}

async function readChecks(db: TestController['controller']['store']['db']): Promise<PlainCheck[]> {
  const rows = await untyped(db)
    .selectFrom('posture_checks')
    .select(['id', 'roleAttributes', 'typeId', 'details'])
    .execute()
  return rows.map(({ id, roleAttributes, typeId, details }) => ({
    id: id as string,
    attributes: JSON.parse(roleAttributes as string) as string[],
    typeId: typeId as string,
    details: JSON.parse(details as string) as PlainCheck['details'],
  }))
}

/** A service, or an identity, as lists show it. */
interface ListedService {
  readonly id: string
  readonly permissions: readonly string[]
  readonly allowed?: readonly string[]
  readonly postureQueries?: readonly { readonly policyType: string; readonly isPassing: boolean }[]
}

const sorted = (ids: readonly string[]) => [...ids].sort()

/** The same index, built from rows. */
async function buildAccess({ controller }: TestController): Promise<Access> {
  const access = new Access(controller.posture.reported)
  await access.rebuild(controller.store.db)
  return access
}

/** Everything that an index says of the network, in a form that can be compared. */
function answersOf({ index }: Access, plain: PlainNetwork) {
  return plain.identities.map((identity) => ({
    id: identity.id,
    services: TYPES.map((type) => sorted(index.listGrantedServices(index.findServicePolicies(identity, type)))),
    policies: sorted(index.findServicePolicies(identity).map(({ id }) => id)),
    routers: sorted(index.listRouters(identity)),
    common: plain.services.map(({ id }) => sorted(index.listCommonRouters(identity, id))),
    may: plain.services.map(({ id }) => TYPES.map((type) => index.grants(identity, id, type))),
  }))
}

describe.each([11, 12, 13])('a random network (seed %i)', (seed) => {
  const chance = random(seed)
  let world: TestController
  let admin: string
  /** Ids of what there is, by kind. */
  const ids: Record<string, string[]> = {}
  let sequence = 0
  /** How many records were made, by kind. */
  const tally: Record<string, number> = {}

  const roles = (plural: string): string[] => {
    if (chance.oneIn(10)) return ['#all']
    const named = chance.some(ids[plural] ?? [], 1).map((id) => `@${id}`)
    return [...chance.some(ATTRIBUTES, 2).map((attribute) => `#${attribute}`), ...named]
  }
  const noRoles = (): string[] => []
  /** Most policies of real networks demand a check or two, by name. */
  const oneCheck = () => chance.some(ids['posture-checks'] ?? [], 1).map((id) => `@${id}`)
  const semantic = () => (chance.oneIn(2) ? 'AllOf' : 'AnyOf')
  const kinds: readonly { readonly resource: AnyResource; most: number; values(): Record<string, unknown> }[] = [
    { resource: identities, most: 6, values: () => ({ roleAttributes: chance.some(ATTRIBUTES, 3) }) },
    { resource: services, most: 6, values: () => ({ roleAttributes: chance.some(ATTRIBUTES, 3) }) },
    { resource: edgeRouters, most: 4, values: () => ({ roleAttributes: chance.some(ATTRIBUTES, 3) }) },
    {
      resource: servicePolicies,
      most: 5,
      values: () => ({
        type: chance.pick(TYPES),
        semantic: semantic(),
        identityRoles: roles('identities'),
        serviceRoles: roles('services'),
        postureCheckRoles: chance.pick([noRoles, oneCheck, oneCheck, () => roles('posture-checks')])(),
      }),
    },
    {
      resource: postureChecks,
      most: 5,
      values: () => ({ roleAttributes: chance.some(ATTRIBUTES, 2) }),
    },
    {
      resource: edgeRouterPolicies,
      most: 3,
      values: () => ({
        semantic: semantic(),
        identityRoles: roles('identities'),
        edgeRouterRoles: roles('edge-routers'),
      }),
    },
    {
      resource: serviceEdgeRouterPolicies,
      most: 3,
      values: () => ({ semantic: semantic(), serviceRoles: roles('services'), edgeRouterRoles: roles('edge-routers') }),
    },
  ]
  const always: Readonly<Record<string, object>> = {
    identities: { typeId: 'Default', isAdmin: false },
    services: { encryptionRequired: true },
  }
  const checkDetails: Readonly<Record<string, () => object>> = {
    DOMAIN: () => ({ domains: [chance.pick(DOMAINS)] }),
    MAC: () => ({ macAddresses: [chance.pick(ADDRESSES), chance.pick(ADDRESSES)] }),
    PROCESS: () => ({ process: { osType: 'Linux', path: '/bin/agent', hashes: [], signerFingerprint: null } }),
    MFA: () => ({
      timeoutSeconds: chance.pick([-1, 60, 120, 600]),
      promptOnWake: chance.oneIn(2),
      promptOnUnlock: false,
      ignoreLegacyEndpoints: false,
    }),
  }
  const checkTypes = new Map<string, string>()
  const machines = new Map<string, PlainMachine>()
  const readPlain = () => PlainNetwork.read(world, machines)

  /** Makes, changes or deletes one record; what another change took away meanwhile is left alone. */
  async function alter(): Promise<void> {
    const { resource, most, values } = chance.pick(kinds)
    const present = ids[resource.plural] ?? []
    ids[resource.plural] = present
    if (present.length < most && !chance.oneIn(3)) {
      const name = `${resource.name} ${++sequence}`
      const typeId = chance.pick(Object.keys(checkDetails))
      const ofCheck = resource === postureChecks ? { typeId, details: checkDetails[typeId]?.() } : {}
      const allValues = { name, ...always[resource.plural], ...ofCheck, ...values() }
      await world.controller.entities.create(world.system, resource, allValues as never).then(
        ({ id }: { id: string }) => {
          present.push(id)
          checkTypes.set(id, typeId)
          tally[resource.plural] = (tally[resource.plural] ?? 0) + 1
        },
        () => {},
      )
      return
    }
    if (present.length === 0) return
    const id = chance.pick(present)
    if (chance.oneIn(4)) {
      present.splice(present.indexOf(id), 1)
      await world.controller.entities.remove(world.system, resource, id)
    } else {
      const changesDetails = resource === postureChecks && chance.oneIn(2)
      const changed = changesDetails ? { details: checkDetails[checkTypes.get(id) as string]?.() } : values()
      await world.controller.entities.patch(world.system, resource, id, changed).catch(() => {})
    }
  }

  /** A client reports about its machine, or proves that its person is there. */
  async function report(plain: PlainNetwork): Promise<void> {
    if (plain.apiSessions.length === 0) return
    const { id, identityId } = chance.pick(plain.apiSessions)
    const machine: PlainMachine = machines.get(identityId) ?? { processes: new Map<string, boolean>() }
    machines.set(identityId, machine)
    const { apiSessions } = world.controller.auth
    const send = async (response: object) => {
      const body = { id: 'any', ...response }
      const token = apiSessions.deriveToken(id)
      const { status } = await world.send({ method: 'POST', path: '/edge/client/v1/posture-response', token, body })
      expect(status).toBe(201)
    }
    const [check] = chance.some(plain.processChecks(), 1)
    const kind = chance.pick(['domain', 'domain', 'mac', 'mac', 'process', 'wake', 'mfa', 'mfa', 'mfa', 'no mfa'])
    if (kind === 'domain') {
      machine.domain = chance.pick(DOMAINS)
      await send({ typeId: 'DOMAIN', domain: machine.domain.toUpperCase() })
    } else if (kind === 'mac') {
      machine.macAddresses = chance.some(ADDRESSES, 2)
      await send({ typeId: 'MAC', macAddresses: machine.macAddresses })
    } else if (kind === 'process' && check !== undefined) {
      const isRunning = !chance.oneIn(3)
      machine.processes.set(check, isRunning)
      await send({ id: check, typeId: 'PROCESS', isRunning })
    } else if (kind === 'wake') {
      await send({ typeId: 'ENDPOINT_STATE', woken: true })
    } else if (kind === 'mfa') {
      await world.system.write((tx) => apiSessions.totp.complete(tx, id))
    } else if (kind === 'no mfa') {
      await world.system.write((tx) => apiSessions.totp.reset(tx, identityId))
    }
  }

  /** Time passes, and what it ends is ended. */
  async function tick(): Promise<void> {
    world.clock.advance(chance.pick([1_000, 20_000, 59_000, 61_000, 200_000]))
    await world.controller.posture.deadlines.revokeExpired(world.controller.contexts)
  }

  /** Opens a session for each right that there is. */
  async function openAll(plain: PlainNetwork): Promise<void> {
    await world.system.write(async (tx) => {
      for (const apiSession of plain.apiSessions) {
        const { id: apiSessionId, identityId } = apiSession
        for (const { id: serviceId } of plain.services) {
          for (const type of TYPES) {
            if (!plain.isAllowed(apiSession, serviceId, type)) continue
            const values = {
              apiSessionId,
              identityId,
              serviceId,
              type,
              opaqueToken: `${apiSessionId}${serviceId}${type}`,
            }
            const before = await tx.db
              .selectFrom('sessions')
              .select('id')
              .where('opaqueToken', '=', values.opaqueToken)
              .executeTakeFirst()
            if (!before)
              await world.controller.entities.insert(tx, sessions, newEntity(tx, sessions, values), { audit: 'none' })
          }
        }
      }
    })
  }

  async function signInAll(plain: PlainNetwork): Promise<void> {
    const { store, auth } = world.controller
    const rows = await store.db.selectFrom('api_sessions').select('identityId').execute()
    const signedIn = new Set(rows.map(({ identityId }) => identityId))
    await world.system.write(async (tx) => {
      for (const { id, attributes } of plain.identities) {
        if (signedIn.has(id)) continue
        const role = { isAdmin: chance.oneIn(3), permissions: [], authPolicyId: 'default', roleAttributes: attributes }
        const identity = { id, name: id, externalId: null, ...role }
        await auth.apiSessions.insert(tx, { identity, authenticatorId: 'none', ipAddress: '', configTypes: [] })
      }
    })
  }

  /** Whether a client opens a session; it is removed, so that the next attempt is decided anew. */
  async function opens(token: string, serviceId: string, type: PolicyType): Promise<boolean> {
    await world.system.write(async (tx) => {
      await tx.db.deleteFrom('sessions').execute()
    })
    const body = { serviceId, type }
    const { status } = await world.send({ method: 'POST', path: '/edge/client/v1/sessions', token, body })
    return status === 201
  }

  /** Makes two services that every identity may dial if its machine and its person pass a check: no change removes them. */
  async function guardFixedServices(): Promise<void> {
    const { entities } = world.controller
    const guards: readonly [typeId: string, details: object][] = [
      ['DOMAIN', { domains: [DOMAINS[0]] }],
      ['MFA', { ...checkDetails.MFA?.(), timeoutSeconds: 120 }],
    ]
    for (const [typeId, details] of guards) {
      const name = `fixed ${typeId}`
      const service = await entities.create(world.system, services, { name, encryptionRequired: true } as never)
      const check = await entities.create(world.system, postureChecks, { name, typeId, details } as never)
      await entities.create(world.system, servicePolicies, {
        name,
        type: 'Dial',
        semantic: 'AnyOf',
        identityRoles: ['#all'],
        serviceRoles: [`@${(service as { id: string }).id}`],
        postureCheckRoles: [`@${(check as { id: string }).id}`],
      } as never)
    }
  }

  /** Makes a router over which everything is reached, so that rights alone decide. */
  async function openRouters(): Promise<void> {
    const all = { semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
    await world.controller.entities.create(world.system, edgeRouters, { name: 'open' } as never)
    await world.controller.entities.create(world.system, edgeRouterPolicies, {
      ...all,
      name: 'open',
      identityRoles: ['#all'],
    } as never)
    await world.controller.entities.create(world.system, serviceEdgeRouterPolicies, {
      ...all,
      name: 'open',
      serviceRoles: ['#all'],
    } as never)
  }

  const liveTokens = async () => {
    const rows = await world.controller.store.db
      .selectFrom('sessions')
      .select(['opaqueToken', 'apiSessionId', 'identityId', 'serviceId', 'type'])
      .execute()
    return rows.sort((a, b) => (a.opaqueToken < b.opaqueToken ? -1 : 1))
  }

  beforeAll(async () => {
    world = await testController({ settings: { 'session.timeout': '1000h' } })
    admin = await world.admin()
    await guardFixedServices()
  })
  afterAll(() => world.close())

  it('says after every change what the rows say, keeps what it would build anew, and ends just the lost sessions', async () => {
    // Effects of the changes: without rights that come and go, nothing would be shown.
    const effects = { gained: 0, lost: 0, kept: 0, revokedSessions: 0, lostByReport: 0, lostByTime: 0 }
    for (let round = 0; round < ROUNDS; round++) {
      await signInAll(await readPlain())
      const before = await readPlain()
      await openAll(before)
      const open = await liveTokens()

      const event = chance.pick(['change', 'change', 'report', 'report', 'report', 'tick'] as const)
      // Some at once: their transactions share a commit, and see each other's changes before memory does.
      const changes = event === 'change' ? 1 + chance.below(3) : 1
      if (event === 'change') await Promise.all(Array.from({ length: changes }, () => alter()))
      if (event === 'report') await report(before)
      if (event === 'tick') await tick()

      const plain = await readPlain()
      const { access } = world.controller
      const responses = answersOf(access, plain)
      expect(responses).toEqual(answersOf(await buildAccess(world), plain))
      expect(responses.map(({ services }) => services)).toEqual(
        plain.identities.map((identity) => TYPES.map((type) => plain.toServicesScope(identity, type))),
      )
      expect(responses.map(({ common }) => common)).toEqual(
        plain.identities.map((identity) => plain.services.map((service) => plain.commonRouters(identity, service))),
      )
      const live = await liveTokens()
      const rightful = open.filter(({ apiSessionId, serviceId, type }) => {
        const apiSession = plain.apiSessions.find(({ id }) => id === apiSessionId)
        return apiSession !== undefined && plain.isAllowed(apiSession, serviceId, type)
      })
      // Of several changes, one may have given back what another took, and the session with it.
      if (changes === 1) expect(live).toEqual(rightful)
      else expect(rightful).toEqual(expect.arrayContaining(live))
      const [had, has] = [before.listRights(), plain.listRights()]
      effects.gained += has.filter((right) => !had.includes(right)).length
      effects.lost += had.filter((right) => !has.includes(right)).length
      effects.kept += had.filter((right) => has.includes(right)).length
      effects.revokedSessions += open.length - live.length
      if (event === 'report') effects.lostByReport += open.length - live.length
      if (event === 'tick') effects.lostByTime += open.length - live.length
    }
    for (const [what, least] of Object.entries(FLOORS)) {
      expect(effects[what as keyof typeof effects], what).toBeGreaterThanOrEqual(least)
    }
  }, 120_000)

  it('is described alike by decisions, sessions, lists, advice, who and what', async () => {
    let refused = 0
    let opened = 0
    await openRouters()
    for (let round = 0; round < 8; round++) {
      for (let change = 0; change < 4; change++) await alter()
      await signInAll(await readPlain())
      for (let reports = 0; reports < 4; reports++) await report(await readPlain())
      if (chance.oneIn(2)) await tick()
      const plain = await readPlain()
      const { access, auth } = world.controller
      const get = async (path: string, token = admin) => (await world.send({ method: 'GET', path, token })).body.data
      const whoByService = new Map<string, ListedService[]>()
      for (const { id } of plain.services) {
        whoByService.set(id, await get(`${MANAGEMENT}/controller/policy/who/${id}?limit=500`))
      }
      for (const apiSession of plain.apiSessions) {
        const { id: apiSessionId, identityId } = apiSession
        const identity = plain.identities.find(({ id }) => id === identityId) as Plain
        const token = auth.apiSessions.deriveToken(apiSessionId)
        const listed = (await get('/edge/client/v1/services?limit=500', token)) as ListedService[]
        const what = (await get(`${MANAGEMENT}/controller/policy/what/${identityId}?limit=500`)) as ListedService[]
        for (const { id: serviceId } of plain.services) {
          const who = whoByService.get(serviceId) ?? []
          const readView = listed.find(({ id }) => id === serviceId)
          for (const type of TYPES) {
            const isGranted = plain.isGranted(identityId, serviceId, type)
            const isAllowed = plain.isAllowed(apiSession, serviceId, type)
            const label = `${identityId} ${type} ${serviceId}`
            expect(access.decide({ identity, serviceId, type, apiSessionId }), label).toMatchObject({
              isGranted,
              isAllowed,
            })
            for (const entry of [what.find(({ id }) => id === serviceId), who.find(({ id }) => id === identityId)]) {
              expect(entry?.permissions.includes(type) ?? false, label).toBe(isGranted)
              expect(entry?.allowed?.includes(type) ?? false, label).toBe(isAllowed)
            }
            expect(readView?.permissions.includes(type) ?? false, label).toBe(isGranted)
            const sets = (readView?.postureQueries ?? []).filter(({ policyType }) => policyType === type)
            expect(
              sets.some(({ isPassing }) => isPassing),
              label,
            ).toBe(isAllowed)
            const { links } = await advise(world.controller, world.system, identityId, serviceId, type)
            const outcomes = new Map(links.map(({ link, outcome }) => [link, outcome]))
            expect(outcomes.get('service-policy') === 'passed', label).toBe(isGranted)
            expect(outcomes.get('service-policy') === 'passed' && outcomes.get('posture') === 'passed', label).toBe(
              isAllowed,
            )
            const isOpen = await opens(token, serviceId, type)
            expect(isOpen, label).toBe(isAllowed)
            if (isOpen) opened += 1
            else if (isGranted) refused += 1
          }
        }
      }
    }
    // Otherwise the comparisons above say nothing.
    expect(opened).toBeGreaterThan(0)
    expect(refused).toBeGreaterThan(0)
    expect(tally['posture-checks']).toBeGreaterThan(2)
  }, 120_000)

  it('is the same after a question about hypothetical changes', async () => {
    const plain = await readPlain()
    const { access } = world.controller
    const before = answersOf(access, plain)
    const deletions = [
      ...plain.services.map(({ id, attributes }) => {
        const after = chance.oneIn(2) ? { roleAttributes: chance.some(ATTRIBUTES) } : undefined
        return toRecordChange('services', id, { roleAttributes: attributes }, after)
      }),
      ...plain.routers.map(({ id, attributes }) =>
        toRecordChange('edge-routers', id, { roleAttributes: attributes }, undefined),
      ),
    ]

    access.withHypothetical(deletions, () => {})
    expect(() =>
      access.withHypothetical(deletions, () => {
        throw new Error('on purpose')
      }),
    ).toThrow('on purpose')

    expect(answersOf(access, plain)).toEqual(before)
  })
})
