// An identity that may do little writes as much as it can: the disk does not fill.
import { statSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { operations } from '../../server/operations/operations.ts'
import { MAX_TAGS_BYTES } from '../../src/definitions/schema/fields.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { LIMITED, MfaPeople, outcome } from '../world/mfa.ts'
import { PASSWORD, People, type Person } from '../world/people.ts'

const MINUTE = 60_000
const KIB = 1_024

let world: TestController
let people: People

beforeEach(async () => {
  world = await testController()
  people = await People.in(world)
})
afterEach(() => world.close())

function changeOwn({ authenticatorId }: Person, token: string, tags: object) {
  const path = `${CLIENT}/current-identity/authenticators/${authenticatorId}`
  return world.send({ method: 'PATCH', path, body: { currentPassword: PASSWORD, tags }, token })
}

/** The size of the database on disk, with its log. */
function databaseBytes(): number {
  const { database } = getDataPaths(world.directory)
  return [database, `${database}-wal`].reduce((sum, file) => sum + statSync(file).size, 0)
}

describe('the body of a self-service operation', () => {
  it('is a few KiB at most', async () => {
    const person = await people.person()
    const token = await people.sessionOf(person)

    const [large, small] = [
      await changeOwn(person, token, { note: 'x'.repeat(9 * KIB) }),
      await changeOwn(person, token, { note: 'x'.repeat(7 * KIB) }),
    ]

    expect([large.status, small.status]).toEqual([413, 200])
    expect(large.body.error.code).toBe('REQUEST_ENTITY_TOO_LARGE')
  })

  it('is so for every operation that identities may call which do not administer', async () => {
    const { token } = await world.signIn()
    const writing = operations.filter(
      ({ access, body }) => body && 'permission' in access && access.grantedTo !== 'administrator',
    )
    expect(writing.length).toBeGreaterThan(2)

    for (const { method, path, apis, bodyLimit } of writing) {
      const url = (apis.includes('client') ? CLIENT : MANAGEMENT) + path.replaceAll(/:\w+/g, 'some-id')
      // Devices report more than that, within a limit of its own.
      const bytes = bodyLimit === 'limits.postureBody' ? 65 * KIB : 9 * KIB
      const { status } = await world.send({ method, path: url, body: { tags: { note: 'x'.repeat(bytes) } }, token })

      expect(status, `${method} ${path}`).toBe(413)
    }
  })

  it('leaves of what a client reports at its sign-in only what is declared', async () => {
    const person = await people.person()

    await people.signIn(person, {
      envInfo: { os: 'linux', filler: 'x'.repeat(50 * KIB) },
      sdkInfo: { type: 'sdk', more: 1 },
    })

    const { envInfo, sdkInfo } = await people.manage('GET', `/identities/${person.id}`)
    expect([envInfo, sdkInfo]).toEqual([{ os: 'linux' }, { type: 'sdk' }])
  })
})

describe('tags and app data', () => {
  it.each(['tags', 'appData'])('%s have a total size', async (member) => {
    const body = { name: `with ${member}`, type: 'Device', isAdmin: false }
    const of = (bytes: number) => ({ note: 'x'.repeat(bytes - '{"note":""}'.length) })

    const tooLarge = await people.ask('POST', '/identities', { ...body, [member]: of(MAX_TAGS_BYTES + 1) })
    const justRight = await people.ask('POST', '/identities', { ...body, [member]: of(MAX_TAGS_BYTES) })

    expect(tooLarge.status).toBe(400)
    expect(tooLarge.body.error).toMatchObject({
      code: 'COULD_NOT_VALIDATE',
      cause: { field: member, reason: 'must be at most 16384 bytes of JSON' },
    })
    expect(justRight.status).toBe(201)
    const { id } = justRight.body.data
    const patched = await people.ask('PATCH', `/identities/${id}`, { [member]: { note: 'ü'.repeat(9_000) } })
    expect(patched.status).toBe(400)
  })
})

describe('the tags of a session for a service', () => {
  it('are small, because an identity may have very many', async () => {
    const { token } = await world.signIn()
    const make = (bytes: number) =>
      world.send({ method: 'POST', path: `${CLIENT}/sessions`, body: { tags: { note: 'x'.repeat(bytes) } }, token })

    const response = await make(1_025)

    expect(response.body.error.cause).toMatchObject({ field: 'tags', reason: 'must be at most 1024 bytes of JSON' })
    expect((await make(1_000)).body.error.cause.field).not.toBe('tags')
  })
})

describe('an identity that does not administer', () => {
  it('changes its own authenticators a few times a minute', async () => {
    const [person, other] = [await people.person(), await people.person()]
    const [token, otherToken] = [await people.sessionOf(person), await people.sessionOf(other)]
    const statuses: number[] = []
    for (let at = 0; at < 10; at++) statuses.push((await changeOwn(person, token, { at })).status)

    const refused = await changeOwn(person, token, { at: 'once more' })

    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(refused.status).toBe(429)
    expect(refused.headers['retry-after']).toBe('6')
    expect((await changeOwn(other, otherToken, {})).status).toBe(200)
    world.clock.advance(6_000)
    expect((await changeOwn(person, token, { at: 'later' })).status).toBe(200)
  })

  it('fills less than a MiB a minute, however it tries', async () => {
    const person = await people.person()
    const token = await people.sessionOf(person)
    const before = databaseBytes()
    for (let at = 0; at < 60; at++) {
      world.clock.advance(MINUTE / 60)
      await changeOwn(person, token, { note: `${at}`.padEnd(7 * KIB, 'x') })
    }

    expect(databaseBytes() - before).toBeLessThan(KIB * KIB)
  })

  it('sends so many writing requests a second, of any kind, and reads as it likes', async () => {
    await world.close()
    world = await testController({ settings: { 'limits.writesPerIdentity': 1 } })
    const { token } = await world.signIn()
    const write = () => world.send({ method: 'DELETE', path: `${CLIENT}/sessions/unknown`, token })
    const statuses: number[] = []
    for (let at = 0; at < 11; at++) statuses.push((await write()).status)

    const read = await world.send({ method: 'GET', path: `${CLIENT}/current-identity`, token })

    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 404), 429])
    expect(read.status).toBe(200)
  })

  it('is not limited by the partial sessions of a client that knows its password', async () => {
    await world.close()
    world = await testController({ settings: { 'limits.writesPerIdentity': 1, 'limits.ownChangesPerIdentity': 2 } })
    people = await People.in(world)
    const mfa = new MfaPeople(world, people)
    const { person, session, device, recoveryCodes } = await mfa.enrolled()
    world.clock.advance(MINUTE)
    const thief = await mfa.signIn(person, { from: '198.51.100.7' })
    const partial = await mfa.signIn(person)
    for (let at = 0; at < 20; at++) await thief.start()

    expect(outcome(await thief.start())).toEqual(LIMITED)
    expect(outcome(await partial.pass(device.code(world.clock.now())))).toBe(200)
    expect(outcome(await session.remove(recoveryCodes[0]))).toBe(200)
  })

  it('is limited as any other while it administers and owes a second factor', async () => {
    await world.close()
    world = await testController({ settings: { 'limits.ownChangesPerIdentity': 1 } })
    people = await People.in(world)
    const authPolicyId = await people.policy({ requireTotp: true })
    const person = await people.person({ isAdmin: true, authPolicyId })
    const session = await new MfaPeople(world, people).signIn(person)

    expect([outcome(await session.start()), outcome(await session.start())]).toEqual([201, LIMITED])
  })

  it('has that limit on every operation by which it changes records that are audited', () => {
    const unlimited = operations.filter(
      ({ method, access, isOwnChange }) =>
        method !== 'GET' && 'permission' in access && access.grantedTo !== 'administrator' && !isOwnChange,
    )

    // The writes of these are not audited, and are bounded: by the sessions and services of the identity, by ten certificates for
    // each session, by the limit on wrong codes, and by one state for the machines of an identity.
    expect(unlimited.map(({ id }) => id).sort()).toEqual([
      'authenticateMfa',
      'createCurrentApiSessionCertificate',
      'createPostureResponse',
      'createPostureResponseBulk',
      'createSession',
      'createTotpToken',
      'deleteCurrentApiSession',
      'deleteCurrentApiSessionCertificate',
      'deleteSession',
    ])
  })
})

describe('an administrator', () => {
  it('is not limited', async () => {
    const person = await people.person({ isAdmin: true })
    const token = await people.sessionOf(person)
    const statuses: number[] = []
    for (let at = 0; at < 15; at++) statuses.push((await changeOwn(person, token, { at })).status)

    expect(new Set(statuses)).toEqual(new Set([200]))
  })
})
