// Routers that are refused thousands of times: the log says so once a minute, with the number.
import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FaultSchema, FaultSubject, RouterLinksSchema } from '../../server/control-channel/messages/control_pb.ts'
import {
  CreateTunnelTerminatorRequestSchema,
  EnrollmentExtendRouterRequestSchema,
  EnrollmentExtendRouterVerifyRequestSchema,
} from '../../server/control-channel/messages/edge_pb.ts'
import { type TestController, testController } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'
import { newName } from '../world/names.ts'
import { type RecordingLog, recordingLog } from '../world/recording-log.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import { SimulatedRouter } from '../world/router/simulated-router.ts'

const TIMES = 100

let world: TestController
let log: RecordingLog
let router: EnrolledRouter
let wire: SimulatedRouter

beforeEach(async () => {
  log = recordingLog()
  const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]
  world = await testController({ log, settings: { listeners } })
  await world.controller.membership.announce(world.system, {})
  router = await enrolledRouter(world, { name: newName('router') })
  wire = await SimulatedRouter.open({ ...(await world.listen()), ...router })
  wire.introduce(router.id)
  await wire.takeType(20000)
})
afterEach(async () => {
  await wire.close()
  await world.close()
})

/** The lines above debug that a router caused, as often as it sent the messages. */
async function linesOf(send: () => void): Promise<{ message: string; count: unknown }[]> {
  log.lines.length = 0
  for (let at = 0; at < TIMES; at += 1) {
    send()
    await wire.takeReply(wire.send(1))
  }
  world.clock.advance(60_000)
  await world.controller.aggregatedLog.flush()
  const lines = log.lines.filter(({ level }) => level !== 'debug')
  return lines.map(({ message, fields }) => ({ message, count: fields.count }))
}

describe('a router fills the log with no more than two lines a minute', () => {
  it('by requests of a tunneler that are refused', async () => {
    const terminator = create(CreateTunnelTerminatorRequestSchema, { serviceName: 'secret', address: 'a' })
    const body = toBinary(CreateTunnelTerminatorRequestSchema, terminator)
    const message = 'a request of a tunneler was refused'
    expect(await linesOf(() => wire.send(20406, body))).toEqual([
      { message, count: undefined },
      { message, count: TIMES - 1 },
    ])
  })

  it('by certificate requests, and confirmations, that are refused', async () => {
    const request = create(EnrollmentExtendRouterRequestSchema, { clientCertCsr: 'x', serverCertCsr: 'y' })
    const confirmation = create(EnrollmentExtendRouterVerifyRequestSchema, { clientCertPem: 'x' })
    const message = 'certificates of a router were not renewed'
    const lines = await linesOf(() => {
      wire.send(20302, toBinary(EnrollmentExtendRouterRequestSchema, request))
      wire.send(20303, toBinary(EnrollmentExtendRouterVerifyRequestSchema, confirmation))
    })
    expect(lines).toEqual([
      { message, count: undefined },
      { message, count: 2 * TIMES - 1 },
    ])
  })

  it('by links that it reports and loses at once', async () => {
    const other = await enrolledRouter(world, { name: newName('router') })
    let links = 0
    const lines = await linesOf(() => {
      const id = `link-${++links}`
      const link = { id, destRouterId: other.id, linkProtocol: 'tls', dialAddress: 'tls:a:1', iteration: 1 }
      wire.send(1035, toBinary(RouterLinksSchema, create(RouterLinksSchema, { links: [link] })))
      const fault = { subject: FaultSubject.LinkFault, id, iteration: 1 }
      wire.send(1004, toBinary(FaultSchema, create(FaultSchema, fault)))
    })
    const message = 'a link failed'
    expect(lines).toEqual([
      { message, count: undefined },
      { message, count: TIMES - 1 },
    ])
  })

  it('by messages that the controller cannot handle', async () => {
    const { tunneling } = world.controller.routers
    tunneling.listServices = () => Promise.reject(new Error('the disk is full'))
    const message = 'a message of a router could not be handled'
    expectFaults(/could not be handled.*the disk is full/s)
    expect(await linesOf(() => wire.send(20404))).toEqual([
      { message, count: undefined },
      { message, count: TIMES - 1 },
    ])
  })
})
