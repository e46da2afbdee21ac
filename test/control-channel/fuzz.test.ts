// Random bytes and random messages: the controller never fails, and a channel either goes on or is closed with a reason.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  encodeMessage,
  MalformedFrameError,
  MESSAGE_LIMITS,
  type Message,
  MessageReader,
} from '../../server/control-channel/message.ts'
import { callOverTls } from '../world/certificates.ts'
import { CLIENT, type TestController, testController } from '../world/controller.ts'
import { type RecordingLog, recordingLog } from '../world/recording-log.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import { randomMessage } from '../world/router/random-messages.ts'
import { SimulatedRouter } from '../world/router/simulated-router.ts'

/** Returns the messages that a reader finds in bytes that arrive in pieces of these lengths, again and again. */
function readInPieces(bytes: Buffer, lengths: readonly number[]): Message[] {
  const reader = new MessageReader(MESSAGE_LIMITS)
  const messages: Message[] = []
  for (let at = 0, piece = 0; at < bytes.length; piece += 1) {
    const length = lengths[piece % lengths.length] ?? 1
    reader.push(bytes.subarray(at, at + length))
    at += length
    for (let message = reader.next(); message; message = reader.next()) messages.push(message)
  }
  return messages
}

const pieces = fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1, maxLength: 8 })

describe('the reader of frames', () => {
  it('reads what was sent, however it is split', () => {
    fc.assert(
      fc.property(fc.array(randomMessage, { maxLength: 5 }), pieces, (messages, lengths) => {
        const decoded = readInPieces(Buffer.concat(messages.map(encodeMessage)), lengths)
        expect(decoded.map(encodeMessage)).toEqual(messages.map(encodeMessage))
      }),
    )
  })

  it('refuses all other bytes, or waits for more of them', () => {
    const changed = fc
      .tuple(randomMessage, fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 6 }))
      .map(([message, changes]) => {
        const bytes = encodeMessage(message)
        for (const [at, value] of changes) bytes[at % bytes.length] = value
        return bytes
      })
    const garbage = fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes))
    fc.assert(
      fc.property(fc.oneof(changed, garbage), pieces, (bytes, lengths) => {
        try {
          readInPieces(bytes, lengths)
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedFrameError)
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('a controller', () => {
  let world: TestController
  let log: RecordingLog
  let address: { url: string; rootPem: string }
  let fuzzed: EnrolledRouter
  let bystander: SimulatedRouter

  beforeAll(async () => {
    log = recordingLog()
    const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]
    world = await testController({ log, settings: { listeners } })
    await world.controller.membership.announce(world.system, {})
    address = await world.listen()
    fuzzed = await enrolledRouter(world, { name: 'fuzzed' })
    bystander = await connect(await enrolledRouter(world, { name: 'bystander' }))
  })
  afterAll(async () => {
    await bystander.close()
    await world.close()
  })

  async function connect(router: EnrolledRouter): Promise<SimulatedRouter> {
    const simulated = await SimulatedRouter.open({ ...address, ...router })
    simulated.introduce(router.id)
    await simulated.takeType(2)
    return simulated
  }

  /** Resolves when the controller has handled everything before, or has ended the connection. */
  async function settle(simulated: SimulatedRouter): Promise<void> {
    await Promise.race([simulated.takeReply(simulated.send(1)).catch(() => {}), simulated.closed])
  }

  async function end(simulated: SimulatedRouter): Promise<void> {
    await simulated.close()
    await expect.poll(() => world.controller.routers.connected.get(fuzzed.id)).toBeUndefined()
  }

  const disconnections = () => log.lines.filter(({ message }) => message === 'a router disconnected')

  it('survives random messages of a router', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(randomMessage, { minLength: 1, maxLength: 25 }), async (messages) => {
        const simulated = await connect(fuzzed)
        for (const message of messages) simulated.write(encodeMessage(message))
        await settle(simulated)
        await end(simulated)
      }),
      { numRuns: 60 },
    )
    expect(disconnections().every(({ fields }) => typeof fields.reason === 'string' && fields.reason !== '')).toBe(true)
    await bystander.takeReply(bystander.send(1))
  })

  it('survives random bytes, before and after the hello', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.uint8Array({ minLength: 20, maxLength: 300 }), async (isConnected, bytes) => {
        const simulated = isConnected ? await connect(fuzzed) : await SimulatedRouter.open({ ...address, ...fuzzed })
        simulated.write(Buffer.from(bytes))
        await simulated.closed
        await end(simulated)
      }),
      { numRuns: 30 },
    )
    await bystander.takeReply(bystander.send(1))
  })

  it('has only the router left that did nothing wrong, and serves HTTP as before', async () => {
    const { fabric, routers } = world.controller
    expect(routers.connected.listIds()).toHaveLength(1)
    expect([fabric.circuits.size, fabric.links.list().length]).toEqual([0, 0])
    const response = await callOverTls(address.url, address.rootPem, { method: 'GET', path: `${CLIENT}/version` })
    expect(response.status).toBe(200)
  })
})
