// Responses that a client has already, and documents that are compressed: fewer bytes, never other rights.
import { gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { openTls, rawTarget } from '../world/raw-requests.ts'
import { serviceMakers } from '../world/services.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
const { makeService, grant } = serviceMakers(
  () => world,
  () => manage,
)

beforeAll(async () => {
  manage = await managementOf(world)
})

const NONE = '""'

const get = (path: string, headers: Record<string, string>, token?: string) =>
  world.send({ method: 'GET', path, headers, token })

/** A client that may dial one service. */
async function makeClient() {
  const role = newName('role')
  const service = await makeService()
  await grant(role, service)
  const { token, id } = await world.signIn({ roleAttributes: [role] })
  return { service, token, id, list: (tag: string) => get(`${CLIENT}/services`, { 'if-none-match': tag }, token) }
}

describe('a client that names the tag of its list', () => {
  it('is told that the list is the same, without receiving it', async () => {
    const { list } = await makeClient()

    const first = await list(NONE)
    const { etag } = first.headers as { etag: string }
    const second = await list(etag)

    expect(first.status).toBe(200)
    expect(second).toMatchObject({ status: 304, text: '', headers: { etag, 'cache-control': 'private, no-cache' } })
    expect(second.headers).not.toHaveProperty('content-type')
  })

  it.each([
    ['a weak form of it', (tag: string) => `W/${tag}`],
    ['others beside it', (tag: string) => `"other", ${tag}`],
    ['any tag', () => '*'],
  ])('may name %s', async (_what, toHeader) => {
    const { list } = await makeClient()
    const { etag } = (await list(NONE)).headers as { etag: string }

    expect((await list(toHeader(etag))).status).toBe(304)
  })

  it('receives the list after a change, and after it lost a right', async () => {
    const { service, id, list } = await makeClient()
    const { etag } = (await list(NONE)).headers as { etag: string }

    await manage.change('PATCH', `/services/${service}`, { name: newName('service') })
    const changed = await list(etag)
    await manage.change('PATCH', `/identities/${id}`, { roleAttributes: [] })
    const empty = await list(changed.headers.etag as string)

    expect([changed.status, changed.body.data.length]).toEqual([200, 1])
    expect([empty.status, empty.body.data.length]).toEqual([200, 0])
  })

  it('has no use of the tag of another client, nor without a session, nor after its own has ended', async () => {
    const [one, other] = [await makeClient(), await makeClient()]
    const { etag } = (await one.list(NONE)).headers as { etag: string }

    expect((await other.list(etag)).status).toBe(200)
    expect((await get(`${CLIENT}/services`, { 'if-none-match': etag })).status).toBe(401)
    expect((await get(`${CLIENT}/services`, { 'if-none-match': '*' })).status).toBe(401)
    await world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, token: one.token })
    expect((await one.list(etag)).status).toBe(401)
  })

  it('gets errors as they are', async () => {
    const { token } = await makeClient()

    const response = await get(`${CLIENT}/services/unknown`, { 'if-none-match': '*' }, token)

    expect(response.status).toBe(404)
    expect(response.headers).not.toHaveProperty('etag')
  })

  it('which must not be stored, gets it whole', async () => {
    const { token } = await makeClient()
    await world.send({ method: 'POST', path: `${CLIENT}/current-identity/mfa`, token })

    const image = await get(`${CLIENT}/current-identity/mfa/qr-code`, { 'if-none-match': '*' }, token)

    expect(image).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } })
  })
})

it('a response has no tag if the client names none', async () => {
  const { token } = await makeClient()

  const { headers } = await get(`${CLIENT}/services`, {}, token)

  expect(headers).not.toHaveProperty('etag')
  expect(headers).not.toHaveProperty('cache-control')
})

describe('the document of an API', () => {
  const path = `${MANAGEMENT}/specs/edge-management/spec`

  it('always has a tag, by which a client that has it is told so', async () => {
    const { status, headers } = await get(path, {})
    const again = await get(path, { 'if-none-match': headers.etag as string })

    expect([status, headers['cache-control']]).toEqual([200, 'no-cache'])
    expect(again).toMatchObject({ status: 304, text: '', headers: { etag: headers.etag, vary: headers.vary } })
  })

  it('is compressed for clients that accept it, with a tag of its own', async () => {
    const { addresses, rootPem } = await world.listen()
    const target = rawTarget(`https://${addresses[0]}`, rootPem)
    const fetchRaw = async (encoding: string) => {
      const socket = await openTls(target)
      const header = encoding === '' ? '' : `accept-encoding: ${encoding}\r\n`
      socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${header}\r\n`)
      const pieces: Buffer[] = []
      for await (const piece of socket) pieces.push(piece)
      const bytes = Buffer.concat(pieces)
      const end = bytes.indexOf('\r\n\r\n')
      return { head: bytes.subarray(0, end).toString('latin1').toLowerCase(), body: bytes.subarray(end + 4) }
    }

    const plain = await fetchRaw('')
    const compressed = await fetchRaw('br, gzip;q=0.5')
    const refused = await fetchRaw('gzip;q=0')

    expect(compressed.head).toContain('content-encoding: gzip')
    expect(gunzipSync(compressed.body).equals(plain.body)).toBe(true)
    expect(compressed.body.length * 5).toBeLessThan(plain.body.length)
    expect([plain.head, refused.head].filter((head) => head.includes('content-encoding'))).toEqual([])
    const tags = [plain, compressed].map(({ head }) => /etag: (\S+)/.exec(head)?.[1])
    expect(new Set(tags).size).toBe(2)
  })
})
