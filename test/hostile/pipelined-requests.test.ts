// Many requests sent at once over one connection: they are served one after the other, and others get their turns between.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defineOperation } from '../../server/api/operation.ts'
import { rawResponse } from '../../server/api/responses.ts'
import { CLIENT, type TestController, testController } from '../world/controller.ts'
import { openTls, type RawTarget, rawTarget, readToEnd, sendRaw } from '../world/raw-requests.ts'

const COMMON = { apis: ['client'], topic: 'informational', method: 'GET', summary: 'A fixture.' } as const
const RAW = { access: { public: 'a fixture' }, returns: { kind: 'raw', contentType: 'text/plain' } } as const

let begun: number
let running: number
let maxRunning: number
/** Settles when the requests may go on. */
let gate: Promise<void>
let open: () => void

const operations = [
  defineOperation({
    ...COMMON,
    ...RAW,
    id: 'counted',
    path: '/counted',
    async run() {
      const number = ++begun
      maxRunning = Math.max(maxRunning, ++running)
      await gate
      running -= 1
      return rawResponse('text/plain', `response ${number};`)
    },
  }),
  defineOperation({ ...COMMON, ...RAW, id: 'other', path: '/other', run: () => rawResponse('text/plain', 'other') }),
]

let world: TestController
let target: RawTarget
let socket: TLSSocket

beforeEach(async () => {
  begun = running = maxRunning = 0
  gate = new Promise((resolve) => {
    open = resolve
  })
  world = await testController({ operations })
  const { url, rootPem } = await world.listen()
  target = rawTarget(url, rootPem)
  socket = await openTls(target)
})
afterEach(async () => {
  open()
  socket.destroy()
  await world.close()
})

const get = (path: string, header = '') => `GET ${CLIENT}${path} HTTP/1.1\r\nhost: x\r\n${header}\r\n`
const CLOSE = 'connection: close\r\n'
const COUNT = 200

describe('two hundred requests that one client sends at once', () => {
  it('are served one after the other, with responses in their order', async () => {
    open()
    const received = readToEnd(socket)
    socket.write(get('/counted').repeat(COUNT - 1) + get('/counted', CLOSE))

    const numbers = [...(await received).matchAll(/response (\d+);/g)].map(([, number]) => Number(number))

    expect(numbers).toEqual(Array.from({ length: COUNT }, (_, at) => at + 1))
    expect(maxRunning).toBe(1)
  })

  it('do not stand before the request of another client', async () => {
    socket.write(get('/counted').repeat(COUNT))
    await expect.poll(() => begun).toBeGreaterThan(0)

    const { status } = await sendRaw(target, get('/other', CLOSE))

    expect([status, begun]).toEqual([200, 1])
  })

  it('are dropped when the connection ends before their turn', async () => {
    socket.write(get('/counted').repeat(COUNT))
    await expect.poll(() => begun).toBeGreaterThan(0)
    socket.destroy()
    await sendRaw(target, get('/other', CLOSE))
    open()
    for (let turn = 0; turn < 20; turn++) await nextTurn()

    expect(begun).toBe(1)
  })
})
