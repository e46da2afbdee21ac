// When the controller stops, each connection closes once the request that it runs has its response; nothing holds it up.
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { identities } from '../../src/definitions/resources/identities.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { openTls, parseResponse, type RawTarget, rawTarget, readToEnd } from '../world/raw-requests.ts'

let world: TestController
let target: RawTarget
let isOpen: boolean

beforeEach(async () => {
  // Longer than a test may take: nothing waits for a handshake.
  world = await testController({ settings: { 'limits.headerTime': '10m' } })
  const { url, rootPem } = await world.listen()
  target = rawTarget(url, rootPem)
  isOpen = true
})
afterEach(async () => {
  if (isOpen) await world.close()
})

async function close(): Promise<void> {
  isOpen = false
  await world.close()
}

const get = (path: string, token: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nnet-session: ${token}\r\n\r\n`

const countResponses = (received: string) => received.split(/^HTTP\/1\.1 [^1]/m).length - 1

describe('when the controller stops', () => {
  it('a running request gets its response, and one that waits behind it on the connection is not run', async () => {
    const token = await world.admin()
    const body = JSON.stringify({ name: 'web', encryptionRequired: true })
    const fields = `content-type: application/json\r\ncontent-length: ${body.length}\r\nexpect: 100-continue`
    const socket = await openTls(target)
    const received = readToEnd(socket)
    socket.write(`POST ${MANAGEMENT}/services HTTP/1.1\r\nHost: x\r\nnet-session: ${token}\r\n${fields}\r\n\r\n`)
    await once(socket, 'data')
    const closing = close()
    socket.write(body + get(`${CLIENT}/current-identity`, token))
    await closing

    const text = await received
    expect(text).toMatch(/^HTTP\/1\.1 201 .*^connection: close/ims)
    expect(countResponses(text)).toBe(1)
  })

  it.each(['/current-identity', '/current-identity/'])('a client that polls %s is told so once', async (path) => {
    const { token } = await world.signIn()
    const socket = await openTls(target)
    const received = readToEnd(socket)
    const poll = () => socket.writable && socket.write(get(CLIENT + path, token))
    socket.on('data', poll)
    socket.on('error', () => {})
    poll()
    await once(socket, 'data')
    await close()

    expect((await received).match(/^connection: close/gim) ?? []).toHaveLength(1)
  })

  it.each(['limit=500', 'limit=-1'])('a client receives the rest of a list with %s', async (query) => {
    await world.system.write(async (tx) => {
      for (let at = 0; at < 500; at++) {
        const values = { name: `device ${at}`, typeId: 'Device', tags: { filler: 'x'.repeat(4_000) } }
        await world.controller.entities.insert(tx, identities, newEntity(tx, identities, values))
      }
    })
    const socket = await openTls(target)
    socket.write(get(`${MANAGEMENT}/identities?${query}`, await world.admin()))
    const first: Buffer = (await once(socket, 'data'))[0]
    socket.pause()
    const closing = close()
    const rest = readToEnd(socket)
    await closing

    const { text } = parseResponse(first.toString() + (await rest))
    expect(text).toContain('"totalCount"')
  })

  it('connections without a request, and without a handshake, are closed', async () => {
    const silent = connect(target.port, target.host)
    const idle = await openTls(target)
    const received = [once(silent, 'close'), readToEnd(idle)]
    await close()

    await Promise.all(received)
  })
})
