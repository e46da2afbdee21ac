// Events of what the audit does not record: sessions, verdicts of posture checks, and certificates near their end.
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type SmallNetwork, smallNetwork } from '../access/network.ts'
import type { TestController } from '../world/controller.ts'
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

const passMfa = (apiSessionId: string, { system, controller }: TestController = world) =>
  system.write((tx) => controller.auth.apiSessions.totp.complete(tx, apiSessionId))

async function turn(milliseconds: number, { clock, controller }: TestController = world): Promise<void> {
  clock.advance(milliseconds)
  await controller.posture.deadlines.revokeExpired(controller.contexts)
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
    await passMfa(apiSessionId)
    await network.dial({ token }, service)
    await turn(11 * MINUTE)

    await expect.poll(() => typesOf(watcher)).toEqual(['posture-passed', 'posture-failed'])
    const expected = { id: identityId, checkType: 'MFA', apiSessionId }
    for (const { data } of watcher.events) expect(data).toMatchObject(expected)
  })

  it('receives that time ends MFA, also of an identity without a session, and though another policy grants the same', async () => {
    const hosting = await guardedDial({ typeId: 'MFA', timeoutSeconds: 600 })
    const others = await guardedDial({ typeId: 'MFA', timeoutSeconds: 600 })
    await network.servicePolicy('Dial', [`@${others.identityId}`], [`@${others.service}`])
    const watcher = await watch('?type=posture-passed&type=posture-failed')
    for (const { signIn, service } of [hosting, others]) {
      const { apiSessionId, token } = await signIn()
      await passMfa(apiSessionId)
      if (service === others.service) expect((await network.dial({ token }, service)).status).toBe(201)
    }
    await turn(9 * MINUTE)
    await turn(2 * MINUTE)

    const checks = [hosting.checkId, others.checkId]
    await expect
      .poll(() => watcher.events.map(({ type, data }) => [type, data.postureCheckId]))
      .toEqual(['posture-passed', 'posture-failed'].flatMap((type) => checks.map((id) => [type, id])))
  })

  it('receives when each of several checks of MFA fails, and not before MFA that was passed again times out', async () => {
    const prompting = await guardedDial({ typeId: 'MFA', timeoutSeconds: 0, promptOnWake: true })
    const timed = await network.make('posture-checks', { name: 'timed', typeId: 'MFA', timeoutSeconds: 3600 })
    await network.servicePolicy('Dial', [`@${prompting.identityId}`], ['#all'], { postureCheckRoles: [`@${timed}`] })
    const { apiSessionId, token } = await prompting.signIn()
    await passMfa(apiSessionId)
    const watcher = await watch(`?subject=${prompting.identityId}&type=posture-failed`)
    await turn(30 * MINUTE)
    await passMfa(apiSessionId)
    await turn(31 * MINUTE)
    await network.report({ token }, { typeId: 'ENDPOINT_STATE', woken: true })
    await turn(6 * MINUTE)
    await expect.poll(() => watcher.events.map(({ data }) => data.postureCheckId)).toEqual([prompting.checkId])
    await turn(24 * MINUTE)

    await expect.poll(() => watcher.events.map(({ data }) => data.postureCheckId)).toEqual([prompting.checkId, timed])
  })
})

describe('after a restart', () => {
  const restarted = useController({ settings: { 'session.timeout': '24h' } })

  it('a watcher receives that time ends MFA which was passed before', async () => {
    const small = await smallNetwork(restarted)
    const checkId = await small.make('posture-checks', { name: 'mfa', typeId: 'MFA', timeoutSeconds: 600 })
    await small.servicePolicy('Dial', ['#staff'], ['#all'], { postureCheckRoles: [`@${checkId}`] })
    const { id } = await small.person('one', ['staff'])
    const { apiSessionId } = await restarted.signInAgain(id)
    await passMfa(apiSessionId, restarted)
    await restarted.stop()
    await restarted.reopen()
    const watcher = await watchEvents(await restarted.listen(), await restarted.admin(), '?type=posture-failed')
    watchers.push(watcher)
    await expect.poll(() => watcher.cursor).not.toBe('')
    await turn(MINUTE, restarted)
    await turn(10 * MINUTE, restarted)

    await expect.poll(() => watcher.events.map(({ data }) => data.apiSessionId)).toEqual([apiSessionId])
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
