// Enrollments as administrators know them, completing them by every path, and how a client checks the controller first.
import { createPublicKey, randomUUID, verify, X509Certificate } from 'node:crypto'
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { computeFingerprint } from '../../src/pki/certificates.ts'
import { parsePemBlocks } from '../../src/pki/pem.ts'
import { clientKey } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT, testController } from '../world/controller.ts'
import { PASSWORD, People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let at: { url: string; rootPem: string }
let people: People

beforeAll(async () => {
  at = await world.listen()
  people = await People.in(world)
})

const MINUTE = 60_000
const iso = (milliseconds: number) => new Date(world.clock.now() + milliseconds).toISOString()

async function enrollment(values: Record<string, unknown> = {}) {
  const identityId = values.identityId ?? (await people.identity())
  const body = { identityId, method: 'ott', expiresAt: iso(60 * MINUTE), ...values }
  const { id } = await people.manage('POST', '/enrollments', body)
  return people.manage('GET', `/enrollments/${id}`)
}

function post(path: string, body?: unknown, headers?: Record<string, string>) {
  const request = { method: 'POST', path: CLIENT + path, ...(headers ? { headers } : {}) }
  return world.send(body === undefined ? request : { ...request, body })
}

describe('an enrollment', () => {
  it('shows whom it is for, its token and its JWT', async () => {
    const identityId = await people.identity({ name: 'enrolls' })

    const view = await enrollment({ identityId })

    expect(view).toMatchObject({
      method: 'ott',
      identityId,
      identity: { id: identityId, name: 'enrolls', entity: 'identities', urlName: 'identities' },
      username: null,
      ca: null,
      expiresAt: iso(60 * MINUTE),
      createdAt: iso(0),
    })
    expect(decodeJwt(view.jwt)).toMatchObject({ em: 'ott', sub: identityId, jti: view.token })
  })

  it('lasts as long as the settings say unless the request says otherwise', async () => {
    const world = await testController({ settings: { 'enrollment.identity': '10m' } })
    const theirs = await People.in(world)
    const id = await theirs.identity({ enrollment: { ott: true } })

    const { enrollment } = await theirs.manage('GET', `/identities/${id}`)

    expect(enrollment.ott.expiresAt).toBe(new Date(world.clock.now() + 10 * MINUTE).toISOString())
    await world.close()
  })

  it('of a new identity lasts as long as its creation says, for each method', async () => {
    const requested = { ott: true, updb: 'lasts a day', expiresAt: iso(24 * 60 * MINUTE) }
    const id = await people.identity({ enrollment: requested })

    const { enrollment } = await people.manage('GET', `/identities/${id}`)

    expect([enrollment.ott.expiresAt, enrollment.updb.expiresAt]).toEqual([requested.expiresAt, requested.expiresAt])
    expect(decodeJwt(enrollment.ott.jwt).exp).toBe(Date.parse(requested.expiresAt) / 1000)
  })

  it.each([
    ['identities', { name: 'late', type: 'User', isAdmin: false, enrollment: { ott: true } }],
    ['edge-routers', { name: 'late', enrollment: {} }],
    ['routers', { name: 'late', enrollment: {} }],
  ])('of new %s is not made with an end that has passed, nor is the record', async (plural, body) => {
    const enrollment = { ...body.enrollment, expiresAt: iso(-MINUTE) }

    const { status, body: response } = await people.ask('POST', `/${plural}`, { ...body, enrollment })

    expect([status, response.error.cause.field]).toEqual([400, 'enrollment.expiresAt'])
    expect(await people.manage('GET', `/${plural}?filter=${encodeURIComponent('name = "late"')}`)).toEqual([])
  })

  it('is made for every method that a new identity asks for', async () => {
    const id = await people.identity({ enrollment: { ott: true, updb: 'asks for two' } })

    const { enrollment } = await people.manage('GET', `/identities/${id}`)
    const enrollmentRecords = await people.manage('GET', `/identities/${id}/enrollments`)

    expect(Object.keys(enrollment).sort()).toEqual(['ott', 'updb'])
    expect(decodeJwt(enrollment.ott.jwt)).toMatchObject({ em: 'ott', sub: id, jti: enrollment.ott.token })
    expect(decodeJwt(enrollment.updb.jwt)).toMatchObject({ em: 'updb', sub: id, jti: enrollment.updb.token })
    expect(enrollmentRecords.map(({ method, username }: Record<string, unknown>) => [method, username]).sort()).toEqual(
      [
        ['ott', null],
        ['updb', 'asks for two'],
      ],
    )
  })

  it.each(['a certificate authority that does not exist', 'a username that is taken'])(
    'is made for no method, nor is the identity, if it asks for %s',
    async (what) => {
      const { username } = await people.person()
      const isTaken = what.includes('taken')
      const requestedMethods = isTaken
        ? { ott: true, updb: username }
        : { ott: true, updb: 'asks in vain', ottca: 'nope' }
      const body = { name: what, type: 'User', isAdmin: false, enrollment: requestedMethods }
      const { db } = world.controller.store
      const readEnrollmentIds = () => db.selectFrom('enrollments').select('id').execute()
      const before = await readEnrollmentIds()

      const response = await people.ask('POST', '/identities', body)

      expect([response.status, response.body.error.cause.field]).toEqual(isTaken ? [409, 'username'] : [404, 'caId'])
      expect(await people.manage('GET', `/identities?filter=${encodeURIComponent(`name = "${what}"`)}`)).toEqual([])
      expect(await readEnrollmentIds()).toEqual(before)
    },
  )

  it('is one of its method, also once it has expired, until it is deleted or used', async () => {
    const identityId = await people.identity()
    const first = await enrollment({ identityId })
    const again = () => people.ask('POST', '/enrollments', { identityId, method: 'ott', expiresAt: iso(200 * MINUTE) })
    const outstanding = await again()
    const other = await people.ask('POST', '/enrollments', {
      identityId,
      method: 'updb',
      username: 'beside the other',
      expiresAt: iso(MINUTE),
    })
    world.clock.advance(61 * MINUTE)
    people = await People.in(world)
    const expired = await again()
    await people.manage('DELETE', `/enrollments/${first.id}`)

    expect([outstanding.status, outstanding.body.error.code, outstanding.body.error.cause.field]).toEqual([
      409,
      'ENROLLMENT_EXISTS',
      'method',
    ])
    expect([other.status, expired.status, (await again()).status]).toEqual([201, 409, 201])
  })

  it('is one where several are asked for at the same time', async () => {
    const identityId = await people.identity()
    const body = { identityId, method: 'ott', expiresAt: iso(MINUTE) }

    const responses = await Promise.all(Array.from({ length: 4 }, () => people.ask('POST', '/enrollments', body)))

    expect(responses.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
  })

  const refused: Readonly<
    Record<string, [values: Record<string, unknown>, status: number, code: string, field: string]>
  > = {
    'of another method': [{ method: 'magic' }, 400, 'COULD_NOT_VALIDATE', 'method'],
    'that has expired already': [
      { expiresAt: '2001-01-01T00:00:00Z' },
      400,
      'REFERENCED_ENTITY_NOT_FOUND',
      'expiresAt',
    ],
    'that ends on no day': [{ expiresAt: '2099-02-31T00:00:00Z' }, 400, 'COULD_NOT_VALIDATE', 'expiresAt'],
    'for an unknown identity': [{ identityId: 'unknown' }, 400, 'REFERENCED_ENTITY_NOT_FOUND', 'identityId'],
    'by password without username': [{ method: 'updb' }, 400, 'REFERENCED_ENTITY_NOT_FOUND', 'username'],
    'by password with a short username': [{ method: 'updb', username: 'abc' }, 400, 'COULD_NOT_VALIDATE', 'username'],
    'by another authority without naming it': [{ method: 'ottca' }, 400, 'REFERENCED_ENTITY_NOT_FOUND', 'caId'],
    'by an authority that does not exist': [{ method: 'ottca', caId: 'x' }, 400, 'REFERENCED_ENTITY_NOT_FOUND', 'caId'],
  }

  it.each(Object.keys(refused))('%s is refused', async (what) => {
    const [values, status, code, field] = refused[what] as (typeof refused)[string]
    const body = { identityId: await people.identity(), method: 'ott', expiresAt: iso(MINUTE), ...values }

    const response = await people.ask('POST', '/enrollments', body)

    expect([response.status, response.body.error.code, response.body.error.cause.field]).toEqual([status, code, field])
  })

  it.each([
    [{ updb: 'abc' }, 400, 'enrollment.updb'],
    [{ ottca: 'nothing' }, 404, 'caId'],
  ])(
    'asked for as %j along with the identity is refused, and the identity is not made',
    async (wanted, status, field) => {
      const name = `not made ${JSON.stringify(wanted)}`

      const response = await people.ask('POST', '/identities', {
        name,
        type: 'User',
        isAdmin: false,
        enrollment: wanted,
      })

      const filter = encodeURIComponent(`name contains "not made"`)
      expect([response.status, response.body.error.cause.field]).toEqual([status, field])
      expect(await people.manage('GET', `/identities?filter=${filter}`)).toEqual([])
    },
  )

  it.each(['token', 'method', 'expiresAt', 'jwt'])('cannot be filtered by %s', async (name) => {
    const response = await people.ask('GET', `/enrollments?filter=${encodeURIComponent(`${name} != null`)}`)

    expect(response.body.error.code).toBe('INVALID_FILTER')
  })

  it('leaves no token in the audit', async () => {
    const { token, id } = await enrollment()

    const rows = await world.controller.store.db
      .selectFrom('audit_records')
      .select('after')
      .where('entityId', '=', id)
      .execute()

    expect(rows).toHaveLength(1)
    expect(rows[0]?.after).not.toContain(token)
    expect(JSON.parse(rows[0]?.after ?? '{}').token).toBe('***')
  })

  it('ends with its identity', async () => {
    const { id, identityId, token } = await enrollment()

    await people.manage('DELETE', `/identities/${identityId}`)

    expect((await people.ask('GET', `/enrollments/${id}`)).status).toBe(404)
    expect((await people.enroll(token, (await clientKey('x')).csr)).body.error.code).toBe('INVALID_ENROLLMENT_TOKEN')
  })
})

describe('refreshing an enrollment', () => {
  it('gives it a new token, a new JWT and a new end; the old token is worth nothing', async () => {
    const old = await enrollment()
    const expiresAt = iso(300 * MINUTE)

    const response = await people.ask('POST', `/enrollments/${old.id}/refresh`, { expiresAt })

    const fresh = await people.manage('GET', `/enrollments/${old.id}`)
    const { csr } = await clientKey('refreshed')
    expect(response.body.data).toEqual({ _links: { self: { href: `./enrollments/${old.id}` } }, id: old.id })
    expect(fresh).toMatchObject({ expiresAt, id: old.id })
    expect(decodeJwt(fresh.jwt).jti).toBe(fresh.token)
    expect(fresh.token).not.toBe(old.token)
    expect((await people.enroll(old.token, csr)).body.error.code).toBe('INVALID_ENROLLMENT_TOKEN')
    expect((await people.enroll(fresh.token, csr)).status).toBe(200)
  })

  it('revives one that has expired', async () => {
    const old = await enrollment({ expiresAt: iso(MINUTE) })
    world.clock.advance(2 * MINUTE)
    const { csr } = await clientKey('late')
    const late = await people.enroll(old.token, csr)

    await people.manage('POST', `/enrollments/${old.id}/refresh`, { expiresAt: iso(MINUTE) })

    const { token } = await people.manage('GET', `/enrollments/${old.id}`)
    expect(late.body.error.code).toBe('ENROLLMENT_EXPIRED')
    expect((await people.enroll(token, csr)).status).toBe(200)
  })

  it.each([
    ['into the past', async () => (await enrollment()).id, '2001-01-01T00:00:00Z', 400, 'COULD_NOT_VALIDATE'],
    ['without a time', async () => (await enrollment()).id, undefined, 400, 'COULD_NOT_VALIDATE'],
    ['that is not there', async () => 'nothing', '2099-01-01T00:00:00Z', 404, 'NOT_FOUND'],
  ])('%s is refused', async (_what, id, expiresAt, status, code) => {
    const response = await people.ask('POST', `/enrollments/${await id()}/refresh`, { expiresAt })

    expect([response.status, response.body.error.code]).toEqual([status, code])
  })
})

describe('enrolling for a certificate', () => {
  const ways: Readonly<Record<string, (token: string, csr: string) => ReturnType<typeof post>>> = {
    'generically, as PEM': (token, csr) =>
      post(`/enroll?method=ott&token=${token}`, csr, { 'content-type': 'application/x-pem-file' }),
    'generically, as text': (token, csr) => post(`/enroll?token=${token}`, csr, { 'content-type': 'text/plain' }),
    'generically, as PKCS': (token, csr) =>
      post(`/enroll?method=ott&token=${token}`, csr, { 'content-type': 'application/pkcs7' }),
    'generically, as JSON': (token, csr) => post(`/enroll?method=ott&token=${token}`, { clientCsr: csr }),
    'by its own path': (token, csr) => post('/enroll/ott', { token, clientCsr: csr }),
  }

  it.each(Object.keys(ways))('%s', async (way) => {
    const { token, identityId } = await enrollment()
    const key = await clientKey('enrolls')

    const response = await (ways[way] as (typeof ways)[string])(token, key.csr)

    const session = await people.signInBy(at, { chain: response.body.data.cert, key })
    expect(response.headers['content-type']).toBe('application/json')
    expect(session.body.data.identityId).toBe(identityId)
    expect((await post('/enroll/ott', { token, clientCsr: key.csr })).body.error.code).toBe('INVALID_ENROLLMENT_TOKEN')
  })

  it('leaves a certificate of one year for clients, with nothing of what the request says beyond its subject', async () => {
    const { token } = await enrollment()
    const { csr } = await clientKey('of one year')

    const { body } = await people.enroll(token, csr)

    const certificate = new X509Certificate(parsePemBlocks(body.data.cert)[0]?.bytes as Buffer)
    expect(certificate.subject).toBe('O=test\nCN=of one year')
    expect(certificate.subjectAltName).toBeUndefined()
    expect(certificate.ca).toBe(false)
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2'])
    expect(Date.parse(certificate.validTo) - world.clock.now()).toBe(365 * 24 * 60 * MINUTE)
  })

  it('is refused a body in an unsupported form', async () => {
    const { token } = await enrollment()
    const { csr } = await clientKey('picky')
    const headers = { 'content-type': 'application/x-pem-file', accept: 'application/x-pem-file' }

    const response = await post(`/enroll?method=ott&token=${token}`, csr, headers)

    expect([response.status, response.body.error.code]).toEqual([415, 'UNSUPPORTED_MEDIA'])
  })

  it('is refused without request, and the token stays good', async () => {
    const { token } = await enrollment()

    const refused = [await post('/enroll/ott', { token }), await post(`/enroll?method=ott&token=${token}`)]
    const accepted = await people.enroll(token, (await clientKey('x')).csr)

    expect(refused.map(({ body }) => body.error.code)).toEqual(['COULD_NOT_PROCESS_CSR', 'COULD_NOT_PROCESS_CSR'])
    expect(accepted.status).toBe(200)
  })
})

describe('enrolling for a password', () => {
  const byPassword = (username: string, more: object = {}) => enrollment({ method: 'updb', username, ...more })

  it.each([
    ['generically', (token: string, body: object) => post(`/enroll?method=updb&token=${token}`, body)],
    ['by its own path', (token: string, body: object) => post(`/enroll/updb?token=${token}`, body)],
  ])('%s takes the username of the enrollment', async (way, enroll) => {
    const username = `enrolls ${way}`
    const { token, identityId } = await byPassword(username)

    const response = await enroll(token, { password: PASSWORD, username: 'another name' })

    const session = await people.signIn({ username, password: PASSWORD })
    expect(response.body.data).toEqual({ username })
    expect(session.body.data.identityId).toBe(identityId)
    expect((await enroll(token, { password: PASSWORD })).body.error.code).toBe('INVALID_ENROLLMENT_TOKEN')
  })

  it.each([
    ['no password', {}, 'password'],
    ['an empty one', { password: '' }, 'password'],
    ['a short one', { password: '1234' }, 'password'],
    ['a long one', { password: 'x'.repeat(101) }, 'password'],
  ])('is refused with %s, and the token stays good', async (what, body, field) => {
    const { token } = await byPassword(`with ${what}`)

    const refused = [
      await post(`/enroll?method=updb&token=${token}`, body),
      await post(`/enroll/updb?token=${token}`, body),
    ]
    const accepted = await post(`/enroll/updb?token=${token}`, { password: PASSWORD })

    for (const response of refused) {
      expect([response.status, response.body.error.code, response.body.error.cause.field]).toEqual([
        400,
        'COULD_NOT_VALIDATE',
        field,
      ])
    }
    expect(accepted.status).toBe(200)
  })

  it('replaces a lost password, and ends the sessions that began with it', async () => {
    const person = await people.person()
    const token = await people.sessionOf(person)
    const reset = await byPassword(person.username, { identityId: person.id })

    await post(`/enroll/updb?token=${reset.token}`, { password: 'a fresh start' })

    const statuses = [await people.signIn(person), await people.signIn({ ...person, password: 'a fresh start' })]
    const session = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
    expect([...statuses.map(({ status }) => status), session.status]).toEqual([401, 200, 401])
    expect(await people.manage('GET', `/identities/${person.id}/authenticators`)).toHaveLength(1)
  })

  it('is refused a username that another identity has taken meanwhile', async () => {
    const { token } = await byPassword('wanted by two')
    await people.manage('POST', '/authenticators', {
      identityId: await people.identity(),
      method: 'updb',
      username: 'Wanted by two',
      password: PASSWORD,
    })

    const response = await post(`/enroll/updb?token=${token}`, { password: PASSWORD })

    expect([response.status, response.body.error.cause.field]).toEqual([409, 'username'])
  })

  it('comes to nothing by a token that is replaced while it is at work', async () => {
    const old = await byPassword('overtaken by a refresh')

    const [response] = await Promise.all([
      post(`/enroll/updb?token=${old.token}`, { password: PASSWORD }),
      people.manage('POST', `/enrollments/${old.id}/refresh`, { expiresAt: iso(MINUTE) }),
    ])

    const { token } = await people.manage('GET', `/enrollments/${old.id}`)
    expect([response.status, response.body.error.code]).toEqual([400, 'INVALID_ENROLLMENT_TOKEN'])
    expect((await post(`/enroll/updb?token=${token}`, { password: PASSWORD })).status).toBe(200)
  })

  it('works once of several times at the same moment', async () => {
    const { token } = await byPassword('three at once')

    const responses = await Promise.all(
      [1, 2, 3].map(() => post(`/enroll/updb?token=${token}`, { password: PASSWORD })),
    )

    expect(responses.map(({ status }) => status).sort()).toEqual([200, 400, 400])
  })
})

describe('a token', () => {
  it.each([
    ['of another method', 'updb', 'INVALID_ENROLL_METHOD'],
    ['for a method that does not exist', 'magic', 'INVALID_ENROLL_METHOD'],
    ['for the method of another authority', 'ottca', 'INVALID_ENROLL_METHOD'],
    ['for the method without tokens', 'ca', 'ENROLLMENT_NO_VALID_CAS'],
  ])('%s is refused', async (_what, method, code) => {
    const { token } = await enrollment()

    const response = await post(`/enroll?method=${method}&token=${token}`, {})

    expect([response.status, response.body.error.code]).toEqual([400, code])
  })

  it('says by itself of which method it is, where the client does not', async () => {
    const { token } = await enrollment({ method: 'updb', username: 'of no named method' })

    const response = await post(`/enroll?token=${token}`, { password: PASSWORD })

    expect(response.body.data).toEqual({ username: 'of no named method' })
  })

  it.each(['ott', 'ottca', 'updb'])('that is unknown, or none, is refused for the method %s', async (method) => {
    const responses = [
      await post(`/enroll?method=${method}&token=${randomUUID()}`, {}),
      await post(`/enroll?method=${method}&token=no-uuid`, {}),
      await post(`/enroll?method=${method}`, {}),
    ]

    for (const { status, body } of responses)
      expect([status, body.error.code]).toEqual([400, 'INVALID_ENROLLMENT_TOKEN'])
  })

  it('is asked for by the paths of the methods', async () => {
    const responses = [
      await post('/enroll/ott', {}),
      await post('/enroll/ottca', {}),
      await post('/enroll/updb', { password: PASSWORD }),
      await post('/enroll/updb?token=no-uuid', { password: PASSWORD }),
      await post('/enroll/ottca', { token: randomUUID() }),
      await post('/enroll/ca'),
    ]

    expect(responses.map(({ status, body }) => [status, body.error.code, body.error.cause?.field])).toEqual([
      [400, 'COULD_NOT_VALIDATE', 'token'],
      [400, 'COULD_NOT_VALIDATE', 'token'],
      [400, 'COULD_NOT_VALIDATE', 'token'],
      [400, 'COULD_NOT_VALIDATE', 'token'],
      [400, 'INVALID_ENROLLMENT_TOKEN', undefined],
      [400, 'ENROLLMENT_NO_VALID_CAS', undefined],
    ])
  })

  it('comes to no harm from a body beyond the limit', async () => {
    const { token } = await enrollment()

    const response = await post(`/enroll?method=ott&token=${token}`, 'x'.repeat(70_000), {
      'content-type': 'text/plain',
    })

    expect(response.status).toBe(413)
    expect((await people.enroll(token, (await clientKey('x')).csr)).status).toBe(200)
  })
})

describe('the key set', () => {
  const keySet = async () => JSON.parse((await world.send({ method: 'GET', path: `${CLIENT}/enroll/jwks` })).text)

  it('checks enrollment JWTs and network JWTs, and holds nothing private', async () => {
    const { jwt } = await enrollment()
    const set = (await keySet()) as JSONWebKeySet
    const [network] = (await world.send({ method: 'GET', path: `${MANAGEMENT}/network-jwts` })).body.data

    const keys = createLocalJWKSet(set)

    const options = { currentDate: new Date(world.clock.now()) }
    await expect(jwtVerify(jwt, keys, options)).resolves.toBeDefined()
    await expect(jwtVerify(network.token, keys, options)).resolves.toBeDefined()
    expect(Object.keys(set)).toEqual(['keys'])
    for (const key of set.keys) expect(Object.keys(key)).not.toEqual(expect.arrayContaining(['d']))
  })

  it('names each key as the header of a JWT does', async () => {
    const { certificate } = world.controller.authority.server

    const { keys } = await keySet()

    expect(keys).toEqual([
      expect.objectContaining({ kid: computeFingerprint(certificate), kty: 'RSA', alg: 'RS256', use: 'sig' }),
    ])
    expect(Buffer.from(keys[0].x5c[0], 'base64').equals(certificate.raw)).toBe(true)
  })

  it('signs a challenge so that its key verifies the signature', async () => {
    const [key] = (await keySet()).keys
    const nonce = randomUUID()

    const response = await post('/enroll/challenge', { keyId: key.kid, nonce })

    const { signature, algorithm, kid, caPool } = response.body
    const publicKey = createPublicKey({ key, format: 'jwk' })
    expect(Object.keys(response.body).sort()).toEqual(['algorithm', 'caPool', 'kid', 'signature'])
    expect([algorithm, kid]).toEqual(['RS256', key.kid])
    expect(verify('sha256', Buffer.from(nonce), publicKey, Buffer.from(signature, 'base64url'))).toBe(true)
    expect(parsePemBlocks(caPool)).toHaveLength(2)
  })

  it.each([
    ['an unknown key', { keyId: 'unknown', nonce: randomUUID() }, 'keyId'],
    ['no key', { nonce: randomUUID() }, 'keyId'],
    ['a nonce that is not a UUID', { keyId: 'unknown', nonce: 'sign this for me' }, 'nonce'],
    ['no nonce', { keyId: 'unknown' }, 'nonce'],
  ])('refuses a challenge with %s', async (_what, body, field) => {
    const response = await post('/enroll/challenge', body)

    expect([response.status, response.body.error.code, response.body.error.cause.field]).toEqual([
      400,
      'COULD_NOT_VALIDATE',
      field,
    ])
  })
})

describe('the network JWT', () => {
  it.each([CLIENT, MANAGEMENT])('is for everyone, at %s, and the same until the next start', async (base) => {
    const read = () => world.send({ method: 'GET', path: `${base}/network-jwts` })

    const first = await read()
    const second = await read()

    expect(first.body.data).toEqual([{ name: 'default', token: expect.any(String) }])
    expect(second.body.data).toEqual(first.body.data)
    expect(decodeJwt(first.body.data[0].token)).toEqual({
      em: 'network',
      iss: 'https://127.0.0.1:1280/',
      sub: 'https://127.0.0.1:1280/',
      aud: ['openziti-enroller'],
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      ctrls: null,
    })
  })
})

// Last, because the key set of the controller has two keys afterwards.
describe('the JWT of an enrollment', () => {
  it('names the certificate that the controller has now, also in records that were shown before', async () => {
    const identityId = await people.identity({ enrollment: { ott: true } })
    const { id: routerId } = await people.manage('POST', '/edge-routers', { name: 'shows its JWT' })
    const [{ id }] = await people.manage('GET', `/identities/${identityId}/enrollments`)
    const readKeyIds = async () => {
      const identity = await people.manage('GET', `/identities/${identityId}`)
      const router = await people.manage('GET', `/edge-routers/${routerId}`)
      const { jwt } = await people.manage('GET', `/enrollments/${id}`)
      const jwts: string[] = [identity.enrollment.ott.jwt, router.enrollmentJwt, jwt]
      return jwts.map((text) => decodeProtectedHeader(text).kid)
    }
    const before = await readKeyIds()

    await world.controller.certificates.own.renewServer(world.system)

    const kid = computeFingerprint(world.controller.authority.server.certificate)
    expect(await readKeyIds()).toEqual([kid, kid, kid])
    expect(before).not.toContain(kid)
  })
})
