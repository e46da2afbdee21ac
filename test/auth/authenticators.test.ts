// Authenticators: made and changed by administrators, changed by their owners, reverted, and asked to be extended.
import { X509Certificate } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { computeFingerprint, toCertificatePem } from '../../src/pki/certificates.ts'
import { parsePemBlocks } from '../../src/pki/pem.ts'
import { readSigningRequest } from '../../src/pki/requests.ts'
import { callOverTls, clientKey, x509 } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
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
const inAnHour = () => new Date(world.clock.now() + 60 * MINUTE).toISOString()

/** A certificate of this controller that no authenticator has yet. */
async function looseCertificate() {
  const key = await clientKey('loose')
  const { authority } = world.controller
  const certificate = authority.issueClient(readSigningRequest(key.csr), world.clock.now())
  return { key, certificate, chain: authority.clientChainPem(certificate) }
}

async function foreignCertificate(): Promise<string> {
  const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=foreign',
    keys: keys as never,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' } as never,
  })
  return `${certificate.toString('pem')}\n`
}

describe('an administrator', () => {
  it('gives an identity a password, which is never shown', async () => {
    const person = await people.person({ name: 'has a password' })

    const { body, text } = await people.ask('GET', `/authenticators/${person.authenticatorId}`)

    expect(body.data).toMatchObject({
      _links: { identities: { href: `./identities/${person.id}` } },
      identityId: person.id,
      identity: { name: 'has a password', entity: 'identities' },
      method: 'updb',
      username: person.username,
      extendLog: [],
    })
    for (const hidden of ['password', 'passwordHash', 'foldedUsername', 'failedAttempts', 'certPem', 'fingerprint']) {
      expect(body.data).not.toHaveProperty(hidden)
    }
    expect(text).not.toContain('argon2')
  })

  it('gives an identity a certificate of this controller, which then signs in', async () => {
    const id = await people.identity()
    const { certificate, chain, key } = await looseCertificate()
    const body = { identityId: id, method: 'cert', certPem: toCertificatePem(certificate) }

    const creation = await people.manage('POST', '/authenticators', body)

    expect(await people.manage('GET', `/authenticators/${creation.id}`)).toMatchObject({
      fingerprint: computeFingerprint(certificate),
      certPem: toCertificatePem(certificate),
      isIssuedByNetwork: false,
    })
    const session = await people.signInBy(at, { chain, key })
    expect(session.body.data).toMatchObject({ identityId: id, isCertExtendable: false })
  })

  const certificate = async () => toCertificatePem((await looseCertificate()).certificate)
  const bodies: Readonly<Record<string, [body: () => Promise<object>, status: number, code: string, field?: string]>> =
    {
      'of another method': [async () => ({ method: 'magic' }), 400, 'COULD_NOT_VALIDATE', 'method'],
      'for an unknown identity': [
        async () => ({ identityId: 'unknown', method: 'updb', username: 'jane.doe', password: PASSWORD }),
        400,
        'COULD_NOT_VALIDATE',
        'identityId',
      ],
      'without username': [async () => ({ method: 'updb', password: PASSWORD }), 400, 'COULD_NOT_VALIDATE', 'username'],
      'without password': [
        async () => ({ method: 'updb', username: 'jane.doe' }),
        400,
        'COULD_NOT_VALIDATE',
        'password',
      ],
      'with a short username': [
        async () => ({ method: 'updb', username: 'abc', password: PASSWORD }),
        400,
        'COULD_NOT_VALIDATE',
        'username',
      ],
      'with a certificate besides the password': [
        async () => ({ method: 'updb', username: 'jane.doe', password: PASSWORD, certPem: await certificate() }),
        400,
        'COULD_NOT_VALIDATE',
        'certPem',
      ],
      'without certificate': [async () => ({ method: 'cert' }), 400, 'COULD_NOT_VALIDATE', 'certPem'],
      'with nonsense as certificate': [
        async () => ({ method: 'cert', certPem: 'nonsense' }),
        400,
        'COULD_NOT_PARSE_PEM_BLOCK',
        'certPem',
      ],
      'with a block that only looks like one': [
        async () => ({ method: 'cert', certPem: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' }),
        400,
        'COULD_NOT_PARSE_PEM_BLOCK',
        'certPem',
      ],
      'with two certificates': [
        async () => ({ method: 'cert', certPem: (await certificate()) + (await certificate()) }),
        400,
        'COULD_NOT_PARSE_PEM_BLOCK',
        'certPem',
      ],
      'with a certificate of another authority': [
        async () => ({ method: 'cert', certPem: await foreignCertificate() }),
        400,
        'CERTIFICATE_FAILED_VALIDATION',
        'certPem',
      ],
      'with a username besides the certificate': [
        async () => ({ method: 'cert', certPem: await certificate(), username: 'jane.doe' }),
        400,
        'COULD_NOT_VALIDATE',
        'username',
      ],
    }

  it.each(Object.keys(bodies))('is refused an authenticator %s', async (what) => {
    const [body, status, code, field] = bodies[what] as (typeof bodies)[string]
    const identityId = await people.identity()

    const response = await people.ask('POST', '/authenticators', { identityId, ...(await body()) })

    expect([response.status, response.body.error.code, response.body.error.cause?.field]).toEqual([status, code, field])
  })

  it('is refused a second one of a method', async () => {
    const person = await people.person()
    const device = await people.device()
    const updb = { identityId: person.id, method: 'updb', username: 'the second', password: PASSWORD }
    const cert = { identityId: device.id, method: 'cert', certPem: await certificate() }

    const responses = [
      await people.ask('POST', '/authenticators', updb),
      await people.ask('POST', '/authenticators', cert),
    ]

    expect(responses.map(({ status, body }) => [status, body.error.code])).toEqual([
      [409, 'MAX_AUTHENTICATOR_METHODS_REACHED'],
      [409, 'MAX_AUTHENTICATOR_METHODS_REACHED'],
    ])
  })

  it('is refused one for the identity of a router, and an enrollment that would make one', async () => {
    const { id: identityId } = await people.manage('POST', '/edge-routers', {
      name: 'tunneler',
      isTunnelerEnabled: true,
    })
    const credential = { identityId, method: 'updb', username: 'of a router' }
    const expiresAt = new Date(world.clock.now() + 60_000).toISOString()

    const responses = [
      await people.ask('POST', '/authenticators', { ...credential, password: PASSWORD }),
      await people.ask('POST', '/enrollments', { ...credential, expiresAt }),
    ]

    expect(responses.map(({ status, body }) => [status, body.error.cause.field])).toEqual([
      [400, 'identityId'],
      [400, 'identityId'],
    ])
  })

  it('has one of an identity that is of the type of routers, and belongs to none', async () => {
    const { id, ...credentials } = await people.person({ type: 'Router' })

    expect((await people.signIn(credentials)).body.data.identityId).toBe(id)
  })

  it('is refused a certificate that belongs to another identity', async () => {
    const { chain } = await people.device()
    const certPem = chain.split(/(?<=-----END CERTIFICATE-----\n)/)[0]

    const response = await people.ask('POST', '/authenticators', {
      identityId: await people.identity(),
      method: 'cert',
      certPem,
    })

    expect([response.status, response.body.error.code]).toEqual([409, 'CERT_IN_USE'])
    expect(response.body.error.cause.data.fingerprint).toMatch(/^[0-9a-f]{40}$/)
  })

  it.each(['same', 'upper'])('is refused a username that is taken, in the %s case', async (how) => {
    const { username } = await people.person()
    const other = await people.person()
    const takenName = how === 'upper' ? username.toUpperCase() : username

    const responses = [
      await people.ask('POST', '/authenticators', {
        identityId: await people.identity(),
        method: 'updb',
        username: takenName,
        password: PASSWORD,
      }),
      await people.ask('PATCH', `/authenticators/${other.authenticatorId}`, { username: takenName }),
      await people.ask('PUT', `/authenticators/${other.authenticatorId}`, { username: takenName, password: PASSWORD }),
      await people.ask('POST', '/identities', {
        name: `wants ${takenName}`,
        type: 'User',
        isAdmin: false,
        enrollment: { updb: takenName },
      }),
    ]

    for (const { status, body } of responses) {
      expect([status, body.error.cause]).toEqual([409, { field: 'username', reason: 'is taken', value: takenName }])
    }
  })

  it('gives two identities the same username at the same time, and one of them keeps it', async () => {
    const identities = await Promise.all([people.identity(), people.identity(), people.identity()])

    const responses = await Promise.all(
      identities.map((identityId) =>
        people.ask('POST', '/authenticators', {
          identityId,
          method: 'updb',
          username: 'wanted by all',
          password: PASSWORD,
        }),
      ),
    )

    expect(responses.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  })

  it('changes the case of a username', async () => {
    const { authenticatorId, username } = await people.person()

    await people.manage('PATCH', `/authenticators/${authenticatorId}`, { username: username.toUpperCase() })

    expect((await people.manage('GET', `/authenticators/${authenticatorId}`)).username).toBe(username.toUpperCase())
  })

  it('changes a password without knowing it, which ends the sessions of the identity', async () => {
    const person = await people.person()
    const token = await people.sessionOf(person)

    await people.manage('PATCH', `/authenticators/${person.authenticatorId}`, { password: 'another password' })

    const statuses = [await people.signIn(person), await people.signIn({ ...person, password: 'another password' })]
    const session = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
    expect([...statuses.map(({ status }) => status), session.status]).toEqual([401, 200, 401])
  })

  it('changes nothing about a certificate but its tags', async () => {
    const { authenticatorId } = await people.device()
    const path = `/authenticators/${authenticatorId}`

    const responses = [
      await people.ask('PATCH', path, { password: 'another password' }),
      await people.ask('PATCH', path, { username: 'another name' }),
      await people.ask('PUT', path, { username: 'another name', password: 'another password' }),
      await people.ask('PATCH', path, { tags: { site: 'north' } }),
    ]

    expect(responses.map(({ status }) => status)).toEqual([409, 409, 409, 200])
    expect(responses[0]?.body.error.code).toBe('CAN_NOT_UPDATE_AUTHENTICATOR')
    expect(await people.manage('GET', path)).toMatchObject({ tags: { site: 'north' } })
  })

  it.each(['passwordHash', 'foldedUsername', 'fingerprint256', 'updbPassword', 'updbSalt', 'password'])(
    'cannot filter by %s',
    async (name) => {
      const filter = encodeURIComponent(`${name} != ""`)

      const response = await people.ask('GET', `/authenticators?filter=${filter}`)

      expect(response.body.error?.code).toBe('INVALID_FILTER')
    },
  )

  it('finds authenticators by username, by fingerprint and by identity', async () => {
    const person = await people.person()
    const { id, chain } = await people.device()
    const print = computeFingerprint(new X509Certificate(parsePemBlocks(chain)[0]?.bytes as Buffer))
    const findMatches = async (filter: string) =>
      (await people.manage('GET', `/authenticators?filter=${encodeURIComponent(filter)}`)).map(
        ({ identityId }: { identityId: string }) => identityId,
      )

    expect(await findMatches(`updbUsername = "${person.username}"`)).toEqual([person.id])
    expect(await findMatches(`certFingerprint = "${print}"`)).toEqual([id])
    expect(await findMatches(`identity = "${id}" and method = "cert"`)).toEqual([id])
    expect(await people.manage('GET', `/identities/${id}/authenticators`)).toHaveLength(1)
  })
})

describe.each([
  ['client', CLIENT],
  ['management', MANAGEMENT],
])('the owner of an authenticator, on the %s API', (_name, base) => {
  const path = (id = '') => `${base}/current-identity/authenticators${id && `/${id}`}`

  it('sees its own and no other', async () => {
    const person = await people.person()
    const other = await people.person()
    const token = await people.sessionOf(person)

    const list = await world.send({ method: 'GET', path: path(), token })
    const one = await world.send({ method: 'GET', path: path(person.authenticatorId), token })
    const foreign = await world.send({ method: 'GET', path: path(other.authenticatorId), token })
    const sneaky = await world.send({
      method: 'GET',
      path: `${path()}?filter=${encodeURIComponent(`identity = "${other.id}"`)}`,
      token,
    })

    expect(list.body.data.map(({ id }: { id: string }) => id)).toEqual([person.authenticatorId])
    expect(one.body.data._links).toEqual({
      self: { href: `./current-identity/authenticators/${person.authenticatorId}` },
    })
    expect(foreign.status).toBe(404)
    expect(sneaky.body.data).toEqual([])
  })

  it('changes username and password with the current password, and stays signed in', async () => {
    const person = await people.person()
    const token = await people.sessionOf(person)
    const change = (method: string, body: object) =>
      world.send({ method, path: path(person.authenticatorId), body, token })

    const patched = await change('PATCH', { currentPassword: PASSWORD, password: 'second password', username: null })
    const username = `renamed-${person.username}`
    const replaced = await change('PUT', { currentPassword: 'second password', username, password: 'third password' })

    const old = await people.signIn(person)
    const fresh = await people.signIn({ username, password: 'third password' })
    const session = await world.send({ method: 'GET', path: `${base}/current-api-session`, token })
    expect([patched.status, replaced.status, old.status, fresh.status, session.status]).toEqual([
      200, 200, 401, 200, 200,
    ])
    expect(replaced.body.data).toEqual({})
  })

  it.each(['PUT', 'PATCH'])('is refused by %s with a wrong current password, which is not repeated', async (method) => {
    const person = await people.person()
    const token = await people.sessionOf(person)
    const body = { currentPassword: 'not the current one', username: person.username, password: 'another password' }

    const response = await world.send({ method, path: path(person.authenticatorId), body, token })

    expect([response.status, response.body.error.code]).toEqual([401, 'UNAUTHORIZED'])
    expect(response.body.error.cause).toMatchObject({ field: 'currentPassword', value: '' })
    expect(response.text).not.toContain('not the current one')
    expect((await people.signIn(person)).status).toBe(200)
  })

  it('is refused a current password that an administrator replaced in the meantime', async () => {
    const person = await people.person()
    const token = await people.sessionOf(person)
    const body = { currentPassword: PASSWORD, password: "the owner's choice" }

    const [own] = await Promise.all([
      world.send({ method: 'PATCH', path: path(person.authenticatorId), body, token }),
      people.manage('PATCH', `/authenticators/${person.authenticatorId}`, { password: 'set from above' }),
    ])

    // If the owner's change was quicker, it was made and then replaced.
    if (own.status !== 200) expect([own.status, own.body.error.code]).toEqual([401, 'UNAUTHORIZED'])
    expect((await people.signIn({ ...person, password: 'set from above' })).status).toBe(200)
  })

  it.each([
    ['PATCH', { password: 'another password' }, 'currentPassword'],
    ['PUT', { currentPassword: PASSWORD, password: 'another password' }, 'username'],
    ['PUT', { currentPassword: PASSWORD, username: 'jane.doe' }, 'password'],
    ['PATCH', { currentPassword: PASSWORD, password: '1234' }, 'password'],
    ['PATCH', { currentPassword: PASSWORD, username: 'abc' }, 'username'],
  ])('is told by %s what is wrong with %j', async (method, body, field) => {
    const person = await people.person()
    const token = await people.sessionOf(person)

    const response = await world.send({ method, path: path(person.authenticatorId), body, token })

    expect([response.status, response.body.error.cause.field]).toEqual([400, field])
  })

  it('is refused for a certificate, for the authenticator of another, and for one that is not there', async () => {
    const { id } = await people.device()
    const device = await people.manage('GET', `/identities/${id}/authenticators`)
    const person = await people.person()
    await people.manage('POST', '/authenticators', {
      identityId: id,
      method: 'updb',
      username: `of ${id}`,
      password: PASSWORD,
    })
    const token = await people.sessionOf({ ...person, username: `of ${id}` })
    const change = (target: string) =>
      world.send({
        method: 'PATCH',
        path: path(target),
        body: { currentPassword: PASSWORD, password: 'x'.repeat(9) },
        token,
      })

    const responses = [await change(device[0].id), await change(person.authenticatorId), await change('nothing')]

    expect(responses.map(({ status }) => status)).toEqual([409, 404, 404])
    expect(responses[0]?.body.error.code).toBe('CAN_NOT_UPDATE_AUTHENTICATOR')
  })

  it('neither makes nor deletes them', async () => {
    const person = await people.person()
    const token = await people.sessionOf(person)

    const creation = await world.send({ method: 'POST', path: path(), body: {}, token })
    const deleted = await world.send({ method: 'DELETE', path: path(person.authenticatorId), token })

    expect([creation.status, deleted.status]).toEqual([405, 405])
  })
})

describe('reverting an authenticator to an enrollment', () => {
  const reEnroll = (id: string, expiresAt = inAnHour()) =>
    people.ask('POST', `/authenticators/${id}/re-enroll`, { expiresAt })

  it('gives a password the enrollment of its username, and ends its sessions', async () => {
    const person = await people.person()
    const token = await people.sessionOf(person)

    const response = await reEnroll(person.authenticatorId)

    const { id } = response.body.data
    const enrollment = await people.manage('GET', `/enrollments/${id}`)
    const session = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
    expect([response.status, response.body.data._links.self.href]).toEqual([201, `./enrollments/${id}`])
    expect(enrollment).toMatchObject({ method: 'updb', username: person.username, identityId: person.id })
    expect([session.status, (await people.signIn(person)).status]).toEqual([401, 401])
    const path = `${CLIENT}/enroll/updb?token=${enrollment.token}`
    const enrolled = await world.send({ method: 'POST', path, body: { password: 'a fresh start' } })
    expect(enrolled.body.data).toEqual({ username: person.username })
    expect((await people.signIn({ ...person, password: 'a fresh start' })).body.data.identityId).toBe(person.id)
  })

  it('gives a certificate a one-time enrollment', async () => {
    const device = await people.device()

    const { body } = await reEnroll(device.authenticatorId)

    const { method, token } = await people.manage('GET', `/enrollments/${body.data.id}`)
    expect([method, (await people.signInBy(at, device)).status]).toEqual(['ott', 401])
    const key = await clientKey('again')
    const chain = (await people.enroll(token, key.csr)).body.data.cert
    expect((await people.signInBy(at, { chain, key })).body.data.identityId).toBe(device.id)
  })

  it.each([
    ['an authenticator that is not there', async () => 'nothing', inAnHour, 404, 'NOT_FOUND'],
    [
      'a time that has passed',
      async () => (await people.person()).authenticatorId,
      () => '2001-01-01T00:00:00Z',
      400,
      'REFERENCED_ENTITY_NOT_FOUND',
    ],
  ])('is refused for %s', async (_what, id, expiresAt, status, code) => {
    const response = await reEnroll(await id(), expiresAt())

    expect([response.status, response.body.error.code]).toEqual([status, code])
  })

  it('is refused, and changes nothing, where such an enrollment is outstanding', async () => {
    const device = await people.device()
    await people.manage('POST', '/enrollments', { identityId: device.id, method: 'ott', expiresAt: inAnHour() })

    const response = await reEnroll(device.authenticatorId)

    expect([response.status, response.body.error.code]).toEqual([409, 'ENROLLMENT_EXISTS'])
    expect((await people.signInBy(at, device)).status).toBe(200)
  })
})

describe('asking for an extension', () => {
  it('marks a certificate, and its sessions show it', async () => {
    const device = await people.device()
    const { token } = (await people.signInBy(at, device)).body.data
    const session = () => world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
    const before = (await session()).body.data

    await people.manage('POST', `/authenticators/${device.authenticatorId}/request-extend`, { rollKeys: true })

    expect(before).toMatchObject({
      isCertExtendable: true,
      isCertExtendRequested: false,
      isCertKeyRollRequested: false,
    })
    expect((await session()).body.data).toMatchObject({ isCertExtendRequested: true, isCertKeyRollRequested: true })
    expect(await people.manage('GET', `/authenticators/${device.authenticatorId}`)).toMatchObject({
      isExtendRequested: true,
      isKeyRollRequested: true,
      extendRequestedAt: new Date(world.clock.now()).toISOString(),
    })
  })

  it('is told to the clients of the peer when they sign in', async () => {
    const device = await people.device()
    const path = `${CLIENT}/authenticate?method=cert`
    const { url, rootPem } = at
    const tls = { method: 'POST', path, cert: device.chain, key: device.key.keyPem }
    const ofPeer = { ...tls, body: { sdkInfo: { type: 'ziti-sdk-c' } } }
    const before = await callOverTls(url, rootPem, ofPeer)
    await people.manage('POST', `/authenticators/${device.authenticatorId}/request-extend`, {})

    const peer = await callOverTls(url, rootPem, ofPeer)
    const native = await callOverTls(url, rootPem, { ...tls, body: {} })

    const header = 'ziti-authenticator-extend-requested'
    expect([before.headers[header], peer.headers[header], native.headers[header]]).toEqual([
      undefined,
      'true',
      undefined,
    ])
  })

  it('marks all certificates of an identity', async () => {
    const device = await people.device()
    const { id } = await people.manage('POST', '/enrollments', {
      identityId: device.id,
      method: 'ott',
      expiresAt: inAnHour(),
    })
    const { token } = await people.manage('GET', `/enrollments/${id}`)
    await people.enroll(token, (await clientKey('second')).csr)

    const response = await people.ask('POST', `/identities/${device.id}/request-extend`, { rollKeys: false })

    const all = await people.manage('GET', `/identities/${device.id}/authenticators`)
    expect(response.body.data).toEqual({})
    expect(
      all.map(({ isExtendRequested, isKeyRollRequested }: Record<string, unknown>) => [
        isExtendRequested,
        isKeyRollRequested,
      ]),
    ).toEqual([
      [true, false],
      [true, false],
    ])
  })

  it('is refused for passwords, and for what is not there', async () => {
    const person = await people.person()

    const responses = [
      await people.ask('POST', `/authenticators/${person.authenticatorId}/request-extend`, {}),
      await people.ask('POST', `/identities/${person.id}/request-extend`, {}),
      await people.ask('POST', '/authenticators/nothing/request-extend', {}),
      await people.ask('POST', '/identities/unknown/request-extend', {}),
    ]

    expect(responses.map(({ status, body }) => [status, body.error.code])).toEqual([
      [403, 'FORBIDDEN'],
      [403, 'FORBIDDEN'],
      [404, 'NOT_FOUND'],
      [404, 'NOT_FOUND'],
    ])
  })
})
