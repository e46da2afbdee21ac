// The setup of a second factor: an enrollment that is not verified belongs to the API session that started it.

import { beforeAll, describe, expect, it } from 'vitest'
import { requireSameRights } from '../../src/authentication/api-sessions/require-same-rights.ts'
import { Rights } from '../../src/definitions/permissions/rights.ts'
import type { Change } from '../../src/storage/transactions/changes.ts'
import { UncommittedChanges } from '../../src/storage/transactions/uncommitted-changes.ts'
import { AuthenticatorApp, STEP_MS } from '../world/authenticator-app.ts'
import { CLIENT, MANAGEMENT, testController } from '../world/controller.ts'
import { Issuer } from '../world/issuers.ts'
import { LIMITED, MfaPeople, MfaSession, NONE, outcome, WRONG } from '../world/mfa.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People
let mfa: MfaPeople

beforeAll(async () => {
  people = await People.in(world)
  mfa = new MfaPeople(world, people)
})

const now = () => world.clock.now()
const OWED = [401, 'UNAUTHORIZED', 'SECOND_FACTOR_REQUIRED']
const refusal = ({ status, body }: Awaited<ReturnType<MfaSession['start']>>) => [
  status,
  body.error?.code,
  body.error?.cause?.code,
]

/** A person with two sessions: that of the owner, and that of a thief of the password. */
async function ownerAndThief(values: Record<string, unknown> = {}) {
  const person = await people.person(values)
  return { person, owner: await mfa.signIn(person), thief: await mfa.signIn(person) }
}

describe('an enrollment that is not verified', () => {
  it.each([
    ['client', CLIENT],
    ['management', MANAGEMENT],
  ] as const)('is hidden from the other sessions of its identity on the %s API', async (_name, base) => {
    const { person, thief } = await ownerAndThief()
    const owner = await mfa.signIn(person, { base })
    await thief.start()

    const device = await thief.app()

    expect(outcome(await owner.show())).toEqual(NONE)
    expect(outcome(await owner.qrCode())).toEqual(NONE)
    expect(outcome(await owner.verify(device.code(now())))).toEqual(NONE)
    expect(outcome(await owner.remove())).toEqual(NONE)
    // The session that started it still has it.
    expect((await thief.show()).body.data.isVerified).toBe(false)
    expect((await thief.qrCode()).status).toBe(200)
  })

  it('is replaced when another session starts one, and its secret and recovery codes are worth nothing', async () => {
    const { person, owner, thief } = await ownerAndThief()
    await thief.start()
    const stolen = (await thief.show()).body.data
    const thiefDevice = new AuthenticatorApp(stolen.provisioningUrl)

    const started = await owner.start()

    expect(started.status).toBe(201)
    expect(started.body.data.id).not.toBe(stolen.id)
    expect(outcome(await thief.show())).toEqual(NONE)
    expect(outcome(await thief.verify(thiefDevice.code(now())))).toEqual(NONE)
    const { provisioningUrl, recoveryCodes } = (await owner.show()).body.data
    expect(provisioningUrl).not.toBe(stolen.provisioningUrl)
    const device = new AuthenticatorApp(provisioningUrl)
    expect(outcome(await owner.verify(device.code(now())))).toBe(200)
    const later = await mfa.signIn(person)
    expect(outcome(await later.pass(thiefDevice.code(now())))).toEqual(WRONG)
    expect(outcome(await later.pass(stolen.recoveryCodes[0]))).toEqual(WRONG)
    expect(outcome(await later.pass(recoveryCodes[0]))).toBe(200)
  })

  it('cannot be started again by its own session', async () => {
    const { owner } = await ownerAndThief()
    await owner.start()
    const before = (await owner.show()).body.data

    expect(outcome(await owner.start())).toEqual([409, 'MFA_EXISTS'])
    expect((await owner.show()).body.data).toEqual(before)
  })

  it('ends with the session that started it', async () => {
    const { person, owner } = await ownerAndThief()
    await owner.start()
    await owner.send('DELETE', '/current-api-session')

    const rows = await world.controller.store.db
      .selectFrom('mfa_enrollments')
      .select('id')
      .where('identityId', '=', person.id)
      .execute()

    expect(rows).toEqual([])
  })

  it('is that of its session after a restart', async () => {
    const world = await testController()
    const people = await People.in(world)
    const person = await people.person()
    const owner = new MfaSession(world, await people.sessionOf(person))
    const other = await people.sessionOf(person)
    await owner.start()
    const before = (await owner.show()).body.data
    await world.stop()

    const again = await testController({ directory: world.directory, clock: world.clock })

    expect((await new MfaSession(again, owner.token).show()).body.data).toEqual(before)
    expect(outcome(await new MfaSession(again, other).show())).toEqual(NONE)
    await again.close()
  })

  it('may be verified in any number of attempts, because its session knows the secret', async () => {
    const { owner } = await ownerAndThief()
    await owner.start()
    const device = await owner.app()

    for (let at = 0; at < 6; at += 1) expect(outcome(await owner.verify(device.wrongCode(now())))).toEqual(WRONG)

    expect(outcome(await owner.verify(device.code(now())))).not.toEqual(LIMITED)
  })
})

describe('an enrollment that is verified', () => {
  it('survives the session that verified it, and is seen by all', async () => {
    const { person, session, device } = await mfa.enrolled()
    const { id } = (await session.show()).body.data
    await session.send('DELETE', '/current-api-session')

    const later = await mfa.signIn(person)

    expect((await later.show()).body.data).toMatchObject({ id, isVerified: true })
    expect(outcome(await later.start())).toEqual([409, 'MFA_EXISTS'])
    expect(outcome(await later.pass(device.code(now())))).toBe(200)
  })

  it('is owed at once by the other sessions of its identity, also after a restart', async () => {
    const world = await testController()
    const people = await People.in(world)
    const person = await people.person()
    const [owner, thief] = [await people.sessionOf(person), await people.sessionOf(person)].map(
      (token) => new MfaSession(world, token),
    ) as [MfaSession, MfaSession]
    expect(await thief.isFull()).toBe(true)

    await owner.start()
    const device = await owner.app()
    await owner.verify(device.code(world.clock.now()))

    expect([await owner.isFull(), await thief.isFull()]).toEqual([true, false])
    expect(await thief.own()).toMatchObject({
      isMfaRequired: true,
      isMfaComplete: false,
      authQueries: [{ typeId: 'MFA' }],
    })
    await world.stop()
    const again = await testController({ directory: world.directory, clock: world.clock })
    const later = new MfaSession(again, thief.token)
    expect(await later.isFull()).toBe(false)
    world.clock.advance(STEP_MS)
    expect(outcome(await later.pass(device.code(world.clock.now())))).toBe(200)
    expect(await later.isFull()).toBe(true)
    await again.close()
  })

  it('is owed by a session whose transaction commits together with the verification', async () => {
    const { thief } = await ownerAndThief()
    const { id } = await thief.own()
    const { auth, contexts } = world.controller
    const session = auth.apiSessions.get(id)
    if (!session) throw new Error('the session is not in memory')
    const { identity } = session
    const caller = {
      kind: 'identity',
      identityId: identity.id,
      identityName: identity.name,
      isAdmin: false,
      rights: Rights.none,
      apiSessionId: id,
      isPartial: false,
    } as const
    const verification = {
      operation: 'update',
      resource: 'api-sessions',
      id,
      after: { id, owesTotp: true, isMfaComplete: false },
    } as unknown as Change

    expect(() =>
      requireSameRights(auth, { caller, clock: contexts.clock, uncommitted: new UncommittedChanges([]) }),
    ).not.toThrow()
    expect(() =>
      requireSameRights(auth, { caller, clock: contexts.clock, uncommitted: new UncommittedChanges([verification]) }),
    ).toThrow(expect.objectContaining({ code: 'UNAUTHORIZED' }))
  })

  it('is not owed by the sessions of another identity', async () => {
    const other = await mfa.signIn(await people.person())

    await mfa.enrolled()

    expect(await other.isFull()).toBe(true)
  })
})

describe('a partial session', () => {
  it('does not set up TOTP while it owes the token of a signer that its policy requires', async () => {
    const issuer = new Issuer()
    const requireExtJwtSigner = await issuer.trustedBy(people)
    const authPolicyId = await people.policy({ requireExtJwtSigner })
    const person = await people.person({ authPolicyId, externalId: issuer.issuer })
    const thief = await mfa.signIn(person)

    expect(refusal(await thief.start())).toEqual(OWED)

    const bearerToken = issuer.token(world, issuer.issuer)
    const owner = await mfa.signIn(person, { bearerToken })
    expect(outcome(await owner.start())).toBe(201)
    expect(outcome(await owner.verify((await owner.app()).code(now())))).toBe(200)
  })

  it('sets up TOTP that its policy requires besides a token, with that token in each request', async () => {
    const issuer = new Issuer()
    const requireExtJwtSigner = await issuer.trustedBy(people)
    const authPolicyId = await people.policy({ requireExtJwtSigner, requireTotp: true })
    const person = await people.person({ authPolicyId, externalId: issuer.issuer })
    const withoutToken = await mfa.signIn(person)
    const { token } = withoutToken
    const withToken = new MfaSession(world, token, { bearerToken: issuer.token(world, issuer.issuer) })

    expect(refusal(await withoutToken.start())).toEqual(OWED)
    expect(outcome(await withToken.start())).toBe(201)
    const device = await withToken.app()
    expect(refusal(await withoutToken.verify(device.code(now())))).toEqual(OWED)
    expect(outcome(await withToken.verify(device.code(now())))).toBe(200)
    expect(await withToken.isFull()).toBe(true)
  })

  it('does not verify what it started as a full session, once it owes the token of a signer', async () => {
    const issuer = new Issuer()
    const requireExtJwtSigner = await issuer.trustedBy(people)
    const { person, owner } = await ownerAndThief({ externalId: issuer.issuer })
    await owner.start()
    const device = await owner.app()

    await people.manage('PATCH', `/identities/${person.id}`, {
      authPolicyId: await people.policy({ requireExtJwtSigner }),
    })

    expect(refusal(await owner.verify(device.code(now())))).toEqual(OWED)
    expect((await people.manage('GET', `/identities/${person.id}`)).isMfaEnabled).toBe(false)
  })

  it('does not set up TOTP that no policy requires, after an administrator removed the one that it owes', async () => {
    const { person } = await mfa.enrolled()
    const partial = await mfa.signIn(person)
    await people.manage('DELETE', `/identities/${person.id}/mfa`)

    expect(refusal(await partial.start())).toEqual(OWED)
    expect(await (await mfa.signIn(person)).isFull()).toBe(true)
  })
})
