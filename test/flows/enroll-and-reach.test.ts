// The path of a device: it is made, enrolls, signs in by its certificate, and sees exactly what policies grant.
import { decodeJwt, decodeProtectedHeader, importX509, jwtVerify } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { computeFingerprint, toCertificatePem } from '../../src/pki/certificates.ts'
import { parsePemBlocks } from '../../src/pki/pem.ts'
import { type ClientKey, callOverTls, clientKey } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let url: string
let rootPem: string
let admin: string

beforeAll(async () => {
  ;({ url, rootPem } = await world.listen())
  admin = await world.admin()
})

async function manage(method: string, path: string, body?: unknown) {
  const response = await world.send({
    method,
    path: MANAGEMENT + path,
    token: admin,
    ...(body === undefined ? {} : { body }),
  })
  expect(response.body.error).toBeUndefined()
  return response.body.data
}

let sequence = 0

/** An identity with an outstanding one-time enrollment. */
async function newDevice(roleAttributes: string[] = []) {
  const body = {
    name: `device ${++sequence}`,
    type: 'Device',
    isAdmin: false,
    roleAttributes,
    enrollment: { ott: true },
  }
  const { id } = await manage('POST', '/identities', body)
  const { enrollment } = await manage('GET', `/identities/${id}`)
  return { id: id as string, jwt: enrollment.ott.jwt as string, token: enrollment.ott.token as string }
}

function enroll(token: string, csr: string) {
  const headers = { 'content-type': 'application/x-pem-file' }
  return callOverTls(url, rootPem, { method: 'POST', path: `/enroll?method=ott&token=${token}`, body: csr, headers })
}

function signIn(chain: string, key: ClientKey) {
  const path = `${CLIENT}/authenticate?method=cert`
  return callOverTls(url, rootPem, { method: 'POST', path, body: {}, cert: chain, key: key.keyPem })
}

async function enrolledDevice(roleAttributes: string[] = []) {
  const device = await newDevice(roleAttributes)
  const key = await clientKey(device.id)
  const response = await enroll(device.token, key.csr)
  return { ...device, key, chain: response.body.data.cert as string }
}

function ask(token: string, path: string) {
  return world.send({ method: 'GET', path: CLIENT + path, headers: { 'zt-session': token } })
}

describe('the enrollment token of a new identity', () => {
  it('is a JWT of the form that SDKs read', async () => {
    const { id, jwt, token } = await newDevice()
    const { certificate } = world.controller.authority.server

    expect(decodeProtectedHeader(jwt)).toEqual({ alg: 'RS256', kid: computeFingerprint(certificate), typ: 'JWT' })
    expect(decodeJwt(jwt)).toEqual({
      em: 'ott',
      iss: 'https://127.0.0.1:1280',
      sub: id,
      aud: [''],
      jti: token,
      exp: Math.floor((world.clock.now() + 180 * 60_000) / 1000),
      ctrls: ['tls:127.0.0.1:1280'],
    })
  })

  it('is signed by the key of the certificate that the controller serves', async () => {
    const { jwt } = await newDevice()
    const served = await importX509(toCertificatePem(world.controller.authority.server.certificate), 'RS256')

    await expect(jwtVerify(jwt, served, { currentDate: new Date(world.clock.now()) })).resolves.toBeDefined()
  })
})

describe('enrolling by a one-time token', () => {
  it('turns a signing request into a certificate chain without the root', async () => {
    const { token, id } = await newDevice()
    const { csr } = await clientKey(id)

    const response = await enroll(token, csr)

    expect(response.status).toBe(200)
    expect(response.headers['content-type']).toBe('application/json')
    expect(parsePemBlocks(response.body.data.cert)).toHaveLength(2)
  })

  it('works once', async () => {
    const { token, id } = await newDevice()
    const { csr } = await clientKey(id)
    await enroll(token, csr)

    const second = await enroll(token, csr)

    expect(second.status).toBe(400)
    expect(second.body.error.code).toBe('INVALID_ENROLLMENT_TOKEN')
  })

  it('works for one of two clients that use the token at the same time', async () => {
    const { token, id } = await newDevice()
    const { csr } = await clientKey(id)

    const responses = await Promise.all([enroll(token, csr), enroll(token, csr), enroll(token, csr)])

    expect(responses.map(({ status }) => status).sort()).toEqual([200, 400, 400])
  })

  it('ends with the enrollment', async () => {
    const { token, id } = await newDevice()
    const { csr } = await clientKey(id)
    world.clock.advance(180 * 60_000)

    const response = await enroll(token, csr)

    expect(response.body.error.code).toBe('ENROLLMENT_EXPIRED')
    admin = await world.admin()
  })

  it.each([
    ['nonsense', 'nonsense'],
    ['two requests', async () => (await clientKey('a')).csr + (await clientKey('b')).csr],
    ['a request with something after it', async () => `${(await clientKey('a')).csr}\n\nmore`],
    ['a weak key', async () => (await clientKey('a', 'RSA-1024')).csr],
    ['nothing', ''],
  ])('refuses %s and keeps the token', async (_what, request) => {
    const { token, id } = await newDevice()
    const csr = typeof request === 'string' ? request : await request()

    const refused = await enroll(token, csr)
    const accepted = await enroll(token, (await clientKey(id)).csr)

    expect(refused.status).toBe(400)
    expect(refused.body.error.code).toBe('COULD_NOT_PROCESS_CSR')
    expect(accepted.status).toBe(200)
  })

  it('refuses a request whose signature is not that of its key', async () => {
    const { token } = await newDevice()
    const { csr } = await clientKey('a')
    const der = parsePemBlocks(csr)[0]?.bytes as Buffer
    der[der.length - 1] = (der[der.length - 1] as number) ^ 1
    const broken = `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`

    const response = await enroll(token, broken)

    expect(response.body.error.code).toBe('COULD_NOT_PROCESS_CSR')
  })

  it('refuses a token by another method than its own', async () => {
    const { token } = await newDevice()

    const response = await world.send({ method: 'POST', path: `${CLIENT}/enroll?method=updb&token=${token}`, body: {} })

    expect(response.body.error.code).toBe('INVALID_ENROLL_METHOD')
  })
})

describe('signing in by certificate', () => {
  it('gives a session whose token both dialects return', async () => {
    const { chain, key, id } = await enrolledDevice()

    const response = await signIn(chain, key)

    expect(response.status).toBe(200)
    expect(response.body.data).toMatchObject({
      identityId: id,
      isCertExtendable: true,
      isMfaRequired: false,
      authQueries: [],
    })
    expect(response.headers['net-session']).toBe(response.body.data.token)
    expect(response.headers['zt-session']).toBe(response.body.data.token)
  })

  it('finds its way over intermediates in any order, among others that do not belong', async () => {
    const { chain, key } = await enrolledDevice()
    const foreign = await enrolledDevice()
    const [leaf, intermediate] = chain.split(/(?<=-----END CERTIFICATE-----\n)/)
    const root = toCertificatePem(world.controller.authority.root)
    const stranger = foreign.chain.split(/(?<=-----END CERTIFICATE-----\n)/)[0]

    const response = await signIn([leaf, root, stranger, intermediate].join(''), key)

    expect(response.body.data.improperClientCertChain).toBe(false)
  })

  it('says so where the client leaves out the intermediate', async () => {
    const { chain, key } = await enrolledDevice()
    const [leaf = ''] = chain.split(/(?<=-----END CERTIFICATE-----\n)/)

    const response = await signIn(leaf, key)

    expect(response.body.data.improperClientCertChain).toBe(true)
  })

  it('refuses a certificate that only comes along with another leaf', async () => {
    const device = await enrolledDevice()
    const stranger = await world.signIn()
    const other = await enrolledDevice()
    await manage('DELETE', `/identities/${other.id}`)

    const response = await signIn(other.chain + device.chain, other.key)

    expect(stranger.id).not.toBe(device.id)
    expect(response.status).toBe(401)
    expect(response.body.error).not.toHaveProperty('cause')
  })

  it('refuses a connection without certificate', async () => {
    const response = await world.send({ method: 'POST', path: `${CLIENT}/authenticate?method=cert`, body: {} })

    expect(response.status).toBe(401)
    expect(response.body.error.code).toBe('INVALID_AUTH')
  })
})

describe('what a device sees', () => {
  it('is the services that policies grant it, and no other', async () => {
    const device = await enrolledDevice(['staff'])
    const { id: web } = await manage('POST', '/services', {
      name: 'seen web',
      encryptionRequired: true,
      roleAttributes: ['seen'],
    })
    await manage('POST', '/services', { name: 'unseen', encryptionRequired: true, roleAttributes: ['unseen'] })
    await manage('POST', '/service-policies', {
      name: 'staff sees',
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: ['#staff'],
      serviceRoles: ['#seen'],
    })
    const { token } = (await signIn(device.chain, device.key)).body.data

    const { body } = await ask(token, '/services')

    expect(body.data.map(({ id }: { id: string }) => id)).toEqual([web])
    expect(body.data[0]).toMatchObject({
      permissions: ['Dial'],
      config: {},
      postureQueries: [{ isPassing: true, policyType: 'Dial' }],
    })
    expect((await ask(token, `/services/${web}`)).status).toBe(200)
  })

  it('hides a service that exists exactly like one that does not', async () => {
    const device = await enrolledDevice()
    const { id } = await manage('POST', '/services', { name: 'hidden', encryptionRequired: true })
    const { token } = (await signIn(device.chain, device.key)).body.data

    const hidden = await ask(token, `/services/${id}`)
    const missing = await ask(token, '/services/no-such-service')

    expect(hidden.status).toBe(404)
    expect(missing.status).toBe(404)
    expect(hidden.body.error.code).toBe(missing.body.error.code)
  })

  it('is announced by the time of the last change that concerns it', async () => {
    const device = await enrolledDevice(['watched'])
    const { token } = (await signIn(device.chain, device.key)).body.data
    const lastChange = async () => (await ask(token, '/current-api-session/service-updates')).body.data.lastChangeAt
    const atFirst = await lastChange()
    world.clock.advance(1000)
    await manage('POST', '/services', { name: 'unrelated', encryptionRequired: true, roleAttributes: ['unused'] })
    const afterUnrelated = await lastChange()
    const { id } = await manage('POST', '/services', {
      name: 'watched',
      encryptionRequired: true,
      roleAttributes: ['watched'],
    })
    const policy = {
      name: 'watched',
      type: 'Bind',
      semantic: 'AllOf',
      identityRoles: ['#watched'],
      serviceRoles: ['#watched'],
    }
    await manage('POST', '/service-policies', policy)
    const afterGrant = await lastChange()
    world.clock.advance(1000)
    await manage('PATCH', `/services/${id}`, { maxIdleTimeMillis: 5 })

    expect(afterUnrelated).toBe(atFirst)
    expect(afterGrant).not.toBe(atFirst)
    expect(await lastChange()).toBe(new Date(world.clock.now()).toISOString())
  })

  it('carries the configuration of the types it asked for, by name', async () => {
    const device = await enrolledDevice(['configured'])
    const { id: config } = await manage('POST', '/configs', {
      name: 'of the configured service',
      configTypeId: 'g7cIWbcGg',
      data: { protocols: ['tcp'], addresses: ['a.internal'], portRanges: [{ low: 1, high: 2 }] },
    })
    const service = { name: 'configured', encryptionRequired: true, configs: [config], roleAttributes: ['configured'] }
    const { id } = await manage('POST', '/services', service)
    const policy = {
      name: 'configured',
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: ['#configured'],
      serviceRoles: [`@${id}`],
    }
    await manage('POST', '/service-policies', policy)
    const { token } = (await signIn(device.chain, device.key)).body.data

    const response = await ask(token, '/services?configTypes=intercept.v1')
    const notAsked = await ask(token, '/services?configTypes=host.v1')

    expect(response.body.data[0].config).toEqual({
      'intercept.v1': { protocols: ['tcp'], addresses: ['a.internal'], portRanges: [{ low: 1, high: 2 }] },
    })
    expect(notAsked.body.data[0].config).toEqual({})
    expect(notAsked.body.data[0].configs).toEqual([config])
  })
})
