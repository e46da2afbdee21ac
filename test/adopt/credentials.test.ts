// Everything that identities and routers of a former network sign in or enroll with, used after its adoption.
import { createPrivateKey, createPublicKey, webcrypto, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RECOMMENDED_COST } from '../../src/authentication/credentials/password-hasher.ts'
import { AuthenticatorApp } from '../world/authenticator-app.ts'
import { issue, type TestCertificate } from '../world/authorities.ts'
import { callOverTls, clientKey, x509 } from '../world/certificates.ts'
import { CLIENT, TestClock, type TestResponse } from '../world/controller.ts'
import { signToken } from '../world/issuers.ts'
import { ROUTER_NAMES } from '../world/router/enrolled-router.ts'
import { useController } from '../world/use-controller.ts'
import { adoptFixture, NETWORK_TIME, type NetworkName, readClientFile, readNetworkJson } from './networks.ts'

// biome-ignore lint/suspicious/noExplicitAny: records of another program
type AnyRecord = Record<string, any>

const folder = mkdtempSync(join(tmpdir(), 'credentials-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe.each<NetworkName>(['1.6.5', '1.6.5-three-roots', '2.0.3'])('in the network of %s', (name) => {
  const world = useController(async () => {
    const { directory } = await adoptFixture(name, folder)
    return {
      directory,
      clock: new TestClock(NETWORK_TIME + 1000),
      settings: { 'totp.window': 2 },
      passwordCost: RECOMMENDED_COST,
    }
  })
  const { ziti } = readNetworkJson<{ ziti: Record<string, Record<string, AnyRecord>> }>(name, 'dump')
  let url: string

  beforeAll(async () => {
    url = (await world.listen()).url
  })

  const enrollments = Object.values(ziti.enrollments ?? {})
  const findIdentity = (identityName: string) =>
    Object.entries(ziti.identities ?? {}).find(([, record]) => record.name === identityName)?.[0]

  /** A request of a client that has stored the authorities of the former network. */
  const call = (path: string, presented: { pem: string; keyPem: string } | undefined, body: unknown = {}) =>
    callOverTls(url, readClientFile(name, 'cas.pem'), {
      ...{ method: 'POST', path: CLIENT + path, body },
      ...(presented ? { cert: presented.pem, key: presented.keyPem } : {}),
    })
  const readPair = (file: string) => ({
    pem: readClientFile(name, `${file}.crt`),
    keyPem: readClientFile(name, `${file}.key`),
  })
  const signInBy = (presented: { pem: string; keyPem: string }) => call('/authenticate?method=cert', presented)
  const signInWith = (username: string, password: string) =>
    world.send({ method: 'POST', path: `${CLIENT}/authenticate?method=password`, body: { username, password } })
  const readIdentity = ({ body }: TestResponse) => body.data.identity.name as string

  describe('a password', () => {
    it.each([
      ['admin', 'admin', 'Default Admin'],
      ['alice', 'wonderland', 'alice'],
      ['bobby', 'Secr3t!pass', 'bob'],
    ])('of %s signs in, and is stored at the cost of this controller then', async (username, password, identity) => {
      const readHash = () =>
        world.controller.store.db
          .selectFrom('authenticators')
          .select('passwordHash')
          .where('username', '=', username)
          .executeTakeFirstOrThrow()
      expect((await readHash()).passwordHash).toContain('m=3072,t=1,p=4')
      expect((await signInWith(username, `${password}.`)).status).toBe(401)
      expect(readIdentity(await signInWith(username, password))).toMatch(new RegExp(`^${identity}$|admin`, 'i'))
      expect((await readHash()).passwordHash).not.toContain('m=3072')
      expect((await signInWith(username, password)).status).toBe(200)
    })
  })

  describe('a certificate', () => {
    it.each([
      ['client', 'client'],
      ['host', 'host'],
      ['ottca-done', 'ottca-done'],
      ['auto-dev', 'acme-auto-dev'],
    ])('%s signs in', async (file, identity) => {
      const response = await signInBy(readPair(file))
      expect(response.status).toBe(200)
      expect(readIdentity(response)).toBe(identity)
    })

    it('of an authority that is not verified does not', async () => {
      const stranger = await issue('CN=stranger', await readAuthority('ca2'), fromNow())
      expect((await signInBy(stranger)).status).toBe(401)
    })
  })

  it('lets the token of a signer sign in by the external id', async () => {
    const privateKey = createPrivateKey(readClientFile(name, 'jwt.key'))
    const key = { kid: 'kid-1', algorithm: 'ES256', privateKey, publicKey: createPublicKey(privateKey) }
    const now = Math.floor(world.clock.now() / 1000)
    const claims = { iss: 'https://idp.example/1', aud: 'ziti', email: 'alice@example.com', sub: 'x', exp: now + 300 }
    const token = signToken({ alg: 'ES256', kid: 'kid-1' }, claims, key)
    const path = `${CLIENT}/authenticate?method=ext-jwt`
    const response = await world.send({ method: 'POST', path, body: {}, headers: { authorization: `Bearer ${token}` } })
    expect(response.status).toBe(200)
    expect(readIdentity(response)).toBe('alice')
  })

  describe('the second factor of a user', () => {
    const mfa = Object.values(ziti.mfas ?? {}).find(({ identity }) => identity === findIdentity('alice')) as AnyRecord
    const app = new AuthenticatorApp(`otpauth://totp/x:alice?secret=${mfa.secret}&issuer=x`)
    const enter = async (code: string) => {
      const token = (await signInWith('alice', 'wonderland')).body.data.token as string
      return (await world.send({ method: 'POST', path: `${CLIENT}/authenticate/mfa`, token, body: { code } })).status
    }

    it('accepts the codes of its secret of 10 bytes', async () => {
      expect(app.secretBytes).toBe(10)
      expect(await enter(app.wrongCode(world.clock.now()))).toBe(401)
      expect(await enter(app.code(world.clock.now()))).toBe(200)
    })

    it('accepts each recovery code once', async () => {
      const [code] = mfa.recoveryCodes.$set as [string]
      expect(await enter(code)).toBe(200)
      expect(await enter(code)).toBe(401)
    })
  })

  describe('an unused token', () => {
    it('of the method ott enrolls for a certificate, which signs in', async () => {
      const { token } = enrollments.find(({ method }) => method === 'ott') as AnyRecord
      const key = await clientKey('pending-ott')
      const headers = { 'content-type': 'application/x-pem-file' }
      const path = `${CLIENT}/enroll?method=ott&token=${token}`
      const enrolled = await world.send({ method: 'POST', path, body: key.csr, headers })
      expect(enrolled.status).toBe(200)
      const signedIn = await signInBy({ pem: enrolled.body.data.cert, keyPem: key.keyPem })
      expect(readIdentity(signedIn)).toBe('pending-ott')
    })

    it('of the method ottca enrolls a certificate of the authority that an operator brought', async () => {
      const { token } = enrollments.find(({ method }) => method === 'ottca') as AnyRecord
      const leaf = await issue('CN=pending', await readAuthority('ca'), fromNow())
      expect((await call(`/enroll?method=ottca&token=${token}`, leaf)).status).toBe(200)
      expect(readIdentity(await signInBy(leaf))).toBe('pending-ottca')
    })

    it('of the method updb enrolls for a password', async () => {
      const { token, username } = enrollments.find(({ method }) => method === 'updb') as AnyRecord
      const body = { username, password: 'chosen-password' }
      const path = `${CLIENT}/enroll/updb?token=${token}`
      expect((await world.send({ method: 'POST', path, body })).status).toBe(200)
      expect(readIdentity(await signInWith(username, 'chosen-password'))).toBe('pending-updb')
    })

    it.each([
      ['erott', 'edgeRouter'],
      ['trott', 'transitRouter'],
    ])('of the method %s enrolls a router', async (method, member) => {
      const pending = enrollments.find((each) => each.method === method && isEnabled(each[member])) as AnyRecord
      const request = async () => (await clientKey(pending[member], 'P-256', ROUTER_NAMES)).csr
      const body = { certCsr: await request(), serverCertCsr: await request() }
      const path = `${CLIENT}/enroll?method=${method}&token=${pending.token}`
      const response = await world.send({ method: 'POST', path, body })
      expect(response.status).toBe(200)
      const row = await world.controller.store.db
        .selectFrom('routers')
        .select(['isVerified', 'fingerprint'])
        .where('id', '=', pending[member])
        .executeTakeFirstOrThrow()
      const fingerprint = new X509Certificate(response.body.data.cert).fingerprint.replaceAll(':', '').toLowerCase()
      expect(row).toEqual({ isVerified: 1, fingerprint })
    })

    const isEnabled = (routerId: string) => ziti.routers?.[routerId]?.disabled === false
  })

  it('lets a certificate of the authority enroll by itself', async () => {
    const leaf = await issue('CN=another-device', await readAuthority('ca'), fromNow())
    expect((await call('/enroll?method=ca', leaf)).status).toBe(200)
    expect(readIdentity(await signInBy(leaf))).toContain('another-device')
  })

  async function readAuthority(file: string): Promise<TestCertificate> {
    const { pem, keyPem } = readPair(file)
    const certificate = new x509.X509Certificate(pem)
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256' }
    const der = createPrivateKey(keyPem).export({ type: 'pkcs8', format: 'der' })
    const privateKey = await webcrypto.subtle.importKey('pkcs8', der, algorithm, true, ['sign'])
    return { certificate, keys: { privateKey } as webcrypto.CryptoKeyPair, kind: 'P-256', pem, keyPem }
  }

  const fromNow = () => ({
    notBefore: new Date(world.clock.now() - 60_000),
    notAfter: new Date(world.clock.now() + 86_400_000),
  })
})
