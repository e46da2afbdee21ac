// Events of what the audit does not record: sessions, verdicts of posture checks, and certificates near their end.
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type SmallNetwork, smallNetwork } from '../access/network.ts'
import { type TestWatcher, watchEvents } from '../world/event-stream.ts'
import { type Management, managementOf } from '../world/management.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const DAY = 24 * 60 * 60 * 1000
const MINUTE = 60_000

const world = useController({ settings: { 'session.timeout': '24h' } })
let network: SmallNetwork
let manage: Management
let address: { url: string; rootPem: string }
const watchers: TestWatcher[] = []
let count = 0

beforeAll(async () => {
  network = await smallNetwork(world)
  await network.router('north')
  await network.openRouters()
  address = await world.listen()
  manage = await managementOf(world)
})
afterEach(async () => {
  for (const watcher of watchers.splice(0)) await watcher.close()
})

async function watch(query: string): Promise<TestWatcher> {
  const watcher = await watchEvents(address, await world.admin(), query)
  watchers.push(watcher)
  await expect.poll(() => watcher.cursor).not.toBe('')
  return watcher
}

const typesOf = ({ events }: TestWatcher) => events.map(({ type }) => type)

/** An identity that is signed in, and a service that it may dial if it passes a posture check. */
async function guardedDial(check?: object) {
  const tag = `t${++count}`
  const service = await network.service(`web ${tag}`, [tag])
  const { id: identityId } = await network.person(`laptop ${tag}`, [tag])
  const checkId = check && (await network.make('posture-checks', { name: `check ${tag}`, ...check }))
  await network.servicePolicy('Dial', [`#${tag}`], [`#${tag}`], checkId ? { postureCheckRoles: [`@${checkId}`] } : {})
  const signIn = () => world.signInAgain(identityId)
  return { identityId, service, checkId, signIn }
}

describe('a watcher of sessions', () => {
  it('receives that an API session begins and ends, without its token', async () => {
    const { identityId, signIn } = await guardedDial()
    const watcher = await watch(`?subject=${identityId}&type=api-session-begun&type=api-session-ended`)
    const { apiSessionId, token } = await signIn()
    await manage.change('DELETE', `/api-sessions/${apiSessionId}`)

    await expect.poll(() => typesOf(watcher)).toEqual(['api-session-begun', 'api-session-ended'])
    expect(watcher.events[0]!.data).toMatchObject({ resource: 'api-sessions', id: apiSessionId, identityId })
    expect(JSON.stringify(watcher.events)).not.toContain(token)
  })

  it('receives that a session for a service begins, and ends with its API session', async () => {
    const { identityId, service, signIn } = await guardedDial()
    const { apiSessionId, token } = await signIn()
    const watcher = await watch(`?subject=${service}&type=session-begun&type=session-ended`)
    const dial = await network.dial({ token }, service)
    await manage.change('DELETE', `/api-sessions/${apiSessionId}`)

    await expect.poll(() => typesOf(watcher)).toEqual(['session-begun', 'session-ended'])
    const { id, token: sessionToken } = dial.body.data
    const expected = { resource: 'sessions', id, identityId, apiSessionId, serviceId: service, sessionType: 'Dial' }
    expect(watcher.events.map(({ data }) => data)).toEqual([
      expect.objectContaining(expected),
      expect.objectContaining(expected),
    ])
    expect(JSON.stringify(watcher.events)).not.toContain(sessionToken)
  })
})

describe('a watcher of posture', () => {
  it('receives each verdict that a report changes, and no other', async () => {
    const { identityId, checkId, signIn } = await guardedDial({ typeId: 'DOMAIN', domains: ['corp.example'] })
    const watcher = await watch(`?subject=${identityId}&type=posture-passed&type=posture-failed`)
    const who = { token: (await signIn()).token }
    await network.report(who, { typeId: 'DOMAIN', domain: 'home.example' })
    await network.report(who, { typeId: 'DOMAIN', domain: 'cafe.example' })
    await network.report(who, { typeId: 'DOMAIN', domain: 'corp.example' })

    await expect.poll(() => typesOf(watcher)).toEqual(['posture-failed', 'posture-passed'])
    const [failed, passed] = watcher.events.map(({ data }) => data)
    expect(failed).toMatchObject({ resource: 'identities', id: identityId, postureCheckId: checkId })
    expect([failed.evidence, passed.evidence]).toEqual(['failing', 'passing'])
    expect(JSON.stringify(watcher.events)).not.toContain('home.example')
  })

  it('receives that MFA passes, and that time ends it', async () => {
    const { identityId, service, checkId, signIn } = await guardedDial({ typeId: 'MFA', timeoutSeconds: 600 })
    const { apiSessionId, token } = await signIn()
    const watcher = await watch(`?subject=${checkId}`)
    await world.system.write((tx) => world.controller.auth.apiSessions.totp.complete(tx, apiSessionId))
    await network.dial({ token }, service)
    world.clock.advance(11 * MINUTE)
    await world.controller.posture.deadlines.revokeExpired(world.controller.contexts)

    await expect.poll(() => typesOf(watcher)).toEqual(['posture-passed', 'posture-failed'])
    const expected = { id: identityId, checkType: 'MFA', apiSessionId }
    for (const { data } of watcher.events) expect(data).toMatchObject(expected)
  })
})

describe('a watcher of certificates', () => {
  it('receives which of them expire soon, and which have expired', async () => {
    const device = await (await People.in(world, 'first administrator')).device({ name: 'old device' })
    const upkeep = () => world.controller.certificates.upkeep.runIfDue(world.system)
    world.clock.advance(340 * DAY)
    await People.in(world, 'second administrator')
    const early = await watch(`?subject=${device.id}&type=certificate-expiring&type=certificate-expired`)
    await upkeep()
    await expect.poll(() => typesOf(early)).toEqual(['certificate-expiring'])
    expect(early.events[0]!.data).toMatchObject({ resource: 'certificates', kind: 'identity', holder: 'old device' })
    world.clock.advance(25.5 * DAY)
    await People.in(world, 'third administrator')
    const late = await watch(`?subject=${device.id}&type=certificate-expiring&type=certificate-expired`)
    await upkeep()

    await expect.poll(() => typesOf(late)).toEqual(['certificate-expired'])
  })
})
