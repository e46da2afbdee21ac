// Session certificates: issued for one API session, shown to it alone, accepted for no sign-in, and deleted with it.
import { createHash, X509Certificate } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { decodeCertificates } from '../../src/pki/pkcs7.ts'
import { type ClientKey, clientKey, x509 } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT, testController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let at: { url: string; rootPem: string }
let people: People

beforeAll(async () => {
  at = await world.listen()
  people = await People.in(world)
})

const HOUR = 60 * 60 * 1000
const PATH = `${CLIENT}/current-api-session/certificates`

const request = (token: string, csr: unknown) => world.send({ method: 'POST', path: PATH, token, body: { csr } })
const list = (token: string, query = '') => world.send({ method: 'GET', path: PATH + query, token })
const one = (method: string, token: string, id: string) => world.send({ method, path: `${PATH}/${id}`, token })

/** A session with a certificate. */
async function sessionWithCertificate(commonName = 'laptop') {
  const { id: identityId, token } = await world.signIn()
  const key = await clientKey(commonName)
  const { data } = (await request(token, key.csr)).body
  const session = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
  return { identityId, token, key, issued: data, apiSessionId: session.body.data.id as string }
}

describe('a session certificate', () => {
  it('is issued for the session, for twelve hours, with the SPIFFE id that routers read', async () => {
    const { issued, identityId, apiSessionId, key } = await sessionWithCertificate()

    const leaf = new x509.X509Certificate(issued.certificate)
    const names = leaf.getExtension(x509.SubjectAlternativeNameExtension)?.names.toJSON()
    const root = createHash('sha256').update(world.controller.authority.root.raw).digest('hex')
    const uri = `spiffe://${root.slice(0, 32)}/identity/${identityId}/apiSession/${apiSessionId}/apiSessionCertificate/${issued.id}`
    expect(names).toEqual([{ type: 'url', value: uri }])
    expect(leaf.subject).toBe('O=test, CN=laptop')
    expect(leaf.notBefore.getTime()).toBe(world.clock.now() - 60_000)
    expect(leaf.notAfter.getTime()).toBe(world.clock.now() + 12 * HOUR)
    expect(leaf.getExtension(x509.BasicConstraintsExtension)?.ca).toBe(false)
    expect(leaf.getExtension(x509.ExtendedKeyUsageExtension)?.usages).toEqual([x509.ExtendedKeyUsage.clientAuth])
    expect(new X509Certificate(issued.certificate).checkPrivateKey(key.key)).toBe(true)
  })

  it('comes with the chain without the root, and with the authorities that clients trust', async () => {
    const { issued } = await sessionWithCertificate()

    const chain = pemCertificates(issued.certificate)
    const store = await world.send({ method: 'GET', path: '/.well-known/est/cacerts' })
    const authorities = decodeCertificates(store.text).map(({ fingerprint256 }) => fingerprint256)
    expect(chain).toHaveLength(2)
    expect(chain[0]?.checkIssued(chain[1] as X509Certificate)).toBe(true)
    expect(chain[1]?.checkIssued(chain[1] as X509Certificate)).toBe(false)
    expect(pemCertificates(issued.cas).map(({ fingerprint256 }) => fingerprint256)).toEqual(authorities)
    expect(issued._links.self.href).toBe(`./current-api-session/certificates/${issued.id}`)
  })

  it('is listed and shown to its session, with its subject in reverse order and its dates', async () => {
    const { token, issued } = await sessionWithCertificate()
    const [leaf] = pemCertificates(issued.certificate) as [X509Certificate]

    const view = (await one('GET', token, issued.id)).body.data
    const listed = (await list(token)).body

    expect(view).toEqual({
      _links: { self: { href: `./current-api-session/certificates/${issued.id}` } },
      id: issued.id,
      createdAt: new Date(world.clock.now()).toISOString(),
      updatedAt: new Date(world.clock.now()).toISOString(),
      tags: {},
      subject: 'CN=laptop,O=test',
      fingerprint: leaf.fingerprint.replaceAll(':', '').toLowerCase(),
      validFrom: new Date(leaf.validFrom).toISOString(),
      validTo: new Date(leaf.validTo).toISOString(),
      certificate: issued.certificate,
    })
    expect(listed.data).toEqual([view])
    expect(issued).toEqual({ ...view, cas: issued.cas })
    expect(listed.meta.pagination.totalCount).toBe(1)
  })

  it('can be found by its subject, fingerprint and dates', async () => {
    const { token } = await sessionWithCertificate('first')
    await request(token, (await clientKey('second')).csr)
    const findMatches = async (filter: string) =>
      (await list(token, `?filter=${encodeURIComponent(filter)}`)).body.data.map(
        ({ subject }: { subject: string }) => subject,
      )

    expect(await findMatches('subject contains "second"')).toEqual(['CN=second,O=test'])
    expect(await findMatches('validTo > datetime(2020-01-01T00:00:00Z) sort by subject desc limit 1')).toEqual([
      'CN=second,O=test',
    ])
    expect(await findMatches('fingerprint = "none"')).toEqual([])
  })

  it('is hidden from every other session, also of the same identity', async () => {
    const { issued } = await sessionWithCertificate()
    const person = await people.person()
    const [own, sibling] = [await people.sessionOf(person), await people.sessionOf(person)]
    const theirs = (await request(own, (await clientKey('own')).csr)).body.data

    expect((await list(sibling)).body.data).toEqual([])
    for (const { id } of [issued, theirs]) {
      expect((await one('GET', sibling, id)).status).toBe(404)
      expect((await one('DELETE', sibling, id)).status).toBe(404)
      expect((await one('GET', people.token, id)).status).toBe(404)
    }
    expect((await list(own)).body.data).toHaveLength(1)
  })

  it('is gone once it is deleted', async () => {
    const { token, issued } = await sessionWithCertificate()

    expect((await one('DELETE', token, issued.id)).body.data).toEqual({})

    expect((await one('GET', token, issued.id)).status).toBe(404)
    expect((await one('DELETE', token, issued.id)).status).toBe(404)
    expect((await list(token)).body.data).toEqual([])
  })

  it.each([
    ['a sign-out', (token: string) => world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, token })],
    [
      'the deletion of its identity',
      (_token: string, identityId: string) => people.manage('DELETE', `/identities/${identityId}`),
    ],
    [
      'the deletion of its session by an administrator',
      async (token: string) => {
        const { data } = (await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })).body
        await people.manage('DELETE', `/api-sessions/${data.id}`)
      },
    ],
  ])('ends with its session by %s', async (_what, end) => {
    const { token, identityId, issued } = await sessionWithCertificate()

    await end(token, identityId)

    const rows = await world.controller.store.db.selectFrom('session_certificates').select('id').execute()
    expect(rows.map(({ id }) => id)).not.toContain(issued.id)
    expect((await list(token)).status).toBe(401)
  })

  it('survives a restart together with its session', async () => {
    const before = await testController()
    const { token } = await before.signIn()
    const request = { method: 'POST', path: PATH, token, body: { csr: (await clientKey('laptop')).csr } }
    const { data } = (await before.send(request)).body
    await before.stop()

    const after = await testController({ directory: before.directory, clock: before.clock })

    const { body } = await after.send({ method: 'GET', path: `${PATH}/${data.id}`, token })
    expect(body.data.certificate).toBe(data.certificate)
    await after.close()
  })

  it('replaces the oldest one if the session has ten', async () => {
    const { token } = await world.signIn()
    const { csr } = await clientKey('again')
    const ids: string[] = []
    for (let n = 0; n < 12; n++) ids.push((await request(token, csr)).body.data.id)

    const listed = (await list(token, '?limit=100')).body.data.map(({ id }: { id: string }) => id)

    expect(listed.sort()).toEqual(ids.slice(2).sort())
  })

  it('stays while its session lives, also when it is expired: connections that were made with it go on', async () => {
    const own = await testController({ settings: { 'session.timeout': '24h' } })
    const { token } = await own.signIn()
    const { csr } = await clientKey('renewing')
    const issue = () => own.send({ method: 'POST', path: PATH, token, body: { csr } })
    const first = (await issue()).body.data.id
    own.clock.advance(12 * HOUR)

    const { id } = (await issue()).body.data

    const { data } = (await own.send({ method: 'GET', path: PATH, token })).body
    expect(data.map((certificate: { id: string }) => certificate.id)).toEqual([first, id])
    await own.close()
  })
})

describe('signing in by a session certificate', () => {
  const signInWith = (chain: string, key: ClientKey) => people.signInBy(at, { chain, key })

  it('is refused, while the session lives and afterwards', async () => {
    const { issued, token, key } = await sessionWithCertificate()

    const during = await signInWith(issued.certificate, key)
    await world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, token })
    const afterwards = await signInWith(issued.certificate, key)

    for (const { status, body } of [during, afterwards])
      expect([status, body.error.code]).toEqual([401, 'INVALID_AUTH'])
  })

  it('is not made possible by an administrator who gives it to an identity', async () => {
    const { issued, identityId } = await sessionWithCertificate()
    const [certPem] = issued.certificate.split(/(?<=-----END CERTIFICATE-----\n)/)

    const response = await people.ask('POST', '/authenticators', { identityId, method: 'cert', certPem })

    expect([response.status, response.body.error.code]).toEqual([400, 'CERTIFICATE_FAILED_VALIDATION'])
  })
})

describe('a request for a session certificate', () => {
  it.each([
    ['text that is not a request', async () => 'nonsense'],
    ['an empty text', async () => ''],
    ['base64 without PEM', async () => (await clientKey('x')).csr.replace(/-----[^-]+-----\n/g, '')],
    [
      'two requests',
      async () => {
        const { csr } = await clientKey('x')
        return csr + csr
      },
    ],
    ['a request with a weak key', async () => (await clientKey('x', 'RSA-1024')).csr],
    [
      'a request with the signature of another key',
      async () => {
        const bytes = (await clientKey('x')).csr.split('\n').slice(1, -2).join('')
        const broken = Buffer.from(bytes, 'base64')
        broken[broken.length - 1] = (broken.at(-1) as number) ^ 1
        return `-----BEGIN CERTIFICATE REQUEST-----\n${broken.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`
      },
    ],
  ])('is refused if it is %s', async (_what, csr) => {
    const { token } = await world.signIn()

    const response = await request(token, await csr())

    expect([response.status, response.body.error.code]).toEqual([400, 'COULD_NOT_PROCESS_CSR'])
    expect((await list(token)).body.data).toEqual([])
  })

  it('is refused without the member csr', async () => {
    const { token } = await world.signIn()

    const response = await world.send({ method: 'POST', path: PATH, token, body: {} })

    expect([response.status, response.body.error.code]).toEqual([400, 'COULD_NOT_VALIDATE'])
  })

  it('is refused without a session, and for one that owes a second factor', async () => {
    const person = await people.person({ authPolicyId: await people.policy({ requireTotp: true }) })
    const partial = await people.sessionOf(person)
    const { csr } = await clientKey('x')

    expect((await world.send({ method: 'POST', path: PATH, body: { csr } })).status).toBe(401)
    expect((await request(partial, csr)).body.error.cause.code).toBe('SECOND_FACTOR_REQUIRED')
  })

  it('is not on the management API', async () => {
    const path = `${MANAGEMENT}/current-api-session/certificates`

    expect((await world.send({ method: 'GET', path, token: people.token })).status).toBe(404)
  })
})

function pemCertificates(pem: string): X509Certificate[] {
  return pem
    .split(/(?<=-----END CERTIFICATE-----\n)/)
    .filter((block) => block !== '')
    .map((block) => new X509Certificate(block))
}
