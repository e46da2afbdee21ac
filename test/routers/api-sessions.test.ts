// Announcements of sessions to edge routers: all of them when a router connects, each change before the client hears of it.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Message } from '../../server/control-channel/message.ts'
import {
  ApiSessionAddedSchema,
  ApiSessionHeartbeatSchema,
  ApiSessionRemovedSchema,
  ApiSessionUpdatedSchema,
  ClientHelloSchema,
  RequestClientReSyncSchema,
  SessionRemovedSchema,
  ValidateSessionsRequestSchema,
} from '../../server/control-channel/messages/edge_pb.ts'
import { clientKey } from '../world/certificates.ts'
import { ADMIN, areTokensSigned, CLIENT, MANAGEMENT } from '../world/controller.ts'
import { recordingLog } from '../world/recording-log.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import { TestNetwork } from '../world/router/network.ts'
import { SimulatedRouter } from '../world/router/simulated-router.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]
const world = useControllerPerTest({ settings: { listeners } })
let address: { url: string; rootPem: string }
const open: SimulatedRouter[] = []
let names = 0

beforeEach(async () => {
  await world.controller.membership.announce(world.system, {})
  address = await world.listen()
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((router) => router.close()))
})

/** Connects an edge router that says hello; the parts of all API sessions follow. */
async function connect(enrolled?: EnrolledRouter): Promise<SimulatedRouter> {
  const router = enrolled ?? (await enrolledRouter(world, { name: `router-${++names}` }))
  const simulated = await SimulatedRouter.open({ ...address, ...router })
  open.push(simulated)
  simulated.introduce(router.id)
  await simulated.takeType(20000)
  simulated.send(20001, toBinary(ClientHelloSchema, create(ClientHelloSchema, { version: 'v1.6.5' })))
  return simulated
}

interface Part {
  readonly id: string
  readonly sequence: number
  readonly isLast: boolean
}

/** Takes one synchronization: its sessions by token, and its parts. */
async function takeAll(router: SimulatedRouter) {
  const parts: Part[] = []
  const sessions = []
  do {
    // Sessions that begin meanwhile are announced beside it, without these headers.
    const message = await router.take(({ type, headers }) => type === 20200 && headers.has(1013))
    expect(message.headers.get(1013)!.toString()).toBe('instant')
    parts.push(JSON.parse(message.headers.get(1014)!.toString()))
    const { isFullState, apiSessions } = fromBinary(ApiSessionAddedSchema, message.body)
    expect(isFullState).toBe(true)
    sessions.push(...apiSessions)
  } while (!parts.at(-1)!.isLast)
  return { parts, sessions }
}

const readTokens = ({ body }: Message) => fromBinary(ApiSessionAddedSchema, body).apiSessions.map(({ token }) => token)

/** Signs in, and takes the announcement of the session: what changes before is part of it. */
async function signInAnnounced(router: SimulatedRouter) {
  const session = await world.signIn()
  await router.take((message) => message.type === 20200 && readTokens(message).includes(session.token))
  return session
}

const signInByPassword = () =>
  world.send({ method: 'POST', path: `${CLIENT}/authenticate?method=password`, body: ADMIN })

describe('a router that connects', () => {
  it('that has no clients learns of no session, whatever it sends', async () => {
    await world.signIn()
    const transit = await enrolledRouter(world, { kind: 'routers', name: 'transit' })
    const simulated = await SimulatedRouter.open({ ...address, ...transit })
    open.push(simulated)
    simulated.introduce(transit.id)
    await simulated.takeType(2)
    simulated.send(20001, toBinary(ClientHelloSchema, create(ClientHelloSchema, { version: 'v1.6.5' })))
    simulated.send(20204, toBinary(RequestClientReSyncSchema, create(RequestClientReSyncSchema, { reason: 'x' })))
    const heartbeat = create(ApiSessionHeartbeatSchema, { tokens: ['no-such-token'] })
    simulated.send(20203, toBinary(ApiSessionHeartbeatSchema, heartbeat))
    await simulated.takeReply(simulated.send(1))
    await world.signIn()
    await simulated.takeReply(simulated.send(1))
    expect(simulated.received.filter(({ type }) => type >= 20_000)).toEqual([])
  })

  it('learns that there is no session, by one empty part that is the last one', async () => {
    const router = await enrolledRouter(world)
    await world.controller.auth.apiSessions.termination.endAll(world.system)
    const { parts, sessions } = await takeAll(await connect(router))
    expect(parts).toHaveLength(1)
    expect(sessions).toEqual([])
  })

  it.each([99, 100, 101, 250])('learns all of %i sessions and more, and which part is the last one', async (count) => {
    const tokens = new Set<string>()
    while (tokens.size < count) tokens.add((await world.signIn()).token)
    const { parts, sessions } = await takeAll(await connect())
    expect(new Set(parts.map(({ id }) => id)).size).toBe(1)
    expect(parts.map(({ sequence }) => sequence)).toEqual(parts.map((_part, at) => at))
    expect(parts.filter(({ isLast }) => isLast)).toHaveLength(1)
    const receivedTokens = new Set(sessions.map(({ token }) => token))
    for (const token of tokens) expect(receivedTokens.has(token)).toBe(true)
  })

  it('learns of each session its id, its identity and the fingerprints of their certificates', async () => {
    const { id: identityId, token } = await world.signIn()
    const { sessions } = await takeAll(await connect())
    const session = sessions.find((one) => one.token === token)!
    expect(session.identityId).toBe(identityId)
    expect(session.id).toMatch(/^[0-9A-Z]{26}$/)
    expect(session.certFingerprints).toEqual([])
  })

  it('receives all of them again when it asks, under a greater id', async () => {
    const router = await connect()
    const first = await takeAll(router)
    router.send(20204, toBinary(RequestClientReSyncSchema, create(RequestClientReSyncSchema, { reason: 'timeout' })))
    const second = await takeAll(router)
    expect(second.parts[0]!.id > first.parts[0]!.id).toBe(true)
  })
})

describe('routers that connect at once', () => {
  it('receive all sessions in turns, four at a time, and each receives them', async () => {
    const { connected, sessionSync } = world.controller.routers
    const routers = await Promise.all(Array.from({ length: 6 }, () => connect()))
    for (const router of routers) await takeAll(router)
    const count = (status: string) =>
      connected.listEdgeRouters().filter(({ syncStatus }) => syncStatus === status).length
    await expect.poll(() => count('SYNC_DONE')).toBe(6)
    await sessionSync.restart()
    expect(count('SYNC_IN_PROGRESS')).toBe(4)
    for (const router of routers) expect((await takeAll(router)).parts.at(-1)!.isLast).toBe(true)
    await expect.poll(() => count('SYNC_DONE')).toBe(6)
  })

  it('do not keep the place of one that is gone', async () => {
    const { connected, sessionSync } = world.controller.routers
    const routers = await Promise.all(Array.from({ length: 6 }, () => connect()))
    for (const router of routers) await takeAll(router)
    void sessionSync.restart()
    for (const router of routers.slice(1)) void router.close()
    await takeAll(routers[0]!)
    await expect.poll(() => connected.listEdgeRouters().length).toBe(1)
    await sessionSync.restart()
    await takeAll(routers[0]!)
  })
})

describe('a router that is connected', () => {
  it('knows of a sign-in before its client does', async () => {
    const routers = [await connect(), await connect()]
    for (const router of routers) await takeAll(router)
    const { token } = (await signInByPassword()).body.data
    for (const router of routers) {
      const { body: bytes } = await router.take(
        (message) => message.type === 20200 && readTokens(message).includes(token),
      )
      expect(fromBinary(ApiSessionAddedSchema, bytes).isFullState).toBe(false)
    }
  })

  it('knows of a session certificate before its client does, and of its end', async () => {
    const router = await connect()
    await takeAll(router)
    const { token } = await signInAnnounced(router)
    const path = `${CLIENT}/current-api-session/certificates`
    const { csr } = await clientKey('device')
    const created = await world.send({ method: 'POST', path, token, body: { csr } })
    const read = async () => fromBinary(ApiSessionUpdatedSchema, (await router.takeType(20201)).body).apiSessions[0]!
    const updated = await read()
    expect(updated.token).toBe(token)
    const record = await world.send({ method: 'GET', path: `${path}/${created.body.data.id}`, token })
    expect(updated.certFingerprints).toEqual([record.body.data.fingerprint])
    await world.send({ method: 'DELETE', path: `${path}/${created.body.data.id}`, token })
    expect((await read()).certFingerprints).toEqual([])
  })

  it('is told when a session ends: by its client, an administrator, or its identity', async () => {
    const router = await connect()
    await takeAll(router)
    const admin = await world.admin()
    const read = async () => fromBinary(ApiSessionRemovedSchema, (await router.takeType(20202)).body).tokens
    const own = await signInAnnounced(router)
    await world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, token: own.token })
    expect(await read()).toEqual([own.token])
    const disabled = await signInAnnounced(router)
    const body = { durationMinutes: 0 }
    await world.send({ method: 'POST', path: `${MANAGEMENT}/identities/${disabled.id}/disable`, token: admin, body })
    expect(await read()).toEqual([disabled.token])
    const deleted = await signInAnnounced(router)
    await world.send({ method: 'DELETE', path: `${MANAGEMENT}/identities/${deleted.id}`, token: admin })
    expect(await read()).toEqual([deleted.token])
  })

  it('is not told about a session that began and ended at once', async () => {
    const router = await connect()
    await takeAll(router)
    const { id } = await world.signIn()
    const { apiSessions } = world.controller.auth
    const [live] = apiSessions.listOfIdentity(id)
    const identity = live?.identity as NonNullable<typeof live>['identity']
    const session = { identity, authenticatorId: 'none', ipAddress: '', configTypes: [] }
    const begun = await world.system.write(async (tx) => {
      const { id } = await apiSessions.insert(tx, session)
      await apiSessions.revokeAll(tx, { identityId: identity.id })
      return id
    })
    const token = apiSessions.deriveToken(begun)
    await world.controller.routers.sessionSync.settle()
    await router.takeReply(router.send(1))
    expect(router.received.some((message) => message.type === 20200 && readTokens(message).includes(token))).toBe(false)
  })

  it('keeps the sessions alive whose clients are connected to it, and is told about those that have ended', async () => {
    const router = await connect()
    const { token } = await world.signIn()
    await takeAll(router)
    world.clock.advance(29 * 60_000)
    const heartbeat = create(ApiSessionHeartbeatSchema, { tokens: [token, 'no-such-token'] })
    router.send(20203, toBinary(ApiSessionHeartbeatSchema, heartbeat))
    expect(fromBinary(ApiSessionRemovedSchema, (await router.takeType(20202)).body).tokens).toEqual(['no-such-token'])
    world.clock.advance(29 * 60_000)
    const response = await world.send({ method: 'GET', path: `${CLIENT}/current-identity`, token })
    expect(response.status).toBe(200)
  })

  it('is told when a service session ends: with its policy, its API session, or by an administrator', async () => {
    const router = await connect()
    await takeAll(router)
    const admin = await world.admin()
    const manage = async (path: string, body: unknown) =>
      (await world.send({ method: 'POST', path: `${MANAGEMENT}/${path}`, token: admin, body })).body.data.id as string
    const all = { semantic: 'AnyOf', identityRoles: ['#all'] }
    await manage('edge-router-policies', { ...all, name: 'routers', edgeRouterRoles: ['#all'] })
    await manage('service-edge-router-policies', {
      name: 'services',
      semantic: 'AnyOf',
      serviceRoles: ['#all'],
      edgeRouterRoles: ['#all'],
    })
    const serviceId = await manage('services', { name: 'web', encryptionRequired: true })
    const policyId = await manage('service-policies', { ...all, name: 'dial', type: 'Dial', serviceRoles: ['#all'] })
    const open = async () => {
      const { token } = await world.signIn()
      const path = `${CLIENT}/sessions`
      const { body } = await world.send({ method: 'POST', path, token, body: { serviceId, type: 'Dial' } })
      // Routers of release 1 know it by the opaque token, whichever the client has.
      const opaqueToken = world.controller.auth.apiSessions.deriveToken(body.data.id)
      if (!areTokensSigned) expect(body.data.token).toBe(opaqueToken)
      return { apiToken: token, id: body.data.id as string, token: opaqueToken }
    }
    const read = async () => fromBinary(SessionRemovedSchema, (await router.takeType(20102)).body).tokens
    const byAdministrator = await open()
    const path = `${MANAGEMENT}/sessions/${byAdministrator.id}`
    await world.send({ method: 'DELETE', path, token: admin })
    expect(await read()).toEqual([byAdministrator.token])
    const withApiSession = await open()
    await world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, token: withApiSession.apiToken })
    expect(await read()).toEqual([withApiSession.token])
    const withPolicy = await open()
    await world.send({ method: 'DELETE', path: `${MANAGEMENT}/service-policies/${policyId}`, token: admin })
    expect(await read()).toEqual([withPolicy.token])
  })

  it('is told which of the service sessions that it knows have ended, and nothing if none has', async () => {
    const router = await connect()
    await takeAll(router)
    const validate = (sessionTokens: string[]) =>
      router.send(
        20213,
        toBinary(ValidateSessionsRequestSchema, create(ValidateSessionsRequestSchema, { sessionTokens })),
      )
    validate(['gone-1', 'gone-2'])
    const removed = fromBinary(SessionRemovedSchema, (await router.takeType(20102)).body)
    expect(removed.tokens).toEqual(['gone-1', 'gone-2'])
    validate([])
    await router.takeReply(router.send(1))
    expect(router.received.filter(({ type }) => type === 20102)).toEqual([])
  })
})

describe('a controller that stops', () => {
  it('reads nothing of what it has not announced yet once its store is closed', async () => {
    const log = recordingLog()
    const network = await TestNetwork.start({ log })
    await network.router()
    await network.world.signIn()
    await network.world.close()
    // Longer than changes wait for others to be announced with.
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(log.lines.filter((line) => line.level === 'error')).toEqual([])
  })
})
