// Large response bodies: whole for each client, however slowly it reads, in the memory of one piece.
import { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { toBody, writePieces } from '../../server/api/large-bodies.ts'
import { defineOperation } from '../../server/api/operation.ts'
import { operations } from '../../server/operations/operations.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { openTls, parseResponse, type RawTarget, rawTarget, readToEnd } from '../world/raw-requests.ts'
import { serviceMakers } from '../world/services.ts'
import { useController } from '../world/use-controller.ts'

const RAW = { access: { public: 'a fixture' }, returns: { kind: 'raw', contentType: 'text/plain' } } as const

/** Parts that end nowhere near the end of a piece; the first and the last are empty, and one is larger than a piece. */
const makeParts = (letter: string) =>
  [0, 1, 16_383, 50_000, 0, 16_385, 7, 300_000, 0].map((length, at) => Buffer.alloc(length, `${letter}${at}`))

const fixtures = ['a', 'b'].map((letter) =>
  defineOperation({
    ...RAW,
    apis: ['client'],
    topic: 'informational',
    method: 'GET',
    summary: 'A fixture.',
    id: `parts-${letter}`,
    path: `/parts-${letter}`,
    run: () => ({ status: 200, contentType: 'text/plain', body: toBody(makeParts(letter)) }),
  }),
)

const expectedText = (letter: string) => Buffer.concat(makeParts(letter)).toString()

const world = useController({ operations: [...operations, ...fixtures] })
let manage: Management
let target: RawTarget
const { makeService, grant } = serviceMakers(
  () => world,
  () => manage,
)

beforeAll(async () => {
  manage = await managementOf(world)
  const { url, rootPem } = await world.listen()
  target = rawTarget(url, rootPem)
})

const toRequest = (path: string, connection: string) =>
  `GET ${CLIENT}${path} HTTP/1.1\r\nhost: x\r\nconnection: ${connection}\r\n\r\n`

/** Sends requests for paths on one connection, and reads all responses, in portions with pauses between them. */
async function readSlowly(paths: readonly string[]): Promise<string> {
  const socket = await openTls(target)
  const all = readToEnd(socket)
  socket.on('data', () => {
    socket.pause()
    setImmediate(() => socket.resume())
  })
  socket.write(paths.map((path, at) => toRequest(path, at === paths.length - 1 ? 'close' : 'keep-alive')).join(''))
  return all
}

describe('a large body of parts', () => {
  it('comes whole, with its length', async () => {
    const { headers, text } = parseResponse(await readSlowly(['/parts-a']))

    expect(headers['content-length']).toBe(String(expectedText('a').length))
    expect(text === expectedText('a')).toBe(true)
  })

  it('comes whole by the route of Fastify', async () => {
    const { text } = parseResponse(await readSlowly(['/parts-a/']))

    expect(text === expectedText('a')).toBe(true)
  })

  it('comes whole to each of several clients at the same time', async () => {
    const letters = ['a', 'b', 'a', 'b']

    const responses = await Promise.all(letters.map((letter) => readSlowly([`/parts-${letter}`])))

    expect(
      responses.map((response, at) => parseResponse(response).text === expectedText(letters[at] as string)),
    ).toEqual(letters.map(() => true))
  })

  it('is followed by the next one of the connection', async () => {
    const received = await readSlowly(['/parts-a', '/parts-b'])

    const next = received.indexOf('HTTP/1.1', 1)
    expect(parseResponse(received.slice(0, next)).text === expectedText('a')).toBe(true)
    expect(parseResponse(received.slice(next)).text === expectedText('b')).toBe(true)
  })

  it('ends without a fault if the client goes away in the middle of it', async () => {
    const socket = await openTls(target)
    socket.on('error', () => {})
    socket.write(toRequest('/parts-a', 'keep-alive'))
    await new Promise((resolve) => socket.once('data', resolve))
    socket.destroy()

    const { text } = parseResponse(await readSlowly(['/parts-b']))
    expect(text === expectedText('b')).toBe(true)
  })

  it('takes the memory of one piece while it is sent', async () => {
    const memory = new Set<ArrayBufferLike>()
    let text = ''
    const response = new Writable({
      write(piece: Buffer, _encoding, callback) {
        memory.add(piece.buffer)
        text += piece.toString()
        setImmediate(callback)
      },
    })

    writePieces(response, makeParts('a'))
    await finished(response)

    expect(text === expectedText('a')).toBe(true)
    expect([...memory].map(({ byteLength }) => byteLength)).toEqual([16 * 1024])
  })
})

describe('a list that is large', () => {
  const role = newName('role')
  const names: string[] = []

  beforeAll(async () => {
    for (let at = 0; at < 25; at++) {
      const id = await makeService({ tags: { note: `${at}`.padEnd(4_000, 'ä') } })
      await grant(role, id)
      names.push(id)
    }
  })

  it('has all of its records, for an administrator and for a client', async () => {
    const { token } = await world.signIn({ roleAttributes: [role] })
    const ids = ({ data }: { data: readonly { id: string }[] }) => data.map(({ id }) => id).sort()

    const forAdministrator = await manage.call('GET', '/services?limit=500')
    const forClient = await world.send({ method: 'GET', path: `${CLIENT}/services?limit=500`, token })

    expect(forAdministrator.text.length).toBeGreaterThan(64 * 1024)
    expect(ids(forAdministrator.body)).toEqual(names.toSorted())
    expect(ids(forClient.body)).toEqual(names.toSorted())
  })

  it('has an entity tag, by which a client that has it is told so', async () => {
    const { token } = await world.signIn({ isAdmin: true })
    const get = (tag: string) =>
      world.send({ method: 'GET', path: `${MANAGEMENT}/services?limit=500`, headers: { 'if-none-match': tag }, token })

    const first = await get('""')
    const second = await get(first.headers.etag as string)

    expect([first.status, second.status, second.text]).toEqual([200, 304, ''])
  })
})
