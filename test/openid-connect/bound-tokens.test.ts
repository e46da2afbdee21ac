// Tokens that are bound to certificates: that of the sign-in, and those that a client requests with it.
import { X509Certificate } from 'node:crypto'
import { TLSSocket } from 'node:tls'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { clientKey } from '../world/certificates.ts'
import { CLIENT } from '../world/controller.ts'
import { KeptConnection } from '../world/kept-connection.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { CertificateClient, type Holder, holderOf, printOf, toForm } from './certificate-client.ts'
import { bearer, encodeForm, type Form, OIDC_SETTINGS, OpenIdClient, readClaims } from './client.ts'

const world = useController({ settings: OIDC_SETTINGS })
let at: { url: string; rootPem: string }
let client: CertificateClient
let people: People

beforeAll(async () => {
  at = await world.listen()
  client = new CertificateClient(world, at)
  people = await People.in(world)
})

const signIn = (holder: Holder, path: string, form?: Form) => client.signIn(holder, path, form)
const refresh = (holder: Holder, token: string, changes?: Form) => client.refresh(holder, token, changes)
const isAdmitted = (holder: Holder, token: string) => client.isAdmitted(holder, token)

describe('a sign-in by a certificate', () => {
  it('gives tokens that are good for its holder only', async () => {
    const [device, stranger] = [await people.device(), await people.device()]
    const { body } = await signIn(holderOf(device), '/oidc/login/cert')
    const print = printOf(device.chain)

    expect(readClaims(body.access_token)).toMatchObject({ amr: ['cert'], z_cfs: [print], z_acf: print, z_ice: true })
    expect(await isAdmitted(holderOf(device), body.access_token)).toBe(true)
    expect(await isAdmitted(undefined, body.access_token)).toBe(false)
    expect(await isAdmitted(holderOf(stranger), body.access_token)).toBe(false)
    for (const holder of [undefined, holderOf(stranger)])
      expect((await refresh(holder, body.refresh_token)).body.error).toBe('access_denied')
    const next = await refresh(holderOf(device), body.refresh_token)
    expect([next.status, readClaims(next.body.access_token).z_cfs]).toEqual([200, [print]])
  })

  it('of no identity is refused', async () => {
    const { id } = await client.begin(undefined)

    const { body, status } = await client.call(undefined, 'POST', '/oidc/login/cert', { id })

    expect([status, body.code]).toEqual([401, 'INVALID_AUTH'])
  })

  it('is where a client with a certificate is sent', async () => {
    const device = await people.device()
    const begun = await client.call(
      holderOf(device),
      'GET',
      `/oidc/authorize?${encodeForm(new OpenIdClient(world).parameters)}`,
    )

    expect(begun.headers.location).toMatch(/^\/oidc\/login\/cert\?/)
  })
})

describe('a requested certificate', () => {
  it('names the session alone, and binds the tokens of a sign-in by a password to it', async () => {
    const person = await people.person()
    const { csr, keyPem } = await clientKey('another name')
    const form = { username: person.username, password: person.password, csrPem: csr }
    const { body } = await signIn(undefined, '/oidc/login/password', form)

    const claims = readClaims(body.access_token)
    const certificate = new X509Certificate(body.session_cert)
    const holder = { cert: body.session_cert, key: keyPem }
    expect(claims.z_cfs).toEqual([printOf(body.session_cert)])
    expect(certificate.subjectAltName).toMatch(
      new RegExp(`^URI:spiffe://[^/]+/identity/${person.id}/apiSession/${claims.z_asid}/apiSessionCertificate/[^/]+$`),
    )
    expect([await isAdmitted(holder, body.access_token), await isAdmitted(undefined, body.access_token)]).toEqual([
      true,
      false,
    ])
    expect((await refresh(undefined, body.refresh_token)).body.error).toBe('access_denied')
  })

  it('that cannot be read is refused with the code', async () => {
    const person = await people.person()
    const form = { username: person.username, password: person.password, csrPem: 'broken' }
    const { body, status } = await signIn(undefined, '/oidc/login/password', form)

    expect([status, body.error]).toEqual([400, 'invalid_request'])
  })

  it('that cannot be read ends the session, whose code is used up', async () => {
    const person = await people.person()
    await signIn(undefined, '/oidc/login/password', { ...toForm(person), csrPem: 'broken' })

    expect(world.controller.auth.apiSessions.listOfIdentity(person.id)).toEqual([])
  })

  it.each(['refresh', 'exchange'] as const)(
    'that cannot be read does not use up the token of its %s',
    async (grant) => {
      const device = holderOf(await people.device())
      const { body } = await signIn(device, '/oidc/login/cert')

      const refused = await client[grant](device, body.refresh_token, { csr_pem: 'broken' })
      world.clock.advance(2 * 60_000)
      const next = await refresh(device, body.refresh_token)

      expect([refused.status, refused.body.error, next.status]).toEqual([400, 'invalid_request', 200])
    },
  )

  it('is replaced by a refresh, and the login certificate stays', async () => {
    const device = await people.device()
    const first = await clientKey('first')
    const { body } = await signIn(holderOf(device), '/oidc/login/cert', { csrPem: first.csr })
    const second = await clientKey('second')

    const next = await refresh(holderOf(device), body.refresh_token, { csr_pem: second.csr })

    const former = { cert: body.session_cert, key: first.keyPem }
    expect(readClaims(body.access_token).z_cfs).toEqual([printOf(device.chain), printOf(body.session_cert)])
    expect(readClaims(next.body.access_token).z_cfs).toEqual([printOf(device.chain), printOf(next.body.session_cert)])
    expect((await refresh(former, next.body.refresh_token)).body.error).toBe('access_denied')
    expect((await refresh({ cert: next.body.session_cert, key: second.keyPem }, next.body.refresh_token)).status).toBe(
      200,
    )
  })

  it('is ignored by a refresh of tokens that are not bound', async () => {
    const person = await people.person()
    const { body } = await signIn(undefined, '/oidc/login/password', {
      username: person.username,
      password: person.password,
    })

    const next = await refresh(undefined, body.refresh_token, { csr_pem: (await clientKey('late')).csr })

    expect([next.status, next.body.session_cert, readClaims(next.body.access_token).z_cfs]).toEqual([
      200,
      undefined,
      null,
    ])
  })
})

it('a stray certificate binds no token of a sign-in by a password', async () => {
  const [device, person] = [await people.device(), await people.person()]
  const form = { username: person.username, password: person.password }
  const { body } = await signIn(holderOf(device), '/oidc/login/password', form)

  expect(readClaims(body.access_token)).toMatchObject({ z_cfs: null, sub: person.id })
  expect(await isAdmitted(undefined, body.access_token)).toBe(true)
})

describe('the certificate of a connection', () => {
  const DAY_MS = 24 * 60 * 60_000

  it('is read once for all requests with a token that is bound to it', async () => {
    const holder = holderOf(await people.device())
    const { body } = await signIn(holder, '/oidc/login/cert')
    const connection = new KeptConnection(at, holder)
    const ask = () =>
      connection.send({ method: 'GET', path: `${CLIENT}/current-identity`, headers: bearer(body.access_token) })
    await ask()
    const read = vi.spyOn(TLSSocket.prototype, 'getPeerCertificate')

    const statuses = [await ask(), await ask(), await ask()].map(({ status }) => status)

    const sockets = read.mock.contexts as unknown as readonly { readonly server?: object }[]
    read.mockRestore()
    connection.close()
    expect([statuses, sockets.filter(({ server }) => server).length]).toEqual([[200, 200, 200], 0])
  })

  it('proves nothing after its end, if the policy accepts no expired ones', async () => {
    const authPolicyId = await people.policy({ cert: { allowExpiredCerts: false } })
    const [strict, lenient] = [await people.device({ authPolicyId }), await people.device()]
    world.clock.advance(365 * DAY_MS - 10 * 60_000)
    const statuses: unknown[] = []
    for (const device of [strict, lenient]) {
      const holder = holderOf(device)
      const { body } = await signIn(holder, '/oidc/login/cert')
      const connection = new KeptConnection(at, holder)
      const path = `${CLIENT}/current-identity`
      const ask = async () =>
        (await connection.send({ method: 'GET', path, headers: bearer(body.access_token) })).status
      const before = await ask()
      world.clock.advance(15 * 60_000)
      statuses.push([before, await ask()])
      connection.close()
      world.clock.advance(-15 * 60_000)
    }

    expect(statuses).toEqual([
      [200, 401],
      [200, 200],
    ])
  })
})
