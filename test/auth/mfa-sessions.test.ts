// The second factor of API sessions: whether they owe it, and when they passed it.
import { beforeAll, describe, expect, it } from 'vitest'
import { apiSessions } from '../../src/definitions/resources/api-sessions.ts'
import { mfaEnrollments } from '../../src/definitions/resources/mfa-enrollments.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { get, newEntity } from '../../src/storage/entities/entities.ts'
import { loadSecretCipher } from '../../src/storage/secrets/key-files.ts'
import { CLIENT, type TestController, testController } from '../world/controller.ts'
import { People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

async function enroll(identityId: string, isVerified: boolean, at: TestController = world): Promise<string> {
  const ciphertext = loadSecretCipher(getDataPaths(at.directory)).encrypt('none', { resource: '', id: '', field: '' })
  const secrets = { encryptedSecret: ciphertext, encryptedRecoveryCodes: ciphertext, lastUsedStep: 0 }
  return at.system.write(async (tx) => {
    const enrollment = newEntity(tx, mfaEnrollments, { identityId, isVerified, ...secrets })
    return (await at.controller.entities.insert(tx, mfaEnrollments, enrollment)).id
  })
}

async function signIn(person: Person) {
  const { body } = await people.signIn(person)
  const { id, token } = body.data as { id: string; token: string }
  return { id, token, session: body.data }
}

const own = async (token: string, at: TestController = world) =>
  (await at.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })).body.data

const isFull = async (token: string) =>
  (await world.send({ method: 'GET', path: `${CLIENT}/current-identity`, token })).status === 200

const completeTotp = (id: string) => world.system.write((tx) => world.controller.auth.apiSessions.totp.complete(tx, id))

describe('a sign-in', () => {
  it('is partial if the identity has verified its second factor', async () => {
    const person = await people.person()
    await enroll(person.id, true)

    const { token, session } = await signIn(person)

    expect(session).toMatchObject({ isMfaRequired: true, isMfaComplete: false, authQueries: [{ typeId: 'MFA' }] })
    expect(await isFull(token)).toBe(false)
  })

  it('is complete if the second factor is not verified, or not there', async () => {
    const [none, unverified] = [await people.person(), await people.person()]
    await enroll(unverified.id, false)

    for (const person of [none, unverified]) {
      const { token, session } = await signIn(person)
      expect(session).toMatchObject({ isMfaRequired: false, isMfaComplete: false, authQueries: [] })
      expect(await isFull(token)).toBe(true)
    }
  })
})

describe('a session that passes a code', () => {
  it('is complete, and knows when it passed, also after a restart', async () => {
    const world = await testController()
    const people = await People.in(world)
    const person = await people.person()
    await enroll(person.id, true, world)
    const { id, token } = (await people.signIn(person)).body.data
    world.clock.advance(5_000)
    const passedAt = world.clock.now()

    expect(world.controller.auth.apiSessions.get(id)?.mfaPassedAt).toBeNull()
    await world.system.write((tx) => world.controller.auth.apiSessions.totp.complete(tx, id))

    expect(world.controller.auth.apiSessions.get(id)).toMatchObject({ isTotpComplete: true, mfaPassedAt: passedAt })
    expect(await own(token, world)).toMatchObject({ isMfaRequired: true, isMfaComplete: true, authQueries: [] })
    await world.stop()
    const again = await testController({ directory: world.directory, clock: world.clock })
    expect(again.controller.auth.apiSessions.get(id)).toMatchObject({ isTotpComplete: true, mfaPassedAt: passedAt })
    expect(again.controller.auth.verifiedMfa.has(person.id)).toBe(true)
    await again.close()
  })

  it('leaves the other sessions of its identity as they are', async () => {
    const person = await people.person()
    await enroll(person.id, true)
    const [one, other] = [await signIn(person), await signIn(person)]

    await completeTotp(one.id)

    expect([await isFull(one.token), await isFull(other.token)]).toEqual([true, false])
    expect(world.controller.auth.apiSessions.get(other.id)?.mfaPassedAt).toBeNull()
  })

  it('is as if it had never owed nor passed the factor once that is removed, also after a restart', async () => {
    const world = await testController()
    const people = await People.in(world)
    const person = await people.person()
    await enroll(person.id, true, world)
    const { id } = (await people.signIn(person)).body.data
    await world.system.write((tx) => world.controller.auth.apiSessions.totp.complete(tx, id))

    await world.system.write((tx) => world.controller.auth.apiSessions.totp.reset(tx, person.id))

    const initial = { owesTotp: false, isTotpComplete: false, mfaPassedAt: null }
    expect(world.controller.auth.apiSessions.get(id)).toMatchObject(initial)
    await world.stop()
    const again = await testController({ directory: world.directory, clock: world.clock })
    expect(again.controller.auth.apiSessions.get(id)).toMatchObject(initial)
    await again.close()
  })

  it('is selected by its completion alone, and a session that never passed the factor stays partial', async () => {
    const person = await people.person()
    await enroll(person.id, true)
    const [complete, partial] = [await signIn(person), await signIn(person)]
    await completeTotp(complete.id)
    const { entities, auth } = world.controller
    await world.system.write(async (tx) => {
      await entities.update(tx, apiSessions, await get(tx, apiSessions, complete.id), { mfaPassedAt: null })
    })

    await world.system.write((tx) => auth.apiSessions.totp.reset(tx, person.id))

    expect(auth.apiSessions.get(complete.id)).toMatchObject({ owesTotp: false, isTotpComplete: false })
    expect([await isFull(complete.token), await isFull(partial.token)]).toEqual([true, false])
  })
})

describe('whether an identity has a verified second factor', () => {
  const isShown = async (id: string) => (await people.manage('GET', `/identities/${id}`)).isMfaEnabled

  it('follows the enrollment, in memory and in its record', async () => {
    const id = await people.identity()
    const isKnown = () => world.controller.auth.verifiedMfa.has(id)

    const enrollment = await enroll(id, false)
    expect([isKnown(), await isShown(id)]).toEqual([false, false])

    const { entities } = world.controller
    await world.system.write(async (tx) => {
      await entities.update(tx, mfaEnrollments, await get(tx, mfaEnrollments, enrollment), { isVerified: true })
    })
    expect([isKnown(), await isShown(id)]).toEqual([true, true])

    await world.system.write((tx) => entities.removeInTransaction(tx, mfaEnrollments, enrollment))
    expect([isKnown(), await isShown(id)]).toEqual([false, false])
  })

  it('ends with the identity', async () => {
    const id = await people.identity()
    await enroll(id, true)

    await people.manage('DELETE', `/identities/${id}`)

    expect(world.controller.auth.verifiedMfa.has(id)).toBe(false)
  })
})
