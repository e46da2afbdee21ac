// A bootstrap token that leaks later, from a terminal or a log, must not take over a controller that has administrators.
import { beforeEach, describe, expect, it } from 'vitest'
import { decodeBootstrap } from '../../src/authentication/administrators/bootstrap-codec.ts'
import { findFirstAdministrator, recoverAdministrator } from '../../src/authentication/administrators/recovery.ts'
import { disableIdentity, enableIdentity } from '../../src/authentication/disabling.ts'
import { enrollments } from '../../src/definitions/resources/enrollments.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { createBootstrapToken } from '../../src/initialize.ts'
import { get, newEntity } from '../../src/storage/entities/entities.ts'
import { AuthenticatorApp } from '../world/authenticator-app.ts'
import { ADMIN, CLIENT, MANAGEMENT, type TestResponse } from '../world/controller.ts'
import { PASSWORD, People } from '../world/people.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const THIEF = { username: 'thief', password: 'taken over by night' } as const

const world = useControllerPerTest()
let first: string

beforeEach(async () => {
  first = await findFirstAdministrator(world.system)
  await world.system.write((tx) => disableIdentity(world.controller.entities, tx, first, 0))
})

async function newToken(): Promise<string> {
  return decodeBootstrap(await createBootstrapToken(world.controller))?.token ?? ''
}

function redeem(token: string, credentials: { username: string; password: string } = THIEF): Promise<TestResponse> {
  return world.send({ method: 'POST', path: `${CLIENT}/enroll?method=updb&token=${token}`, body: credentials })
}

async function signIn({ username, password }: { username: string; password: string }): Promise<number> {
  const path = `${MANAGEMENT}/authenticate?method=password`
  return (await world.send({ method: 'POST', path, body: { username, password } })).status
}

async function expectWorthless(token: string): Promise<void> {
  const response = await redeem(token)
  expect([response.status, response.body.error?.code]).toEqual([400, 'INVALID_ENROLLMENT_TOKEN'])
  expect(await signIn(THIEF)).toBe(401)
}

async function countOfEnrollments(): Promise<number> {
  return (await world.controller.store.db.selectFrom('enrollments').select('id').execute()).length
}

describe('a bootstrap token', () => {
  it('lets the first administrator in while no administrator is usable, once', async () => {
    const token = await newToken()

    const responses = [await redeem(token), await redeem(token, { ...THIEF, username: 'second thief' })]

    expect(responses.map(({ status }) => status)).toEqual([200, 400])
    expect(await signIn(THIEF)).toBe(200)
  })

  it('is worth nothing as soon as an administrator is usable, even before it has signed in', async () => {
    const token = await newToken()
    await world.system.write((tx) => enableIdentity(world.controller.entities, tx, first))

    await expectWorthless(token)

    expect(await signIn(ADMIN)).toBe(200)
  })

  it('ends when an administrator is let in on the data directory', async () => {
    const token = await newToken()
    const back = { username: 'back again', password: PASSWORD }
    await recoverAdministrator(world.controller, world.system, back, first)
    const left = await countOfEnrollments()
    await world.system.write((tx) => disableIdentity(world.controller.entities, tx, first, 0))

    await expectWorthless(token)

    expect(left).toBe(0)
  })

  it('ends when an administrator signs in', async () => {
    const token = await newToken()
    await world.system.write((tx) => enableIdentity(world.controller.entities, tx, first))
    expect(await signIn(ADMIN)).toBe(200)
    await world.system.write((tx) => disableIdentity(world.controller.entities, tx, first, 0))

    await expectWorthless(token)
  })

  it('stays when an identity that is not an administrator signs in', async () => {
    const people = await People.in(world)
    const person = await people.person()
    const token = await newToken()
    expect((await people.signIn(person)).status).toBe(200)

    expect((await redeem(token)).status).toBe(200)
  })

  it('is worth nothing while an administrator can enroll the second factor that it owes, and ends when it has', async () => {
    const people = await People.in(world)
    const token = await newToken()
    const person = await people.person({ isAdmin: true, authPolicyId: await people.policy({ requireTotp: true }) })
    const session = await people.sessionOf(person)
    const send = (method: string, path: string, body?: object) =>
      world.send({ method, path: `${CLIENT}/current-identity/mfa${path}`, token: session, ...(body ? { body } : {}) })
    await expectWorthless(token)
    const whileOwed = await countOfEnrollments()

    await send('POST', '')
    const { provisioningUrl } = (await send('GET', '')).body.data
    await send('POST', '/verify', { code: new AuthenticatorApp(provisioningUrl).code(world.clock.now()) })

    expect([whileOwed, await countOfEnrollments()]).toEqual([1, 0])
  })

  it('ends when another one is made', async () => {
    const earlier = await newToken()
    const later = await newToken()

    await expectWorthless(earlier)

    expect((await redeem(later)).status).toBe(200)
  })

  it('takes the place of an ordinary enrollment of the first administrator for a password', async () => {
    const people = await People.in(world)
    const expiresAt = new Date(world.clock.now() + 60_000).toISOString()
    const body = { identityId: first, method: 'updb', username: 'ordinary', expiresAt }
    await people.manage('POST', '/enrollments', body)

    expect((await redeem(await newToken())).status).toBe(200)
  })

  it('is redeemed by one of two at once only', async () => {
    const token = await newToken()

    const responses = await Promise.all([redeem(token), redeem(token, { ...THIEF, username: 'second thief' })])

    expect(responses.map(({ status }) => status).sort()).toEqual([200, 400])
  })
})

describe('an enrollment that is not a bootstrap token', () => {
  it('makes no administrator, also if it leaves the username open', async () => {
    const { id } = await world.signIn({ name: 'ordinary' })
    const { token } = await world.system.write(async (tx) => {
      const expiresAt = tx.clock.now() + 60_000
      const values = { identityId: id, method: 'updb' as const, expiresAt, username: null }
      return (await world.controller.entities.insert(
        tx,
        enrollments,
        newEntity(tx, enrollments, values),
      )) as unknown as { token: string }
    })

    await redeem(token)

    expect((await get(world.system, identities, id)).isAdmin).toBe(false)
  })

  it('can neither be made one by a caller nor be told from one', async () => {
    const people = await People.in(world)
    const identityId = await people.identity()
    const expiresAt = new Date(world.clock.now() + 60_000).toISOString()
    const body = { identityId, method: 'updb', username: 'ordinary', expiresAt }

    const refused = await people.ask('POST', '/enrollments', { ...body, isBootstrap: true })
    const { id } = await people.manage('POST', '/enrollments', body)

    expect(refused.status).toBe(400)
    expect(await people.manage('GET', `/enrollments/${id}`)).not.toHaveProperty('isBootstrap')
  })

  it('is left alone when an administrator signs in', async () => {
    const people = await People.in(world)
    await people.identity({ enrollment: { updb: 'ordinary' } })
    const before = await countOfEnrollments()
    await world.system.write(async (tx) => {
      await world.controller.entities.update(tx, identities, await get(tx, identities, first), {
        disabledAt: null,
        disabledUntil: null,
      })
    })

    expect(await signIn(ADMIN)).toBe(200)

    expect(await countOfEnrollments()).toBe(before)
  })
})
