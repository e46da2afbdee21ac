// Signers as records: what they must be, what clients see of them, and what ends with them.
import { beforeAll, describe, expect, it } from 'vitest'
import { CLIENT } from '../world/controller.ts'
import { createCertificate } from '../world/endpoints.ts'
import { createIssuerKey, Issuer } from '../world/issuers.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

const create = (changes: Readonly<Record<string, unknown>>) =>
  people.ask('POST', '/external-jwt-signers', new Issuer().signerBody(changes))

describe('a signer with a certificate', () => {
  it('shows what the certificate says, and none of it once it has an endpoint instead', async () => {
    const issuer = new Issuer()
    const id = await issuer.trustedBy(people)
    const before = await people.manage('GET', `/external-jwt-signers/${id}`)
    const jwksEndpoint = 'https://issuer.example/jwks'
    await people.manage('PATCH', `/external-jwt-signers/${id}`, { certPem: null, jwksEndpoint })

    const after = await people.manage('GET', `/external-jwt-signers/${id}`)

    expect(before).toMatchObject({
      commonName: issuer.issuer,
      jwksEndpoint: null,
      keyStatus: { keyIds: [issuer.key.kid] },
    })
    expect(before.fingerprint).toMatch(/^[0-9a-f]{40}$/)
    expect(Date.parse(before.notAfter)).toBeGreaterThan(Date.parse(before.notBefore))
    expect(after).toMatchObject({
      certPem: null,
      commonName: '',
      fingerprint: null,
      notBefore: '0001-01-01T00:00:00.000Z',
      notAfter: '0001-01-01T00:00:00.000Z',
      jwksEndpoint,
      keyStatus: { keyIds: [], fetchedAt: null, failure: null, failedSince: null },
    })
  })

  it('shows the common name of the certificate as it is, not escaped', async () => {
    const certPem = createCertificate('Example, Inc. "Müller"', createIssuerKey().publicKey)

    const response = await create({ certPem })

    const { commonName } = await people.manage('GET', `/external-jwt-signers/${response.body.data.id}`)
    expect(commonName).toBe('Example, Inc. "Müller"')
  })

  it('verifies by the key of a new certificate, and by the old one no more', async () => {
    const issuer = new Issuer()
    const id = await issuer.trustedBy(people)
    await people.identity({ externalId: 'renewed' })
    const signIn = (token: string) =>
      world.send({
        method: 'POST',
        path: `${CLIENT}/authenticate?method=ext-jwt`,
        headers: { authorization: `Bearer ${token}` },
      })
    const oldToken = issuer.token(world, 'renewed')
    const before = await signIn(oldToken)
    issuer.key = createIssuerKey('P-256', issuer.key.kid)
    await people.manage('PATCH', `/external-jwt-signers/${id}`, { certPem: issuer.certificate() })

    const after = [await signIn(oldToken), await signIn(issuer.token(world, 'renewed'))]

    expect([before, ...after].map(({ status }) => status)).toEqual([200, 401, 200])
  })
})

describe('a signer is refused', () => {
  it.each([
    ['without a source of keys', { certPem: null, kid: null }, 'REFERENCED_ENTITY_NOT_FOUND', 'certPem'],
    [
      'with two sources of keys',
      { jwksEndpoint: 'https://issuer.example', certPem: createCertificate('two', createIssuerKey().publicKey) },
      'REFERENCED_ENTITY_NOT_FOUND',
      'certPem',
    ],
    ['with a certificate that is none', { certPem: 'nonsense' }, 'INVALID_CERT_PEM', undefined],
    [
      'with two certificates',
      { certPem: createCertificate('a', createIssuerKey().publicKey).repeat(2) },
      'INVALID_CERT_PEM',
      undefined,
    ],
    ['with a blank issuer', { issuer: ' ' }, 'COULD_NOT_VALIDATE', 'issuer'],
    ['without an issuer', { issuer: undefined }, 'COULD_NOT_VALIDATE', 'issuer'],
    ['without an audience', { audience: undefined }, 'COULD_NOT_VALIDATE', 'audience'],
    ['with an unknown target token', { targetToken: 'REFRESH' }, 'COULD_NOT_VALIDATE', 'targetToken'],
    ['with an endpoint over http', { jwksEndpoint: 'http://issuer.example' }, 'COULD_NOT_VALIDATE', 'jwksEndpoint'],
    ['with an endpoint in a file', { jwksEndpoint: 'file:///etc/passwd' }, 'COULD_NOT_VALIDATE', 'jwksEndpoint'],
    ['with an endpoint that is not a URL', { jwksEndpoint: 'issuer' }, 'COULD_NOT_VALIDATE', 'jwksEndpoint'],
    [
      'with a password in the endpoint',
      { jwksEndpoint: 'https://a:b@c.example' },
      'COULD_NOT_VALIDATE',
      'jwksEndpoint',
    ],
    [
      'that leads clients to a script',
      { externalAuthUrl: 'javascript:alert(1)' },
      'COULD_NOT_VALIDATE',
      'externalAuthUrl',
    ],
  ])('%s', async (_what, changes, code, field) => {
    const { status, body } = await create(changes)

    expect([status, body.error.code, body.error.cause?.field]).toEqual([400, code, field])
  })

  it.each(['name', 'issuer', 'kid', 'certPem'] as const)('with the %s of another one', async (member) => {
    const issuer = new Issuer()
    const body = issuer.signerBody()
    await people.manage('POST', '/external-jwt-signers', body)

    const response = await create({ [member]: body[member] })

    const field = member === 'certPem' ? 'fingerprint' : member
    expect([response.status, response.body.error.cause.field]).toEqual([400, field])
  })

  it('with the key of a certificate that is too weak', async () => {
    const { publicKey } = (await import('node:crypto')).generateKeyPairSync('rsa', { modulusLength: 1024 })

    const response = await create({ certPem: createCertificate('weak', publicKey) })

    expect([response.status, response.body.error.cause.field]).toEqual([400, 'certPem'])
  })
})

describe('blank text', () => {
  it('stands for no value', async () => {
    const { body } = await create({
      claimsProperty: ' ',
      audience: '',
      clientId: '',
      externalAuthUrl: '',
      targetToken: null,
    })

    expect(await people.manage('GET', `/external-jwt-signers/${body.data.id}`)).toMatchObject({
      claimsProperty: 'sub',
      audience: null,
      clientId: null,
      externalAuthUrl: null,
      targetToken: 'ACCESS',
      scopes: [],
    })
  })
})

describe('clients', () => {
  it('see the enabled signers without a session, and nothing that tokens are verified by', async () => {
    const enabled = new Issuer()
    await enabled.trustedBy(people, { name: 'for clients', scopes: ['openid'], targetToken: 'ID', tags: { a: 1 } })
    await new Issuer().trustedBy(people, { name: 'not for clients', enabled: false })
    const path = `${CLIENT}/external-jwt-signers?filter=${encodeURIComponent('name contains "for clients"')}`

    const { status, body } = await world.send({ method: 'GET', path })

    expect(status).toBe(200)
    expect(body.data).toHaveLength(1)
    expect(Object.keys(body.data[0]).sort()).toEqual(
      [
        '_links',
        'audience',
        'clientId',
        'createdAt',
        'externalAuthUrl',
        'id',
        'name',
        'scopes',
        'tags',
        'targetToken',
        'updatedAt',
      ].sort(),
    )
  })

  it.each(['issuer', 'kid', 'certPem', 'fingerprint', 'claimsProperty', 'enabled'])(
    'cannot filter by the %s, which they do not see',
    async (symbol) => {
      const filter = encodeURIComponent(`${symbol} != null`)

      const { status } = await world.send({ method: 'GET', path: `${CLIENT}/external-jwt-signers?filter=${filter}` })

      expect(status).toBe(400)
    },
  )
})

describe('a signer that an auth policy names', () => {
  it.each([
    ['as allowed', (id: string) => ({ extJwt: { allowedSigners: [id] } }), 'primary.extJwt.allowedSigners'],
    ['as required', (id: string) => ({ requireExtJwtSigner: id }), 'secondary.requireExtJwtSigner'],
  ])('%s cannot be deleted until the policy is', async (_how, words, field) => {
    const id = await new Issuer().trustedBy(people)
    await new Issuer().trustedBy(people)
    const policy = await people.policy(words(id))
    const inUse = await people.ask('DELETE', `/external-jwt-signers/${id}`)
    await people.manage('DELETE', `/auth-policies/${policy}`)

    const free = await people.ask('DELETE', `/external-jwt-signers/${id}`)

    expect([inUse.status, inUse.body.error.code]).toEqual([409, 'CAN_NOT_DELETE_REFERENCED_ENTITY'])
    expect(inUse.body.error.cause).toMatchObject({ field, value: expect.stringContaining(policy) })
    expect(free.status).toBe(200)
  })
})

describe('the sessions that began with a token of a signer', () => {
  it.each([
    ['disabled', (id: string) => people.manage('PATCH', `/external-jwt-signers/${id}`, { enabled: false })],
    ['deleted', (id: string) => people.manage('DELETE', `/external-jwt-signers/${id}`)],
  ])('end when it is %s, and no others', async (how, change) => {
    const [issuer, other] = [new Issuer(), new Issuer()]
    const id = await issuer.trustedBy(people)
    await other.trustedBy(people)
    await people.identity({ externalId: `its holder is ${how}` })
    const signIn = async (by: Issuer) => {
      const headers = { authorization: `Bearer ${by.token(world, `its holder is ${how}`)}` }
      const path = `${CLIENT}/authenticate?method=ext-jwt`
      return (await world.send({ method: 'POST', path, body: {}, headers })).body.data.token as string
    }
    const tokens = [await signIn(issuer), await signIn(other)]
    await change(id)

    const responses = tokens.map((token) => world.send({ method: 'GET', path: `${CLIENT}/current-identity`, token }))

    expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([401, 200])
  })
})
