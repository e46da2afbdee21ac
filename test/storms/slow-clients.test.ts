// Clients that read nothing, and clients that write a byte at a time, on thousands of connections.
import { setTimeout as wait } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { countOpen, openMany } from './attackers.ts'
import { expectAllWritten, expectUnharmed, storm } from './storm.ts'

const READERS = 2_000
// So many that the operating system cannot take all of the responses.
const REQUESTS_OF_EACH = 8
const WRITERS = 1_000
// How long a client may stand still, or send one request, here.
const PATIENCE_SECONDS = 4
// How late the controller may notice, and the end of a connection may arrive behind what the operating system still holds.
const DELAY_SECONDS = 10
const CLOSING_SECONDS = 60

const patience = `${PATIENCE_SECONDS}s`

it('two thousand clients that ask for the large documents and read nothing are cut', async () => {
  const settings = { CONTROLLER_LIMITS_WRITE_TIME: patience, CONTROLLER_LIMITS_IDLE_TIME: patience }

  const outcome = await storm('slow readers', { env: settings }, async (target) => {
    const request = `GET ${MANAGEMENT}/specs/edge-management/spec HTTP/1.1\r\nhost: x\r\n\r\n`
    const readers = await openMany(target, READERS, (socket) => {
      socket.pause()
      socket.write(request.repeat(REQUESTS_OF_EACH))
    })
    await wait((PATIENCE_SECONDS + DELAY_SECONDS) * 1_000)
    // Bytes that the operating system has taken can still be read, and the end comes after them.
    for (const socket of readers) socket.resume()
    return { opened: readers.length, open: await countOpen(readers, CLOSING_SECONDS) }
  })

  expect(outcome.attack).toEqual({ opened: READERS, open: 0 })
  expectUnharmed(outcome)
  expectAllWritten(outcome)
})

it('a thousand clients whose headers and bodies drip are cut', async () => {
  const settings = { CONTROLLER_LIMITS_HEADER_TIME: patience, CONTROLLER_LIMITS_REQUEST_TIME: patience }

  const outcome = await storm('slow writers', { env: settings }, async (target) => {
    const path = `${CLIENT}/authenticate?method=password`
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`
    const writers = await openMany(target, WRITERS, (socket, at) => {
      socket.resume()
      socket.write(at % 2 === 0 ? `${head}x: ` : `${head}content-length: 60000\r\n\r\n{"username": "`)
    })
    const dripping = setInterval(() => {
      for (const socket of writers) if (socket.writable) socket.write('x')
    }, 1_000)
    const open = await countOpen(writers, PATIENCE_SECONDS + DELAY_SECONDS)
    clearInterval(dripping)
    return { opened: writers.length, open }
  })

  expect(outcome.attack).toEqual({ opened: WRITERS, open: 0 })
  expectUnharmed(outcome)
  expectAllWritten(outcome)
})
