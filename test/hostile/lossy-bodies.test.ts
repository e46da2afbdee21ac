// Bodies that a lenient reader would store as something else than was sent: they are refused, and say why.
import { request } from 'node:https'
import { beforeAll, describe, expect, it } from 'vitest'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
let token: string
let at: { url: string; rootPem: string }

beforeAll(async () => {
  manage = await managementOf(world)
  token = await world.admin()
  at = await world.listen()
})

/** Sends bytes as they are, which needs a socket. */
function sendBytes(path: string, body: Buffer, type = 'application/json'): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': type, 'content-length': body.length, 'net-session': token }
    const outgoing = request(`${at.url}${path}`, { method: 'POST', ca: at.rootPem, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }))
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** Creates an identity from JSON text, as it is. */
const create = (json: string) =>
  world.send({
    method: 'POST',
    path: `${MANAGEMENT}/identities`,
    token,
    body: json,
    headers: { 'content-type': 'application/json' },
  })

let sequence = 0
const identity = (more: string) => `{"name":"lossy ${++sequence}","type":"Device","isAdmin":false,${more}}`

describe('a body that is not UTF-8', () => {
  const invalid: readonly (readonly [string, number[]])[] = [
    ['a lone continuation byte', [0x80]],
    ['a truncated sequence', [0xe2, 0x82]],
    ['an overlong form', [0xc0, 0xaf]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['Latin-1', [0xe9]],
    ['a byte that never occurs', [0xff]],
  ]

  it.each(invalid)('is refused for %s', async (_what, bytes) => {
    const [before = '', after = ''] = identity('"externalId":"|"').split('|')
    const body = Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)])

    const { status, text } = await sendBytes(`${MANAGEMENT}/identities`, body)

    expect(status).toBe(400)
    expect(JSON.parse(text).error).toMatchObject({
      code: 'COULD_NOT_PARSE_BODY',
      cause: { message: expect.stringContaining('UTF-8') },
    })
  })

  it('is refused as plain text, too', async () => {
    const path = `${CLIENT}/enroll?method=ott&token=00000000-0000-4000-8000-000000000000`

    const { status, text } = await sendBytes(path, Buffer.from([0x41, 0xff]), 'text/plain')

    expect(status).toBe(400)
    expect(JSON.parse(text).error.code).toBe('COULD_NOT_PARSE_BODY')
  })

  it('is not what text of other scripts is', async () => {
    const body = Buffer.from(identity('"externalId":"naïve 日本語 🎉"'))

    const { status, text } = await sendBytes(`${MANAGEMENT}/identities`, body)

    expect(status).toBe(201)
    const { externalId } = await manage.get(`/identities/${JSON.parse(text).data.id}`)
    expect(externalId).toBe('naïve 日本語 🎉')
  })
})

describe('a number', () => {
  const lossyBodies = [
    '1e400',
    '-1e400',
    '1e-400',
    '12345678901234567890',
    '9007199254740993',
    '-9007199254740993',
    '12345678901234567890.0',
    '3.14159265358979323846',
    '1.00000000000000000001',
    `${'9'.repeat(400)}`,
  ]

  it.each(lossyBodies)('that would come back as another is refused: %s', async (number) => {
    const response = await create(identity(`"tags":{"before":"a \\" 1e400 \\\\","number":${number}}`))

    expect(response.status).toBe(400)
    expect(response.body.error).toMatchObject({
      code: 'COULD_NOT_PARSE_BODY',
      cause: { message: expect.stringContaining(number.slice(0, 20)) },
    })
  })

  const exactBodies = [
    '0',
    '-0',
    '0.1',
    '1.50',
    '100e-2',
    '1e21',
    '9007199254740992',
    '9007199254740994',
    '0.10000000000000001',
    '1.7976931348623157e308',
    '5e-324',
    '123456789012345.6',
    '0e999999999999',
  ]

  it.each(exactBodies)('that comes back as it is, is kept: %s', async (number) => {
    const { status, body } = await create(identity(`"tags":{"number":${number},"text":"12345678901234567890"}`))

    expect(status).toBe(201)
    const { tags } = await manage.get(`/identities/${body.data.id}`)
    expect(tags).toEqual({ number: Number(number) + 0, text: '12345678901234567890' })
  })

  it('is judged wherever it stands', async () => {
    const type = await manage.make('config-types', { name: 'free' })
    const response = await world.send({
      method: 'POST',
      path: `${MANAGEMENT}/configs`,
      token,
      body: `{"name":"deep","configTypeId":"${type}","data":{"list":[1,[{"deep":18446744073709551616}]]}}`,
      headers: { 'content-type': 'application/json' },
    })

    expect(response.status).toBe(400)
    expect(response.body.error.code).toBe('COULD_NOT_PARSE_BODY')
  })
})

describe('text', () => {
  it('with U+0000 is refused by a message that names it', async () => {
    for (const member of ['"externalId":"a\\u0000b"', '"tags":{"a\\u0000b":1}', '"roleAttributes":["\\u0000"]']) {
      const response = await create(identity(member))

      expect(response.status).toBe(400)
      expect(response.body.error).toMatchObject({
        code: 'COULD_NOT_PARSE_BODY',
        cause: { message: expect.stringContaining('U+0000') },
      })
    }
  })

  it('with half a surrogate pair is refused by a message that says so', async () => {
    const response = await create(identity('"externalId":"\\ud800"'))

    expect(response.status).toBe(400)
    expect(response.body.error.cause.message).toContain('surrogate')
  })
})

describe('a time', () => {
  const enrollment = async (expiresAt: string) => {
    const identityId = await manage.make('identities', { name: `timely ${++sequence}`, type: 'Device', isAdmin: false })
    return manage.call('POST', '/enrollments', { identityId, method: 'ott', expiresAt })
  }

  it.each([
    '9999-12-31T23:59:59-00:01',
    '9999-12-31T23:59:60Z',
    '10000-01-01T00:00:00Z',
    '+010000-01-01T00:00:00Z',
    '2099-01-01T00:00:00+99:00',
    '2099-01-01T00:00:00+00:99',
    '0000-01-01T00:00:00+00:01',
  ])('that has no four-digit year in UTC is refused: %s', async (expiresAt) => {
    const { status, body } = await enrollment(expiresAt)

    expect(status).toBe(400)
    expect(body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field: 'expiresAt' } })
  })

  it('of the last millisecond of the year 9999 is kept, and can be filtered and listed', async () => {
    const { status, body } = await enrollment('9999-12-31T23:59:59.999Z')

    expect(status).toBe(201)
    expect((await manage.get(`/enrollments/${body.data.id}`)).expiresAt).toBe('9999-12-31T23:59:59.999Z')
  })

  it('of the first century is not taken for one of the twentieth', async () => {
    const { body } = await enrollment('0070-01-01T00:00:00Z')

    expect(body.error.cause).toMatchObject({ field: 'expiresAt', value: '0070-01-01T00:00:00.000Z' })
  })
})

describe('a name', () => {
  const unseen: readonly (readonly [string, string])[] = [
    ['blanks', '   '],
    ['tabs and line ends', '\t\r\n'],
    ['a no-break space', '\u00a0'],
    ['an ideographic space', '\u3000'],
    ['controls', '\u0001\u001b\u007f'],
    ['zero-width characters', '\u200b\u200c\u200d\ufeff'],
    ['direction marks', '\u200e\u200f\u202e\u2066\u2069'],
    ['fillers', '\u3164\u115f\uffa0'],
    ['a soft hyphen', '\u00ad'],
    ['tag characters', '\u{e0041}'],
  ]

  it.each(unseen)('of %s alone is refused', async (_what, name) => {
    for (const [path, body] of [
      ['/identities', { name, type: 'Device', isAdmin: false }],
      ['/services', { name, encryptionRequired: true }],
      ['/config-types', { name }],
    ] as const) {
      expect(await manage.refusal('POST', path, body)).toMatchObject({
        status: 400,
        code: 'COULD_NOT_VALIDATE',
        field: 'name',
      })
    }
  })

  it.each(unseen)('of %s alone is refused as a username', async (_what, shown) => {
    const username = shown.repeat(4)
    const identityId = await manage.make('identities', { name: `unseen ${++sequence}`, type: 'Device', isAdmin: false })
    const credential = { identityId, method: 'updb', username, password: 'correct horse battery' }

    expect(await manage.refusal('POST', '/authenticators', credential)).toMatchObject({
      status: 400,
      field: 'username',
    })
  })

  it.each(['é', '日本', '🎉', 'a\u200db', ' a '])('with something to see is kept as it is: %j', async (name) => {
    const id = await manage.make('services', { name, encryptionRequired: true })

    expect((await manage.get(`/services/${id}`)).name).toBe(name)
  })
})
