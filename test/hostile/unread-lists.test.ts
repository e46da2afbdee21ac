// A client that requests whole lists and never reads them does not lock out other clients.
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { services } from '../../src/definitions/resources/services.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let address: { host: string; port: number; ca: string }
const sockets: TLSSocket[] = []

// More than sockets buffer on their way.
const SERVICES = 6_000
const FILLER = 'x'.repeat(2_000)

beforeAll(async () => {
  const { url, rootPem } = await world.listen()
  const { hostname, port } = new URL(url)
  address = { host: hostname, port: Number(port), ca: rootPem }
  await world.system.write(async (tx) => {
    for (let at = 0; at < SERVICES; at++) {
      const values = { name: `service ${at}`, encryptionRequired: true, tags: { filler: FILLER } }
      await world.controller.entities.insert(tx, services, newEntity(tx, services, values))
    }
  })
  const manage = await managementOf(world)
  await manage.make('service-policies', {
    name: 'everything',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    serviceRoles: ['#all'],
  })
}, 120_000)
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
})

/** Sends a request, reads the status, and then nothing more. */
async function askAndStopReading(path: string, token: string): Promise<number> {
  const socket = connect(address)
  sockets.push(socket)
  socket.on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nnet-session: ${token}\r\n\r\n`)
  const first = await new Promise<Buffer>((resolve) => socket.once('data', resolve))
  socket.pause()
  return Number(/^HTTP\/1\.1 (\d+)/.exec(first.toString('latin1'))?.[1])
}

describe('whole lists that are not read', () => {
  it('leave administrators all of theirs, and the check of the audit', async () => {
    const clients = await Promise.all(Array.from({ length: 6 }, () => world.signIn()))
    const statuses: number[] = []
    for (const { token } of clients) {
      for (let at = 0; at < 3; at++) statuses.push(await askAndStopReading(`${CLIENT}/services?limit=-1`, token))
    }
    const token = await world.admin()

    const list = await world.send({ method: 'GET', path: `${MANAGEMENT}/services?limit=-1`, token })
    const check = await world.send({ method: 'GET', path: `${MANAGEMENT}/controller/audit/verify`, token })

    expect(statuses.filter((status) => status === 200)).toHaveLength(8)
    expect(statuses.filter((status) => status === 429)).toHaveLength(10)
    expect([list.status, list.body.data.length]).toEqual([200, SERVICES])
    expect([check.status, check.body.data.isWhole]).toEqual([200, true])
  })
})
