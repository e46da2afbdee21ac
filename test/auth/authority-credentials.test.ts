// Enrollment and sign-in with certificates of authorities that operators bring, over TLS.
import { X509Certificate } from 'node:crypto'
import { decodeJwt } from 'jose'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { computeFingerprint } from '../../src/pki/certificates.ts'
import {
  type CertificateOptions,
  COMMON_NAME_CLAIM,
  issue,
  makeAuthority,
  type RegisteredTestAuthority,
  registerAuthority,
  type TestCertificate,
  verifyAuthority,
} from '../world/authorities.ts'
import { callOverTls, type KeyKind, x509 } from '../world/certificates.ts'
import { CLIENT, testController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const DAY = 24 * 60 * 60_000

const world = useController()
let at: { url: string; rootPem: string }
let people: People
let authority: RegisteredTestAuthority

beforeAll(async () => {
  at = await world.listen()
  people = await People.in(world)
  authority = await registerAuthority(people)
})

let serial = 0

/** Presents a certificate, with those between it and its authority. */
function post(path: string, presented?: TestCertificate, body?: unknown, between = '') {
  const tls = presented ? { cert: presented.pem + between, key: presented.keyPem } : {}
  return callOverTls(at.url, at.rootPem, { method: 'POST', path: CLIENT + path, ...tls, body })
}

const enrollByToken = (token: string, presented?: TestCertificate, between = '') =>
  post(`/enroll?method=ottca&token=${token}`, presented, undefined, between)
const enrollByItself = (presented?: TestCertificate, body?: unknown, between = '') =>
  post('/enroll?method=ca', presented, body, between)
const signIn = (presented: TestCertificate, between = '') => post('/authenticate?method=cert', presented, {}, between)

const leafOf = (issuer: TestCertificate, name = `CN=device ${++serial}`, options = {}) => issue(name, issuer, options)

/** An identity with an outstanding enrollment, and its token. */
async function awaiting(caId: string): Promise<{ id: string; token: string }> {
  const id = await people.identity({ enrollment: { ottca: caId } })
  const { enrollment } = await people.manage('GET', `/identities/${id}`)
  return { id, token: enrollment.ottca.token }
}

/** An identity that has enrolled by a token, with its certificate. */
async function enrolled(issuer: RegisteredTestAuthority) {
  const { id, token } = await awaiting(issuer.id)
  const leaf = await leafOf(issuer)
  const response = await enrollByToken(token, leaf)
  expect([response.status, response.body.data]).toEqual([200, {}])
  const { authenticators } = await people.manage('GET', `/identities/${id}`)
  return { id, leaf, authenticatorId: authenticators.cert.id as string }
}

async function byName(name: string) {
  const matches = await people.manage('GET', `/identities?filter=${encodeURIComponent(`name = "${name}"`)}`)
  return matches[0]
}

const outcome = ({ status, body }: { status: number; body: { error?: { code: string } } }) => [status, body.error?.code]

describe('an enrollment by token and certificate', () => {
  it('shows its authority by name, also after a change of that name, on the identity and by itself', async () => {
    const own = await registerAuthority(people, { name: 'before' })
    const id = await people.identity({ enrollment: { ottca: own.id } })
    const before = (await people.manage('GET', `/identities/${id}`)).enrollment.ottca

    await people.manage('PATCH', `/cas/${own.id}`, { name: 'after' })

    const after = (await people.manage('GET', `/identities/${id}`)).enrollment.ottca
    const record = await people.manage('GET', `/enrollments/${after.id}`)
    expect([before.ca.name, after.ca.name]).toEqual(['before', 'after'])
    expect(after).toMatchObject({ caId: own.id, ca: { id: own.id, entity: 'cas' } })
    expect(record).toMatchObject({ method: 'ottca', caId: own.id, ca: { id: own.id, name: 'after' }, username: null })
    expect(decodeJwt(record.jwt)).toMatchObject({ em: 'ottca', sub: id, jti: record.token })
  })

  it('is made for an authority that is not verified, and can be used once it is', async () => {
    const own = await registerAuthority(people, { isVerified: false })
    const identityId = await people.identity()
    const expiresAt = new Date(world.clock.now() + DAY).toISOString()

    const alone = await people.ask('POST', '/enrollments', { identityId, method: 'ottca', caId: own.id, expiresAt })
    const { token } = await awaiting(own.id)
    const leaf = await leafOf(own)
    const early = await enrollByToken(token, leaf)
    await verifyAuthority(people, own)
    const late = await enrollByToken(token, leaf)

    expect(alone.status).toBe(201)
    expect(outcome(early)).toEqual([400, 'ENROLLMENT_CA_NOT_VALID'])
    expect(late.status).toBe(200)
  })

  it.each<KeyKind>(['P-256', 'P-384', 'RSA-2048', 'RSA-4096', 'Ed25519'])(
    'makes a certificate of an authority with a %s key the credential of the identity',
    async (kind) => {
      const own = await registerAuthority(people, { authority: await makeAuthority(`CN=of ${kind}`, { kind }) })
      const { id, leaf, authenticatorId } = await enrolled(own)

      const session = await signIn(leaf)

      const authenticator = await people.manage('GET', `/authenticators/${authenticatorId}`)
      const parsed = new X509Certificate(leaf.pem)
      expect(authenticator).toMatchObject({ method: 'cert', fingerprint: computeFingerprint(parsed) })
      expect(new X509Certificate(authenticator.certPem).fingerprint256).toBe(parsed.fingerprint256)
      expect(authenticator.isIssuedByNetwork).toBe(false)
      expect(session.body.data).toMatchObject({
        identityId: id,
        authenticatorId,
        isCertExtendable: false,
        improperClientCertChain: false,
      })
      expect((await people.manage('GET', `/identities/${id}`)).enrollment).toEqual({})
    },
  )

  it('works at its own path, too, and with a body that is empty text', async () => {
    const [one, other] = [await awaiting(authority.id), await awaiting(authority.id)]
    const [leaf, second] = [await leafOf(authority), await leafOf(authority)]

    const byPath = await post('/enroll/ottca', leaf, { token: one.token })
    const path = `${CLIENT}/enroll?method=ottca&token=${other.token}`
    const tls = { cert: second.pem, key: second.keyPem, headers: { 'content-type': 'text/plain' } }
    const byText = await callOverTls(at.url, at.rootPem, { method: 'POST', path, body: '', ...tls })

    expect([byPath.status, byText.status]).toEqual([200, 200])
  })

  it('takes intermediates from the client, or those that came with the authority', async () => {
    const root = await makeAuthority('CN=root of two')
    const upper = await issue('CN=upper', root, { isAuthority: true })
    const lower = await issue('CN=lower', upper, { isAuthority: true })
    const bare = await registerAuthority(people, { authority: root })
    const other = await makeAuthority('CN=root that brings them')
    const included = await issue('CN=included', other, { isAuthority: true })
    const bundle = await registerAuthority(people, { authority: { ...other, pem: other.pem + included.pem } })
    const [one, two] = [await awaiting(bare.id), await awaiting(bundle.id)]
    const [leaf, short] = [await leafOf(lower), await leafOf(included)]

    const missing = await enrollByToken(one.token, leaf, lower.pem)
    const complete = await enrollByToken(one.token, leaf, lower.pem + upper.pem)
    const fromAuthority = await enrollByToken(two.token, short)

    expect([outcome(missing), complete.status, fromAuthority.status]).toEqual([
      [400, 'CERTIFICATE_FAILED_VALIDATION'],
      200,
      200,
    ])
    expect((await signIn(leaf, lower.pem + upper.pem)).status).toBe(200)
    expect((await signIn(short)).status).toBe(200)
  })

  it('refuses every other certificate, and the token stays good', async () => {
    const { token } = await awaiting(authority.id)
    const namesake = await makeAuthority(authority.certificate.subject)
    const late = { notBefore: new Date(Date.now() - 3 * DAY), notAfter: new Date(Date.now() - DAY) }
    const forged: (TestCertificate | undefined)[] = [
      undefined,
      await leafOf(namesake),
      await leafOf(await makeAuthority('CN=unknown')),
      await leafOf(authority, 'CN=late', late),
      await leafOf(authority, 'CN=server', { purposes: ['1.3.6.1.5.5.7.3.1'] }),
    ]

    for (const presented of forged) {
      expect(outcome(await enrollByToken(token, presented))).toEqual([400, 'CERTIFICATE_FAILED_VALIDATION'])
    }
    const client = await leafOf(authority, 'CN=client', { purposes: ['1.3.6.1.5.5.7.3.2'] })
    expect((await enrollByToken(token, client)).status).toBe(200)
  })

  it('is refused while the authority does not allow it', async () => {
    const own = await registerAuthority(people)
    const { token } = await awaiting(own.id)
    const leaf = await leafOf(own)

    await people.manage('PATCH', `/cas/${own.id}`, { isOttCaEnrollmentEnabled: false })
    const closed = await enrollByToken(token, leaf)
    await people.manage('PATCH', `/cas/${own.id}`, { isOttCaEnrollmentEnabled: true })

    expect(outcome(closed)).toEqual([400, 'ENROLLMENT_CA_NOT_VALID'])
    expect((await enrollByToken(token, leaf)).status).toBe(200)
  })

  it('gives a certificate to one identity only, and a token to one client', async () => {
    const [one, other] = [await awaiting(authority.id), await awaiting(authority.id)]
    const leaves = await Promise.all([1, 2, 3].map(() => leafOf(authority)))

    const responses = await Promise.all(leaves.map((leaf) => enrollByToken(one.token, leaf)))
    const winner = leaves[responses.findIndex(({ status }) => status === 200)] as TestCertificate
    const second = await enrollByToken(other.token, winner)

    expect(responses.map(outcome).sort()).toEqual([
      [200, undefined],
      [400, 'INVALID_ENROLLMENT_TOKEN'],
      [400, 'INVALID_ENROLLMENT_TOKEN'],
    ])
    expect(outcome(second)).toEqual([409, 'CERT_IN_USE'])
    expect(second.body.error.cause.data).toEqual({ fingerprint: computeFingerprint(new X509Certificate(winner.pem)) })
  })

  it('is what a certificate of the authority reverts to', async () => {
    const { leaf, authenticatorId } = await enrolled(authority)
    const expiresAt = new Date(world.clock.now() + DAY).toISOString()

    const { id } = await people.manage('POST', `/authenticators/${authenticatorId}/re-enroll`, { expiresAt })

    const enrollment = await people.manage('GET', `/enrollments/${id}`)
    expect(enrollment).toMatchObject({ method: 'ottca', caId: authority.id })
    expect(outcome(await signIn(leaf))).toEqual([401, 'INVALID_AUTH'])
    expect((await enrollByToken(enrollment.token, leaf)).status).toBe(200)
  })
})

describe('a certificate that enrolls by itself', () => {
  it('makes an identity with the roles and the name that its authority says', async () => {
    const own = await registerAuthority(people, { identityRoles: ['factory'] })
    const leaf = await leafOf(own, 'CN=press 7, O=test')

    const response = await enrollByItself(leaf, { name: 'asked for' })

    const identity = await byName(`${own.name}-press 7`)
    expect([response.status, response.body.data]).toEqual([200, {}])
    expect(identity).toMatchObject({ isAdmin: false, typeId: 'Default', roleAttributes: ['factory'], externalId: null })
    expect(identity.authPolicyId).toBe('default')
    expect((await signIn(leaf)).body.data.identityId).toBe(identity.id)
  })

  it.each([
    ['[requestedName] of [caName]', { name: 'my press' }, /^my press of authority \d+$/],
    ['[requestedName]', undefined, /^[0-9A-Z]{26}$/],
    ['[requestedName]', { name: '  ' }, /^[0-9A-Z]{26}$/],
    ['[identityId]:[caId]', undefined, /^[0-9A-Z]{26}:[0-9A-Z]{26}$/],
    ['[commonName][commonName] [other]', undefined, /^\[caId\]\[caId\] \[other\]$/],
    ['[requestedName]', { name: '[commonName]' }, /^\[commonName\]$/],
  ])('is named by %s, with the body %j', async (identityNameFormat, body, expected) => {
    const own = await registerAuthority(people, { identityNameFormat })
    const leaf = await leafOf(own, 'CN=[caId]')

    expect((await enrollByItself(leaf, body)).status).toBe(200)

    const { identityId } = (await signIn(leaf)).body.data
    expect((await people.manage('GET', `/identities/${identityId}`)).name).toMatch(expected)
  })

  it.each([
    ['control characters', '[requestedName]', 'CN=press', { name: 'press\u001b[2J' }],
    ['a mark that reverses text', '[requestedName]', 'CN=press', { name: 'press\u202enimda' }],
    ['a mark that reverses text in its common name', '[commonName]', 'CN=press\u2067nimda', undefined],
    ['a line separator', '[requestedName]', 'CN=press', { name: 'press\u2028admin' }],
    ['control characters in its common name', '[caName] [commonName]', 'CN=press\u009b2J', undefined],
    ['a common name of more than 200 characters', '[commonName]', `CN=${'x'.repeat(201)}`, { name: 'press' }],
  ])('is refused with %s, if its name would have them', async (_what, identityNameFormat, subject, body) => {
    const own = await registerAuthority(people, { identityNameFormat })
    const response = await enrollByItself(await leafOf(own, subject), body)
    expect([response.status, response.body.error?.code]).toEqual([400, 'COULD_NOT_VALIDATE'])

    await people.manage('PATCH', `/cas/${own.id}`, { identityNameFormat: '[identityId]' })
    expect((await enrollByItself(await leafOf(own, subject), body)).status).toBe(200)
  })

  it('gets suffixes while its name is taken, and after ten of them the id of its identity', async () => {
    const own = await registerAuthority(people, { identityNameFormat: 'one for all' })
    const names: string[] = []
    for (let count = 0; count < 12; count++) {
      const leaf = await leafOf(own)
      expect((await enrollByItself(leaf)).status).toBe(200)
      const { identityId } = (await signIn(leaf)).body.data
      names.push((await people.manage('GET', `/identities/${identityId}`)).name)
    }

    expect(names.slice(0, 3)).toEqual(['one for all', 'one for all000001', 'one for all000001000002'])
    expect(names[9]).toBe('one for all000001000002000003000004000005000006000007000008000009')
    expect(names.slice(10)).toEqual([
      expect.stringMatching(/^one for all-[0-9A-Z]{26}$/),
      expect.stringMatching(/^one for all-[0-9A-Z]{26}$/),
    ])
  })

  it('enrolls once, also if it comes several times at once', async () => {
    const leaf = await leafOf(authority)

    const responses = await Promise.all([1, 2, 3].map(() => enrollByItself(leaf)))

    expect(responses.map(outcome).sort()).toEqual([
      [200, undefined],
      [409, 'CERT_IN_USE'],
      [409, 'CERT_IN_USE'],
    ])
  })

  it('works at its own path, too', async () => {
    expect((await post('/enroll/ca', await leafOf(authority))).status).toBe(200)
  })

  it('is refused if no authority vouches for it that allows this', async () => {
    const closed = await registerAuthority(people, { isAutoCaEnrollmentEnabled: false })
    const unverified = await registerAuthority(people, { isVerified: false })
    const late = { notBefore: new Date(Date.now() - 3 * DAY), notAfter: new Date(Date.now() - DAY) }
    const forged = [
      undefined,
      await leafOf(closed),
      await leafOf(unverified),
      await leafOf(await makeAuthority(authority.certificate.subject)),
      await leafOf(authority, 'CN=late', late),
      await leafOf(authority, 'CN=server', { purposes: ['1.3.6.1.5.5.7.3.1'] }),
    ]

    for (const presented of forged)
      expect(outcome(await enrollByItself(presented))).toEqual([400, 'CERT_FAILED_VALIDATION'])
  })

  it('is refused if there is no authority at all', async () => {
    const empty = await testController()
    const response = await empty.send({ method: 'POST', path: `${CLIENT}/enroll?method=ca` })
    await empty.close()

    expect(outcome(response)).toEqual([400, 'ENROLLMENT_NO_VALID_CAS'])
  })

  it('is found by its issuer even if names differ in case and blanks', async () => {
    const named = await registerAuthority(people, { authority: await makeAuthority('CN=Mixed  Case CA') })
    const alias = { ...named, certificate: (await makeAuthority('CN=mixed case ca')).certificate }

    expect((await enrollByItself(await leafOf(alias))).status).toBe(200)
  })

  it('costs at most 20 signature checks, however the certificates cross', async () => {
    const subject = authority.certificate.subject
    const impostors = await Promise.all(Array.from({ length: 9 }, () => makeAuthority(subject)))
    for (let more = 0; more < 3; more++)
      await registerAuthority(people, { authority: await makeAuthority(subject), isAutoCaEnrollmentEnabled: true })
    const leaf = await leafOf(impostors[0] as TestCertificate)
    const verify = vi.spyOn(X509Certificate.prototype, 'verify')

    const response = await enrollByItself(leaf, undefined, impostors.map(({ pem }) => pem).join(''))
    const checks = verify.mock.calls.length
    verify.mockRestore()

    expect(outcome(response)).toEqual([400, 'CERT_FAILED_VALIDATION'])
    expect(checks).toBeGreaterThan(4)
    expect(checks).toBeLessThanOrEqual(20)
  })
})

describe('sign-in by a certificate of an authority', () => {
  it('ends, with its sessions, when the authority is closed, and comes back with it', async () => {
    const own = await registerAuthority(people)
    const { leaf } = await enrolled(own)
    const { token } = (await signIn(leaf)).body.data

    await people.manage('PATCH', `/cas/${own.id}`, { isAuthEnabled: false })
    const session = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
    const closed = await signIn(leaf)
    await people.manage('PATCH', `/cas/${own.id}`, { isAuthEnabled: true })

    expect([session.status, outcome(closed)]).toEqual([401, [401, 'INVALID_AUTH']])
    expect((await signIn(leaf)).status).toBe(200)
  })

  it('leaves the sessions of an authority alone while others are closed', async () => {
    const [own, other] = [await registerAuthority(people), await registerAuthority(people)]
    const { leaf } = await enrolled(own)
    const { token } = (await signIn(leaf)).body.data

    await people.manage('PATCH', `/cas/${other.id}`, { isAuthEnabled: false })
    await people.manage('PATCH', `/cas/${own.id}`, { identityRoles: ['changed'] })

    expect((await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })).status).toBe(200)
  })

  it('goes on under a new certificate of the same authority', async () => {
    const renewed = await makeAuthority('CN=renewed')
    const old = await registerAuthority(people, { authority: renewed })
    const { leaf } = await enrolled(old)
    const reissued = await issueAgain(renewed)
    await people.manage('PATCH', `/cas/${old.id}`, { isAuthEnabled: false })
    const refused = await signIn(leaf)

    await registerAuthority(people, { authority: reissued })

    expect(outcome(refused)).toEqual([401, 'INVALID_AUTH'])
    expect((await signIn(leaf)).status).toBe(200)
  })

  it('is left to the auth policy once the certificate has expired', async () => {
    const authPolicyId = await people.policy({ cert: { allowExpiredCerts: false } })
    const [strict, lenient] = [await enrolledUntil(1, { authPolicyId }), await enrolledUntil(1)]
    const fresh = await signIn(strict)

    world.clock.advance(2 * DAY)
    people = await People.in(world)

    expect(fresh.status).toBe(200)
    expect(outcome(await signIn(strict))).toEqual([401, 'INVALID_AUTH'])
    expect((await signIn(lenient)).status).toBe(200)
  })

  it('is possible by a certificate that an administrator gives to an identity', async () => {
    const identityId = await people.identity()
    const leaf = await leafOf(authority)
    const unknown = await leafOf(await makeAuthority('CN=unregistered'))

    const refused = await people.ask('POST', '/authenticators', { identityId, method: 'cert', certPem: unknown.pem })
    await people.manage('POST', '/authenticators', { identityId, method: 'cert', certPem: leaf.pem })

    expect(outcome(refused)).toEqual([400, 'CERTIFICATE_FAILED_VALIDATION'])
    expect((await signIn(leaf)).body.data.identityId).toBe(identityId)
  })

  /** A certificate of the shared authority that ends after some days, enrolled. */
  async function enrolledUntil(days: number, values: object = {}): Promise<TestCertificate> {
    const id = await people.identity({ enrollment: { ottca: authority.id }, ...values })
    const { enrollment } = await people.manage('GET', `/identities/${id}`)
    const leaf = await leafOf(authority, undefined, { notAfter: new Date(world.clock.now() + days * DAY) })
    expect((await enrollByToken(enrollment.ottca.token, leaf)).status).toBe(200)
    return leaf
  }

  /** Another certificate of the same authority: same name, same key. */
  async function issueAgain(of: TestCertificate): Promise<TestCertificate> {
    return issue(of.certificate.subject, of, { isAuthority: true, keys: of.keys })
  }
})

describe('the claim of an authority', () => {
  const claim = (values: object) => ({ ...COMMON_NAME_CLAIM, ...values })
  const uris = ['https://a.test/x', 'SPIFFE://net.test/press/7', 'spiffe://net.test/press/8']
  const emails = ['one@a.test', 'two@b.test']

  it.each([
    ['changes', claim({ location: 'SAN_EMAIL' })],
    ['is removed', null],
  ])('ends the sessions of those whom it named when it %s, and no others', async (change, externalIdClaim) => {
    const own = await registerAuthority(people, { externalIdClaim: claim({ location: 'SAN_URI' }) })
    const identityId = await people.identity({ externalId: `https://a.test/${change.replace(' ', '-')}` })
    const claimed = await signIn(
      await leafOf(own, 'CN=claimed', { uris: [`https://a.test/${change.replace(' ', '-')}`] }),
    )
    const pinnedLeaf = await leafOf(own, 'CN=pinned')
    await people.manage('POST', '/authenticators', {
      ...{ identityId: await people.identity(), method: 'cert' },
      certPem: pinnedLeaf.pem,
    })
    const tokens = [claimed.body.data.token, (await signIn(pinnedLeaf)).body.data.token]
    const check = () =>
      Promise.all(
        tokens.map(
          async (token) => (await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })).status,
        ),
      )

    await people.manage('PATCH', `/cas/${own.id}`, { identityRoles: ['changed'] })
    expect([claimed.body.data.identityId, ...(await check())]).toEqual([identityId, 200, 200])
    await people.manage('PATCH', `/cas/${own.id}`, { externalIdClaim })
    expect(await check()).toEqual([401, 200])
  })

  it.each([
    ['the common name', {}, 'press.7.hall'],
    ['a part of the common name', { parser: 'SPLIT', parserCriteria: '.', index: 2 }, 'hall'],
    ['what follows a prefix', { matcher: 'PREFIX', matcherCriteria: 'press.' }, '7.hall'],
    ['what precedes a suffix', { matcher: 'SUFFIX', matcherCriteria: '.hall' }, 'press.7'],
    ['an e-mail address', { location: 'SAN_EMAIL', index: 1 }, 'two@b.test'],
    ['the address of a domain', { location: 'SAN_EMAIL', matcher: 'SUFFIX', matcherCriteria: '@b.test' }, 'two'],
    ['a URI', { location: 'SAN_URI' }, 'https://a.test/x'],
    ['a URI of a scheme', { location: 'SAN_URI', matcher: 'SCHEME', matcherCriteria: 'spiffe' }, uris[1]],
    [
      'a URI after a prefix',
      { location: 'SAN_URI', matcher: 'PREFIX', matcherCriteria: 'spiffe://' },
      'net.test/press/8',
    ],
    ['a part of the second match', { location: 'SAN_EMAIL', parser: 'SPLIT', parserCriteria: '@', index: 3 }, 'b.test'],
  ])('finds the identity by %s', async (_what, values, externalId) => {
    const own = await registerAuthority(people, { externalIdClaim: claim(values) })
    const id = await people.identity({ externalId })
    const leaf = await leafOf(own, 'CN=press.7.hall', { uris, emails })

    const { body } = await signIn(leaf)
    await people.manage('DELETE', `/identities/${id}`)

    expect(body.data).toMatchObject({ identityId: id, authenticatorId: 'internal', isCertExtendable: false })
  })

  it('makes identities with the external id and no authenticator, so that their certificates can change', async () => {
    const own = await registerAuthority(people, { externalIdClaim: claim({}), identityNameFormat: '[commonName]' })
    const [first, second] = [await leafOf(own, 'CN=changing'), await leafOf(own, 'CN=changing')]

    const response = await enrollByItself(first)
    const again = await enrollByItself(second)

    const identity = await byName('changing')
    expect(response.status).toBe(200)
    expect(identity).toMatchObject({ externalId: 'changing', authenticators: {} })
    expect(outcome(again)).toEqual([400, 'COULD_NOT_VALIDATE'])
    expect(again.body.error.cause.field).toBe('externalId')
    for (const leaf of [first, second]) expect((await signIn(leaf)).body.data.identityId).toBe(identity.id)
  })

  it('refuses to enroll a certificate that it finds nothing in', async () => {
    const own = await registerAuthority(people, { externalIdClaim: claim({ location: 'SAN_URI' }) })
    const beyond = await registerAuthority(people, { externalIdClaim: claim({ index: 1 }) })

    expect(outcome(await enrollByItself(await leafOf(own)))).toEqual([400, 'MISSING_CERT_CLAIM'])
    expect(outcome(await enrollByItself(await leafOf(beyond)))).toEqual([400, 'MISSING_CERT_CLAIM'])
  })

  const SERVERS = '1.3.6.1.5.5.7.3.1'
  const notForClients: Readonly<Record<string, CertificateOptions>> = {
    servers: { purposes: [SERVERS] },
    'code signing': { purposes: ['1.3.6.1.5.5.7.3.3'] },
    'e-mail': { purposes: ['1.3.6.1.5.5.7.3.4'] },
    'an authority': { isAuthority: true },
    'key agreement': { keyUsage: x509.KeyUsageFlags.keyAgreement },
  }

  it.each(Object.keys(notForClients))('finds no identity by a certificate for %s', async (purpose) => {
    const own = await registerAuthority(people, { externalIdClaim: claim({}) })
    const name = `not for clients ${++serial}`
    const leaf = await leafOf(own, `CN=${name}`, notForClients[purpose])

    const enrollment = await enrollByItself(leaf)
    await people.identity({ externalId: name })

    expect(outcome(await signIn(leaf))).toEqual([401, 'INVALID_AUTH'])
    expect(outcome(enrollment)).toEqual([400, 'CERT_FAILED_VALIDATION'])
    expect((await signIn(await leafOf(own, `CN=${name}`))).status).toBe(200)
  })

  it('finds no identity by a certificate below an authority for servers', async () => {
    const own = await registerAuthority(people, { externalIdClaim: claim({}) })
    const servers = await issue('CN=issuer of servers', own, { isAuthority: true, purposes: [SERVERS] })
    const leaf = await leafOf(servers, 'CN=below servers')
    await people.identity({ externalId: 'below servers' })

    expect(outcome(await signIn(leaf, servers.pem))).toEqual([401, 'INVALID_AUTH'])
    expect(outcome(await enrollByItself(leaf, undefined, servers.pem))).toEqual([400, 'CERT_FAILED_VALIDATION'])
  })

  it('is skipped for a certificate for servers that an authenticator holds', async () => {
    const own = await registerAuthority(people, { externalIdClaim: claim({}) })
    const { pem, keyPem, ...rest } = await leafOf(own, 'CN=pinned server', { purposes: [SERVERS] })
    const id = await people.identity()
    await people.manage('POST', '/authenticators', { identityId: id, method: 'cert', certPem: pem })
    await people.identity({ externalId: 'pinned server' })

    const { body } = await signIn({ pem, keyPem, ...rest })

    expect(body.data?.identityId).toBe(id)
  })

  it('decides before the authenticator of a certificate, which decides where it finds nothing', async () => {
    const own = await registerAuthority(people, { externalIdClaim: claim({ location: 'SAN_EMAIL' }) })
    const byFingerprint = await enrolled(own)
    const { id, token } = await awaiting(own.id)
    const leaf = await leafOf(own, 'CN=both', { emails: ['both@a.test'] })
    await enrollByToken(token, leaf)

    const unknown = await signIn(leaf)
    const claimed = await people.identity({ externalId: 'both@a.test' })
    const claimant = await signIn(leaf)

    expect(outcome(unknown)).toEqual([401, 'INVALID_AUTH'])
    expect(claimant.body.data.identityId).toBe(claimed)
    expect(claimant.body.data.identityId).not.toBe(id)
    expect((await signIn(byFingerprint.leaf)).body.data.identityId).toBe(byFingerprint.id)
  })

  it('refuses an identity that is disabled, or whose auth policy takes no certificates', async () => {
    const own = await registerAuthority(people, { externalIdClaim: claim({}) })
    const authPolicyId = await people.policy({ cert: { allowed: false } })
    await people.identity({ externalId: 'without certificates', authPolicyId })
    const disabled = await people.identity({ externalId: 'disabled one' })
    await people.manage('POST', `/identities/${disabled}/disable`, { durationMinutes: 0 })

    for (const name of ['without certificates', 'disabled one', 'unknown one'])
      expect(outcome(await signIn(await leafOf(own, `CN=${name}`)))).toEqual([401, 'INVALID_AUTH'])
  })

  it('costs the certificates of others nothing', async () => {
    await registerAuthority(people, { externalIdClaim: claim({}) })
    const leaf = await leafOf(await makeAuthority('CN=of others'))
    const verify = vi.spyOn(X509Certificate.prototype, 'verify')

    const response = await signIn(leaf)
    const checks = verify.mock.calls.length
    verify.mockRestore()

    expect([outcome(response), checks]).toEqual([[401, 'INVALID_AUTH'], 0])
  })
})

describe('the deletion of an authority', () => {
  it('takes its enrollments, the authenticators that it vouched for, and all of their sessions', async () => {
    const own = await registerAuthority(people, {
      externalIdClaim: {
        location: 'SAN_EMAIL',
        matcher: 'ALL',
        matcherCriteria: '',
        parser: 'NONE',
        parserCriteria: '',
        index: 0,
      },
    })
    const device = await enrolled(own)
    const other = await enrolled(authority)
    const claimed = await people.identity({ externalId: 'goes@a.test' })
    const claimedLeaf = await leafOf(own, 'CN=claimed', { emails: ['goes@a.test'] })
    const outstanding = await awaiting(own.id)
    const leaves = [device.leaf, claimedLeaf, other.leaf]
    const tokens: string[] = []
    for (const leaf of leaves) tokens.push((await signIn(leaf)).body.data.token)

    await people.manage('DELETE', `/cas/${own.id}`)

    const statuses: number[] = []
    for (const token of tokens)
      statuses.push((await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })).status)
    expect(statuses).toEqual([401, 401, 200])
    for (const id of [device.id, outstanding.id, claimed]) {
      const { authenticators, enrollment, hasApiSession } = await people.manage('GET', `/identities/${id}`)
      expect([authenticators, enrollment, hasApiSession]).toEqual([{}, {}, false])
    }
    expect((await people.manage('GET', `/identities/${other.id}`)).authenticators.cert.id).toBe(other.authenticatorId)
    expect(outcome(await enrollByToken(outstanding.token, device.leaf))).toEqual([400, 'INVALID_ENROLLMENT_TOKEN'])
    for (const leaf of [device.leaf, claimedLeaf]) expect(outcome(await signIn(leaf))).toEqual([401, 'INVALID_AUTH'])
  })

  it('is refused, like its closing, if the last administrator signs in by it', async () => {
    const alone = await testController()
    const only = await People.in(alone)
    const there = await alone.listen()
    const own = await registerAuthority(only)
    const [{ id }] = await only.manage(
      'GET',
      `/identities?filter=${encodeURIComponent('isAdmin = true and isDefaultAdmin = false')}`,
    )
    const leaf = await leafOf(own)
    await only.manage('POST', '/authenticators', { identityId: id, method: 'cert', certPem: leaf.pem })
    const passwords = await only.manage('GET', `/authenticators?filter=${encodeURIComponent('method = "updb"')}`)
    for (const password of passwords) await only.manage('DELETE', `/authenticators/${password.id}`)

    const deleted = await only.ask('DELETE', `/cas/${own.id}`)
    const closed = await only.ask('PATCH', `/cas/${own.id}`, { isAuthEnabled: false })

    const presented = { chain: leaf.pem, key: { csr: '', keyPem: leaf.keyPem, key: undefined as never } }
    const session = await only.signInBy(there, presented)
    await alone.close()
    expect([outcome(deleted), outcome(closed)]).toEqual([
      [409, 'LAST_ADMINISTRATOR'],
      [409, 'LAST_ADMINISTRATOR'],
    ])
    expect(session.status).toBe(200)
  })
})

describe('authorities in memory', () => {
  it('are there again after a restart', async () => {
    const before = await testController()
    const registered = await registerAuthority(await People.in(before, 'before'))
    await before.stop()
    const after = await testController({ directory: before.directory })
    const there = await after.listen()
    const leaf = await leafOf(registered)

    const tls = { method: 'POST', path: `${CLIENT}/enroll?method=ca`, cert: leaf.pem, key: leaf.keyPem }
    const response = await callOverTls(there.url, there.rootPem, tls)
    await after.close()

    expect(response.status).toBe(200)
  })
})
