// Limits for clients without a session: they can do little, and not for long.
import { connect as connectTcp, type Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildApp } from '../../server/app.ts'
import { EventLoopDelay } from '../../server/monitoring/load.ts'
import type { Log } from '../../src/foundation/log.ts'
import { sourceFromAddress } from '../../src/storage/sources.ts'
import { callOverTls } from '../world/certificates.ts'
import { ADMIN, CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'

const errorsLogged: unknown[] = []
const log: Log = { debug() {}, info() {}, warn() {}, error: (fields) => errorsLogged.push(fields) }

let world: TestController
let at: { host: string; port: number; ca: string; url: string }
let open: Socket[]

beforeEach(() => {
  errorsLogged.length = 0
  open = []
})

async function openWorld(limits: Record<string, string> = {}): Promise<void> {
  world = await testController({
    log,
    settings: { 'limits.header': '4KiB', 'limits.connectionsPerAddress': 3, ...limits },
  })
  const { url, rootPem } = await world.listen()
  const { hostname, port } = new URL(url)
  at = { host: hostname, port: Number(port), ca: rootPem, url }
}
afterEach(async () => {
  for (const socket of open) socket.destroy()
  await world.close()
})

function secured(): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...at, servername: 'localhost' }, () => resolve(socket))
    socket.once('error', reject)
    open.push(socket)
  })
}

/** Everything the other side says until it closes the connection. */
function untilClosed(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let said = ''
    socket.on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(said))
  })
}

const bodyOf = (said: string) => JSON.parse(said.slice(said.indexOf('\r\n\r\n')))

describe('a client that is slow', () => {
  // Not so short that a busy machine needs as long for a handshake, which the time of the headers limits, too.
  const TIMES = { 'limits.headerTime': '1500ms', 'limits.requestTime': '2500ms', 'limits.idleTime': '300ms' }
  beforeEach(() => openWorld(TIMES))

  it('to begin its handshake is cut', async () => {
    const socket = connectTcp(at)
    open.push(socket)

    expect(await untilClosed(socket)).toBe('')
  })

  it('to go on with its handshake is cut', async () => {
    const socket = connectTcp(at)
    open.push(socket)
    socket.write(Buffer.of(0x16, 3, 1))

    expect(await untilClosed(socket)).toBe('')
  })

  it('to send its headers is told so, and cut', async () => {
    const socket = await secured()
    socket.write('GET /version HTTP/1.1\r\nhost: x\r\n')

    const said = await untilClosed(socket)

    expect(said).toMatch(/^HTTP\/1\.1 408 /)
    expect(bodyOf(said).error).toMatchObject({ code: 'REQUEST_TIMEOUT', requestId: expect.any(String) })
  })

  it('to send its body gets a 4xx, and its connection is closed', async () => {
    const socket = await secured()
    const path = `${CLIENT}/authenticate?method=password`
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"a`,
    )

    const said = await untilClosed(socket)

    expect(said).toMatch(/^HTTP\/1\.1 408 /)
    expect(errorsLogged).toEqual([])
  })

  it('to send anything at all is cut', async () => {
    expect(await untilClosed(await secured())).toMatch(/^$|^HTTP\/1\.1 408 /)
  })

  it('to send the next request is cut without a word', async () => {
    const socket = await secured()
    socket.write('GET /version HTTP/1.1\r\nhost: x\r\n\r\n')

    const said = await untilClosed(socket)

    expect(said).toMatch(/^HTTP\/1\.1 200 /)
    expect(said.match(/HTTP\/1\.1/g)).toHaveLength(1)
  })

  it('to send its body, byte by byte, is cut as well', async () => {
    const socket = await secured()
    const path = `${CLIENT}/authenticate?method=password`
    socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n`)
    const drip = setInterval(() => socket.write(' '), 50)

    const said = await untilClosed(socket)

    clearInterval(drip)
    expect(said).toMatch(/^HTTP\/1\.1 408 /)
  })
})

describe('a request', () => {
  beforeEach(() => openWorld())

  it('with headers beyond the limit is refused with 431', async () => {
    const response = await callOverTls(at.url, at.ca, {
      method: 'GET',
      path: '/version',
      headers: { filler: 'x'.repeat(8_000) },
    })

    expect(response.status).toBe(431)
    expect(response.body.error.code).toBe('REQUEST_HEADER_FIELDS_TOO_LARGE')
  })

  it.each([
    ['that is not HTTP', 'hello\r\n\r\n'],
    ['with two lengths', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
    [
      'with a length and chunks',
      'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
    ],
    ['without a host', 'GET /version HTTP/1.1\r\n\r\n'],
    ['with a line break in a header', 'GET /version HTTP/1.1\r\nhost: x\r\na: b\nc\r\n\r\n'],
  ])('%s is refused with 400', async (_what, text) => {
    const socket = await secured()
    socket.write(text)

    expect(await untilClosed(socket)).toMatch(/^HTTP\/1\.1 400 /)
  })

  it('whose body is larger than announced anywhere is cut off at the limit', async () => {
    const socket = await secured()
    const path = `${CLIENT}/authenticate?method=password`
    const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    )
    for (let chunkCount = 0; chunkCount < 6; chunkCount++) socket.write(chunk)

    expect(await untilClosed(socket)).toMatch(/^HTTP\/1\.1 413 /)
  })
})

describe('connections from one address', () => {
  beforeEach(() => openWorld())

  it('are cut beyond the limit, and others come in once one is closed', async () => {
    const first = await Promise.all([secured(), secured(), secured()])

    await expect(secured()).rejects.toThrow()
    first[0].destroy()
    await new Promise((resolve) => first[0].once('close', resolve))
    await expect
      .poll(() =>
        secured().then(
          () => true,
          () => false,
        ),
      )
      .toBe(true)
  })

  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::ffff:c000:207', '192.0.2.7'],
    ['2001:DB8:0:0:0:0:0:7', '2001:db8:0:0::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::7', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('%s count as %s', (address, source) => {
    expect(sourceFromAddress(address)).toBe(source)
  })
})

describe('a server that has more to do than it can', () => {
  beforeEach(() => openWorld())

  it.each([
    ['in time', 0, { anonymous: 200, identity: 200, administrator: 200 }],
    ['late', 600, { anonymous: 429, identity: 200, administrator: 200 }],
    ['very late', 1_100, { anonymous: 429, identity: 429, administrator: 200 }],
    ['hopelessly late', 60_000, { anonymous: 429, identity: 429, administrator: 200 }],
  ])(
    'and is %s refuses anonymous requests first, and those of administrators never',
    async (_how, delayMs, expected) => {
      const app = await buildApp(world.controller, { load: { delayMs } })
      const identity = (await world.signIn()).token
      const administrator = await world.admin()
      const ask = (token?: string) =>
        app.inject({
          method: 'GET',
          url: token ? `${MANAGEMENT}/current-identity` : `${MANAGEMENT}/version`,
          headers: token ? { 'net-session': token } : {},
        })

      const responses = {
        anonymous: await ask(),
        identity: await ask(identity),
        administrator: await ask(administrator),
      }

      await app.close()
      expect(Object.fromEntries(Object.entries(responses).map(([who, { statusCode }]) => [who, statusCode]))).toEqual(
        expected,
      )
      for (const response of Object.values(responses).filter(({ statusCode }) => statusCode === 429)) {
        expect(response.json().error.code).toBe('SERVER_TOO_MANY_REQUESTS')
        expect(Number(response.headers['retry-after'])).toBeGreaterThan(0)
      }
    },
  )

  it('is one whose turns are late one after the other; a single long one is not overload', () => {
    const load = new EventLoopDelay()
    const delayAfter = (...turns: number[]) => {
      for (const turn of turns) load.record(turn)
      return load.delayMs
    }

    expect(delayAfter(5_000)).toBe(0)
    expect(delayAfter(0, 900, 900, 900)).toBe(0)
    expect(delayAfter(700)).toBe(700)
    expect(delayAfter(0)).toBe(0)
  })

  it('lets changes wait up to a limit, and those of administrators beyond it', async () => {
    await world.close()
    world = await testController({ settings: { 'limits.writeQueue': 2 } })
    const administrator = await world.admin()
    const create = (name: string) =>
      world.send({
        method: 'POST',
        path: `${MANAGEMENT}/identities`,
        token: administrator,
        body: { name, type: 'Device', isAdmin: false },
      })
    const signIn = () => world.send({ method: 'POST', path: `${MANAGEMENT}/authenticate?method=password`, body: ADMIN })

    const changes = await Promise.all(Array.from({ length: 12 }, (_, at) => create(`identity ${at}`)))

    const statuses = changes.map(({ status }) => status)
    expect(statuses.filter((status) => status === 201).length).toBeGreaterThanOrEqual(4)
    for (const response of changes.filter(({ status }) => status !== 201)) {
      expect(response.status).toBe(429)
      expect(Number(response.headers['retry-after'])).toBeGreaterThan(0)
    }
    expect((await signIn()).status).toBe(200)
  })
})
