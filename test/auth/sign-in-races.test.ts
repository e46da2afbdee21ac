// A sign-in whose conditions change after its steps have run, and before its session is stored: the change comes first.
import { X509Certificate } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { createApiSession } from '../../src/authentication/api-sessions/create-api-session.ts'
import type { Method } from '../../src/authentication/sign-in/authentication-methods.ts'
import { flow } from '../../src/authentication/sign-in/flow.ts'
import { type Credentials, SignInAttempt } from '../../src/authentication/sign-in/sign-in-attempt.ts'
import { requireEnabledIdentity } from '../../src/authentication/sign-in/steps/require-enabled-identity.ts'
import { authPolicies, permissivePolicy } from '../../src/definitions/resources/auth-policies.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { newId } from '../../src/foundation/ids.ts'
import { get, newEntity } from '../../src/storage/entities/entities.ts'
import { COMMON_NAME_CLAIM, issue, type RegisteredTestAuthority, registerAuthority } from '../world/authorities.ts'
import { Issuer } from '../world/issuers.ts'
import { PASSWORD, People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

/** A sign-in whose steps have run. */
interface PendingSignIn {
  readonly attempt: SignInAttempt
  readonly identityId: string
  readonly authPolicyId: string
  readonly authenticatorId?: string
  readonly caId?: string
  readonly signerId?: string
}

function startAttempt(method: Method, credentials: Partial<Credentials>): SignInAttempt {
  const peer = {
    own: undefined,
    isIssuerPresented: false,
    isPresentedAlone: true,
    isResumed: false,
    ownPrint: undefined,
    readOwn: () => undefined,
    readAll: () => [],
    readEvery: () => [],
  }
  return new SignInAttempt(world.controller, world.system, method, { peer, bearerTokens: [], ...credentials })
}

async function runSteps(method: Method, credentials: Partial<Credentials>): Promise<SignInAttempt> {
  const attempt = startAttempt(method, credentials)
  for (const step of flow[method]) await step(attempt)
  return attempt
}

function runStepsBy(certPem: string): Promise<SignInAttempt> {
  const own = new X509Certificate(certPem)
  return runSteps('cert', {
    peer: {
      own,
      isIssuerPresented: false,
      isPresentedAlone: true,
      isResumed: false,
      ownPrint: undefined,
      readOwn: () => own,
      readAll: () => [own],
      readEvery: () => [own],
    },
  })
}

let sequence = 0

/** A certificate of a new authority of an operator. */
async function certificateOf(
  values: object,
): Promise<{ authority: RegisteredTestAuthority; name: string; pem: string }> {
  const authority = await registerAuthority(people, { ...values })
  const name = `device ${++sequence}`
  return { authority, name, pem: (await issue(`CN=${name}`, authority)).pem }
}

/** How each kind of sign-in begins. */
const kinds = {
  async 'a password'(): Promise<PendingSignIn> {
    const authPolicyId = await people.policy({})
    const { id: identityId, authenticatorId, username } = await people.person({ authPolicyId })
    const attempt = await runSteps('password', { username, password: PASSWORD })
    return { attempt, identityId, authPolicyId, authenticatorId }
  },
  async 'a certificate of the controller'(): Promise<PendingSignIn> {
    const authPolicyId = await people.policy({})
    const { id: identityId, authenticatorId, chain } = await people.device({ authPolicyId })
    return { attempt: await runStepsBy(chain), identityId, authPolicyId, authenticatorId }
  },
  async 'a certificate of an operator'(): Promise<PendingSignIn> {
    const authPolicyId = await people.policy({})
    const { authority, pem } = await certificateOf({})
    const identityId = await people.identity({ authPolicyId })
    const { id } = await people.manage('POST', '/authenticators', { identityId, method: 'cert', certPem: pem })
    return { attempt: await runStepsBy(pem), identityId, authPolicyId, authenticatorId: id, caId: authority.id }
  },
  async 'a claim of a certificate'(): Promise<PendingSignIn> {
    const authPolicyId = await people.policy({})
    const { authority, name, pem } = await certificateOf({ externalIdClaim: COMMON_NAME_CLAIM })
    const identityId = await people.identity({ authPolicyId, externalId: name })
    return { attempt: await runStepsBy(pem), identityId, authPolicyId, caId: authority.id }
  },
  async 'an external token'(): Promise<PendingSignIn> {
    const authPolicyId = await people.policy({})
    const issuer = new Issuer()
    const signerId = await issuer.trustedBy(people)
    const externalId = `subject ${++sequence}`
    const identityId = await people.identity({ authPolicyId, externalId })
    const attempt = await runSteps('ext-jwt', { bearerTokens: [issuer.token(world, externalId)] })
    return { attempt, identityId, authPolicyId, signerId }
  },
} as const

type Kind = keyof typeof kinds

const isSessionStored = async ({ identityId }: PendingSignIn) =>
  (
    await world.controller.store.db
      .selectFrom('api_sessions')
      .select('id')
      .where('identityId', '=', identityId)
      .execute()
  ).length > 0

const closePolicy = (signIn: PendingSignIn, part: string) =>
  people.manage('PATCH', `/auth-policies/${signIn.authPolicyId}`, { primary: { [part]: { allowed: false } } })
const parts: Readonly<Record<Method, string>> = { password: 'updb', cert: 'cert', 'ext-jwt': 'extJwt' }

/** The changes that administrators make meanwhile. */
const changes = {
  'the identity is disabled': ({ identityId }: PendingSignIn) =>
    people.manage('POST', `/identities/${identityId}/disable`, { durationMinutes: 0 }),
  'the identity is deleted': ({ identityId }: PendingSignIn) => people.manage('DELETE', `/identities/${identityId}`),
  'the auth policy is closed': (signIn: PendingSignIn) => closePolicy(signIn, parts[signIn.attempt.method]),
  'the identity has another auth policy': async ({ identityId, attempt }: PendingSignIn) => {
    const part = parts[attempt.method] as 'updb' | 'cert' | 'extJwt'
    const authPolicyId = await people.policy({ [part]: { allowed: false } })
    await people.manage('PATCH', `/identities/${identityId}`, { authPolicyId })
  },
  'the authenticator is deleted': ({ authenticatorId }: PendingSignIn) =>
    people.manage('DELETE', `/authenticators/${authenticatorId}`),
  'the password is changed': ({ authenticatorId }: PendingSignIn) =>
    people.manage('PATCH', `/authenticators/${authenticatorId}`, { password: 'another horse battery' }),
  'the authority is closed': ({ caId }: PendingSignIn) =>
    people.manage('PATCH', `/cas/${caId}`, { isAuthEnabled: false }),
  'the claim is changed': ({ caId }: PendingSignIn) =>
    people.manage('PATCH', `/cas/${caId}`, { externalIdClaim: { ...COMMON_NAME_CLAIM, location: 'SAN_URI' } }),
  'the authority is deleted': ({ caId }: PendingSignIn) => people.manage('DELETE', `/cas/${caId}`),
  'the external id is changed': ({ identityId }: PendingSignIn) =>
    people.manage('PATCH', `/identities/${identityId}`, { externalId: `another ${++sequence}` }),
  'the signer is disabled': ({ signerId }: PendingSignIn) =>
    people.manage('PATCH', `/external-jwt-signers/${signerId}`, { enabled: false }),
  'the signer has another audience': ({ signerId }: PendingSignIn) =>
    people.manage('PATCH', `/external-jwt-signers/${signerId}`, { audience: 'another' }),
  'the signer is not allowed any more': async ({ authPolicyId }: PendingSignIn) => {
    const allowedSigners = [await new Issuer().trustedBy(people)]
    await people.manage('PATCH', `/auth-policies/${authPolicyId}`, { primary: { extJwt: { allowedSigners } } })
  },
  'the token expires': async () => world.clock.advance(331_000),
} as const

type Change = keyof typeof changes

const ofEveryKind: readonly (readonly [Change, string])[] = [
  ['the identity is disabled', 'IDENTITY_DISABLED'],
  ['the identity is deleted', 'IDENTITY_DISABLED'],
  ['the auth policy is closed', 'METHOD_NOT_ALLOWED'],
  ['the identity has another auth policy', 'METHOD_NOT_ALLOWED'],
]

const ofOneKind: readonly (readonly [Kind, Change, string])[] = [
  ['a password', 'the authenticator is deleted', 'CREDENTIAL_CHANGED'],
  ['a password', 'the password is changed', 'CREDENTIAL_CHANGED'],
  ['a certificate of the controller', 'the authenticator is deleted', 'CREDENTIAL_CHANGED'],
  ['a certificate of an operator', 'the authenticator is deleted', 'CREDENTIAL_CHANGED'],
  ['a certificate of an operator', 'the authority is closed', 'UNTRUSTED_CERTIFICATE'],
  ['a certificate of an operator', 'the authority is deleted', 'CREDENTIAL_CHANGED'],
  ['a claim of a certificate', 'the external id is changed', 'CREDENTIAL_CHANGED'],
  ['a claim of a certificate', 'the claim is changed', 'CREDENTIAL_CHANGED'],
  ['a claim of a certificate', 'the authority is closed', 'UNTRUSTED_CERTIFICATE'],
  ['a claim of a certificate', 'the authority is deleted', 'UNTRUSTED_CERTIFICATE'],
  ['an external token', 'the external id is changed', 'CREDENTIAL_CHANGED'],
  ['an external token', 'the signer is disabled', 'CREDENTIAL_CHANGED'],
  ['an external token', 'the signer has another audience', 'CREDENTIAL_CHANGED'],
  ['an external token', 'the signer is not allowed any more', 'SIGNER_NOT_ALLOWED'],
  ['an external token', 'the token expires', 'CREDENTIAL_CHANGED'],
]

const cases = [
  ...(Object.keys(kinds) as Kind[]).flatMap((kind) =>
    ofEveryKind.map(([change, reason]) => [kind, change, reason] as const),
  ),
  ...ofOneKind,
]

describe('a sign-in', () => {
  it.each(Object.keys(kinds) as Kind[])('by %s is made if nothing changes', async (kind) => {
    const signIn = await kinds[kind]()

    await createApiSession(signIn.attempt, {})

    expect(await isSessionStored(signIn)).toBe(true)
  })

  it.each(cases)('by %s comes to nothing if %s', async (kind, change, reason) => {
    const signIn = await kinds[kind]()
    await changes[change](signIn)

    await expect(createApiSession(signIn.attempt, {})).rejects.toMatchObject({ reason })

    expect(await isSessionStored(signIn)).toBe(false)
  })

  it('is refused like any other if its identity is deleted while the password is compared', async () => {
    const { id, username } = await people.person()
    const attempt = startAttempt('password', { username, password: PASSWORD })
    for (const step of flow.password.slice(0, flow.password.indexOf(requireEnabledIdentity))) await step(attempt)
    await people.manage('DELETE', `/identities/${id}`)

    await expect(requireEnabledIdentity(attempt)).rejects.toMatchObject({ reason: 'UNKNOWN_CREDENTIAL' })
  })
})

describe('an auth policy that is created in the group of a sign-in, and given to its identity', () => {
  /** Gives an identity a new policy in the group of the next change, and before it. */
  function movePolicyInGroup(identityId: string, maxAttempts: number): void {
    const { entities, store } = world.controller
    const write = store.write.bind(store)
    store.write = (...change) => {
      store.write = write
      const moving = world.system.write(async (tx) => {
        const { primary, secondary } = permissivePolicy
        const updb = { ...primary.updb, maxAttempts }
        const policy = newEntity(tx, authPolicies, { name: newId(), primary: { ...primary, updb }, secondary })
        await entities.insert(tx, authPolicies, policy)
        await entities.update(tx, identities, await get(tx, identities, identityId), { authPolicyId: policy.id })
      })
      return Promise.all([write(...change), moving]).then(([result]) => result)
    }
  }

  it('judges a right password of an administrator', async () => {
    const person = await people.person({ isAdmin: true })
    movePolicyInGroup(person.id, 0)

    expect((await people.signIn(person)).status).toBe(200)
  })

  it('counts a wrong password', async () => {
    const person = await people.person({ authPolicyId: await people.policy({ updb: { maxAttempts: 5 } }) })
    movePolicyInGroup(person.id, 1)

    expect((await people.signIn({ ...person, password: 'wrong' })).status).toBe(401)
    expect((await people.manage('GET', `/identities/${person.id}`)).disabled).toBe(true)
  })
})
