// The audit of sign-ins: accepted ones, refused ones, and ended sessions.
import { beforeAll, describe, expect, it } from 'vitest'
import { issue, makeAuthority, registerAuthority, type TestCertificate } from '../world/authorities.ts'
import type { ClientKey } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

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

  it('shows what was wrong with each certificate that was refused', async () => {
    const at = await world.listen()
    const own = await registerAuthority(people)
    const registered = await issue('CN=registered', own)
    const identityId = await people.identity()
    await people.manage('POST', '/authenticators', { identityId, method: 'cert', certPem: registered.pem })
    await people.manage('PATCH', `/cas/${own.id}`, { isAuthEnabled: false })
    const stranger = await issue('CN=stranger', await makeAuthority('CN=unknown'))
    const present = ({ pem, keyPem }: TestCertificate) => ({ chain: pem, key: { keyPem } as ClientKey })
    const disabled = await people.device()
    await people.manage('POST', `/identities/${disabled.id}/disable`, { durationMinutes: 0 })
    const closed = await people.device({ authPolicyId: await people.policy({ cert: { allowed: false } }) })
    const strict = await people.device({ authPolicyId: await people.policy({ cert: { allowExpiredCerts: false } }) })
    const refusals = [
      ['UNKNOWN_CREDENTIAL', present(stranger)],
      ['UNTRUSTED_CERTIFICATE', present(registered)],
      ['IDENTITY_DISABLED', disabled],
      ['METHOD_NOT_ALLOWED', closed],
      ['EXPIRED_CERTIFICATE', strict],
    ] as const
    world.clock.advance(366 * 24 * 60 * 60_000)
    people = await People.in(world, 'administers a year later')

    const reasons: string[] = []
    for (const [, device] of refusals) {
      expect((await people.signInBy(at, device)).status).toBe(401)
      const [latest] = await people.manage('GET', '/controller/audit?limit=1')
      reasons.push(`${latest.operation} ${latest.method} ${latest.reason}`)
    }

    expect(reasons).toEqual(refusals.map(([reason]) => `refuse cert ${reason}`))
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
      await world.controller.auth.apiSessions.termination.deleteExpired(world.system)
    })

    expect(records).toEqual([])
  })
})
