// Invalid input of routers: the connection ends or the message is skipped, and no other client notices.
import { create, toBinary } from '@bufbuild/protobuf'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { ContentType } from '../../server/control-channel/content-types.ts'
import { encodeMessage } from '../../server/control-channel/message.ts'
import {
  CircuitConfirmationSchema,
  FaultSchema,
  FaultSubject,
  RouterInterfacesUpdateSchema,
} from '../../server/control-channel/messages/control_pb.ts'
import {
  RequestClientReSyncSchema,
  ValidateSessionsRequestSchema,
} from '../../server/control-channel/messages/edge_pb.ts'
import { errors } from '../../src/foundation/errors.ts'
import { issue, makeAuthority } from '../world/authorities.ts'
import { callOverTls } from '../world/certificates.ts'
import { CLIENT } from '../world/controller.ts'
import { rawTarget, sendRaw } from '../world/raw-requests.ts'
import { recordingLog } from '../world/recording-log.ts'
import { BODY_SCHEMAS } from '../world/router/body-schemas.ts'
import { reasonOfDisconnection, reasonOfRejection } from '../world/router/end-reasons.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import { SimulatedRouter } from '../world/router/simulated-router.ts'
import { useController } from '../world/use-controller.ts'

const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]
let address: { url: string; rootPem: string }
const log = recordingLog()
const world = useController({ log, settings: { listeners } })
let bystander: SimulatedRouter
const open: SimulatedRouter[] = []

beforeAll(async () => {
  await world.controller.membership.announce(world.system, {})
  address = await world.listen()
  bystander = await connect(await newRouter())
  open.pop()
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((router) => router.close()))
  // Whatever a test sent: another router and the users of the API on the same port do not notice.
  await bystander.takeReply(bystander.send(1))
  const response = await callOverTls(address.url, address.rootPem, { method: 'GET', path: `${CLIENT}/version` })
  expect(response.status).toBe(200)
})
afterAll(async () => {
  await bystander.close()
})

let names = 0
const newRouter = () => enrolledRouter(world, { name: `router-${++names}` })

async function dial(options: { cert?: string; key?: string; protocols?: readonly string[] }): Promise<SimulatedRouter> {
  // A response to a heartbeat would arrive in the middle of what a test writes.
  const router = await SimulatedRouter.open({ ...address, ...options, respondsToHeartbeats: false })
  open.push(router)
  return router
}

async function connect(router: EnrolledRouter): Promise<SimulatedRouter> {
  const simulated = await dial(router)
  simulated.introduce(router.id)
  await simulated.takeType(2)
  return simulated
}

/** The kinds that routers send with a body, and whose body the controller reads. */
const readKinds = [
  ContentType.CLIENT_HELLO,
  ContentType.UPDATE_ROUTER_INTERFACES,
  ContentType.API_SESSION_HEARTBEAT,
  ContentType.VALIDATE_SESSIONS,
  ContentType.CONNECT_EVENTS,
  ContentType.VERIFY_ROUTER,
  ContentType.FAULT,
  ContentType.CIRCUIT_CONFIRMATION,
  ContentType.ROUTER_LINKS,
  ContentType.METRICS,
  ContentType.REMOVE_TERMINATORS,
  ContentType.CREATE_TERMINATOR_V2_REQUEST,
]

describe('the handshake', () => {
  it.each([['ziti-link'], ['h2'], ['ziti-ctrl2']])('fails if only the protocol %s is offered', async (protocol) => {
    await expect(dial({ ...(await newRouter()), protocols: [protocol] })).rejects.toThrow(/protocol|alert/i)
  })

  it('without the protocol of routers leads to HTTP, for which a hello is not a request', async () => {
    const { id } = await newRouter()
    const hello = encodeMessage({ type: 0, sequence: -1, headers: new Map(), body: Buffer.from(id) })
    const { status } = await sendRaw(rawTarget(address.url, address.rootPem), hello)
    expect(status).toBe(400)
    expect(world.controller.routers.connected.get(id)).toBeUndefined()
  })
})

describe('a router is not connected', () => {
  it('by a certificate with its id that another authority issued', async () => {
    const router = await newRouter()
    const foreign = await issue(`CN=${router.id}`, await makeAuthority())
    const simulated = await dial({ cert: foreign.pem, key: foreign.keyPem })
    simulated.introduce(router.id)
    await simulated.closed
    expect(await reasonOfRejection(world, log)).toBe('the certificate is not valid now, or another authority issued it')
    expect(world.controller.routers.connected.get(router.id)).toBeUndefined()
  })
})

describe('a connected router', () => {
  it.each(readKinds)('loses its connection for garbage in place of the body of a message of type %i', async (type) => {
    expect(BODY_SCHEMAS.has(type)).toBe(true)
    const router = await newRouter()
    const simulated = await connect(router)
    simulated.send(type, Buffer.from([0xff, 0xff, 0xff, 0xff]))
    await simulated.closed
    expect(reasonOfDisconnection(log, router)).toBe(`a message of type ${type} has a malformed body`)
  })

  it('may reply to what was never asked', async () => {
    const simulated = await connect(await newRouter())
    const toNothing = Buffer.alloc(4)
    toNothing.writeInt32LE(0x7000_0000)
    for (const type of [ContentType.RESULT, ContentType.INSPECT_RESPONSE, 424_242])
      simulated.send(type, Buffer.alloc(0), [[1, toNothing]])
    simulated.send(ContentType.ROUTE_RESULT, Buffer.from('no-such-circuit'), [
      [1, toNothing],
      [1101, Buffer.alloc(4)],
    ])
    simulated.send(ContentType.RESULT, Buffer.alloc(0), [[1, Buffer.from([1])]])
    await simulated.takeReply(simulated.send(1))
  })

  it('may name circuits and links as members that every object has', async () => {
    const simulated = await connect(await newRouter())
    const ids = ['__proto__', 'constructor', 'toString']
    const confirmation = create(CircuitConfirmationSchema, { circuitIds: ids })
    simulated.send(ContentType.CIRCUIT_CONFIRMATION, toBinary(CircuitConfirmationSchema, confirmation))
    for (const id of ids)
      simulated.send(
        ContentType.FAULT,
        toBinary(FaultSchema, create(FaultSchema, { id, subject: FaultSubject.LinkFault })),
      )
    await simulated.takeReply(simulated.send(1))
  })

  it('is served although its frames arrive byte by byte', async () => {
    const simulated = await connect(await newRouter())
    const ping = encodeMessage({
      type: 1,
      sequence: 77,
      headers: new Map([[128, Buffer.from('a')]]),
      body: Buffer.alloc(0),
    })
    for (const byte of ping) {
      simulated.write(Buffer.from([byte]))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await simulated.takeReply(77)
  })

  it('does not keep others waiting by a flood of requests, whether it loses its connection or not', async () => {
    const simulated = await connect(await newRouter())
    const body = toBinary(
      ValidateSessionsRequestSchema,
      create(ValidateSessionsRequestSchema, { sessionTokens: ['no-such-session'] }),
    )
    const type = ContentType.VALIDATE_SESSIONS
    const request = encodeMessage({ type, sequence: 1, headers: new Map(), body: Buffer.from(body) })
    simulated.write(Buffer.concat(Array.from({ length: 20_000 }, () => request)))
    await bystander.takeReply(bystander.send(1))
    await Promise.race([simulated.closed, simulated.takeReply(simulated.send(1)).catch(() => {})])
  })

  const manyIds = Array.from({ length: 5_000 }, (_, at) => `unknown-${at}`)
  it.each([
    [
      'faults of',
      ContentType.FAULT,
      toBinary(FaultSchema, create(FaultSchema, { id: manyIds.join(' '), subject: FaultSubject.ForwardFault })),
    ],
    [
      'circuits without data,',
      ContentType.CIRCUIT_CONFIRMATION,
      toBinary(CircuitConfirmationSchema, create(CircuitConfirmationSchema, { circuitIds: manyIds })),
    ],
  ])(
    'that reports %s thousands of unknown circuits drops a thousand of them, in several turns',
    async (_name, type, body) => {
      const router = await newRouter()
      const simulated = await connect(router)
      const { connection } = world.controller.routers.connected.get(router.id)!
      const countsOfTurns: number[] = []
      const sendUnroute = connection.sendUnroute
      connection.sendUnroute = (...unroute) => {
        if (countsOfTurns.length === 0) countNextTurn()
        countsOfTurns[countsOfTurns.length - 1]! += 1
        sendUnroute(...unroute)
      }
      const countNextTurn = () => {
        countsOfTurns.push(0)
        if (countsOfTurns.length < 100) setImmediate(countNextTurn)
      }
      simulated.send(type, body)
      await expect.poll(() => countsOfTurns.length).toBe(100)
      expect(countsOfTurns.reduce((sum, count) => sum + count)).toBe(1_000)
      expect(Math.max(...countsOfTurns)).toBeLessThan(1_000)
      await simulated.takeReply(simulated.send(1))
    },
  )
})

describe('the log has one line of', () => {
  const linesOf = (message: string) => log.lines.filter((line) => line.message === message)

  it('connections without a valid hello, however many come from one address', async () => {
    const countBefore = linesOf('a router was rejected').length
    for (const type of [1, 2, 3, 4]) {
      const simulated = await dial({})
      simulated.send(type)
      await simulated.closed
    }
    expect(linesOf('a router was rejected').length - countBefore).toBe(1)
  })

  it('requests of a router for all API sessions', async () => {
    const simulated = await connect(await newRouter())
    const body = toBinary(RequestClientReSyncSchema, create(RequestClientReSyncSchema, { reason: 'a test' }))
    for (let count = 0; count < 3; count += 1) simulated.send(ContentType.REQUEST_CLIENT_RESYNC, body)
    await simulated.takeReply(simulated.send(1))
    expect(linesOf('a router asks for all API sessions again')).toHaveLength(1)
  })

  it('interfaces that are refused because too many writes wait, and the router is told', async () => {
    const simulated = await connect(await newRouter())
    const { provisioner } = world.controller.routers
    const refuse = vi.spyOn(provisioner, 'storeInterfaces').mockRejectedValue(errors.SERVER_TOO_MANY_REQUESTS())
    const body = toBinary(RouterInterfacesUpdateSchema, create(RouterInterfacesUpdateSchema, {}))
    for (let count = 0; count < 3; count += 1) {
      const reply = await simulated.takeReply(simulated.send(ContentType.UPDATE_ROUTER_INTERFACES, body))
      expect(reply.body.toString()).toContain('busy')
    }
    refuse.mockRestore()
    const lines = linesOf('the interfaces of a router were not stored: too many writes wait')
    expect(lines.map(({ level }) => level)).toEqual(['warn'])
  })
})
