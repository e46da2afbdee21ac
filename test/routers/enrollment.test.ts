// Enrollment of routers: one-time tokens become certificates with the names that routers ask for.
import { X509Certificate } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { callOverTls, clientKey } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT, testController } from '../world/controller.ts'
import { enrolledRouter, ROUTER_NAMES } from '../world/router/enrolled-router.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let admin: string

beforeAll(async () => {
  admin = await world.admin()
})

const blocks = (pem: string) => pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []

async function newRouter(name: string, kind = 'edge-routers') {
  const values = kind === 'routers' ? { name, cost: 0, noTraversal: false } : { name }
  const created = await world.send({ method: 'POST', path: `${MANAGEMENT}/${kind}`, token: admin, body: values })
  const id = created.body.data.id as string
  const { body } = await world.send({ method: 'GET', path: `${MANAGEMENT}/${kind}/${id}`, token: admin })
  return { id, token: body.data.enrollmentToken as string }
}

const requestsFor = async (commonName: string) => ({
  certCsr: (await clientKey(commonName, 'P-256', ROUTER_NAMES)).csr,
  serverCertCsr: (await clientKey(commonName, 'P-256', ROUTER_NAMES)).csr,
})

const enroll = (method: string, token: string, body: unknown) =>
  world.send({ method: 'POST', path: `${CLIENT}/enroll?method=${method}&token=${token}`, body })

describe('an edge router', () => {
  it('receives a client and a server certificate with the names of its requests, and the authorities', async () => {
    const router = await enrolledRouter(world, { name: 'edge-certificates' })
    const [leaf, issuer] = blocks(router.cert).map((pem) => new X509Certificate(pem))
    const server = new X509Certificate(blocks(router.serverCert)[0]!)
    expect(leaf!.subject).toContain(`CN=${router.id}`)
    expect(leaf!.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2'])
    expect(server.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1'])
    for (const certificate of [leaf!, server])
      expect(certificate.subjectAltName).toBe('DNS:router.example, IP Address:127.0.0.1')
    expect(leaf!.verify(issuer!.publicKey)).toBe(true)
    const root = world.controller.authority.root.fingerprint256
    const contains = (chain: string) => blocks(chain).some((pem) => new X509Certificate(pem).fingerprint256 === root)
    expect(contains(router.ca)).toBe(true)
    expect(contains(router.cert), 'a chain leaves out the root').toBe(false)
  })

  it('is verified afterwards, with the SHA-1 fingerprint of its client certificate, and has no token any more', async () => {
    const router = await enrolledRouter(world, { name: 'edge-verified' })
    const { body } = await world.send({ method: 'GET', path: `${MANAGEMENT}/edge-routers/${router.id}`, token: admin })
    const fingerprint = new X509Certificate(blocks(router.cert)[0]!).fingerprint.replaceAll(':', '').toLowerCase()
    expect(body.data).toMatchObject({ isVerified: true, fingerprint })
    expect(body.data.enrollmentToken ?? null).toBeNull()
  })

  it('enrolls once by a token', async () => {
    const { id, token } = await newRouter('edge-once')
    expect((await enroll('erott', token, await requestsFor(id))).status).toBe(200)
    const again = await enroll('erott', token, await requestsFor(id))
    expect([again.status, again.body.error.code]).toEqual([400, 'INVALID_ENROLLMENT_TOKEN'])
  })

  it('enrolls once by a token that comes over several connections at once', async () => {
    const { url, rootPem } = await world.listen()
    const { id, token } = await newRouter('edge-several')
    const bodies = await Promise.all([1, 2, 3].map(() => requestsFor(id)))
    const path = `${CLIENT}/enroll?method=erott&token=${token}`

    const responses = await Promise.all(bodies.map((body) => callOverTls(url, rootPem, { method: 'POST', path, body })))

    expect(responses.map(({ status, body }) => [status, body.error?.code]).sort()).toEqual([
      [200, undefined],
      [400, 'INVALID_ENROLLMENT_TOKEN'],
      [400, 'INVALID_ENROLLMENT_TOKEN'],
    ])
    // The certificate of the one that was served is the one that counts.
    const winner = responses.find(({ status }) => status === 200)
    const leaf = new X509Certificate(blocks(winner?.body.data.cert)[0]!)
    const { body } = await world.send({ method: 'GET', path: `${MANAGEMENT}/edge-routers/${id}`, token: admin })
    expect(body.data.fingerprint).toBe(leaf.fingerprint.replaceAll(':', '').toLowerCase())
  })

  it('enrolls by the path of its method, too', async () => {
    const { id, token } = await newRouter('edge-path')
    const { certCsr, serverCertCsr } = await requestsFor(id)
    const body = { clientCsr: certCsr, serverCsr: serverCertCsr, token }
    const response = await world.send({ method: 'POST', path: `${CLIENT}/enroll/erott`, body })
    expect(response.status).toBe(200)
    expect(Object.keys(response.body.data).sort()).toEqual(['ca', 'cert', 'serverCert'])
  })

  it.each([
    ['without a request as a server', { serverCertCsr: undefined }, 'MISSING_OR_INVALID_CSR'],
    ['without a request as a client', { certCsr: undefined }, 'MISSING_OR_INVALID_CSR'],
    ['with a request that is not PEM', { certCsr: 'not PEM' }, 'COULD_NOT_PROCESS_CSR'],
  ])('%s is refused, and its token stays good', async (name, change, code) => {
    const { id, token } = await newRouter(`edge ${name}`)
    const refused = await enroll('erott', token, { ...(await requestsFor(id)), ...change })
    expect([refused.status, refused.body.error.code]).toEqual([400, code])
    expect((await enroll('erott', token, await requestsFor(id))).status).toBe(200)
  })

  it('that asks for the name of another router is refused', async () => {
    const { token } = await newRouter('edge-impostor')
    const refused = await enroll('erott', token, await requestsFor('another-id'))
    expect([refused.status, refused.body.error.code]).toEqual([400, 'COULD_NOT_PROCESS_CSR'])
  })

  it('that asks for another name besides its own is refused', async () => {
    const [router, other] = [await newRouter('edge-two-names'), await newRouter('edge-other-name')]
    for (const names of [`${router.id}, CN=${other.id}`, `${other.id}, CN=${router.id}`]) {
      const { body, status } = await enroll('erott', router.token, await requestsFor(names))
      expect([status, body.error.code]).toEqual([400, 'COULD_NOT_PROCESS_CSR'])
    }
  })

  it('that asks for a SPIFFE id is refused', async () => {
    const { id, token } = await newRouter('edge-spiffe')
    const names = [{ type: 'url', value: 'spiffe://network/identity/a/apiSession/b' }] as const
    const requests = { ...(await requestsFor(id)), certCsr: (await clientKey(id, 'P-256', names)).csr }
    const refused = await enroll('erott', token, requests)
    expect([refused.status, refused.body.error.code]).toEqual([400, 'COULD_NOT_PROCESS_CSR'])
  })

  it('cannot enroll by the method of other routers', async () => {
    const { id, token } = await newRouter('edge-method')
    const refused = await enroll('trott', token, await requestsFor(id))
    expect([refused.status, refused.body.error.code]).toEqual([400, 'INVALID_ENROLL_METHOD'])
  })

  it('cannot enroll after its token expired', async () => {
    const { id, token } = await newRouter('edge-late')
    world.clock.advance(181 * 60_000)
    const refused = await enroll('erott', token, await requestsFor(id))
    expect([refused.status, refused.body.error.code]).toEqual([400, 'ENROLLMENT_EXPIRED'])
  })

  it('that enrolls again is not verified until it did', async () => {
    const router = await enrolledRouter(world, { name: 'edge-again' })
    const path = `${MANAGEMENT}/edge-routers/${router.id}`
    const token = await world.admin()
    await world.send({ method: 'POST', path: `${path}/re-enroll`, token })
    const { body } = await world.send({ method: 'GET', path, token })
    expect(body.data).toMatchObject({ isVerified: false, fingerprint: null })
    const enrolled = await enroll('erott', body.data.enrollmentToken, await requestsFor(router.id))
    expect(enrolled.status).toBe(200)
  })
})

describe('the new token of an edge router that enrolls again', () => {
  it('is valid as long as other tokens of routers, or until the time that is asked for', async () => {
    const router = await enrolledRouter(world, { name: 'edge-until' })
    const path = `${MANAGEMENT}/edge-routers/${router.id}`
    const token = await world.admin()
    const reEnroll = async (body?: object) => {
      const { status } = await world.send({
        method: 'POST',
        path: `${path}/re-enroll`,
        token,
        ...(body ? { body } : {}),
      })
      const { data } = (await world.send({ method: 'GET', path, token })).body
      return [status, Date.parse(data.enrollmentExpiresAt) - world.clock.now()]
    }
    const inHours = (hours: number) => new Date(world.clock.now() + hours * 3_600_000).toISOString()

    expect(await reEnroll()).toEqual([200, 3 * 3_600_000])
    expect(await reEnroll({ expiresAt: inHours(24) })).toEqual([200, 24 * 3_600_000])
    expect(await reEnroll({ expiresAt: inHours(-1) })).toEqual([400, 24 * 3_600_000])
  })
})

describe('a transit router', () => {
  it('is given its id as the common name, whatever it asks for', async () => {
    const token = await world.admin()
    const values = { name: 'transit-name', cost: 0, noTraversal: false }
    const created = await world.send({ method: 'POST', path: `${MANAGEMENT}/routers`, token, body: values })
    const id = created.body.data.id as string
    const { body } = await world.send({ method: 'GET', path: `${MANAGEMENT}/routers/${id}`, token })
    const enrolled = await enroll('trott', body.data.enrollmentToken, await requestsFor('anything'))
    expect(enrolled.status).toBe(200)
    expect(new X509Certificate(blocks(enrolled.body.data.cert)[0]!).subject).toBe(`CN=${id}`)
  })
})

describe('the extension of a router over HTTPS', () => {
  it('replaces both certificates, and the former client certificate is worth nothing afterwards', async () => {
    const tls = await testController()
    try {
      const { url, rootPem } = await tls.listen()
      const router = await enrolledRouter(tls)
      const extend = async (cert: string, key: string) => {
        const [client, server] = [await clientKey(router.id, 'P-256', ROUTER_NAMES), await clientKey(router.id)]
        const body = { certCsr: client.csr, serverCertCsr: server.csr }
        const call = { method: 'POST', path: `${CLIENT}/enroll/extend/router`, body, cert, key }
        return { response: await callOverTls(url, rootPem, call), key: client.keyPem }
      }
      const extended = await extend(router.cert, router.key)
      expect(extended.response.status).toBe(200)
      expect(Object.keys(extended.response.body.data).sort()).toEqual(['cert', 'serverCert'])
      expect((await extend(router.cert, router.key)).response.status).toBe(401)
      expect((await extend(extended.response.body.data.cert, extended.key)).response.status).toBe(200)
    } finally {
      await tls.close()
    }
  })

  it('without a client certificate is refused', async () => {
    const body = await requestsFor('x')
    const response = await world.send({ method: 'POST', path: `${CLIENT}/enroll/extend/router`, body })
    expect(response.status).toBe(401)
  })
})
