// The extension of certificates: a new one is issued, and replaces the old one once its holder has received it.
import { X509Certificate } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { createApiSession } from '../../src/authentication/api-sessions/create-api-session.ts'
import { toCertificateFields } from '../../src/authentication/credentials/authenticator-behavior.ts'
import { flow } from '../../src/authentication/sign-in/flow.ts'
import { SignInAttempt } from '../../src/authentication/sign-in/sign-in-attempt.ts'
import { authenticators } from '../../src/definitions/resources/authenticators.ts'
import { readSigningRequest } from '../../src/pki/requests.ts'
import { get } from '../../src/storage/entities/entities.ts'
import { type ClientKey, callOverTls, clientKey, x509 } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT, type TestResponse } from '../world/controller.ts'
import { type Device, People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const DAY = 24 * 60 * 60 * 1000

const world = useController({ settings: { 'limits.ownChangesPerIdentity': 1000 } })
let at: { url: string; rootPem: string }
let people: People

beforeAll(async () => {
  at = await world.listen()
  people = await People.in(world)
})

/** A device with a session that it began by its certificate. */
async function signedIn(values: Record<string, unknown> = {}) {
  const device = await people.device(values)
  const { token } = (await people.signInBy(at, device)).body.data
  return { ...device, token: token as string }
}

type Holder = Awaited<ReturnType<typeof signedIn>>

function call(
  path: string,
  { token, chain, key }: Pick<Holder, 'token' | 'chain' | 'key'>,
  body: unknown,
  api = CLIENT,
): Promise<TestResponse> {
  const { url, rootPem } = at
  const headers = { 'net-session': token }
  return callOverTls(url, rootPem, { method: 'POST', path: api + path, headers, body, cert: chain, key: key.keyPem })
}

const extendPath = (id: string) => `/current-identity/authenticators/${id}/extend`
const extend = (holder: Holder, csr: string, id = holder.authenticatorId) =>
  call(extendPath(id), holder, { clientCertCsr: csr })

/** Without a client certificate: none is needed. */
const verify = ({ token, authenticatorId }: Holder, clientCert: unknown, id = authenticatorId) =>
  world.send({ method: 'POST', path: `${CLIENT}${extendPath(id)}-verify`, token, body: { clientCert } })

const signInBy = (device: Pick<Device, 'chain' | 'key'>) => people.signInBy(at, device)
const outcome = ({ status, body }: TestResponse) => [status, body.error?.code]

async function extended(holder: Holder, kind?: 'P-256' | 'RSA-2048') {
  const key = await clientKey('renewed', kind)
  const { body } = await extend(holder, key.csr)
  return { key, chain: body.data.clientCert as string, ca: body.data.ca as string }
}

describe('extending a certificate', () => {
  it('issues one for a year, with the subject of the request and the chain without the root', async () => {
    const holder = await signedIn()

    const { key, chain, ca } = await extended(holder, 'RSA-2048')

    const leaf = new x509.X509Certificate(chain)
    expect(leaf.subject).toBe('O=test, CN=renewed')
    expect(leaf.getExtension(x509.SubjectAlternativeNameExtension)).toBeNull()
    expect(leaf.notBefore.getTime()).toBe(world.clock.now() - 60_000)
    expect(leaf.notAfter.getTime()).toBe(world.clock.now() + 365 * DAY)
    expect(leaf.getExtension(x509.ExtendedKeyUsageExtension)?.usages).toEqual([x509.ExtendedKeyUsage.clientAuth])
    expect(new X509Certificate(chain).checkPrivateKey(key.key)).toBe(true)
    expect(chain.match(/BEGIN CERTIFICATE/g)).toHaveLength(2)
    expect(ca).toBe(world.controller.authority.bundlePem)
  })

  it('leaves the old certificate in force, and the new one out of it, until the holder verifies it', async () => {
    const holder = await signedIn()
    const next = await extended(holder)

    const before = [await signInBy(holder), await signInBy(next)]
    const verified = await verify(holder, next.chain)
    const after = [await signInBy(holder), await signInBy(next)]

    expect(before.map(outcome)).toEqual([
      [200, undefined],
      [401, 'INVALID_AUTH'],
    ])
    expect([verified.status, verified.body.data]).toEqual([200, {}])
    expect(after.map(outcome)).toEqual([
      [401, 'INVALID_AUTH'],
      [200, undefined],
    ])
    expect(after[1]?.body.data).toMatchObject({ authenticatorId: holder.authenticatorId, identityId: holder.id })
  })

  it('leaves the sessions that began by the old certificate', async () => {
    const holder = await signedIn()
    await verify(holder, (await extended(holder)).chain)

    const { status } = await world.send({
      method: 'GET',
      path: `${CLIENT}/current-api-session`,
      token: holder.token,
    })

    expect(status).toBe(200)
  })

  it('fulfills a request for it, and logs both certificates', async () => {
    const holder = await signedIn()
    await people.manage('POST', `/authenticators/${holder.authenticatorId}/request-extend`, { rollKeys: true })
    const requestedAt = new Date(world.clock.now()).toISOString()
    const next = await extended(holder)
    await verify(holder, next.chain)

    const view = await people.manage('GET', `/authenticators/${holder.authenticatorId}`)

    const [newCert] = next.chain.split(/(?<=-----END CERTIFICATE-----\n)/)
    const [previousCert] = holder.chain.split(/(?<=-----END CERTIFICATE-----\n)/)
    expect(view).toMatchObject({
      certPem: newCert,
      fingerprint: new X509Certificate(next.chain).fingerprint.replaceAll(':', '').toLowerCase(),
      isExtendRequested: false,
      isKeyRollRequested: false,
      extendRequestedAt: requestedAt,
      extendLog: [
        { extendedAt: new Date(world.clock.now()).toISOString(), previousCert, newCert, isNewPrivateKey: true },
      ],
    })
    expect(JSON.stringify(view)).not.toContain('unverified')
    const session = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token: holder.token })
    expect(session.body.data).toMatchObject({ isCertExtendRequested: false, isCertKeyRollRequested: false })
  })

  it('may keep the key', async () => {
    const holder = await signedIn()
    const { body } = await extend(holder, holder.key.csr)
    await verify(holder, body.data.clientCert)

    const { extendLog } = await people.manage('GET', `/authenticators/${holder.authenticatorId}`)

    expect(extendLog).toMatchObject([{ isNewPrivateKey: false }])
    expect((await signInBy({ chain: body.data.clientCert, key: holder.key })).status).toBe(200)
  })

  it('can be repeated with the new certificate, and logs the last five', async () => {
    let holder = await signedIn()
    for (let n = 0; n < 6; n++) {
      const next = await extended(holder)
      await verify(holder, next.chain)
      holder = { ...holder, ...next }
    }

    const { extendLog } = await people.manage('GET', `/authenticators/${holder.authenticatorId}`)

    expect(extendLog).toHaveLength(5)
    expect((await signInBy(holder)).status).toBe(200)
  })

  it('can be repeated before it is verified, and only the last one can be verified', async () => {
    const holder = await signedIn()
    const first = await extended(holder)
    const second = await extended(holder)

    expect(outcome(await verify(holder, first.chain))).toEqual([400, 'INVALID_CLIENT_CERT'])
    expect((await verify(holder, second.chain)).status).toBe(200)
    expect((await signInBy(first)).status).toBe(401)
  })

  it('twice at once leaves one of both to be verified, once', async () => {
    const holder = await signedIn()
    const both = await Promise.all([extended(holder), extended(holder)])

    const responses = await Promise.all([...both, ...both].map(({ chain }) => verify(holder, chain)))
    const signIns = await Promise.all(both.map(signInBy))

    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(signIns.map(({ status }) => status).sort()).toEqual([200, 401])
  })

  it('is offered to administrators on the management API', async () => {
    const holder = await signedIn({ isAdmin: true })
    const next = await clientKey('administrator')
    const path = extendPath(holder.authenticatorId)

    const issued = await call(path, holder, { clientCertCsr: next.csr }, MANAGEMENT)
    const { clientCert } = issued.body.data
    const verified = await call(`${path}-verify`, holder, { clientCert }, MANAGEMENT)

    expect([issued.status, verified.status]).toEqual([200, 200])
    expect((await signInBy({ chain: clientCert, key: next })).status).toBe(200)
  })

  it('copies the alternative names of the current certificate', async () => {
    const holder = await signedIn()
    const names = { hosts: ['device.example', '10.0.0.1'], uris: ['spiffe://example/device'] }
    const key = await clientKey('named')
    const chain = await giveCertificate(holder, key, names)

    const next = await extended({ ...holder, key, chain })

    const namesOf = (pem: string) => new X509Certificate(pem).subjectAltName
    expect(namesOf(chain)).toContain('DNS:device.example')
    expect(namesOf(next.chain)).toBe(namesOf(chain))
  })
})

describe('a sign-in by the old certificate', () => {
  it('is refused if the extension is verified before it is complete', async () => {
    const holder = await signedIn()
    const { controller, system } = world
    const next = await extended(holder)
    const own = new X509Certificate(holder.chain)
    const peer = {
      own,
      isIssuerPresented: false,
      isPresentedAlone: true,
      isResumed: false,
      ownPrint: undefined,
      readOwn: () => own,
      readAll: () => [own],
      readEvery: () => [own],
    }
    const attempt = new SignInAttempt(controller, system, 'cert', { peer, bearerTokens: [] })
    for (const step of flow.cert) await step(attempt)
    await verify(holder, next.chain)

    await expect(createApiSession(attempt, {})).rejects.toMatchObject({ reason: 'CREDENTIAL_CHANGED' })
  })
})

describe('an extension', () => {
  const csr = async () => (await clientKey('x')).csr

  it('is refused if the connection does not present the current certificate', async () => {
    const [holder, other] = [await signedIn(), await signedIn()]
    const path = CLIENT + extendPath(holder.authenticatorId)
    const body = { clientCertCsr: await csr() }
    const sessionKey = await clientKey('session')
    const sessionCertificate = await world.send({
      method: 'POST',
      path: `${CLIENT}/current-api-session/certificates`,
      token: holder.token,
      body: { csr: sessionKey.csr },
    })
    const next = await extended(holder)

    const responses = [
      await world.send({ method: 'POST', path, token: holder.token, body }),
      await extend({ ...holder, chain: other.chain, key: other.key }, body.clientCertCsr),
      await extend({ ...holder, chain: sessionCertificate.body.data.certificate, key: sessionKey }, body.clientCertCsr),
      // Not verified yet.
      await extend({ ...holder, ...next }, body.clientCertCsr),
    ]

    expect(responses.map(outcome)).toEqual(responses.map(() => [401, 'UNAUTHORIZED']))
    expect(new Set(responses.map(({ body: { error } }) => error.cause.code))).toEqual(new Set(['CERTIFICATE_REQUIRED']))
  })

  it('is refused for the authenticator of another identity, a password, and one that does not exist', async () => {
    const [holder, other] = [await signedIn(), await signedIn()]
    const { id: passwordId } = await people.manage('POST', '/authenticators', {
      identityId: holder.id,
      method: 'updb',
      username: `user of ${holder.id}`,
      password: 'correct horse battery',
    })
    const foreign = await people.person()
    const ids = [other.authenticatorId, foreign.authenticatorId, passwordId, 'nothing']
    const expected = [
      [401, 'UNAUTHORIZED'],
      [401, 'UNAUTHORIZED'],
      [409, 'CAN_NOT_UPDATE_AUTHENTICATOR'],
      [404, 'NOT_FOUND'],
    ]

    const extensions = []
    const verifications = []
    for (const id of ids) {
      extensions.push(outcome(await extend(holder, await csr(), id)))
      verifications.push(outcome(await verify(holder, holder.chain, id)))
    }

    expect(extensions).toEqual(expected)
    expect(verifications).toEqual(expected)
  })

  it('is refused for a certificate that an administrator registered', async () => {
    const id = await people.identity()
    const { authority } = world.controller
    const key = await clientKey('registered')
    const issued = authority.issueClient(readSigningRequest(key.csr), world.clock.now())
    const chain = authority.clientChainPem(issued)
    const [certPem] = chain.split(/(?<=-----END CERTIFICATE-----\n)/)
    const { id: authenticatorId } = await people.manage('POST', '/authenticators', {
      identityId: id,
      method: 'cert',
      certPem,
    })
    const { token, isCertExtendable } = (await signInBy({ chain, key })).body.data

    const response = await extend({ id, key, chain, authenticatorId, token }, await csr())

    expect(isCertExtendable).toBe(false)
    expect(outcome(response)).toEqual([409, 'CAN_NOT_UPDATE_AUTHENTICATOR'])
  })

  it.each([
    ['nonsense', () => 'nonsense'],
    ['two requests', (own: string) => own + own],
    ['a request that was cut', (own: string) => own.slice(0, 200) + own.slice(240)],
  ])('is refused for %s, and the current certificate stays', async (_what, mangle) => {
    const holder = await signedIn()

    const response = await extend(holder, mangle(await csr()))

    expect(outcome(response)).toEqual([400, 'COULD_NOT_PROCESS_CSR'])
    expect(outcome(await verify(holder, holder.chain))).toEqual([409, 'CAN_NOT_UPDATE_AUTHENTICATOR'])
    expect((await signInBy(holder)).status).toBe(200)
  })

  it('is refused without a request, and its verification without a certificate', async () => {
    const holder = await signedIn()

    const responses = [
      await call(extendPath(holder.authenticatorId), holder, {}),
      await call(`${extendPath(holder.authenticatorId)}-verify`, holder, {}),
    ]

    expect(responses.map(outcome)).toEqual(responses.map(() => [400, 'COULD_NOT_VALIDATE']))
  })

  it('is verified by no other certificate', async () => {
    const holder = await signedIn()
    await extended(holder)
    const nonsense = '-----BEGIN CERTIFICATE-----\nbm9uc2Vuc2U=\n-----END CERTIFICATE-----\n'

    for (const pem of ['nonsense', '', nonsense, holder.chain, at.rootPem]) {
      expect(outcome(await verify(holder, pem))).toEqual([400, 'INVALID_CLIENT_CERT'])
    }
    expect((await signInBy(holder)).status).toBe(200)
  })

  it('is refused to a session that owes a second factor', async () => {
    const device = await people.device({ authPolicyId: await people.policy({ requireTotp: true }) })
    const { token } = (await signInBy(device)).body.data

    const response = await extend({ ...device, token }, await csr())

    expect(response.body.error.cause.code).toBe('SECOND_FACTOR_REQUIRED')
  })

  it('ends with the reversion of its authenticator to an enrollment', async () => {
    const holder = await signedIn()
    const next = await extended(holder)
    const expiresAt = new Date(world.clock.now() + DAY).toISOString()
    await people.manage('POST', `/authenticators/${holder.authenticatorId}/re-enroll`, { expiresAt })

    expect((await signInBy(next)).status).toBe(401)
    expect((await verify(holder, next.chain)).status).toBe(401)
  })
})

// The last test, because it moves the clock.
it('an expired certificate can be extended', async () => {
  const device = await people.device()
  world.clock.advance(400 * DAY)
  const { token } = (await signInBy(device)).body.data

  const { chain } = await extended({ ...device, token })

  expect(Date.parse(new X509Certificate(chain).validTo)).toBe(world.clock.now() + 365 * DAY)
  expect((await verify({ ...device, token }, chain)).status).toBe(200)
})

/** Replaces the certificate of an authenticator by one with alternative names, as a later release may issue it. */
async function giveCertificate(holder: Holder, key: ClientKey, names: { hosts: string[]; uris: string[] }) {
  const { authority, entities } = world.controller
  const certificate = authority.issueClient(readSigningRequest(key.csr), world.clock.now(), { names })
  await world.system.write(async (tx) => {
    const previous = await get(tx, authenticators, holder.authenticatorId)
    await entities.update(tx, authenticators, previous, toCertificateFields(certificate))
  })
  return authority.clientChainPem(certificate)
}
