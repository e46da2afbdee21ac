// Signing in by a token of an external issuer: whom it admits, and every way in which a token can be wrong.
import { createHmac } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { callOverTls } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT, type TestResponse } from '../world/controller.ts'
import { AUDIENCE, createIssuerKey, Issuer, type KeyKind, signToken, type TokenChanges } from '../world/issuers.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const note = (fields: Readonly<Record<string, unknown>>, message: string) => logLines.push({ fields, message })
const world = useController({ log: { debug: note, info: note, warn: note, error: note } })
let at: { url: string; rootPem: string }
let people: People
let issuer: Issuer
let signerId: string
const logLines: { readonly fields: Readonly<Record<string, unknown>>; readonly message: string }[] = []

beforeAll(async () => {
  at = await world.listen()
  people = await People.in(world)
  issuer = new Issuer()
  signerId = await issuer.trustedBy(people)
})

/** Signs a text with the public key as the secret, as a forger does who hopes that the token chooses the algorithm. */
function forgeHmac(text: string): string {
  const secret = issuer.key.publicKey.export({ type: 'spki', format: 'pem' })
  return createHmac('sha256', secret).update(text).digest('base64url')
}

/** Signs in from an address of its own, because equal refusals of one source are logged once. */
function signIn(token: string | undefined, base = CLIENT): Promise<TestResponse> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const from = `10.0.${sequence >> 8}.${sequence++ & 255}`
  return world.send({ method: 'POST', path: `${base}/authenticate?method=ext-jwt`, body: {}, headers, from })
}

/** An array in an array, and so on, this deep. */
function nest(depth: number): unknown {
  return JSON.parse('['.repeat(depth) + ']'.repeat(depth))
}

let sequence = 0
async function makeIdentity(values: Record<string, unknown> = {}): Promise<{ id: string; externalId: string }> {
  const externalId = `subject-${++sequence}`
  return { id: await people.identity({ externalId, ...values }), externalId }
}

/** Requires that the sign-in is refused like any other. Returns why, by the log. */
function expectRefusal(response: TestResponse): string {
  expect([response.status, response.body.error.code]).toEqual([401, 'INVALID_AUTH'])
  expect(response.body.error.cause).toBeUndefined()
  return String(logLines.findLast(({ message }) => message === 'a sign-in was refused')?.fields.reason)
}

describe('a token of a signer', () => {
  it.each([CLIENT, MANAGEMENT])('signs in at %s the identity whose external id it names', async (base) => {
    const { id, externalId } = await makeIdentity()

    const { status, body } = await signIn(issuer.token(world, externalId), base)

    expect(status).toBe(200)
    expect(body.data).toMatchObject({
      identityId: id,
      authenticatorId: `extJwtId:${signerId}`,
      authQueries: [],
      isMfaRequired: false,
      isCertExtendable: false,
    })
    const own = await world.send({ method: 'GET', path: `${CLIENT}/current-identity`, token: body.data.token })
    expect(own.body.data.id).toBe(id)
  })

  it('names the identity by its id, if the signer says so, and by the claim that the signer names', async () => {
    const other = new Issuer()
    await other.trustedBy(people, { useExternalId: false, claimsProperty: 'device' })
    const { id, externalId } = await makeIdentity()

    const byId = await signIn(other.token(world, 'unused', { claims: { device: id } }))
    const byExternalId = await signIn(other.token(world, 'unused', { claims: { device: externalId } }))

    expect(byId.body.data.identityId).toBe(id)
    expectRefusal(byExternalId)
  })

  it.each<KeyKind>(['P-256', 'P-384', 'P-521', 'RSA', 'Ed25519'])(
    'is verified by a key of the kind %s',
    async (kind) => {
      const other = new Issuer(kind)
      await other.trustedBy(people)
      const { externalId } = await makeIdentity()

      expect((await signIn(other.token(world, externalId))).status).toBe(200)
    },
  )

  it('has the fingerprint of the certificate as kid, if the signer has no kid', async () => {
    const other = new Issuer()
    const id = await other.trustedBy(people, { kid: null })
    const { fingerprint, keyStatus } = await people.manage('GET', `/external-jwt-signers/${id}`)
    const { externalId } = await makeIdentity()

    const response = await signIn(other.token(world, externalId, { header: { kid: fingerprint } }))

    expect(keyStatus.keyIds).toEqual([fingerprint])
    expect(response.status).toBe(200)
  })

  it('may have several audiences', async () => {
    const { externalId } = await makeIdentity()
    const claims = { aud: ['another', 'the controller under test'] }

    expect((await signIn(issuer.token(world, externalId, { claims }))).status).toBe(200)
  })

  it.each([
    ['an object without a text', { toString: 1 }],
    ['arrays in arrays', nest(1_000)],
    ['numbers and null', [7, null]],
  ])('may have %s besides its audience', async (_what, value) => {
    const { externalId } = await makeIdentity()
    const claims = { aud: ['the controller under test', value] }

    expect((await signIn(issuer.token(world, externalId, { claims }))).status).toBe(200)
  })

  it.each([
    ['a moment after its expiry', { exp: -29 }, 200],
    ['half a minute after its expiry', { exp: -30 }, 401],
    ['a moment before it is valid', { nbf: 30, exp: 60 }, 200],
    ['more than half a minute before it is valid', { nbf: 31, exp: 60 }, 401],
  ])('is judged with a leeway of 30 seconds: %s', async (_when, offsets, status) => {
    const { externalId } = await makeIdentity()
    const now = world.clock.now() / 1000
    const claims = Object.fromEntries(Object.entries(offsets).map(([name, offset]) => [name, now + offset]))

    expect((await signIn(issuer.token(world, externalId, { claims }))).status).toBe(status)
  })

  it('is recorded in the audit as a sign-in by this method', async () => {
    const { id, externalId } = await makeIdentity()
    await signIn(issuer.token(world, externalId))

    const records = await people.manage('GET', `/controller/audit?filter=${encodeURIComponent(`actorId = "${id}"`)}`)

    expect(records).toContainEqual(expect.objectContaining({ operation: 'create', method: 'ext-jwt' }))
  })
})

describe('a token is refused, and the log says why:', () => {
  const wrongKey = createIssuerKey('P-256')
  const now = () => Math.floor(world.clock.now() / 1000)
  const cases: readonly (readonly [string, (issuer: Issuer) => TokenChanges, RegExp])[] = [
    ['without kid', () => ({ header: { kid: undefined } }), /no kid/],
    ['with a kid that is not text', () => ({ header: { kid: 7 } }), /no kid|not a signed JWT/],
    ['with an unknown kid', () => ({ header: { kid: 'unknown' } }), /"unknown" is not a key of/],
    ['without iss', () => ({ claims: { iss: undefined } }), /no iss/],
    ['of an unknown issuer', () => ({ claims: { iss: 'https://unknown.example' } }), /not the issuer of a signer/],
    [
      'of an issuer with a slash more',
      ({ issuer }) => ({ claims: { iss: `${issuer}/` } }),
      /not the issuer of a signer/,
    ],
    ['without exp', () => ({ claims: { exp: undefined } }), /no exp/],
    ['that expired', () => ({ claims: { exp: now() - 31 } }), /"exp"/],
    ['that is not valid yet', () => ({ claims: { nbf: now() + 31 } }), /"nbf"/],
    ['without aud', () => ({ claims: { aud: undefined } }), /"aud"/],
    ['for another audience', () => ({ claims: { aud: 'another' } }), /"aud"/],
    ['for an object as its audience', () => ({ claims: { aud: { toString: 1 } } }), /"aud"/],
    ['with other values than texts as audiences', () => ({ claims: { aud: [{ toString: 1 }, 7, null] } }), /"aud"/],
    ['for its audience in an inner array', () => ({ claims: { aud: ['x', ['the controller under test']] } }), /"aud"/],
    ['for arrays in arrays as its audience', () => ({ claims: { aud: nest(1_000) } }), /"aud"/],
    ['for an audience in another case', () => ({ claims: { aud: 'The controller under test' } }), /"aud"/],
    ['by another key', ({ key }) => ({ key: { ...wrongKey, kid: key.kid } }), /signature is not by a key/],
    ['without the claim', () => ({ claims: { sub: undefined } }), /no claim sub/],
    ['with a claim that is not text', () => ({ claims: { sub: ['subject-1'] } }), /no text in the claim sub/],
    ['with an empty claim', () => ({ claims: { sub: '' } }), /no text in the claim sub/],
    ['for an identity that does not exist', () => ({ claims: { sub: 'unknown' } }), /names no identity/],
    ['that demands an unknown extension', () => ({ header: { crit: ['exotic'], exotic: 1 } }), /./],
  ]

  it.each(cases)('%s', async (_what, changes, reason) => {
    const { externalId } = await makeIdentity()

    expect(expectRefusal(await signIn(issuer.token(world, externalId, changes(issuer))))).toMatch(reason)
  })

  it.each(['1e400', '253402300800', '-1e400'])('that expires at %s', async (exp) => {
    const { externalId } = await makeIdentity()
    const { key } = issuer
    const claims = JSON.stringify({ iss: issuer.issuer, aud: AUDIENCE, sub: externalId }).replace('}', `,"exp":${exp}}`)
    const token = signToken({ alg: key.algorithm, kid: key.kid }, claims, key)

    expect(expectRefusal(await signIn(token))).toMatch(/expire/)
  })

  it.each([
    ['none', (text: string) => `${text}.`],
    ['an HMAC under the public key', (text: string) => `${text}.${forgeHmac(text)}`],
  ])('that is signed by %s', async (_what, finish) => {
    const { externalId } = await makeIdentity()
    const [, payload = ''] = issuer.token(world, externalId).split('.')
    for (const alg of ['none', 'HS256', 'ES256', 'RS256']) {
      const header = Buffer.from(JSON.stringify({ alg, kid: issuer.key.kid })).toString('base64url')

      expect(expectRefusal(await signIn(finish(`${header}.${payload}`)))).toMatch(/signature|not a signed JWT/)
    }
  })

  it.each(['', 'x', 'a.b', 'a.b.c', 'a.b.c.d.e', '..', 'eyJhbGciOiJFUzI1NiJ9..', `${'x'.repeat(9_000)}.y.z`])(
    'that is not one: %j',
    async (token) => {
      expectRefusal(await signIn(token))
    },
  )

  it('without a token, and with another scheme', async () => {
    const headers = { authorization: 'Basic YWRtaW46YWRtaW4=' }
    const path = `${CLIENT}/authenticate?method=ext-jwt`

    expectRefusal(await signIn(undefined))
    expectRefusal(await world.send({ method: 'POST', path, body: {}, headers }))
  })

  it('of a megabyte, before anything reads it', async () => {
    const { url, rootPem } = at
    const path = `${CLIENT}/authenticate?method=ext-jwt`
    const huge = { authorization: `Bearer ${'x'.repeat(1024 * 1024)}` }
    const large = { authorization: `Bearer ${'x'.repeat(15 * 1024)}` }

    const responses = [
      await callOverTls(url, rootPem, { method: 'POST', path, headers: huge }),
      await callOverTls(url, rootPem, { method: 'POST', path, headers: large }),
    ]

    expect(responses.map(({ status }) => status)).toEqual([431, 401])
  })

  it('of a signer that is disabled', async () => {
    const other = new Issuer()
    await other.trustedBy(people, { enabled: false })
    const { externalId } = await makeIdentity()

    expect(expectRefusal(await signIn(other.token(world, externalId)))).toMatch(/is disabled/)
  })

  it('of a signer without an audience', async () => {
    const other = new Issuer()
    await other.trustedBy(people, { audience: null })
    const { externalId } = await makeIdentity()

    expect(expectRefusal(await signIn(other.token(world, externalId)))).toMatch(/has no audience/)
  })

  it('for an identity that is disabled', async () => {
    const { id, externalId } = await makeIdentity()
    await people.manage('POST', `/identities/${id}/disable`, { durationMinutes: 0 })

    expect(expectRefusal(await signIn(issuer.token(world, externalId)))).toMatch(/is disabled/)
  })

  it('under an auth policy that does not allow the method, or not this signer', async () => {
    const otherSigner = await new Issuer().trustedBy(people)
    const closed = await people.policy({ extJwt: { allowed: false } })
    const narrow = await people.policy({ extJwt: { allowedSigners: [otherSigner] } })
    const wide = await people.policy({ extJwt: { allowedSigners: [otherSigner, signerId] } })
    const signInUnder = async (authPolicyId: string) => {
      const { externalId } = await makeIdentity({ authPolicyId })
      return signIn(issuer.token(world, externalId))
    }

    expect(expectRefusal(await signInUnder(closed))).toMatch(/does not allow this method/)
    expect(expectRefusal(await signInUnder(narrow))).toMatch(/does not allow the signer/)
    expect((await signInUnder(wide)).status).toBe(200)
  })

  it('after its signer has changed, although it was accepted before', async () => {
    const other = new Issuer()
    const id = await other.trustedBy(people)
    const { externalId } = await makeIdentity()
    const token = other.token(world, externalId)
    const before = await signIn(token)
    await people.manage('PATCH', `/external-jwt-signers/${id}`, { audience: 'another' })

    expect(before.status).toBe(200)
    expect(expectRefusal(await signIn(token))).toMatch(/"aud"/)
  })

  it('after it expired, although it was accepted before', async () => {
    const { externalId } = await makeIdentity()
    const token = issuer.token(world, externalId)
    const before = await signIn(token)
    world.clock.advance(331_000)

    expect(before.status).toBe(200)
    expect(expectRefusal(await signIn(token))).toMatch(/"exp"/)
  })
})

describe('of several tokens in a request', () => {
  it('the first two count, and one that names an identity is enough', async () => {
    const { id, externalId } = await makeIdentity()
    const good = `Bearer ${issuer.token(world, externalId)}`
    const path = `${CLIENT}/authenticate?method=ext-jwt`
    const signInBy = (authorization: string[]) =>
      callOverTls(at.url, at.rootPem, { method: 'POST', path, headers: { authorization } })

    const responses = [
      await signInBy(['Bearer nonsense', good]),
      await signInBy([good, 'Bearer nonsense']),
      await signInBy(['Bearer nonsense', 'Bearer nonsense', good]),
    ]

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 401])
    expect(responses[0]?.body.data.identityId).toBe(id)
  })

  it('the one counts whose signer the auth policy allows', async () => {
    const other = new Issuer()
    const allowed = await other.trustedBy(people)
    const authPolicyId = await people.policy({ extJwt: { allowedSigners: [allowed] } })
    const { externalId } = await makeIdentity({ authPolicyId })
    const authorization = [issuer, other].map((each) => `Bearer ${each.token(world, externalId)}`)
    const path = `${CLIENT}/authenticate?method=ext-jwt`

    const { body } = await callOverTls(at.url, at.rootPem, { method: 'POST', path, headers: { authorization } })

    expect(body.data.authenticatorId).toBe(`extJwtId:${allowed}`)
  })
})

describe('what is logged and recorded', () => {
  it('says for each refusal what was wrong', async () => {
    const disabled = new Issuer()
    await disabled.trustedBy(people, { enabled: false })
    const closed = await makeIdentity({ authPolicyId: await people.policy({ extJwt: { allowed: false } }) })
    const authPolicyId = await people.policy({
      extJwt: { allowedSigners: [await new Issuer().trustedBy(people)] },
    })
    const narrow = await makeIdentity({ authPolicyId })
    const { externalId } = await makeIdentity()
    const now = Math.floor(world.clock.now() / 1000)
    const sign = (changes: TokenChanges) => issuer.token(world, externalId, changes)
    const refusals: readonly (readonly [reason: string, token: string | undefined])[] = [
      ['NO_TOKEN', undefined],
      ['MALFORMED_TOKEN', 'nonsense'],
      ['MALFORMED_TOKEN', sign({ header: { kid: undefined } })],
      ['UNKNOWN_SIGNER', sign({ claims: { iss: 'https://unknown.example' } })],
      ['SIGNER_DISABLED', disabled.token(world, externalId)],
      ['UNKNOWN_KEY', sign({ header: { kid: 'unknown' } })],
      ['WRONG_SIGNATURE', sign({ key: { ...createIssuerKey('P-256'), kid: issuer.key.kid } })],
      ['WRONG_AUDIENCE', sign({ claims: { aud: 'another' } })],
      ['TOKEN_NOT_YET_VALID', sign({ claims: { nbf: now + 31, exp: now + 60 } })],
      ['EXPIRED_TOKEN', sign({ claims: { exp: now - 31 } })],
      ['MISSING_CLAIM', sign({ claims: { sub: undefined } })],
      ['UNKNOWN_CREDENTIAL', sign({ claims: { sub: 'unknown' } })],
      ['METHOD_NOT_ALLOWED', issuer.token(world, closed.externalId)],
      ['SIGNER_NOT_ALLOWED', issuer.token(world, narrow.externalId)],
    ]

    const records: { operation: string; method: string; reason: string }[] = []
    for (const [, token] of refusals) {
      expectRefusal(await signIn(token))
      records.push(...(await people.manage('GET', '/controller/audit?limit=1')))
    }

    expect(records).toMatchObject(
      refusals.map(([reason]) => ({ operation: 'refuse', method: 'ext-jwt', count: 1, reason })),
    )
  })

  it('holds no part of a token', async () => {
    const { externalId } = await makeIdentity()
    const token = issuer.token(world, externalId)
    await signIn(token)
    await signIn(`${token}x`)
    const [, payload = '', signature = ''] = token.split('.')

    const text = JSON.stringify([logLines, await people.manage('GET', '/controller/audit?limit=500')])

    expect(text).not.toContain(payload)
    expect(text).not.toContain(signature)
  })
})
