// What signing in leaves in the audit: who came in, who was turned away, and who ended whose session.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { People } from '../world/people.ts'

let world: TestController
let people: People

beforeAll(async () => {
  world = await testController()
  people = await People.in(world)
})
afterAll(() => world.close())

/** The records that are written while `act` runs. */
async function recorded(act: () => Promise<unknown>) {
  const records = () => world.controller.store.db.selectFrom('audit_records').selectAll().orderBy('n').execute()
  const before = (await records()).length
  await act()
  return (await records())
    .slice(before)
    .map(({ actorKind, actorId, operation, resource, entityId, before, after, address }) => ({
      actorKind,
      actorId,
      operation,
      resource,
      entityId,
      address,
      values: [before, after],
    }))
}

const event = { address: '127.0.0.1', values: [null, null] }

describe('the audit', () => {
  it('knows who signed in, from where', async () => {
    const person = await people.person()
    let sessionId = ''

    const records = await recorded(async () => {
      sessionId = (await people.signIn(person)).body.data.id
    })

    const actor = { actorKind: 'identity', actorId: person.id }
    expect(records).toEqual([
      { ...event, ...actor, operation: 'create', resource: 'api-sessions', entityId: sessionId },
    ])
  })

  it('knows of each attempt with a known username that came to nothing', async () => {
    const person = await people.person()

    const records = await recorded(() => people.signIn({ ...person, password: 'wrong horse' }))

    const { authenticatorId: entityId } = person
    const actor = { actorKind: 'anonymous', actorId: null }
    expect(records).toEqual([{ ...event, ...actor, operation: 'refuse', resource: 'authenticators', entityId }])
  })

  it('contains attempts with unknown usernames, without the text that was typed', async () => {
    const records = await recorded(() => people.signIn({ username: 'my-password-by-mistake', password: 'whatever' }))

    expect(records).toMatchObject([{ operation: 'refuse', resource: 'authenticators', entityId: '' }])
  })

  it('shows why and how a sign-in was refused, and how many refusals a record stands for', async () => {
    const person = await people.person()
    world.clock.advance(60_000)
    const path = `${CLIENT}/authenticate?method=cert`

    await people.signIn({ ...person, password: 'wrong horse' })
    await world.send({ method: 'POST', path })

    const { data } = (await people.ask('GET', '/controller/audit?limit=2')).body
    expect(data).toMatchObject([
      { operation: 'refuse', method: 'cert', reason: 'NO_CERTIFICATE', count: 1 },
      { operation: 'refuse', method: 'password', reason: 'WRONG_PASSWORD', count: 1, entityId: person.authenticatorId },
    ])
    const matches = await people.manage(
      'GET',
      `/controller/audit?filter=${encodeURIComponent('reason = "NO_CERTIFICATE"')}`,
    )
    expect(matches).toHaveLength(1)
  })

  it('shows a lockout as what the last failure did to the identity', async () => {
    const person = await people.person({ authPolicyId: await people.policy({ updb: { maxAttempts: 1 } }) })
    await people.sessionOf(person)
    world.clock.advance(60_000)

    const records = await recorded(() => people.signIn({ ...person, password: 'wrong horse' }))

    expect(records.map(({ operation, resource }) => `${operation} ${resource}`)).toEqual([
      'refuse authenticators',
      'update identities',
      'delete api-sessions',
    ])
  })

  it('knows who ended the session of another, and does not care for signing out', async () => {
    const [left, ended] = [await world.signIn(), await world.signIn()]
    const view = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token: ended.token })
    const { id } = view.body.data

    const records = await recorded(async () => {
      await world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, token: left.token })
      await world.send({ method: 'DELETE', path: `${MANAGEMENT}/api-sessions/${id}`, token: people.token })
    })

    expect(records).toMatchObject([
      { actorKind: 'identity', operation: 'delete', resource: 'api-sessions', entityId: id },
    ])
  })

  it('holds no password, no hash and no token', async () => {
    const person = await people.person({}, 'to be found nowhere')
    const token = await people.sessionOf(person)

    const rows = await world.controller.store.db.selectFrom('audit_records').selectAll().execute()

    const text = JSON.stringify(rows)
    for (const secret of ['to be found nowhere', '$argon2id', token]) expect(text).not.toContain(secret)
  })

  it('does not care for activity', async () => {
    const { token } = await world.signIn()

    const records = await recorded(async () => {
      await world.send({ method: 'GET', path: `${CLIENT}/current-identity`, token })
      await world.controller.auth.apiSessions.flush(world.system)
      world.clock.advance(31 * 60_000)
      await world.controller.auth.apiSessions.sweep(world.system)
    })

    expect(records).toEqual([])
  })
})
