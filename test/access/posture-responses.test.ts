// Posture responses of clients: which reports are accepted, what each kind of check makes of them, and what the client,
// an open session and an administrator see before, while and after a check fails.
import { beforeAll, describe, expect, it } from 'vitest'
import { advise } from '../../src/access/advice/advise.ts'
import { acceptPostureResponses } from '../../src/access/posture/accept-posture-responses.ts'
import type { PostureResponse } from '../../src/policy/posture/posture-responses.ts'
import { CLIENT, testController } from '../world/controller.ts'
import { settleInOneCommit } from '../world/one-commit.ts'
import { useController } from '../world/use-controller.ts'
import { type SmallNetwork, smallNetwork } from './network.ts'

const MINUTE = 60_000
const GRACE = 5 * MINUTE

const world = useController({ settings: { 'session.timeout': '100h' } })
let network: SmallNetwork
let count = 0

beforeAll(async () => {
  network = await smallNetwork(world)
  await network.router('north')
  await network.openRouters()
})

/** A service that one identity may dial if its machine passes one posture check. */
async function guard(check: object) {
  const tag = `p${++count}`
  const service = await network.service(`web ${tag}`, [tag])
  const { id: identityId } = await network.person(`laptop ${tag}`, [tag])
  const { apiSessionId, token } = await world.signInAgain(identityId)
  const checkId = await network.make('posture-checks', { name: `check ${tag}`, ...check })
  const policy = await network.servicePolicy('Dial', [`#${tag}`], [`#${tag}`], { postureCheckRoles: [`@${checkId}`] })
  const who = { token }
  return {
    tag,
    who,
    identityId,
    apiSessionId,
    service,
    checkId,
    policy,
    report: (response: object) => network.report(who, response),
    /** Returns what each party sees at this moment; an open session shows the access that it lives by. */
    async see() {
      const { data } = (await network.ask(who, 'GET', `/services/${service}`)).body
      const { links } = await advise(world.controller, world.system, identityId, service, 'Dial')
      const dial = await network.dial(who, service)
      const [query] = data.postureQueries[0].postureQueries
      return {
        client: data.postureQueries[0].isPassing as boolean,
        timeoutRemaining: query.timeoutRemaining as number,
        timeoutAt: query.timeoutAt as string | undefined,
        advice: links.find(({ link }) => link === 'posture')?.outcome,
        dial: dial.status,
        code: dial.body.error?.code as string | undefined,
      }
    },
    async openSessions(): Promise<number> {
      const rows = await world.controller.store.db
        .selectFrom('sessions')
        .select('id')
        .where('identityId', '=', identityId)
        .execute()
      return rows.length
    },
    passMfa: () => world.system.write((tx) => world.controller.auth.apiSessions.totp.complete(tx, apiSessionId)),
    removeMfa: () => world.system.write((tx) => world.controller.auth.apiSessions.totp.reset(tx, identityId)),
  }
}

/** Lets time pass, and what it ends be ended. */
async function wait(milliseconds: number): Promise<void> {
  world.clock.advance(milliseconds)
  await world.controller.posture.deadlines.revokeExpired(world.controller.contexts)
}

const UNKNOWN = { client: false, advice: 'unknown', dial: 409, code: 'INVALID_POSTURE' }
const FAILING = { client: false, advice: 'failed', dial: 409, code: 'INVALID_POSTURE' }
const PASSING = { client: true, advice: 'passed', dial: 201 }

const process = { osType: 'Linux', path: '/bin/agent', hashes: ['AA:BB'], signerFingerprint: 'f0:0d' }
const running = { typeId: 'PROCESS', isRunning: true, hash: 'aabb', signerFingerprints: ['F00D'] }

/** By type: the check, what passes it, and what fails it; `checkId` and `path` are filled in. */
const types = [
  {
    type: 'OS',
    check: { typeId: 'OS', operatingSystems: [{ type: 'Linux', versions: ['>=6.0.0'] }] },
    good: () => ({ typeId: 'OS', type: 'linux', version: '6.1.0', build: 'x' }),
    bad: () => ({ typeId: 'OS', type: 'Linux', version: '5.9.0' }),
  },
  {
    type: 'DOMAIN',
    check: { typeId: 'DOMAIN', domains: ['Corp.Example'] },
    good: () => ({ typeId: 'DOMAIN', domain: 'CORP.example' }),
    bad: () => ({ typeId: 'DOMAIN', domain: 'home.example' }),
  },
  {
    type: 'MAC',
    check: { typeId: 'MAC', macAddresses: ['00-11-22-33-44-55'] },
    good: () => ({ typeId: 'MAC', macAddresses: ['ff:ff:ff:ff:ff:ff', '0011.2233.4455'] }),
    bad: () => ({ typeId: 'MAC', macAddresses: [] }),
  },
  {
    type: 'PROCESS',
    check: { typeId: 'PROCESS', process },
    good: (id: string) => ({ ...running, id }),
    bad: (id: string) => ({ ...running, id, isRunning: false }),
  },
  {
    type: 'PROCESS_MULTI',
    check: { typeId: 'PROCESS_MULTI', semantic: 'AllOf', processes: [{ osType: 'Linux', path: '/bin/one' }] },
    good: () => ({ ...running, path: '/bin/one' }),
    bad: () => ({ ...running, path: '/bin/one', isRunning: false }),
  },
]

describe.each(types)('a check of the type $type', ({ type, check, good, bad }) => {
  it('is unknown, passes, fails and is fixed, for the client, the advice and the session alike', async () => {
    const guarded = await guard(check)
    expect(await guarded.see()).toMatchObject(UNKNOWN)

    const changed = { id: guarded.service, name: `web ${guarded.tag}`, postureQueryType: type }
    const withoutTimes = { ...changed, timeout: -1, timeoutRemaining: -1 }
    expect(await guarded.report(good(guarded.checkId))).toEqual([withoutTimes])
    expect(await guarded.see()).toMatchObject(PASSING)
    expect(await guarded.openSessions()).toBe(1)
    expect(await guarded.report(good(guarded.checkId))).toEqual([])
    expect(await guarded.openSessions()).toBe(1)

    expect(await guarded.report(bad(guarded.checkId))).toEqual([withoutTimes])
    expect(await guarded.openSessions()).toBe(0)
    expect(await guarded.see()).toMatchObject(FAILING)

    await guarded.report(good(guarded.checkId))
    expect(await guarded.see()).toMatchObject(PASSING)
  })
})

describe('a check of MFA', () => {
  it('fails, passes, times out without a request, and is fixed by another code', async () => {
    const guarded = await guard({ typeId: 'MFA', timeoutSeconds: 120 })
    expect(await guarded.see()).toMatchObject({ client: false, timeoutRemaining: 0, dial: 409 })

    await guarded.passMfa()
    const timeoutAt = new Date(world.clock.now() + 2 * MINUTE + 1).toISOString()
    expect(await guarded.see()).toMatchObject({ client: true, timeoutRemaining: 120, timeoutAt, dial: 201 })
    await wait(2 * MINUTE)
    expect(await guarded.openSessions()).toBe(1)
    await wait(1_000)
    expect(await guarded.openSessions()).toBe(0)
    expect(await guarded.see()).toMatchObject({ client: false, timeoutRemaining: 0, dial: 409 })

    await guarded.passMfa()
    expect(await guarded.see()).toMatchObject({ client: true, timeoutRemaining: 120, dial: 201 })
    await wait(MINUTE)
    await guarded.passMfa()
    await wait(MINUTE + 30_000)
    expect(await guarded.openSessions()).toBe(1)
  })

  it.each([
    ['promptOnWake', { woken: true }],
    ['promptOnUnlock', { unlocked: true }],
  ])('with %s ends sessions five minutes after the event, and says so to the client', async (prompt, event) => {
    const guarded = await guard({ typeId: 'MFA', timeoutSeconds: 3600, [prompt]: true })
    await guarded.passMfa()
    await guarded.see()

    await wait(MINUTE)
    expect(await guarded.report({ typeId: 'ENDPOINT_STATE', woken: false, unlocked: false })).toEqual([])
    expect(await guarded.report({ typeId: 'ENDPOINT_STATE', ...event })).toEqual([
      {
        id: guarded.service,
        name: `web ${guarded.tag}`,
        postureQueryType: 'MFA',
        timeout: 3600,
        timeoutRemaining: 300,
      },
    ])
    expect(await guarded.see()).toMatchObject({ client: true, timeoutRemaining: 300 })
    await wait(GRACE - 1_000)
    expect(await guarded.openSessions()).toBe(1)
    await wait(1_000)
    expect(await guarded.openSessions()).toBe(0)
    expect(await guarded.see()).toMatchObject({ client: false, dial: 409 })
    await guarded.passMfa()
    expect(await guarded.see()).toMatchObject({ client: true, dial: 201 })
  })

  it('times out for all policies of the identity with the strictest of them, also when that one is new', async () => {
    const guarded = await guard({ typeId: 'MFA', timeoutSeconds: 3600 })
    await guarded.passMfa()
    await guarded.see()
    await wait(2 * MINUTE)

    const strict = await network.make('posture-checks', {
      name: `strict ${guarded.tag}`,
      typeId: 'MFA',
      timeoutSeconds: 60,
    })
    const roles = { postureCheckRoles: [`@${strict}`] }
    await network.servicePolicy('Dial', [`#${guarded.tag}`], ['#nothing'], roles)

    expect(await guarded.openSessions()).toBe(0)
    expect(await guarded.see()).toMatchObject({ client: false, dial: 409 })
  })

  it('ends sessions in the moment in which the factor is removed', async () => {
    const guarded = await guard({ typeId: 'MFA' })
    await guarded.passMfa()
    expect(await guarded.see()).toMatchObject({ client: true, timeoutRemaining: -1, dial: 201 })

    await guarded.removeMfa()

    expect(await guarded.openSessions()).toBe(0)
  })

  it('neither times out nor is renewed by setting the wall clock', async () => {
    const guarded = await guard({ typeId: 'MFA', timeoutSeconds: 120 })
    await guarded.passMfa()
    await guarded.see()

    world.clock.set(60 * MINUTE)
    await wait(MINUTE)
    expect(await guarded.openSessions()).toBe(1)
    expect(await guarded.see()).toMatchObject({ timeoutRemaining: 60 })
    await wait(MINUTE + 1_000)
    expect(await guarded.openSessions()).toBe(0)
  })
})

describe('a session ends', () => {
  it('when its check demands something else, and stays when the check demands less', async () => {
    const guarded = await guard({ typeId: 'DOMAIN', domains: ['a.b', 'c.d'] })
    await guarded.report({ typeId: 'DOMAIN', domain: 'a.b' })
    await guarded.see()
    await network.change('PATCH', `/posture-checks/${guarded.checkId}`, { domains: ['a.b'] })
    expect(await guarded.openSessions()).toBe(1)

    await network.change('PATCH', `/posture-checks/${guarded.checkId}`, { domains: ['e.f'] })

    expect(await guarded.openSessions()).toBe(0)
  })

  it('for every API session of the identity, because they share the machine', async () => {
    const guarded = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    const other = await world.signInAgain(guarded.identityId)
    await guarded.report({ typeId: 'DOMAIN', domain: 'a.b' })
    await guarded.see()
    expect((await network.dial(other, guarded.service)).status).toBe(201)

    await network.report(other, { typeId: 'DOMAIN', domain: 'c.d' })

    expect(await guarded.openSessions()).toBe(0)
  })

  it('not because of what another identity reports', async () => {
    const guarded = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    await guarded.report({ typeId: 'DOMAIN', domain: 'a.b' })
    await guarded.see()
    const other = await network.person(`other ${guarded.tag}`, [guarded.tag])

    await network.report(other, { typeId: 'DOMAIN', domain: 'c.d' })

    expect(await guarded.openSessions()).toBe(1)
    expect((await network.dial(other, guarded.service)).status).toBe(409)
  })
})

describe('a report', () => {
  const post = (who: { token: string }, body: unknown, path = '/posture-response') =>
    world.send({ method: 'POST', path: CLIENT + path, token: who.token, body })

  it.each([
    ['of an unknown type', { id: 'x', typeId: 'MOON' }, 'COULD_NOT_PARSE_BODY'],
    ['of a type that is only a check', { id: 'x', typeId: 'MFA' }, 'COULD_NOT_PARSE_BODY'],
    ['of a type that is only a check of several', { id: 'x', typeId: 'PROCESS_MULTI' }, 'COULD_NOT_PARSE_BODY'],
    ['without a type', { id: 'x', domain: 'a.b' }, 'COULD_NOT_VALIDATE'],
    ['without an id', { typeId: 'DOMAIN', domain: 'a.b' }, 'COULD_NOT_VALIDATE'],
    ['without its member', { id: 'x', typeId: 'DOMAIN' }, 'COULD_NOT_VALIDATE'],
    ['with a member of the wrong type', { id: 'x', typeId: 'DOMAIN', domain: 7 }, 'COULD_NOT_PARSE_BODY'],
    [
      'with a time instead of a flag',
      { id: 'x', typeId: 'ENDPOINT_STATE', woken: '2026-01-01' },
      'COULD_NOT_PARSE_BODY',
    ],
    ['with too many addresses', { id: 'x', typeId: 'MAC', macAddresses: Array(300).fill('aa') }, 'COULD_NOT_VALIDATE'],
    ['with a text without end', { id: 'x', typeId: 'DOMAIN', domain: 'a'.repeat(256) }, 'COULD_NOT_VALIDATE'],
    ['that is a list', [{ id: 'x', typeId: 'DOMAIN', domain: 'a.b' }], 'COULD_NOT_PARSE_BODY'],
  ])('%s is refused with 400, and nothing of it is stored', async (_what, body, code) => {
    const guarded = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })

    const { status, body: sent } = await post(guarded.who, body)

    expect([status, sent.error.code]).toEqual([400, code])
    expect(world.controller.posture.reported.findMachine(guarded.identityId)).toBeUndefined()
  })

  it('in bulk is stored as a whole or not at all', async () => {
    const guarded = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    const good = { id: 'x', typeId: 'DOMAIN', domain: 'a.b' }

    const refused = await post(guarded.who, [good, { id: 'x', typeId: 'MOON' }], '/posture-response-bulk')
    expect([refused.status, refused.body.error.cause.field]).toEqual([400, '1.typeId'])
    expect(await guarded.see()).toMatchObject(UNKNOWN)

    const mac = { id: 'x', typeId: 'MAC', macAddresses: ['aa'] }
    const accepted = await post(guarded.who, [good, mac], '/posture-response-bulk')
    expect(accepted.status).toBe(200)
    expect(accepted.body.data.services).toMatchObject([{ id: guarded.service, postureQueryType: 'DOMAIN' }])
    expect(await guarded.see()).toMatchObject(PASSING)
  })

  it('in bulk counts in no part if its API session ended meanwhile', async () => {
    const guarded = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    const { access, auth, entities, posture } = world.controller
    const { deadlines, reported } = posture
    const parts = { access, entities, sessions: auth.apiSessions, posture: reported, deadlines }
    const reporter = { identityId: guarded.identityId, apiSessionId: 'ended' }
    const responses = [
      { id: 'x', typeId: 'DOMAIN', domain: 'a.b' },
      { id: 'x', typeId: 'ENDPOINT_STATE', woken: true },
    ] as unknown as readonly PostureResponse[]

    const accepting = acceptPostureResponses(parts, world.system, reporter, responses)

    await expect(accepting).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(reported.findMachine(guarded.identityId)).toBeUndefined()
  })

  it('that changes many services by several checks returns each service once for each type, by name', async () => {
    const guarded = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    const checks = [
      { typeId: 'MAC', macAddresses: ['aa'] },
      { typeId: 'OS', operatingSystems: [{ type: 'Linux' }] },
      { typeId: 'DOMAIN', domains: ['a.b', 'c.d'] },
    ]
    for (const check of checks) {
      const id = await network.make('posture-checks', { name: `${check.typeId} ${guarded.tag}`, ...check })
      const roles = { postureCheckRoles: [`@${id}`] }
      await network.servicePolicy('Dial', [`#${guarded.tag}`], [`#${guarded.tag}`], roles)
    }
    const ids = new Map([[`web ${guarded.tag}`, guarded.service]])
    for (let at = 30; at > 0; at--) {
      const name = `many ${guarded.tag} ${String(at).padStart(2, '0')}`
      ids.set(name, await network.service(name, [guarded.tag]))
    }

    const reports = [
      { id: 'x', typeId: 'DOMAIN', domain: 'a.b' },
      { id: 'x', typeId: 'MAC', macAddresses: ['aa'] },
      { id: 'x', typeId: 'OS', type: 'Linux', version: '6.1.0' },
    ]
    const { services } = (await post(guarded.who, reports, '/posture-response-bulk')).body.data

    const names = [...ids.keys()].sort()
    const types = ['DOMAIN', 'MAC', 'OS']
    const list = services as { id: string; name: string; postureQueryType: string }[]
    expect([...new Set(list.map(({ name }) => name))]).toEqual(names)
    expect(list.map(({ id, name, postureQueryType }) => `${name} ${id} ${postureQueryType}`).sort()).toEqual(
      names.flatMap((name) => types.map((type) => `${name} ${ids.get(name)} ${type}`)),
    )
  })

  it('of ten thousand processes is refused, and of many that no check asks for is not stored', async () => {
    const guarded = await guard({ typeId: 'PROCESS', process })
    const reports = (length: number) =>
      Array.from({ length }, (_, at) => ({ id: `p${at}`, typeId: 'PROCESS', path: `/bin/${at}`, isRunning: true }))

    expect((await post(guarded.who, reports(10_000), '/posture-response-bulk')).status).toBe(413)
    expect((await post(guarded.who, reports(501), '/posture-response-bulk')).status).toBe(400)
    expect((await post(guarded.who, reports(500), '/posture-response-bulk')).status).toBe(200)

    expect(world.controller.posture.reported.findMachine(guarded.identityId)).toEqual({
      processesByCheck: new Map(),
      processesByPath: new Map(),
    })
  })

  it('for a check that does not exist, or is of another type, is accepted and passes no check of a process', async () => {
    const guarded = await guard({ typeId: 'PROCESS', process })
    const domain = await network.make('posture-checks', { name: `d ${guarded.tag}`, typeId: 'DOMAIN', domains: ['a'] })

    for (const id of ['nope', domain]) expect(await guarded.report({ ...running, id })).toEqual([])

    expect(await guarded.see()).toMatchObject(UNKNOWN)
  })

  it('without a session, or of one that owes a factor, is refused with 401', async () => {
    const body = { id: 'x', typeId: 'DOMAIN', domain: 'a.b' }

    expect((await post({ token: 'd9f9a3b0-0000-4000-8000-000000000000' }, body)).status).toBe(401)
  })

  it('leaves what another API session of the identity reports in the same commit', async () => {
    const { identityId, apiSessionId } = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    const other = await world.signInAgain(identityId)
    const { access, auth, entities, posture } = world.controller
    const parts = { access, entities, sessions: auth.apiSessions, posture: posture.reported }
    const report = (id: string, response: PostureResponse) =>
      acceptPostureResponses(parts, world.system, { identityId, apiSessionId: id }, [response])

    await settleInOneCommit(world, () => [
      report(apiSessionId, { id: 'x', typeId: 'DOMAIN', domain: 'a.b' }),
      report(other.apiSessionId, { id: 'x', typeId: 'MAC', macAddresses: ['aa'] }),
    ])

    expect(posture.reported.findMachine(identityId)).toMatchObject({
      domain: { domain: 'a.b' },
      mac: { macAddresses: ['aa'] },
    })
  })

  it('names no other session: what it says belongs to the caller', async () => {
    const guarded = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    const other = await network.person(`foreign ${guarded.tag}`)
    const { identityId, apiSessionId } = guarded

    await network.report(other, { typeId: 'DOMAIN', domain: 'a.b', identityId, apiSessionId })

    expect(await guarded.see()).toMatchObject(UNKNOWN)
  })

  it('outlives the API sessions of the identity, because a client that signs in again reports only what has changed', async () => {
    const guarded = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    await guarded.report({ typeId: 'DOMAIN', domain: 'a.b' })
    const sessions = await world.controller.store.db
      .selectFrom('api_sessions')
      .select('id')
      .where('identityId', '=', guarded.identityId)
      .execute()
    for (const { id } of sessions) await network.change('DELETE', `/api-sessions/${id}`)

    const again = await world.signInAgain(guarded.identityId)
    expect((await network.dial(again, guarded.service)).status).toBe(201)
  })

  it('ends with the identity', async () => {
    const guarded = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    await guarded.report({ typeId: 'DOMAIN', domain: 'a.b' })
    await network.change('DELETE', `/identities/${guarded.identityId}`)

    expect(world.controller.posture.reported.findMachine(guarded.identityId)).toBeUndefined()
    const rows = await world.controller.store.db.selectFrom('machine_states').select('identityId').execute()
    expect(rows.map(({ identityId }) => identityId)).not.toContain(guarded.identityId)
  })

  it('leaves no trace in the audit', async () => {
    const guarded = await guard({ typeId: 'MFA', promptOnWake: true })
    const readAudit = () => world.controller.store.db.selectFrom('audit_records').select('hash').execute()
    const before = await readAudit()

    await guarded.report({ typeId: 'DOMAIN', domain: 'a.b' })
    await guarded.report({ typeId: 'ENDPOINT_STATE', woken: true })

    expect(await readAudit()).toEqual(before)
  })
})

describe('administrators see', () => {
  it('what the machine reported, and when', async () => {
    const guarded = await guard({ typeId: 'PROCESS', process })
    expect(await network.get(`/identities/${guarded.identityId}/posture-data`)).toMatchObject({
      domain: { domain: null, lastUpdatedAt: null },
      processes: [],
    })
    await guarded.report({ typeId: 'DOMAIN', domain: 'A.b' })
    await guarded.report({ typeId: 'MAC', macAddresses: ['AA:bb'] })
    await guarded.report({ typeId: 'OS', type: 'Linux', version: '6.1.0', build: '7' })
    await guarded.report({ ...running, id: guarded.checkId, path: '/bin/agent' })
    await guarded.report({ typeId: 'ENDPOINT_STATE', woken: true })

    const data = await network.get(`/identities/${guarded.identityId}/posture-data`)

    const at = new Date(world.clock.now()).toISOString()
    const common = { lastUpdatedAt: at, timedOut: false }
    expect(data).toMatchObject({
      domain: { ...common, postureCheckId: 'any', domain: 'A.b' },
      mac: { ...common, addresses: ['aabb'] },
      os: { ...common, type: 'Linux', version: '6.1.0', build: '7' },
      processes: [
        { ...common, postureCheckId: guarded.checkId, path: '/bin/agent', binaryHash: 'aabb', isRunning: true },
      ],
    })
    expect(data.apiSessionPostureData[guarded.apiSessionId]).toMatchObject({
      endpointState: { wokenAt: at, unlockedAt: null },
      mfa: { apiSessionId: guarded.apiSessionId, passedMfa: false, passedAt: null, passedOnWake: false },
    })
  })

  it('a process once that a check of one process and a check of several ask for', async () => {
    const guarded = await guard({ typeId: 'PROCESS', process })
    const { path } = process
    const several = { typeId: 'PROCESS_MULTI', semantic: 'AllOf', processes: [{ osType: 'Linux', path }] }
    await network.make('posture-checks', { name: `several ${guarded.tag}`, ...several })
    await guarded.report({ ...running, id: guarded.checkId, path })

    const { processes } = await network.get(`/identities/${guarded.identityId}/posture-data`)
    const { reported } = await network.get(`/controller/posture/identities/${guarded.identityId}`)
    expect([processes.length, reported.length]).toEqual([1, 1])
  })

  it('the latest refused sessions, the oldest first, with what was reported and what was demanded', async () => {
    const guarded = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    await network.dial(guarded.who, guarded.service)
    await guarded.report({ typeId: 'DOMAIN', domain: 'c.d' })
    await wait(1_000)
    const { body } = await network.dial(guarded.who, guarded.service)

    expect(body.error.cause.data).toEqual({
      [guarded.policy]: [{ id: guarded.checkId, typeId: 'DOMAIN', isPassing: false }],
    })
    const requests = await network.get(`/identities/${guarded.identityId}/failed-service-requests`)
    expect(requests).toHaveLength(2)
    expect(requests[1]).toMatchObject({
      when: new Date(world.clock.now()).toISOString(),
      apiSessionId: guarded.apiSessionId,
      serviceId: guarded.service,
      serviceName: `web ${guarded.tag}`,
      sessionType: 'Dial',
      policyFailures: [
        {
          policyId: guarded.policy,
          checks: [
            {
              postureCheckId: guarded.checkId,
              postureCheckName: `check ${guarded.tag}`,
              postureCheckType: 'DOMAIN',
              actualValue: 'c.d',
              expectedValue: ['a.b'],
            },
          ],
        },
      ],
    })
    expect(requests[0].policyFailures[0].checks[0].actualValue).toBeNull()
  })

  it('at most a hundred of an identity', async () => {
    const guarded = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    for (let at = 0; at < 101; at++) await network.dial(guarded.who, guarded.service)

    expect(await network.get(`/identities/${guarded.identityId}/failed-service-requests`)).toHaveLength(100)
  })
})

describe('after a start', () => {
  it('what machines reported counts as before: sessions stay, and end with another report', async () => {
    const first = await testController({ clock: world.clock })
    const small = await smallNetwork(first)
    await small.router('north')
    await small.openRouters()
    const service = await small.service('web', ['web'])
    const check = await small.make('posture-checks', { name: 'domain', typeId: 'DOMAIN', domains: ['a.b'] })
    await small.servicePolicy('Dial', ['#staff'], ['#web'], { postureCheckRoles: [`@${check}`] })
    const people = [await small.person('one', ['staff']), await small.person('two', ['staff'])]
    for (const person of people) {
      await small.report(person, { typeId: 'DOMAIN', domain: 'a.b' })
      expect((await small.dial(person, service)).status).toBe(201)
    }
    await first.stop()
    world.clock.advance(1_000)

    const second = await testController({ clock: world.clock, directory: first.directory })
    const turn = async (milliseconds: number) => {
      world.clock.advance(milliseconds)
      await second.controller.posture.deadlines.revokeExpired(second.controller.contexts)
    }
    const again = await smallNetwork(second)
    const holders = async () =>
      (await second.controller.store.db.selectFrom('sessions').select('identityId').execute()).map(
        (row) => row.identityId,
      )
    try {
      await turn(1_000)
      expect((await holders()).sort()).toEqual(people.map(({ id }) => id).sort())
      const late = await again.person('three', ['staff'])
      expect((await again.dial(late, service)).status).toBe(409)

      const [one, two] = people as [(typeof people)[0], (typeof people)[0]]
      await again.report(one, { typeId: 'DOMAIN', domain: 'c.d' })
      expect(await holders()).toEqual([two.id])
      await turn(5 * MINUTE)
      expect(await holders()).toEqual([two.id])
      expect((await again.dial(two, service)).status).toBeLessThan(300)
      expect((await again.dial(one, service)).status).toBe(409)
    } finally {
      await second.close()
    }
  })

  it('MFA is as good as before, and times out when it would have', async () => {
    const first = await testController({ clock: world.clock })
    const small = await smallNetwork(first)
    await small.router('north')
    await small.openRouters()
    const service = await small.service('web', ['web'])
    const check = await small.make('posture-checks', { name: 'mfa', typeId: 'MFA', timeoutSeconds: 120 })
    await small.servicePolicy('Dial', ['#staff'], ['#web'], { postureCheckRoles: [`@${check}`] })
    const { id } = await small.person('one', ['staff'])
    const { apiSessionId, token } = await first.signInAgain(id)
    await first.system.write((tx) => first.controller.auth.apiSessions.totp.complete(tx, apiSessionId))
    expect((await small.dial({ token }, service)).status).toBe(201)
    await first.stop()
    world.clock.advance(MINUTE)

    const second = await testController({ clock: world.clock, directory: first.directory })
    const sessions = () => second.controller.store.db.selectFrom('sessions').select('id').execute()
    try {
      await second.controller.posture.deadlines.revokeExpired(second.controller.contexts)
      expect(await sessions()).toHaveLength(1)
      world.clock.advance(MINUTE + 1_000)
      await second.controller.posture.deadlines.revokeExpired(second.controller.contexts)
      expect(await sessions()).toHaveLength(0)
    } finally {
      await second.close()
    }
  })
})
