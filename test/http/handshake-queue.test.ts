// The order in which the handshakes of a crowd begin.
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { HandshakeQueue } from '../../server/connections/handshake-queue.ts'

let queue: HandshakeQueue
let server: Server
let clients: Socket[]
/** The first bytes of the clients whose handshakes have begun, in order. */
let begun: string[]

beforeEach(async () => {
  // The time between two handshakes, and how long one counts, are not waited for.
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
  queue = new HandshakeQueue(10_000)
  clients = []
  begun = []
  server = createServer({ allowHalfOpen: true }, (socket) =>
    queue.enter(socket, () => begun.push(String(socket.read()))),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(() => {
  vi.useRealTimers()
  for (const client of clients) client.destroy()
  server.close()
})

/** Connects, and resolves with both ends once the server has accepted it, and has received what it sends. */
async function come(bytes: string): Promise<{ client: Socket; accepted: Socket }> {
  const { port } = server.address() as { port: number }
  const client = connect({ port, host: '127.0.0.1' })
  clients.push(client)
  const [accepted] = (await once(server, 'connection')) as [Socket]
  if (bytes) {
    const received = once(accepted, 'readable')
    client.write(bytes)
    await received
  }
  return { client, accepted }
}

describe('handshakes', () => {
  it('of a crowd begin in their order, one at a time', async () => {
    for (const name of ['first', 'second', 'third']) await come(name)
    expect(begun).toEqual(['first'])

    vi.advanceTimersByTime(1)
    expect(begun).toEqual(['first', 'second'])

    vi.advanceTimersByTime(1)
    expect(begun).toEqual(['first', 'second', 'third'])
  })

  it('do not wait for a client that sends nothing', async () => {
    await come('')
    await come('second')

    expect(begun).toEqual(['second'])
  })

  it('do not wait for a client that has left', async () => {
    await come('first')
    const { accepted } = await come('second')
    await come('third')
    accepted.destroy()

    vi.advanceTimersByTime(1)

    expect(begun).toEqual(['first', 'third'])
  })

  it('are not begun for a client that sends more at once than any does', async () => {
    await come('first')
    const { client, accepted } = await come('x')
    const closed = once(accepted, 'close')
    client.write('x'.repeat(20_000))
    await closed

    vi.advanceTimersByTime(1)

    expect(begun).toEqual(['first'])
  })

  it('are not begun for a client that ends its connection first', async () => {
    const { client, accepted } = await come('')
    client.end()
    await once(accepted, 'close')

    expect(begun).toEqual([])
  })

  it('wait for those whose clients have not responded yet, and not for distant clients', async () => {
    for (let at = 0; at < 40; at++) await come(`${at}`)
    vi.advanceTimersByTime(40)
    expect(begun).toHaveLength(32)

    queue.settle()
    vi.advanceTimersByTime(1)
    expect(begun).toHaveLength(33)

    vi.advanceTimersByTime(50)
    expect(begun).toHaveLength(40)
  })
})
