// A request that takes too long is ended with a response that says so.
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { defineOperation } from '../../server/api/operation.ts'
import { dataResponse } from '../../server/api/responses.ts'
import { RequestTimeouts } from '../../server/requests/request-timeout.ts'
import { CLIENT, type TestController, testController } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'

let world: TestController
let stream: Readable | undefined
let streamRequested: () => void
const streamRequest = new Promise<void>((resolve) => {
  streamRequested = resolve
})

beforeAll(async () => {
  const responses = (path: string, milliseconds: number, isUnhurried = false) =>
    defineOperation({
      id: `timed${path.slice(1)}`,
      apis: ['client'],
      topic: 'tests',
      method: 'GET',
      path,
      summary: 'Takes its time.',
      access: { public: 'it is a test' },
      hasNoTimeout: isUnhurried,
      returns: { kind: 'data', schema: { type: 'object' } },
      async run() {
        await wait(milliseconds, undefined, { ref: false })
        return dataResponse({})
      },
    })
  const streaming = defineOperation({
    ...responses('/stream', 0, true),
    // Of a request whose body is read, the framework does not know that its client is gone.
    method: 'POST',
    body: { isRequired: true, schema: {}, contentTypes: ['application/json'], read: () => undefined },
    async run() {
      streamRequested()
      await wait(300, undefined, { ref: false })
      stream = Readable.from(['{"data":{}}'])
      return { status: 200, contentType: 'application/json', body: stream }
    },
  })
  world = await testController({
    settings: { 'limits.answerTime': '1s' },
    operations: [responses('/soon', 0), responses('/late', 1_200, true), responses('/never', 60_000), streaming],
  })
})
afterAll(() => world.close())

describe('an operation', () => {
  it('that responds in time is not affected', async () => {
    const response = await world.send({ method: 'GET', path: `${CLIENT}/soon` })

    expect(response.status).toBe(200)
  })

  it('that may take as long as it needs is left alone, too', async () => {
    const response = await world.send({ method: 'GET', path: `${CLIENT}/late` })

    expect(response.status).toBe(200)
  })

  it('that does not is ended with 503, and the time after which to retry', async () => {
    expectFaults(/TIMEOUT/)
    const response = await world.send({ method: 'GET', path: `${CLIENT}/never` })

    expect(response.status).toBe(503)
    expect(response.body.error.code).toBe('TIMEOUT')
    expect(response.headers['retry-after']).toBe('5')
  })
})

describe('a stream whose client hangs up before it begins', () => {
  it('is closed without a fault of the controller', async () => {
    const { url, rootPem } = await world.listen()
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), ca: rootPem })
    await once(socket, 'secureConnect')
    socket.write(
      `POST ${CLIENT}/stream HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
    )
    await streamRequest
    socket.destroy()

    await expect.poll(() => stream?.destroyed).toBe(true)
    // The fault would be logged just after.
    await wait(50)
  })
})

describe('a time limit of months', () => {
  it('does not keep the controller busy while an operation takes its time', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const timeouts = new RequestTimeouts(60 * 24 * 60 * 60_000)

    const result = new Promise((succeed, fail) => timeouts.settle(wait(50, 'the response'), succeed, fail))

    expect(await result).toBe('the response')
    expect(timers).toHaveBeenCalledTimes(1)
    timers.mockRestore()
  })
})
