// Authorities that operators bring: their records, their verification, and what goes with them when they are deleted.
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { toCertificatePem } from '../../src/pki/certificates.ts'
import { COMMON_NAME_CLAIM, issue, makeAuthority, registerAuthority } from '../world/authorities.ts'
import type { KeyKind } from '../world/certificates.ts'
import { CLIENT } from '../world/controller.ts'
import { extensions, forgeCertificate } from '../world/forged-certificates.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const DAY = 24 * 60 * 60_000

const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

let serial = 0
const flags = { isAuthEnabled: true, isOttCaEnrollmentEnabled: true, isAutoCaEnrollmentEnabled: true }
const bodyOf = (certPem: string, values: object = {}) => ({
  name: `a new authority ${++serial}`,
  certPem,
  identityRoles: [],
  ...flags,
  ...values,
})

async function create(certPem: string, values: object = {}) {
  const { id } = await people.manage('POST', '/cas', bodyOf(certPem, values))
  return people.manage('GET', `/cas/${id}`)
}

const verify = (id: string, pem: string) => people.askText('POST', `/cas/${id}/verify`, pem)

/** An authority, and a certificate that it issued to a common name, by the program of OpenSSL. */
function openssl(keyArguments: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'openssl-'))
  const run = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const newKey = ['-newkey', ...keyArguments, '-nodes']
  run(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-days',
    '30',
    '-subj',
    `/CN=openssl ${++serial}`,
  )
  return {
    pem: readFileSync(join(folder, 'ca.pem'), 'utf8'),
    issue(commonName: string): string {
      run('req', ...newKey, '-keyout', 'leaf.key', '-out', 'leaf.csr', '-subj', `/CN=${commonName}`)
      writeFileSync(join(folder, 'serial'), '01')
      const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAserial', 'serial', '-days', '1']
      run('x509', '-req', '-in', 'leaf.csr', ...signed, '-out', 'leaf.pem')
      return readFileSync(join(folder, 'leaf.pem'), 'utf8')
    },
  }
}

describe('an authority', () => {
  it('is unverified at first, and shows its token and where to verify it', async () => {
    const authority = await makeAuthority()

    const record = await create(authority.pem, { identityRoles: ['b', 'a'] })

    expect(record).toMatchObject({
      certPem: authority.pem,
      isVerified: false,
      identityRoles: ['a', 'b'],
      identityNameFormat: '[caName]-[commonName]',
      ...flags,
    })
    expect(record.verificationToken).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(record.fingerprint).toBe(Buffer.from(await authority.certificate.getThumbprint('SHA-1')).toString('hex'))
    expect(Object.keys(record._links).sort()).toEqual(['jwt', 'self', 'verify'])
    expect(record).not.toHaveProperty('externalIdClaim')
  })

  it('links to its JWT only while certificates enroll by themselves, and to its verification only until then', async () => {
    const { id } = await registerAuthority(people, { isAutoCaEnrollmentEnabled: false })

    const { _links } = await people.manage('GET', `/cas/${id}`)

    expect(Object.keys(_links)).toEqual(['self'])
  })

  it('may carry further certificates, of which the first is the authority', async () => {
    const root = await makeAuthority('CN=further root')
    const issuing = await issue('CN=further issuing', root, { isAuthority: true })

    const record = await create(issuing.pem + root.pem)

    expect(record.fingerprint).toBe(Buffer.from(await issuing.certificate.getThumbprint('SHA-1')).toString('hex'))
  })

  const past = { notBefore: new Date(Date.now() - 3 * DAY), notAfter: new Date(Date.now() - DAY) }
  const future = { notBefore: new Date(Date.now() + DAY), notAfter: new Date(Date.now() + 3 * DAY) }
  function makeAuthorityOf(publicExponent: number): string {
    const keys = generateKeyPairSync('rsa', { modulusLength: 2048, publicExponent })
    const names = { subject: 'exponent', issuer: 'exponent' }
    const dates = { notBefore: Date.now() - DAY, notAfter: Date.now() + DAY }
    const own = { publicKey: keys.publicKey, signingKey: keys.privateKey }
    return toCertificatePem(
      forgeCertificate({ ...names, ...dates, ...own, extensions: [extensions.basicConstraints(true)] }),
    )
  }
  const refused: Readonly<Record<string, [code: string, certPem: () => Promise<string> | string]>> = {
    'that is not PEM': ['COULD_NOT_VALIDATE', () => 'nonsense'],
    'that is empty': ['COULD_NOT_VALIDATE', () => ''],
    'that is not a certificate inside': [
      'COULD_NOT_VALIDATE',
      () => '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
    ],
    'that is a key': ['COULD_NOT_VALIDATE', async () => (await makeAuthority()).keyPem],
    'of one that is not an authority': ['CERTIFICATE_IS_NOT_CA', async () => (await issue('CN=self-signed')).pem],
    'that is not valid yet': ['COULD_NOT_VALIDATE', async () => (await makeAuthority('CN=future', future)).pem],
    'with an RSA key whose exponent is 3': ['COULD_NOT_VALIDATE', () => makeAuthorityOf(3)],
    'that an expired one follows': [
      'COULD_NOT_VALIDATE',
      async () => (await makeAuthority()).pem + (await makeAuthority('CN=expired', past)).pem,
    ],
    'that another follows which is not an authority': [
      'CERTIFICATE_IS_NOT_CA',
      async () => (await makeAuthority()).pem + (await issue('CN=self-signed')).pem,
    ],
    'that is expired': ['COULD_NOT_VALIDATE', async () => (await makeAuthority('CN=expired', past)).pem],
    'with a weak key': ['COULD_NOT_VALIDATE', async () => (await makeAuthority('CN=weak', { kind: 'RSA-1024' })).pem],
    'of 900 KiB': ['COULD_NOT_VALIDATE', async () => (await makeAuthority()).pem.repeat(1_500)],
    'with eleven certificates': ['COULD_NOT_VALIDATE', async () => (await makeAuthority()).pem.repeat(11)],
    'of this controller': ['COULD_NOT_VALIDATE', () => toCertificatePem(world.controller.authority.root)],
  }

  it.each(Object.keys(refused))('with a certificate %s is refused', async (what) => {
    const [code, certPem] = refused[what] as (typeof refused)[string]

    const { status, body } = await people.ask('POST', '/cas', bodyOf(await certPem()))

    expect([status, body.error.code, body.error.cause.field]).toEqual([400, code, 'certPem'])
  })

  it('has a certificate and a name that no other has, also if both are sent at the same time', async () => {
    const { pem } = await makeAuthority()
    const bodies = [bodyOf(pem), bodyOf(pem), bodyOf(pem)]

    const responses = await Promise.all(bodies.map((body) => people.ask('POST', '/cas', body)))

    expect(responses.map(({ status }) => status).sort()).toEqual([201, 400, 400])
    const cause = responses.find(({ status }) => status === 400)?.body.error.cause
    expect([cause.field, cause.reason]).toEqual(['certPem', expect.stringMatching(/authority a new authority/)])
  })

  it.each([
    [{ matcher: 'SCHEME', matcherCriteria: 'spiffe' }, 'externalIdClaim.matcher'],
    [{ location: 'SAN_URI', matcher: 'SCHEME' }, 'externalIdClaim.matcherCriteria'],
    [{ matcher: 'PREFIX' }, 'externalIdClaim.matcherCriteria'],
    [{ parser: 'SPLIT' }, 'externalIdClaim.parserCriteria'],
  ])('with the claim %j is refused, when it is made and when it changes', async (members, field) => {
    const { id } = await create((await makeAuthority()).pem)
    const externalIdClaim = { ...COMMON_NAME_CLAIM, ...members }

    const creation = await people.ask('POST', '/cas', bodyOf((await makeAuthority()).pem, { externalIdClaim }))
    const patch = await people.ask('PATCH', `/cas/${id}`, { externalIdClaim: members })

    for (const { status, body } of [creation, patch])
      expect([status, body.error.code, body.error.cause.field]).toEqual([400, 'REFERENCED_ENTITY_NOT_FOUND', field])
  })

  it('keeps its claim in a patch of something else, merges a part of it, and loses it by null', async () => {
    const { id } = await create((await makeAuthority()).pem)
    const claim = async () => (await people.manage('GET', `/cas/${id}`)).externalIdClaim

    await people.manage('PATCH', `/cas/${id}`, { externalIdClaim: { location: 'SAN_URI' } })
    await people.manage('PATCH', `/cas/${id}`, { externalIdClaim: { index: 2 } })
    await people.manage('PATCH', `/cas/${id}`, { identityNameFormat: '' })
    const merged = await claim()
    await people.manage('PATCH', `/cas/${id}`, { externalIdClaim: null })

    expect(merged).toEqual({
      location: 'SAN_URI',
      matcher: 'ALL',
      matcherCriteria: '',
      parser: 'NONE',
      parserCriteria: '',
      index: 2,
    })
    expect(await claim()).toBeUndefined()
  })

  it('is in the inventory of certificates', async () => {
    const { id, name, certPem, fingerprint } = await create((await makeAuthority('CN=in the inventory')).pem)

    const filter = encodeURIComponent(`holderId = "${id}"`)
    const entries = await people.manage('GET', `/controller/certificates?filter=${filter}`)

    expect(certPem).toContain('BEGIN CERTIFICATE')
    expect(entries).toMatchObject([{ kind: 'authority', fingerprint, holderName: name, state: 'valid' }])
  })

  it('is for administrators only', async () => {
    const { token } = await world.signIn()

    const response = await world.send({ method: 'GET', path: '/edge/management/v1/cas', token })

    expect(response.status).toBe(401)
  })
})

describe('the verification of an authority', () => {
  it.each<KeyKind>(['P-256', 'P-384', 'P-521', 'RSA-2048', 'Ed25519'])(
    'takes a certificate that its %s key signed for the token, and is done once',
    async (kind) => {
      const authority = await makeAuthority(`CN=verified ${kind}`, { kind })
      const { id, verificationToken } = await create(authority.pem)
      const proof = await issue(`O=test, CN=${verificationToken}`, authority)

      const first = await verify(id, proof.pem)
      const second = await verify(id, proof.pem)

      const record = await people.manage('GET', `/cas/${id}`)
      expect([first.status, first.body.data]).toEqual([200, {}])
      expect([second.status, second.body.error.code]).toEqual([409, 'CA_ALREADY_VERIFIED'])
      expect([record.isVerified, record.verificationToken]).toEqual([true, verificationToken])
    },
  )

  it.each([
    ['RSA', ['rsa:2048']],
    ['EC', ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']],
  ])('takes what OpenSSL makes with %s keys', async (_kind, keyArguments) => {
    // OpenSSL's certificates begin now, and the clock of the controller stood still since it started.
    world.clock.advance(60_000)
    const authority = openssl(keyArguments)
    const { id, verificationToken } = await create(authority.pem)
    const proof = authority.issue(verificationToken)

    const response = await verify(id, proof)

    expect(response.status).toBe(200)
  })

  it('refuses what proves nothing', async () => {
    const authority = await makeAuthority('CN=unproven')
    const namesake = await makeAuthority('CN=unproven')
    const { id, verificationToken } = await create(authority.pem)
    const subject = `CN=${verificationToken}`
    const late = { notBefore: new Date(Date.now() - 3 * DAY), notAfter: new Date(Date.now() - DAY) }
    const below = await issue('CN=below', authority, { isAuthority: true })
    const attempts: readonly (readonly [pem: string, code: string])[] = [
      ['nonsense', 'COULD_NOT_PARSE_BODY'],
      [authority.keyPem, 'EXPECTED_PEM_CERTIFICATE'],
      ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', 'COULD_NOT_PARSE_DER_BLOCK'],
      [(await issue('CN=another name', authority)).pem, 'INVALID_COMMON_NAME'],
      [(await issue(`${subject}, CN=another name`, authority)).pem, 'INVALID_COMMON_NAME'],
      [authority.pem, 'INVALID_COMMON_NAME'],
      [(await issue(subject, namesake)).pem, 'CERTIFICATE_FAILED_VALIDATION'],
      [(await issue(subject)).pem, 'CERTIFICATE_FAILED_VALIDATION'],
      [(await issue(subject, authority, late)).pem, 'CERTIFICATE_FAILED_VALIDATION'],
      [(await issue(subject, below)).pem + below.pem, 'CERTIFICATE_FAILED_VALIDATION'],
    ]

    for (const [pem, code] of attempts) {
      const { status, body } = await verify(id, pem)
      expect([status, body.error.code]).toEqual([400, code])
    }
    expect((await people.manage('GET', `/cas/${id}`)).isVerified).toBe(false)
  })

  it('is refused without a body, for an unknown authority, and by an authority that has expired since', async () => {
    const notAfter = new Date(Date.now() + DAY)
    const authority = await makeAuthority('CN=soon expired', { notAfter })
    const { id, verificationToken } = await create(authority.pem)
    const { pem } = await issue(`CN=${verificationToken}`, authority)

    const unknown = await verify('nothing', pem)
    const empty = await people.ask('POST', `/cas/${id}/verify`)
    world.clock.advance(2 * DAY)
    people = await People.in(world)
    const late = await verify(id, pem)

    expect([unknown.status, empty.status]).toEqual([404, 400])
    expect([late.status, late.body.error.code]).toEqual([400, 'CERTIFICATE_FAILED_VALIDATION'])
  })

  it('is told by the audit', async () => {
    const { id } = await registerAuthority(people)

    const rows = await world.controller.store.db
      .selectFrom('audit_records')
      .select(['operation', 'after'])
      .where('entityId', '=', id)
      .orderBy('n')
      .execute()

    expect(rows.map(({ operation, after }) => [operation, JSON.parse(after ?? '{}').isVerified])).toEqual([
      ['create', false],
      ['update', true],
    ])
  })
})

describe('the JWT of an authority', () => {
  it('is signed by the controller, does not expire, and is served whether or not the authority is verified', async () => {
    const { id } = await registerAuthority(people, { isVerified: false })
    const { body: keys } = await world.send({ method: 'GET', path: `${CLIENT}/enroll/jwks` })

    const response = await people.ask('GET', `/cas/${id}/jwt`)
    const again = await people.ask('GET', `/cas/${id}/jwt`)

    const { payload } = await jwtVerify(response.text, createLocalJWKSet(keys as JSONWebKeySet))
    expect([response.status, response.headers['content-type']]).toEqual([200, 'application/jwt'])
    expect(payload).toEqual({
      em: 'ca',
      iss: 'https://127.0.0.1:1280/',
      sub: id,
      jti: id,
      aud: ['openziti-enroller'],
      ctrls: null,
    })
    expect(again.text).toBe(response.text)
  })

  it('does not exist for an unknown authority', async () => {
    expect((await people.ask('GET', '/cas/nothing/jwt')).status).toBe(404)
  })
})
