// How a session with tokens that are bound to certificates goes on: by refresh and by token exchange, with the certificates that it has.
import { createHash, X509Certificate } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { clientKey, type RequestedNames } from '../world/certificates.ts'
import type { TestResponse } from '../world/controller.ts'
import { Issuer } from '../world/issuers.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { CertificateClient, type Holder, holderOf, printOf, toForm } from './certificate-client.ts'
import { bearer, type Form, OIDC_SETTINGS, readClaims } from './client.ts'

const world = useController({ settings: OIDC_SETTINGS })
let client: CertificateClient
let people: People

beforeAll(async () => {
  client = new CertificateClient(world, await world.listen())
  people = await People.in(world)
})

const blocksOf = (pem: string) => pem.split(/(?<=-----END CERTIFICATE-----\n)/).filter((block) => block.trim() !== '')

/** A sign-in with a request for a certificate, and what presents that certificate. */
async function signInWithRequest(holder: Holder, path: string, form: Form = {}) {
  const { csr, keyPem } = await clientKey('requested')
  const { body } = await client.signIn(holder, path, { ...form, csrPem: csr })
  return { tokens: body, holder: { cert: body.session_cert as string, key: keyPem } }
}

const fingerprintsOf = ({ body }: Pick<TestResponse, 'body'>) => readClaims(body.access_token).z_cfs

type Continuation = (holder: Holder, token: string, changes?: Form) => Promise<TestResponse>
const CONTINUATIONS: readonly [string, Continuation][] = [
  ['a refresh', (holder, token, changes) => client.refresh(holder, token, changes)],
  ['a token exchange', (holder, token, changes) => client.exchange(holder, token, changes)],
]

describe.each(CONTINUATIONS)('%s', (_name, continueBy) => {
  it('of a sign-in by a password with a certificate needs that certificate, and keeps it', async () => {
    const person = await people.person()
    const { tokens, holder } = await signInWithRequest(undefined, '/oidc/login/password', toForm(person))
    const stranger = await people.device()
    const { csr } = await clientKey('stolen')
    const attempts: [Holder, Form][] = [
      [undefined, {}],
      [undefined, { csr_pem: csr }],
      [holderOf(stranger), {}],
      [holderOf(stranger), { csr_pem: csr }],
    ]

    for (const [other, changes] of attempts) {
      const { body, status } = await continueBy(other, tokens.refresh_token, changes)
      expect([status, body.error, body.session_cert]).toEqual([400, 'access_denied', undefined])
    }
    const next = await continueBy(holder, tokens.refresh_token)
    expect([next.status, fingerprintsOf(next)]).toEqual([200, [printOf(holder.cert)]])
  })

  it('with a request for a certificate replaces that of the session, which continues nothing any more', async () => {
    const person = await people.person()
    const { tokens, holder } = await signInWithRequest(undefined, '/oidc/login/password', toForm(person))
    const { csr, keyPem } = await clientKey('second')

    const { body } = await continueBy(holder, tokens.refresh_token, { csr_pem: csr })

    const second = { cert: body.session_cert, key: keyPem }
    expect(fingerprintsOf({ body })).toEqual([printOf(second.cert)])
    expect((await continueBy(holder, body.refresh_token)).body.error).toBe('access_denied')
    expect((await continueBy(second, body.refresh_token)).status).toBe(200)
  })

  it('of a sign-in by a certificate needs it or that of the session, and keeps both', async () => {
    const device = await people.device()
    const { tokens, holder } = await signInWithRequest(holderOf(device), '/oidc/login/cert')
    const both = [printOf(device.chain), printOf(holder.cert)]

    const byLogin = await continueBy(holderOf(device), tokens.refresh_token)
    const bySession = await continueBy(holder, byLogin.body.refresh_token)

    expect([fingerprintsOf({ body: tokens }), fingerprintsOf(byLogin), fingerprintsOf(bySession)]).toEqual([
      both,
      both,
      both,
    ])
  })

  it.each(['login', 'session'])(
    'by the certificate of the %s keeps that of the login when it replaces the other',
    async (by) => {
      const device = await people.device()
      const { tokens, holder } = await signInWithRequest(holderOf(device), '/oidc/login/cert')
      const { csr, keyPem } = await clientKey('second')

      const next = await continueBy(by === 'login' ? holderOf(device) : holder, tokens.refresh_token, { csr_pem: csr })

      const second = { cert: next.body.session_cert, key: keyPem }
      expect(fingerprintsOf(next)).toEqual([printOf(device.chain), printOf(second.cert)])
      expect((await continueBy(second, next.body.refresh_token)).status).toBe(200)
    },
  )

  it('of a session that is not bound needs none, and stays so', async () => {
    const { body } = await client.signIn(undefined, '/oidc/login/password', toForm(await people.person()))

    const next = await continueBy(undefined, body.refresh_token, { csr_pem: (await clientKey('late')).csr })

    expect([next.status, next.body.session_cert, fingerprintsOf(next)]).toEqual([200, undefined, null])
  })
})

describe('the certificate of a session', () => {
  it('has nothing that its request asks for but the key', async () => {
    const person = await people.person()
    const names: RequestedNames = [
      { type: 'url', value: 'https://controller.example.com/identity/another' },
      { type: 'dns', value: 'controller.example.com' },
      { type: 'ip', value: '10.0.0.1' },
      { type: 'email', value: 'admin@example.com' },
    ]
    const { csr } = await clientKey('admin', 'P-256', names)
    const { body } = await client.signIn(undefined, '/oidc/login/password', { ...toForm(person), csrPem: csr })

    const certificate = new X509Certificate(body.session_cert)
    expect(certificate.subject).toBe(`CN=${person.id}`)
    expect(certificate.subjectAltName).toMatch(
      new RegExp(`^URI:spiffe://[0-9a-f]{32}/identity/${person.id}/apiSession/[^,]+$`),
    )
    expect(certificate.ca).toBe(false)
  })

  it('is not issued for a request that asks for an id of SPIFFE', async () => {
    const names: RequestedNames = [{ type: 'url', value: 'spiffe://evil/identity/another/apiSession/any' }]
    const { csr } = await clientKey('forged', 'P-256', names)
    const form = { ...toForm(await people.person()), csrPem: csr }

    expect((await client.signIn(undefined, '/oidc/login/password', form)).body.error).toBe('invalid_request')
  })

  it('is for clients, and comes with its issuers in order, without the root', async () => {
    const { tokens } = await signInWithRequest(undefined, '/oidc/login/password', toForm(await people.person()))
    const chain = blocksOf(tokens.session_cert).map((block) => new X509Certificate(block))
    const { root } = world.controller.authority

    expect(chain[0]?.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2'])
    for (const [at, certificate] of chain.entries()) {
      const issuer = chain[at + 1] ?? root
      expect(certificate.verify(issuer.publicKey)).toBe(true)
      expect(certificate.fingerprint256).not.toBe(root.fingerprint256)
    }
  })

  it('is not issued for a request whose signature is wrong', async () => {
    const { csr } = await clientKey('x')
    const bytes = Buffer.from(csr.split('\n').slice(1, -2).join(''), 'base64')
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
    const csrPem = `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`
    const form = { ...toForm(await people.person()), csrPem }

    const { body, status } = await client.signIn(undefined, '/oidc/login/password', form)

    expect([status, body.error, body.error_description]).toEqual([
      400,
      'invalid_request',
      expect.stringMatching(/^invalid CSR/),
    ])
  })
})

describe('what a client presents', () => {
  it('counts by its own certificate alone, whatever follows that', async () => {
    const [device, other] = [await people.device(), await people.device()]
    const [own = ''] = blocksOf(device.chain)
    const holder = { cert: `${own}${other.chain}${other.chain}`, key: device.key.keyPem }

    const { body } = await client.signIn(holder, '/oidc/login/cert')

    expect(readClaims(body.access_token)).toMatchObject({ sub: device.id, z_cfs: [printOf(own)] })
    expect(await client.isAdmitted(holder, body.access_token)).toBe(true)
    expect(await client.isAdmitted(holderOf(other), body.access_token)).toBe(false)
  })

  it('does not bind the tokens of a sign-in by the token of an issuer', async () => {
    const issuer = new Issuer()
    await issuer.trustedBy(people)
    const externalId = `bound ${createHash('sha1').update(issuer.issuer).digest('hex')}`
    const id = await people.identity({ externalId })

    for (const holder of [undefined, holderOf(await people.device())]) {
      const headers = bearer(issuer.token(world, externalId))
      const { body } = await client.signIn(holder, '/oidc/login/ext-jwt', {}, headers)
      expect(readClaims(body.access_token)).toMatchObject({ sub: id, z_cfs: null })
      expect(await client.isAdmitted(undefined, body.access_token)).toBe(true)
    }
  })
})
