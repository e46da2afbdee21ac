// Tokens of an external issuer as a second factor: they come with every request, and are never stored.

import { beforeAll, describe, expect, it, vi } from 'vitest'
import { requireSameRights } from '../../src/authentication/api-sessions/require-same-rights.ts'
import { Rights } from '../../src/definitions/permissions/rights.ts'
import { toChange } from '../../src/storage/transactions/changes.ts'
import { UncommittedChanges } from '../../src/storage/transactions/uncommitted-changes.ts'
import { callOverTls } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { AUDIENCE, Issuer } from '../world/issuers.ts'
import { PASSWORD, People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People
let issuer: Issuer
let signerId: string
let authPolicyId: string

beforeAll(async () => {
  people = await People.in(world)
  issuer = new Issuer()
  const advice = { externalAuthUrl: 'https://issuer.example/auth', clientId: 'the-client', scopes: ['openid', 'email'] }
  signerId = await issuer.trustedBy(people, advice)
  authPolicyId = await people.policy({ requireExtJwtSigner: signerId })
})

let sequence = 0

/** A person under the policy, signed in by password. */
async function signedIn(values: Record<string, unknown> = {}) {
  const externalId = `subject-${++sequence}`
  const person = await people.person({ authPolicyId, externalId, ...values })
  const { body } = await people.signIn(person)
  return { ...person, externalId, session: body.data, apiSession: body.data.token as string }
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` })

/** A request of a session, with a token of the signer or without. */
function get(path: string, token: string, externalToken?: string) {
  const headers = externalToken === undefined ? {} : { headers: bearer(externalToken) }
  return world.send({ method: 'GET', path, token, ...headers })
}

describe('a session under a policy that requires tokens of a signer', () => {
  it('says where to get one', async () => {
    const { session } = await signedIn()

    expect(session.authQueries).toEqual([
      {
        typeId: 'EXT-JWT',
        provider: 'url',
        id: signerId,
        httpUrl: 'https://issuer.example/auth',
        clientId: 'the-client',
        scopes: ['email', 'openid'],
      },
    ])
  })

  it.each([`${CLIENT}/current-identity`, `${CLIENT}/services`, `${MANAGEMENT}/current-identity`])(
    'may call %s with a token, and not without',
    async (path) => {
      const { apiSession, externalId } = await signedIn()
      const token = issuer.token(world, externalId)

      const responses = [
        await get(path, apiSession),
        await get(path, apiSession, token),
        await get(path, apiSession),
        await get(path, apiSession, token),
      ]

      expect(responses.map(({ status }) => status)).toEqual([401, 200, 401, 200])
      expect(responses[0]?.body.error.cause.code).toBe('SECOND_FACTOR_REQUIRED')
    },
  )

  it('may not call if it ends while the token is verified', async () => {
    const { apiSession, externalId, session } = await signedIn()
    const { verifier } = world.controller.auth.signers
    const verifyAll = verifier.verifyAll.bind(verifier)
    vi.spyOn(verifier, 'verifyAll').mockImplementationOnce(async (contexts, tokens) => {
      await people.manage('DELETE', `/api-sessions/${session.id}`)
      return verifyAll(contexts, tokens)
    })

    const response = await get(`${CLIENT}/current-identity`, apiSession, issuer.token(world, externalId))

    expect([response.status, response.body.error.cause.code]).toEqual([401, 'SESSION_UNKNOWN'])
  })

  it('may call with a token whose audiences are not all texts', async () => {
    const { apiSession, externalId } = await signedIn()
    const token = issuer.token(world, externalId, { claims: { aud: [AUDIENCE, { toString: 1 }] } })

    expect((await get(`${CLIENT}/current-identity`, apiSession, token)).status).toBe(200)
  })

  it('shows itself without a token, and what it owes in this very request', async () => {
    const { apiSession, externalId } = await signedIn()
    const path = `${CLIENT}/current-api-session`

    const without = await get(path, apiSession)
    const withToken = await get(path, apiSession, issuer.token(world, externalId))

    expect(without.body.data.authQueries).toHaveLength(1)
    expect(withToken.body.data.authQueries).toEqual([])
  })

  it('is complete at once if the sign-in carries the token', async () => {
    const externalId = `subject-${++sequence}`
    const person = await people.person({ authPolicyId, externalId })
    const path = `${CLIENT}/authenticate?method=password`
    const body = { username: person.username, password: PASSWORD }
    const headers = bearer(issuer.token(world, externalId))

    const response = await world.send({ method: 'POST', path, body, headers })

    expect(response.body.data.authQueries).toEqual([])
  })

  it('that began with a certificate is completed in the same way', async () => {
    const at = await world.listen()
    const externalId = `subject-${++sequence}`
    const device = await people.device({ authPolicyId, externalId })
    const path = `${CLIENT}/authenticate?method=cert`
    const credential = { method: 'POST', path, body: {}, cert: device.chain, key: device.key.keyPem }
    const headers = bearer(issuer.token(world, externalId))

    const without = await people.signInBy(at, device)
    const withToken = await callOverTls(at.url, at.rootPem, { ...credential, headers })

    expect(without.body.data.authQueries).toHaveLength(1)
    expect(withToken.body.data.authQueries).toEqual([])
  })

  it('may begin with a token of the same signer', async () => {
    const externalId = `subject-${++sequence}`
    await people.identity({ authPolicyId, externalId })
    const headers = bearer(issuer.token(world, externalId))
    const path = `${CLIENT}/authenticate?method=ext-jwt`

    const { body } = await world.send({ method: 'POST', path, body: {}, headers })

    expect(body.data.authQueries).toEqual([])
    expect((await get(`${CLIENT}/current-identity`, body.data.token)).status).toBe(401)
  })

  it('owes a code as well, if the policy requires both', async () => {
    const both = await people.policy({ requireExtJwtSigner: signerId, requireTotp: true })
    const { session, apiSession, externalId } = await signedIn({ authPolicyId: both })

    const response = await get(`${CLIENT}/current-api-session`, apiSession, issuer.token(world, externalId))

    const typesOf = ({ authQueries }: { authQueries: { typeId: string }[] }) => authQueries.map(({ typeId }) => typeId)
    expect(typesOf(session)).toEqual(['MFA', 'EXT-JWT'])
    expect(typesOf(response.body.data)).toEqual(['MFA'])
  })

  it('of an administrator administers with a token only', async () => {
    const { apiSession, externalId } = await signedIn({ isAdmin: true })
    const create = (headers: Record<string, string>) => {
      const body = { name: `service ${++sequence}`, encryptionRequired: true }
      return world.send({ method: 'POST', path: `${MANAGEMENT}/services`, token: apiSession, body, headers })
    }

    const responses = [await create({}), await create(bearer(issuer.token(world, externalId)))]

    expect(responses.map(({ status }) => status)).toEqual([401, 201])
  })
})

describe('a second factor is not satisfied', () => {
  const now = () => Math.floor(world.clock.now() / 1000)

  it.each([
    ['by the token of another identity', () => issuer.token(world, 'another')],
    ['by an expired token', (subject: string) => issuer.token(world, subject, { claims: { exp: now() - 31 } })],
    ['by a token for another audience', (subject: string) => issuer.token(world, subject, { claims: { aud: 'x' } })],
    [
      'by a token with an object as its audience',
      (subject: string) => issuer.token(world, subject, { claims: { aud: [{ toString: 1 }] } }),
    ],
    ['by a forged token', (subject: string) => `${issuer.token(world, subject).slice(0, -8)}AAAAAAAA`],
    ['by something else', () => 'nonsense'],
  ])('%s', async (_what, makeToken) => {
    const { apiSession, externalId } = await signedIn()

    const { status } = await get(`${CLIENT}/current-identity`, apiSession, makeToken(externalId))

    expect(status).toBe(401)
  })

  it('by the token of another signer', async () => {
    const other = new Issuer()
    await other.trustedBy(people)
    const { apiSession, externalId } = await signedIn()

    expect((await get(`${CLIENT}/current-identity`, apiSession, other.token(world, externalId))).status).toBe(401)
  })

  it('after the token has expired, although it was accepted before', async () => {
    const { apiSession, externalId } = await signedIn()
    const token = issuer.token(world, externalId)
    const before = await get(`${CLIENT}/current-identity`, apiSession, token)
    world.clock.advance(331_000)

    const after = await get(`${CLIENT}/current-identity`, apiSession, token)

    expect([before.status, after.status]).toEqual([200, 401])
  })

  it('after the identity has another external id, although it was accepted before', async () => {
    const { id, apiSession, externalId } = await signedIn()
    const token = issuer.token(world, externalId)
    const before = await get(`${CLIENT}/current-identity`, apiSession, token)
    await people.manage('PATCH', `/identities/${id}`, { externalId: 'another subject' })

    const after = await get(`${CLIENT}/current-identity`, apiSession, token)

    expect([before.status, after.status]).toEqual([200, 401])
  })

  it('while the signer is disabled, and again once it is enabled', async () => {
    const other = new Issuer()
    const otherSigner = await other.trustedBy(people)
    const strict = await people.policy({ requireExtJwtSigner: otherSigner })
    const { apiSession, externalId } = await signedIn({ authPolicyId: strict })
    const statusNow = async () =>
      (await get(`${CLIENT}/current-identity`, apiSession, other.token(world, externalId))).status
    const statuses = [await statusNow()]
    for (const enabled of [false, true]) {
      await people.manage('PATCH', `/external-jwt-signers/${otherSigner}`, { enabled })
      statuses.push(await statusNow())
    }

    expect(statuses).toEqual([200, 401, 200])
  })
})

describe('a change of the auth policy', () => {
  it('takes effect on the next request of live sessions', async () => {
    const policy = await people.policy({})
    const { apiSession, externalId } = await signedIn({ authPolicyId: policy })
    const before = await get(`${CLIENT}/current-identity`, apiSession)
    await people.manage('PATCH', `/auth-policies/${policy}`, { secondary: { requireExtJwtSigner: signerId } })

    const after = [
      await get(`${CLIENT}/current-identity`, apiSession),
      await get(`${CLIENT}/current-identity`, apiSession, issuer.token(world, externalId)),
    ]

    expect(before.status).toBe(200)
    expect(after.map(({ status }) => status)).toEqual([401, 200])
  })
})

describe('a transaction', () => {
  it('is refused if another one in the same commit disables the signer of its caller', async () => {
    const { apiSession, externalId } = await signedIn()
    const { auth, contexts } = world.controller
    const token = await auth.signers.verifier.verify(contexts, issuer.token(world, externalId))
    const session = auth.apiSessions.use(apiSession, world.clock.now())
    const caller = {
      kind: 'identity',
      identityId: session?.identity.id ?? '',
      identityName: '',
      isAdmin: false,
      rights: Rights.none,
      apiSessionId: session?.id ?? '',
      isPartial: false,
      externalTokens: [token],
    } as const
    const signer = auth.signers.directory.get(signerId)
    const disabled = {
      operation: 'update',
      audit: 'none',
      resource: 'external-jwt-signers',
      id: signerId,
      at: 0,
    } as const
    const earlier = [toChange({ ...disabled, after: { ...signer, enabled: false } })]

    expect(() =>
      requireSameRights(auth, { caller, clock: world.clock, uncommitted: new UncommittedChanges([]) }),
    ).not.toThrow()
    expect(() =>
      requireSameRights(auth, { caller, clock: world.clock, uncommitted: new UncommittedChanges(earlier) }),
    ).toThrow()
  })
})
