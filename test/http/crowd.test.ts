// A crowd that connects at once: all are accepted and served in turn, and no handshake is lost or wasted.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { beginHandshakesInTurn } from '../../server/listeners/handshakes-in-turn.ts'
import { CLIENT } from '../world/controller.ts'
import { openTls, parseResponse, rawTarget, readToEnd } from '../world/raw-requests.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const CROWD = 100
const TIMEOUT_MS = 60_000

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))
const countConnections = (server: Server) => promisify(server.getConnections.bind(server))()

describe('of clients that connect to a controller at once', () => {
  const world = useControllerPerTest()

  it('each gets its response', async () => {
    const { url, rootPem } = await world.listen()
    const target = rawTarget(url, rootPem)
    const ask = async () => {
      const socket = await openTls(target)
      const received = readToEnd(socket)
      socket.write(`GET ${CLIENT}/version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
      return parseResponse(await received).status
    }

    const statuses = await Promise.all(Array.from({ length: CROWD }, ask))

    expect(statuses).toEqual(Array.from({ length: CROWD }, () => 200))
  })

  it('those that say nothing do not hold up those that do', async () => {
    const { url, rootPem } = await world.listen()
    const target = rawTarget(url, rootPem)
    const silent = Array.from({ length: CROWD }, () => connect(target.port, target.host))
    await Promise.all(silent.map((socket) => once(socket, 'connect')))

    const socket = await openTls(target)

    expect(socket.authorized).toBe(true)
    for (const one of [...silent, socket]) one.destroy()
  })
})

describe('of connections that are accepted in turn after turn', () => {
  let server: Server
  let port: number
  let begun: Socket[]
  const clients: Socket[] = []

  beforeEach(async () => {
    begun = []
    server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => begun.push(socket))
    beginHandshakesInTurn(server, { admit: () => true, timeoutMs: TIMEOUT_MS })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    port = (server.address() as AddressInfo).port
  })
  afterEach(() => {
    for (const socket of [...begun, ...clients.splice(0)]) socket.destroy()
    server.close()
  })

  /** Connects clients, each of which says a line. */
  async function connectAll(names: readonly string[]): Promise<Socket[]> {
    const sockets = names.map(() => connect(port, '127.0.0.1'))
    clients.push(...sockets)
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    for (const [at, socket] of sockets.entries()) socket.write(`${names[at]}\n`)
    return sockets
  }

  const names = Array.from({ length: CROWD }, (_, at) => `client ${at}`)

  it('each begins with all that its client has said', async () => {
    await connectAll(names)
    while (begun.length < CROWD) await nextTurn()

    const said = await Promise.all(begun.map(async (socket) => String((await once(socket.resume(), 'data'))[0])))

    expect(said.toSorted()).toEqual(names.map((name) => `${name}\n`).toSorted())
  })

  it('one whose client sends more than any handshake begins with does not begin', async () => {
    const [socket] = (await connectAll(['client'])) as [Socket]
    socket.on('error', () => {}).write(Buffer.alloc(1024 * 1024))

    await new Promise((resolve) => socket.once('close', resolve))

    expect(begun).toEqual([])
  })

  it.each([
    ['closed its end', (socket: Socket) => socket.end()],
    ['is gone', (socket: Socket) => socket.resetAndDestroy()],
  ])('one whose client %s does not begin', async (_what, leave) => {
    const [first] = await connectAll(['first'])
    while (begun.length === 0) await nextTurn()
    const sockets = await connectAll(names)
    const leaving = sockets.filter((_, at) => at % 2 === 0)
    const staying = sockets.filter((socket) => !leaving.includes(socket))
    for (const socket of leaving) leave(socket)

    while (begun.length <= staying.length || (await countConnections(server)) > begun.length) await nextTurn()

    const ports = [first, ...staying].map((socket) => socket?.localPort)
    expect(begun.map(({ remotePort }) => remotePort).toSorted()).toEqual(ports.toSorted())
  })
})
