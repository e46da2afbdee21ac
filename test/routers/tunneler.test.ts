// Routers that dial and host services themselves: their API session, the services that they are told about, and their terminators.
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Message } from '../../server/control-channel/message.ts'
import { RouteSchema } from '../../server/control-channel/messages/control_pb.ts'
import {
  ApiSessionAddedSchema,
  CreateApiSessionRequestSchema,
  CreateApiSessionResponseSchema,
  CreateCircuitForServiceRequestSchema,
  CreateCircuitForServiceResponseSchema,
  CreateTerminatorResult,
  CreateTunnelCircuitV2RequestSchema,
  CreateTunnelCircuitV2ResponseSchema,
  CreateTunnelTerminatorRequestSchema,
  CreateTunnelTerminatorRequestV2Schema,
  CreateTunnelTerminatorResponseSchema,
  CreateTunnelTerminatorResponseV2Schema,
  ServicesListSchema,
  UpdateTunnelTerminatorRequestSchema,
} from '../../server/control-channel/messages/edge_pb.ts'
import { newName } from '../world/names.ts'
import { recordingLog } from '../world/recording-log.ts'
import { reasonOfDisconnection } from '../world/router/end-reasons.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import {
  newPeerData,
  type OpenNetwork,
  openNetwork,
  respondToQuestions,
  takeQuestions,
} from '../world/router/hosting.ts'
import { groupedHeaders, SimulatedRouter } from '../world/router/simulated-router.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]
const log = recordingLog()
const world = useControllerPerTest({ settings: { listeners }, log })
let network: OpenNetwork
let address: { url: string; rootPem: string }
const open: SimulatedRouter[] = []

beforeEach(async () => {
  await world.controller.membership.announce(world.system, {})
  network = await openNetwork(world)
  address = await world.listen()
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((router) => router.close()))
})

async function newTunneler(values: object = {}): Promise<EnrolledRouter> {
  const router = await enrolledRouter(world, { name: newName('router') })
  await network.manage.change('PATCH', `/edge-routers/${router.id}`, { isTunnelerEnabled: true, ...values })
  return router
}

async function connect(router: EnrolledRouter, hello?: [number, Buffer][]): Promise<SimulatedRouter> {
  const simulated = await SimulatedRouter.open({ ...address, ...router })
  open.push(simulated)
  simulated.introduce(router.id, hello)
  await simulated.takeType(20000)
  return simulated
}

const ENV_INFO = { arch: 'amd64', Os: 'linux', OsRelease: '6.18', OsVersion: '#1 SMP' }
const SDK_INFO = { AppId: 'ziti-router', AppVersion: 'v1.6.5', Type: 'ziti-router:tunnel', Version: 'v1.6.5' }

/** Asks for an API session as a router does when its process starts. */
async function startTunneling(simulated: SimulatedRouter) {
  const request = create(CreateApiSessionRequestSchema, {
    envInfo: ENV_INFO,
    sdkInfo: SDK_INFO,
    configTypes: ['all'],
  })
  const sequence = simulated.send(20400, toBinary(CreateApiSessionRequestSchema, request))
  const { type, body } = await simulated.takeReply(sequence)
  expect(type).toBe(20401)
  return fromBinary(CreateApiSessionResponseSchema, body)
}

/** A router that has started to tunnel. */
async function tunneler(values: object = {}) {
  const router = await newTunneler(values)
  const simulated = await connect(router)
  return { router, simulated, apiSession: await startTunneling(simulated) }
}

/** Asks for the services, and returns them. */
async function listServices(simulated: SimulatedRouter, lastUpdate: Uint8Array = Buffer.alloc(0)) {
  simulated.send(20404, lastUpdate)
  const message = await simulated.takeType(20405)
  expect(message.headers.has(1)).toBe(false)
  const response = fromBinary(ServicesListSchema, message.body)
  const services = response.services.map(({ id, name, permissions, encryption, config, tags }) => ({
    id,
    name,
    permissions,
    encryption,
    config: JSON.parse(Buffer.from(config).toString()),
    tags: JSON.parse(Buffer.from(tags).toString()),
  }))
  return { lastUpdate: response.lastUpdate, services }
}

/** Whether the controller has any response to a message that was sent before. */
async function hasResponse(simulated: SimulatedRouter, matches: (message: Message) => boolean): Promise<boolean> {
  await simulated.takeReply(simulated.send(1))
  // The work that the message waits for is done before this transaction.
  await world.system.write(async () => {})
  await simulated.takeReply(simulated.send(1))
  return simulated.received.some(matches)
}

/** Whether the services have changed since. */
function haveServicesChanged(simulated: SimulatedRouter, lastUpdate: Uint8Array): Promise<boolean> {
  simulated.send(20404, lastUpdate)
  return hasResponse(simulated, ({ type }) => type === 20405)
}

type Hosting = MessageInitShape<typeof CreateTunnelTerminatorRequestSchema>

const sendHosting = (simulated: SimulatedRouter, values: Hosting) =>
  simulated.send(
    20406,
    toBinary(CreateTunnelTerminatorRequestSchema, create(CreateTunnelTerminatorRequestSchema, values)),
  )

/** Asks for a terminator, and returns the response. */
async function host(simulated: SimulatedRouter, values: Hosting) {
  const { type, body } = await simulated.takeReply(sendHosting(simulated, values))
  expect(type).toBe(20407)
  return fromBinary(CreateTunnelTerminatorResponseSchema, body)
}

async function makeService(values: object = {}) {
  const name = newName('service')
  return { name, id: await network.makeService({ name, ...values }) }
}

const call = (path: string) => network.manage.call('GET', path)

describe('a router that starts to tunnel', () => {
  it('has an API session of the identity with its own id and name, which all routers know before', async () => {
    const router = await newTunneler()
    const simulated = await connect(router)
    const { sessionId, token, refreshIntervalSeconds, identityId, identityName } = await startTunneling(simulated)
    expect({ identityId, identityName }).toEqual({ identityId: router.id, identityName: router.name })
    expect(refreshIntervalSeconds).toBe(1790)
    expect((await call(`/api-sessions/${sessionId}`)).body.data).toMatchObject({ identityId: router.id })
    const announced = simulated.received
      .filter(({ type }) => type === 20200)
      .flatMap(({ body }) => fromBinary(ApiSessionAddedSchema, body).apiSessions)
    expect(announced).toContainEqual(expect.objectContaining({ id: sessionId, token, identityId: router.id }))
  })

  it('has the same one after it connected again, and says what it is', async () => {
    const { router, simulated, apiSession } = await tunneler()
    await simulated.close()
    await expect.poll(() => world.controller.routers.connected.get(router.id)).toBeUndefined()
    const again = await startTunneling(await connect(router))
    expect([again.sessionId, again.token]).toEqual([apiSession.sessionId, apiSession.token])
    expect(await network.manage.get(`/identities/${router.id}`)).toMatchObject({
      envInfo: { arch: 'amd64', os: 'linux', osRelease: '6.18', osVersion: '#1 SMP' },
      sdkInfo: { appId: 'ziti-router', appVersion: 'v1.6.5', type: 'ziti-router:tunnel', version: 'v1.6.5' },
    })
  })

  it('has one API session, however often it asks at once', async () => {
    const simulated = await connect(await newTunneler())
    const started = await Promise.all(Array.from({ length: 5 }, () => startTunneling(simulated)))
    expect(new Set(started.map(({ sessionId }) => sessionId)).size).toBe(1)
  })

  it('is told how its identity hosts services', async () => {
    const router = await newTunneler()
    const { id } = await makeService()
    await network.manage.change('PATCH', `/identities/${router.id}`, {
      appData: { region: 'north' },
      defaultHostingCost: 7,
      defaultHostingPrecedence: 'required',
      serviceHostingCosts: { [id]: 9 },
      serviceHostingPrecedences: { [id]: 'failed' },
    })
    const response = await startTunneling(await connect(router))
    expect(response).toMatchObject({ defaultHostingCost: 7, defaultHostingPrecedence: 1 })
    expect(JSON.parse(response.appDataJson)).toEqual({ region: 'north' })
    expect([response.serviceCosts, response.servicePrecedences]).toEqual([{ [id]: 9 }, { [id]: 2 }])
  })

  it('is refused by code 7 if tunneling is not enabled for it', async () => {
    const simulated = await connect(await enrolledRouter(world, { name: newName('router') }))
    const { type, headers } = await simulated.takeReply(simulated.send(20400))
    expect([type, headers.get(1014)?.readUInt32LE()]).toEqual([20002, 7])
  })
})

describe('a router that tunnels is told about its services', () => {
  it('the first time also if there are none, and then only if something has changed', async () => {
    const { simulated } = await tunneler()
    const first = await listServices(simulated)
    expect(first.services).toEqual([])
    expect(await haveServicesChanged(simulated, first.lastUpdate)).toBe(false)
    const { name } = await makeService()
    const second = await listServices(simulated, first.lastUpdate)
    expect(second.services.map((service) => service.name)).toEqual([name])
    expect(await haveServicesChanged(simulated, second.lastUpdate)).toBe(false)
    expect((await listServices(simulated)).services).toHaveLength(1)
  })

  it('with its permissions, and its config by the names of the types', async () => {
    const { simulated } = await tunneler()
    const type = await network.manage.make('config-types', { name: 'place' })
    const config = await network.manage.make('configs', { name: 'here', configTypeId: type, data: { port: 80 } })
    const { id, name } = await makeService({ configs: [config], tags: { team: 'web' }, encryptionRequired: false })
    const { services } = await listServices(simulated)
    const permissions = ['Bind', 'Dial']
    const rest = { encryption: false, config: { place: { port: 80 } }, tags: { team: 'web' } }
    expect(services).toEqual([{ id, name, permissions, ...rest }])
  })

  it('again when policies take a permission, and when they give it back', async () => {
    const { simulated } = await tunneler()
    await makeService()
    const first = await listServices(simulated)
    await network.manage.change('DELETE', `/service-policies/${network.bindPolicyId}`)
    const second = await listServices(simulated, first.lastUpdate)
    expect(second.services.map(({ permissions }) => permissions)).toEqual([['Dial']])
    const all = { semantic: 'AnyOf', identityRoles: ['#all'], serviceRoles: ['#all'] }
    await network.manage.make('service-policies', { ...all, name: newName('policy'), type: 'Bind' })
    const third = await listServices(simulated, second.lastUpdate)
    expect(third.services.map(({ permissions }) => permissions)).toEqual([['Bind', 'Dial']])
  })

  it('but not if tunneling is not enabled for it', async () => {
    const simulated = await connect(await enrolledRouter(world, { name: newName('router') }))
    await makeService()
    expect(await haveServicesChanged(simulated, Buffer.alloc(0))).toBe(false)
  })

  it('and loses its connection for a version of more than fifty bytes', async () => {
    const { router, simulated } = await tunneler()
    simulated.send(20404, Buffer.alloc(51))
    await simulated.closed
    expect(reasonOfDisconnection(log, router)).toBe('the version of the services is too long')
  })
})

describe('a router that hosts a service itself', () => {
  it('has a terminator with the binding of tunnels, hosted by its identity, and a session', async () => {
    const { router, simulated } = await tunneler()
    const { id: serviceId, name: serviceName } = await makeService()
    const response = await host(simulated, { serviceName, address: 'tunnel-1', cost: 3, startTime: 12_345n })
    expect(response).toMatchObject({ terminatorId: 'tunnel-1', startTime: 12_345n })
    expect(response.apiSession).toBeUndefined()
    expect((await call('/terminators/tunnel-1')).body.data).toMatchObject({
      binding: 'tunnel',
      address: 'tunnel-1',
      serviceId,
      routerId: router.id,
      cost: 3,
    })
    expect(world.controller.fabric.terminators.get('tunnel-1')).toMatchObject({ hostId: router.id, isSystem: true })
    const session = (await call(`/sessions/${response.session!.sessionId}`)).body.data
    expect(session).toMatchObject({ type: 'Bind', service: { id: serviceId }, identityId: router.id })
  })

  it('has the same session for its next terminator of the service', async () => {
    const { simulated } = await tunneler()
    const { name: serviceName } = await makeService()
    const first = await host(simulated, { serviceName, address: 'tunnel-1' })
    const second = await host(simulated, { serviceName, address: 'tunnel-2' })
    expect(second.session).toEqual(first.session)
  })

  it('has another API session if its own has ended, and is told about it', async () => {
    const { router, simulated, apiSession } = await tunneler()
    const { name: serviceName } = await makeService()
    await network.manage.change('DELETE', `/api-sessions/${apiSession.sessionId}`)
    const response = await host(simulated, { serviceName, address: 'tunnel-1' })
    expect(response.apiSession!.identityId).toBe(router.id)
    expect(response.apiSession!.sessionId).not.toBe(apiSession.sessionId)
    expect((await host(simulated, { serviceName, address: 'tunnel-2' })).apiSession).toBeUndefined()
  })

  it('changes the cost and the precedence of its terminator, and removes it', async () => {
    const { simulated } = await tunneler()
    const { name: serviceName } = await makeService()
    await host(simulated, { serviceName, address: 'tunnel-1' })
    const update = create(UpdateTunnelTerminatorRequestSchema, {
      terminatorId: 'tunnel-1',
      precedence: 2,
      updatePrecedence: true,
    })
    const updated = simulated.send(20408, toBinary(UpdateTunnelTerminatorRequestSchema, update))
    expect(await simulated.takeReply(updated)).toMatchObject({ type: 20409 })
    expect((await call('/terminators/tunnel-1')).body.data).toMatchObject({ cost: 0, precedence: 'failed' })
    const remove = () => simulated.takeReply(simulated.send(20410, Buffer.from('tunnel-1')))
    expect(await remove()).toMatchObject({ type: 20411 })
    expect((await call('/terminators/tunnel-1')).status).toBe(404)
    const repeated = await remove()
    expect([repeated.type, repeated.headers.get(1014)?.readUInt32LE()]).toEqual([20002, 8])
  })

  it('cannot change or remove the terminator of another router', async () => {
    const { simulated } = await tunneler()
    const { name: serviceName } = await makeService()
    await host(simulated, { serviceName, address: 'tunnel-1' })
    const { simulated: other } = await tunneler()
    const removed = await other.takeReply(other.send(20410, Buffer.from('tunnel-1')))
    expect([removed.type, removed.headers.get(1014)?.readUInt32LE()]).toEqual([20002, 8])
    expect((await call('/terminators/tunnel-1')).status).toBe(200)
  })

  it('is asked whether its terminator is still there', async () => {
    const { simulated } = await tunneler()
    const { name: serviceName } = await makeService()
    await host(simulated, { serviceName, address: 'tunnel-1' })
    world.clock.advance(30_000)
    const questions = await takeQuestions(simulated)
    expect(questions.terminators).toMatchObject([{ id: 'tunnel-1', binding: 'tunnel', address: 'tunnel-1' }])
    respondToQuestions(simulated, questions, [])
    await expect.poll(async () => (await call('/terminators/tunnel-1')).status).toBe(404)
  })

  it('is told when it has lost the right, has no response without it, and hosts again with it', async () => {
    const { simulated } = await tunneler()
    const { name: serviceName } = await makeService()
    await host(simulated, { serviceName, address: 'tunnel-1' })
    await network.manage.change('DELETE', `/service-policies/${network.bindPolicyId}`)
    await simulated.takeType(20102)
    expect(await simulated.takeReply(simulated.send(20410, Buffer.from('tunnel-1')))).toMatchObject({ type: 20411 })
    const refused = sendHosting(simulated, { serviceName, address: 'tunnel-2' })
    expect(await hasResponse(simulated, ({ headers }) => headers.get(1)?.readInt32LE() === refused)).toBe(false)
    const all = { semantic: 'AnyOf', identityRoles: ['#all'], serviceRoles: ['#all'] }
    await network.manage.make('service-policies', { ...all, name: newName('policy'), type: 'Bind' })
    expect((await host(simulated, { serviceName, address: 'tunnel-3' })).terminatorId).toBe('tunnel-3')
  })

  it('has no response for a service that does not exist', async () => {
    const { simulated } = await tunneler()
    const refused = sendHosting(simulated, { serviceName: 'unknown', address: 'tunnel-1' })
    expect(await hasResponse(simulated, ({ headers }) => headers.get(1)?.readInt32LE() === refused)).toBe(false)
  })

  it.each([
    ['more than 128 entries', newPeerData(129)],
    ['an entry of more than 8 KiB', newPeerData(1, 8_193)],
  ])('has no response if its peer data has %s', async (_name, peerData) => {
    const { simulated } = await tunneler()
    const { name: serviceName } = await makeService()
    const refused = sendHosting(simulated, { serviceName, address: 'tunnel-1', peerData })
    expect(await hasResponse(simulated, ({ headers }) => headers.get(1)?.readInt32LE() === refused)).toBe(false)
    expect((await call('/terminators/tunnel-1')).status).toBe(404)
  })
})

describe('a router that dials a service itself', () => {
  const CLIENT_KEY = Buffer.alloc(32, 5)
  const HOST_KEY = Buffer.alloc(32, 6)

  function sendDial(
    simulated: SimulatedRouter,
    serviceName: string,
    peerData: Readonly<Record<number, Uint8Array>> = { 1003: CLIENT_KEY },
  ): number {
    const request = create(CreateCircuitForServiceRequestSchema, { serviceName, peerData: { ...peerData } })
    return simulated.send(20402, toBinary(CreateCircuitForServiceRequestSchema, request))
  }

  function sendDialByName(simulated: SimulatedRouter, serviceName: string): number {
    const request = create(CreateTunnelCircuitV2RequestSchema, { serviceName, peerData: { 1003: CLIENT_KEY } })
    return simulated.send(20220, toBinary(CreateTunnelCircuitV2RequestSchema, request))
  }

  /** Asks for a terminator in the form of release 2, and returns the response. */
  async function hostById(
    simulated: SimulatedRouter,
    values: MessageInitShape<typeof CreateTunnelTerminatorRequestV2Schema>,
  ) {
    const request = create(CreateTunnelTerminatorRequestV2Schema, values)
    const reply = simulated.takeReply(simulated.send(20413, toBinary(CreateTunnelTerminatorRequestV2Schema, request)))
    const { type, body } = await reply
    expect(type).toBe(20414)
    return fromBinary(CreateTunnelTerminatorResponseV2Schema, body)
  }

  /** Follows the next route as the router that dials and hosts, and returns it. */
  async function followRoute(simulated: SimulatedRouter) {
    const message = await simulated.takeType(1005)
    const route = fromBinary(RouteSchema, message.body)
    const replyFor = Buffer.alloc(4)
    replyFor.writeInt32LE(message.sequence)
    simulated.send(1022, Buffer.from(route.circuitId), [
      [1, replyFor],
      [1101, Buffer.alloc(4)],
      [1102, Buffer.from([1])],
      [1003, HOST_KEY],
    ])
    return route
  }

  it('has a circuit, and terminators, in the form of release 2, without an API session that it asked for', async () => {
    const router = await newTunneler()
    const simulated = await connect(router, groupedHeaders())
    const { id: serviceId, name: serviceName } = await makeService()
    expect(await hostById(simulated, { serviceId, address: 'tunnel-1', startTime: 5n })).toMatchObject({
      terminatorId: 'tunnel-1',
      startTime: 5n,
      result: CreateTerminatorResult.Success,
    })
    expect((await call('/terminators/tunnel-1')).body.data).toMatchObject({ binding: 'tunnel', serviceId })
    const sequence = sendDialByName(simulated, serviceName)
    const route = await followRoute(simulated)
    const { type, body } = await simulated.takeReply(sequence)
    expect(type).toBe(20221)
    const response = fromBinary(CreateTunnelCircuitV2ResponseSchema, body)
    expect(route.egress).toMatchObject({ binding: 'tunnel', destination: 'tunnel-1' })
    expect(response).toMatchObject({ circuitId: route.circuitId, tags: { serviceId, clientId: router.id } })
    expect(Buffer.from(response.peerData[1003]!)).toEqual(HOST_KEY)
  })

  it('may neither dial nor host in the form of release 2 what policies do not permit', async () => {
    const simulated = await connect(await newTunneler(), groupedHeaders())
    const { id: serviceId, name } = await makeService()
    for (const policy of await network.manage.get('/service-policies'))
      await network.manage.change('DELETE', `/service-policies/${policy.id}`)
    const refused = await hostById(simulated, { serviceId, address: 'tunnel-1' })
    const reason = { msg: expect.stringMatching(/./), errorCode: 1, retryHint: 0 }
    expect(refused).toMatchObject({ result: CreateTerminatorResult.FailedOther, ...reason })
    expect((await call('/terminators/tunnel-1')).status).toBe(404)
    const { type } = await simulated.takeReply(sendDialByName(simulated, name))
    expect(type).toBe(20002)
  })

  it('is refused in the form of release 2 if tunneling is not enabled for it', async () => {
    const router = await enrolledRouter(world, { name: newName('router') })
    const simulated = await connect(router, groupedHeaders())
    const { id: serviceId, name } = await makeService()
    const refused = await hostById(simulated, { serviceId, address: 'tunnel-1' })
    expect(refused).toMatchObject({ result: CreateTerminatorResult.FailedOther, errorCode: 7, retryHint: 3 })
    const { type, headers } = await simulated.takeReply(sendDialByName(simulated, name))
    expect([type, headers.get(1014)?.readUInt32LE()]).toEqual([20002, 7])
  })

  it.each([
    ['a service that does not exist', { serviceId: 'unknown' }, { errorCode: 6, retryHint: 3 }],
    ['a cost that does not exist', { cost: 65_536 }, { errorCode: 10, retryHint: 3 }],
    ['the id of a terminator of another router', { address: 'taken' }, { errorCode: 1, retryHint: 3 }],
  ])(
    'is told in the form of release 2 why it may not host, and whether to try again, for %s',
    async (_name, values, told) => {
      const { id: serviceId } = await makeService()
      const [other, simulated] = [
        await connect(await newTunneler(), groupedHeaders()),
        await connect(await newTunneler(), groupedHeaders()),
      ]
      await hostById(other, { serviceId, address: 'taken' })
      const refused = await hostById(simulated, { serviceId, address: 'tunnel-1', ...values })
      expect(refused).toMatchObject({ result: CreateTerminatorResult.FailedOther, ...told })
    },
  )

  it('has a circuit to a terminator, and a session that it dials by again', async () => {
    const { router, simulated } = await tunneler()
    const { id: serviceId, name } = await makeService()
    await host(simulated, { serviceName: name, address: 'tunnel-1' })
    const responses = []
    for (let dial = 0; dial < 2; dial += 1) {
      const sequence = sendDial(simulated, name)
      const route = await followRoute(simulated)
      const { type, body } = await simulated.takeReply(sequence)
      expect(type).toBe(20403)
      const response = fromBinary(CreateCircuitForServiceResponseSchema, body)
      expect(route.egress).toMatchObject({ binding: 'tunnel', destination: 'tunnel-1' })
      expect(response.circuitId).toBe(route.circuitId)
      expect(route.forwards.some(({ srcAddress }) => srcAddress === response.address)).toBe(true)
      expect(Buffer.from(response.peerData[1003]!)).toEqual(HOST_KEY)
      expect(response.tags).toEqual({ serviceId, clientId: router.id, hostId: router.id })
      expect(response.apiSession).toBeUndefined()
      responses.push(response)
    }
    expect(responses[1]!.session).toEqual(responses[0]!.session)
    const session = (await call(`/sessions/${responses[0]!.session!.sessionId}`)).body.data
    expect(session).toMatchObject({ type: 'Dial', service: { id: serviceId }, identityId: router.id })
  })

  it.each([
    ['a service without terminators', 1, async () => (await makeService()).name],
    ['a service that does not exist', 6, async () => 'unknown'],
    [
      'a service that it may not dial any more',
      1,
      async () => {
        const { name } = await makeService()
        await network.manage.change('DELETE', `/service-policies/${network.dialPolicyId}`)
        return name
      },
    ],
  ])('is refused for %s', async (_name, code, prepare) => {
    const { simulated } = await tunneler()
    const { type, headers, body } = await simulated.takeReply(sendDial(simulated, await prepare()))
    expect([type, headers.get(1014)?.readUInt32LE()]).toEqual([20002, code])
    expect(body.toString()).not.toBe('')
  })

  it.each([
    ['more than 128 entries', newPeerData(129)],
    ['an entry of more than 8 KiB', newPeerData(1, 8_193)],
  ])('is refused if its peer data has %s', async (_name, peerData) => {
    const { simulated } = await tunneler()
    const { name } = await makeService()
    await host(simulated, { serviceName: name, address: 'tunnel-1' })
    const { type, headers, body } = await simulated.takeReply(sendDial(simulated, name, peerData))
    expect([type, headers.get(1014)?.readUInt32LE()]).toEqual([20002, 1])
    expect(body.toString()).toContain('peer data')
  })

  it('and hosts one, even if its identity has an auth policy that requires a second factor', async () => {
    const strict = await network.manage.make('auth-policies', {
      name: newName('policy'),
      primary: {
        cert: { allowed: true, allowExpiredCerts: false },
        updb: {
          allowed: true,
          lockoutDurationMinutes: 0,
          maxAttempts: 5,
          minPasswordLength: 5,
          requireMixedCase: false,
          requireNumberChar: false,
          requireSpecialChar: false,
        },
        extJwt: { allowed: true, allowedSigners: [] },
      },
      secondary: { requireTotp: true },
    })
    const router = await newTunneler()
    await network.manage.change('PATCH', `/identities/${router.id}`, { authPolicyId: strict })
    const simulated = await connect(router)
    await startTunneling(simulated)
    const { name: serviceName } = await makeService()
    expect((await host(simulated, { serviceName, address: 'tunnel-1' })).terminatorId).toBe('tunnel-1')
  })
})
