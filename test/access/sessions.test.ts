// Dialing and hosting: who gets a session, in which order the refusals come, and what ends a session.
import { beforeAll, describe, expect, it } from 'vitest'
import { testController } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'
import { type Person, type SmallNetwork, smallNetwork } from './network.ts'

const world = useController()
let network: SmallNetwork
let web: string
let hidden: string
let laptop: Person

beforeAll(async () => {
  network = await smallNetwork(world)
  web = await network.service('web', ['web'])
  hidden = await network.service('hidden')
  laptop = await network.person('laptop', ['staff'])
  await network.router('north')
  await network.servicePolicy('Dial', ['#staff'], ['#web'])
  await network.openRouters()
})

const refusal = (response: Awaited<ReturnType<SmallNetwork['dial']>>) => [response.status, response.body.error.code]

describe('making a session', () => {
  it('gives the session with the routers over which the service is reached, and without policies', async () => {
    const { status, body } = await network.dial(laptop, web)

    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      _links: { self: { href: `./sessions/${body.data.id}` } },
      type: 'Dial',
      identityId: laptop.id,
      serviceId: web,
      service: { entity: 'services', id: web, name: 'web' },
      apiSession: { entity: 'api-sessions', name: '' },
      token: expect.stringMatching(/^[0-9a-f-]{36}$/),
      edgeRouters: [
        {
          name: 'north',
          isOnline: false,
          hostname: '',
          supportedProtocols: {},
          urls: {},
          cost: 0,
          noTraversal: false,
          disabled: false,
        },
      ],
    })
    expect(body.data).not.toHaveProperty('servicePolicies')
  })

  it('gives the same session again to the same sign-in, service and type', async () => {
    const first = await network.dial(laptop, web)

    const again = await network.dial(laptop, web)

    expect(again.status).toBe(201)
    expect([again.body.data.id, again.body.data.token]).toEqual([first.body.data.id, first.body.data.token])
  })

  it('gives another session after the one that was asked for again was ended', async () => {
    const asker = await network.person('asks again', ['staff'])
    await network.dial(asker, web)
    const { id } = (await network.dial(asker, web)).body.data
    await network.change('DELETE', `/sessions/${id}`)

    const next = await network.dial(asker, web)

    expect(next.status).toBe(201)
    expect(next.body.data.id).not.toBe(id)
  })

  it('shows its routers as they are now', async () => {
    const { id } = (await network.dial(laptop, web)).body.data
    const { edgeRouters } = (await network.ask(laptop, 'GET', `/sessions/${id}`)).body.data
    const [router] = await network.get(`/edge-routers?filter=${encodeURIComponent(`name="${edgeRouters[0].name}"`)}`)

    await network.change('PATCH', `/edge-routers/${router.id}`, { cost: 7, noTraversal: true })
    const again = (await network.dial(laptop, web)).body.data
    await network.change('PATCH', `/edge-routers/${router.id}`, { cost: 0, noTraversal: false })

    expect(again.edgeRouters).toMatchObject([{ name: 'north', cost: 7, noTraversal: true }])
  })

  it('gives the same session to requests that come together', async () => {
    const someone = await network.person('in a hurry', ['staff'])

    const responses = await Promise.all([1, 2, 3, 4].map(() => network.dial(someone, web)))

    expect(new Set(responses.map(({ body }) => body.data.id)).size).toBe(1)
  })

  it('gives each sign-in, service and type a session of its own', async () => {
    const service = await network.service('dialed and hosted', ['both'])
    const other = await network.service('dialed, too', ['both'])
    await network.servicePolicy('Dial', ['#hosts'], ['#both'])
    await network.servicePolicy('Bind', ['#hosts'], ['#both'])
    const first = await network.person('a host', ['hosts'])
    const second = await world.signInAgain(first.id)

    const responses = [
      await network.dial(first, service),
      await network.dial(first, service, 'Bind'),
      await network.dial(first, other),
      await network.dial(second, service),
    ]

    const sessions = responses.map(({ body }) => body.data)
    expect(sessions.map(({ type }) => type)).toEqual(['Dial', 'Bind', 'Dial', 'Dial'])
    expect(sessions.map(({ serviceId }) => serviceId)).toEqual([service, service, other, service])
    expect(sessions[3].apiSessionId).toBe(second.apiSessionId)
    expect(new Set(sessions.map(({ id }) => id)).size).toBe(4)
    expect(new Set(sessions.map(({ token }) => token)).size).toBe(4)
  })

  it('takes a missing type for Dial', async () => {
    const { body } = await network.ask(laptop, 'POST', '/sessions', { serviceId: web })

    expect(body.data.type).toBe('Dial')
  })

  it('is not recorded in the audit', async () => {
    const someone = await network.person('unrecorded', ['staff'])
    const findLatest = async () => (await network.get('/controller/audit?limit=1'))[0].id
    const before = await findLatest()

    expect((await network.dial(someone, web)).status).toBe(201)

    expect(await findLatest()).toBe(before)
  })

  it('keeps the tags that were sent', async () => {
    const someone = await network.person('tagging', ['staff'])
    const { body } = await network.ask(someone, 'POST', '/sessions', { serviceId: web, tags: { site: 'north' } })

    expect(body.data.tags).toEqual({ site: 'north' })
  })

  it('repeats a session even where it could not be made anymore', async () => {
    const someone = await network.person('early', ['early'])
    const service = await network.service('once over a router', ['once'])
    await network.servicePolicy('Dial', ['#early'], ['#once'])
    const first = await network.dial(someone, service)
    const policies = (await network.get('/edge-router-policies?filter=isSystem=false')) as { id: string }[]
    for (const { id } of policies) await network.change('PATCH', `/edge-router-policies/${id}`, { identityRoles: [] })

    const again = await network.dial(someone, service)

    for (const { id } of policies)
      await network.change('PATCH', `/edge-router-policies/${id}`, { identityRoles: ['#all'] })
    expect(again.body.data.id).toBe(first.body.data.id)
    expect(again.body.data.edgeRouters).toEqual([])
  })

  it.each([
    ['that does not exist', () => 'nope'],
    ['that no policy grants', () => hidden],
    ['that is not named', () => undefined],
  ])('responds alike with 404 for a service %s', async (_which, serviceId) => {
    const response = await network.ask(laptop, 'POST', '/sessions', { serviceId: serviceId(), type: 'Dial' })

    expect(refusal(response)).toEqual([404, 'NOT_FOUND'])
  })

  it('responds with 400 for a visible service that is granted for the other type only', async () => {
    const response = await network.dial(laptop, web, 'Bind')

    expect(refusal(response)).toEqual([400, 'COULD_NOT_VALIDATE'])
    expect(response.body.error.cause).toMatchObject({ field: 'ServiceId', value: web })
  })

  it('responds with 400 to an administrator, who sees every service, for one that no policy grants', async () => {
    const admin = await network.person('administering', [], true)

    const response = await network.dial(admin, hidden)

    expect(refusal(response)).toEqual([400, 'COULD_NOT_VALIDATE'])
  })

  it('responds with 404 to an administrator for a service that does not exist', async () => {
    const admin = await network.person('administering too', [], true)

    expect(refusal(await network.dial(admin, 'nope'))).toEqual([404, 'NOT_FOUND'])
  })

  it('responds with 409 if a posture check of every granting policy does not pass, and names the checks', async () => {
    const service = await network.service('guarded', ['guarded'])
    const check = await network.make('posture-checks', { name: 'domain', typeId: 'DOMAIN', domains: ['example.com'] })
    const policy = await network.servicePolicy('Dial', ['#staff'], ['#guarded'], { postureCheckRoles: [`@${check}`] })

    const response = await network.dial(laptop, service)

    expect(refusal(response)).toEqual([409, 'INVALID_POSTURE'])
    expect(response.body.error.cause.data).toEqual({ [policy]: [{ id: check, typeId: 'DOMAIN', isPassing: false }] })
  })

  it('names the checks of each policy that do not pass, and no other, to the client and to administrators', async () => {
    const service = await network.service('hosted under guard', ['hosted'])
    const who = await network.person('a guarded host', ['guarded hosts'])
    const make = async (name: string, check: object) => ({
      name,
      id: await network.make('posture-checks', { name, ...check }),
    })
    const good = await make('good domain', { typeId: 'DOMAIN', domains: ['a.b'] })
    const bad = await make('bad domain', { typeId: 'DOMAIN', domains: ['c.d'] })
    const unknown = await make('system', { typeId: 'OS', operatingSystems: [{ type: 'Linux' }] })
    const demand = (type: 'Dial' | 'Bind', ...checks: { id: string }[]) => {
      const postureCheckRoles = checks.map(({ id }) => `@${id}`)
      return network.servicePolicy(type, ['#guarded hosts'], ['#hosted'], { postureCheckRoles })
    }
    const policies = [await demand('Bind', good, bad), await demand('Bind', good, unknown, bad)]
    await demand('Dial', unknown)
    await network.report(who, { typeId: 'DOMAIN', domain: 'a.b' })

    const response = await network.dial(who, service, 'Bind')

    const failing = (check: { id: string }, typeId: string) => ({ id: check.id, typeId, isPassing: false })
    const { data } = response.body.error.cause
    expect(refusal(response)).toEqual([409, 'INVALID_POSTURE'])
    expect(Object.keys(data).sort()).toEqual(policies.toSorted())
    expect(data[policies[0] as string]).toEqual([failing(bad, 'DOMAIN')])
    expect(data[policies[1] as string]).toHaveLength(2)
    expect(data[policies[1] as string]).toEqual(
      expect.arrayContaining([failing(bad, 'DOMAIN'), failing(unknown, 'OS')]),
    )
    const [request] = await network.get(`/identities/${who.id}/failed-service-requests`)
    expect(request).toMatchObject({ serviceName: 'hosted under guard', sessionType: 'Bind' })
    const checksOf = new Map(
      request.policyFailures.map(({ policyId, checks }: { policyId: string; checks: object[] }) => [policyId, checks]),
    )
    expect(checksOf.size).toBe(2)
    expect(checksOf.get(policies[0])).toMatchObject([{ postureCheckId: bad.id, postureCheckName: bad.name }])
    expect(checksOf.get(policies[1])).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ postureCheckId: bad.id, postureCheckName: bad.name }),
        expect.objectContaining({ postureCheckId: unknown.id, postureCheckName: unknown.name }),
      ]),
    )
  })

  it('is content with one policy that passes, whatever another one asks', async () => {
    const service = await network.service('half guarded', ['half'])
    const check = await network.make('posture-checks', { name: 'other domain', typeId: 'DOMAIN', domains: ['a.b'] })
    await network.servicePolicy('Dial', ['#staff'], ['#half'], { postureCheckRoles: [`@${check}`] })
    await network.servicePolicy('Dial', [`@${laptop.id}`], ['#half'])

    expect((await network.dial(laptop, service)).status).toBe(201)
  })

  it('responds with 400 without a common router, if nothing else refuses it', async () => {
    const lonely = await testController()
    const alone = await smallNetwork(lonely)
    const someone = await alone.person('someone', ['staff'])
    const service = await alone.service('unreachable')
    await alone.servicePolicy('Dial', ['#all'], ['#all'])
    await alone.router('north', ['north'])
    await alone.router('south', ['south'])
    await alone.edgeRouterPolicy(['#all'], ['#north'])
    await alone.serviceEdgeRouterPolicy(['#all'], ['#south'])

    const response = await alone.dial(someone, service)
    const invalid = await alone.dial(someone, service, 'Invalid')
    const hosted = await alone.dial(someone, service, 'Bind')
    const check = await alone.make('posture-checks', { name: 'domain', typeId: 'DOMAIN', domains: ['a.b'] })
    await alone.servicePolicy('Bind', ['#all'], ['#all'], { postureCheckRoles: [`@${check}`] })
    const guarded = await alone.dial(someone, service, 'Bind')

    await lonely.close()
    expect(refusal(response)).toEqual([400, 'NO_EDGE_ROUTERS_AVAILABLE'])
    expect(refusal(invalid)).toEqual([400, 'NO_EDGE_ROUTERS_AVAILABLE'])
    // The checks before it come first.
    expect(refusal(hosted)).toEqual([400, 'COULD_NOT_VALIDATE'])
    expect(refusal(guarded)).toEqual([409, 'INVALID_POSTURE'])
  })

  it('refuses the type Invalid after everything else', async () => {
    const unseen = await network.dial(laptop, hidden, 'Invalid')
    const response = await network.dial(laptop, web, 'Invalid')

    expect(unseen.status).toBe(404)
    expect(response.status).toBe(400)
    expect(response.body.error.cause.field).toBe('type')
  })

  it.each([
    ['a type that does not exist', { serviceId: 'any', type: 'Fly' }],
    ['a type that is not text', { serviceId: 'any', type: 7 }],
    ['a service that is not text', { serviceId: ['any'] }],
    ['tags that are nested', { serviceId: 'any', tags: { a: {} } }],
    ['a body that is not an object', []],
  ])('refuses %s', async (_what, body) => {
    expect((await network.ask(laptop, 'POST', '/sessions', body)).status).toBe(400)
  })
})

describe('looking at sessions', () => {
  it('shows the policies that grant it', async () => {
    const { body } = await network.dial(laptop, web)

    const view = await network.ask(laptop, 'GET', `/sessions/${body.data.id}`)

    expect(view.body.data.servicePolicies).toMatchObject([{ entity: 'service-policies' }])
    expect(view.body.data.token).toBe(body.data.token)
  })

  it('lists an identity its own, of all its sign-ins, and an administrator all', async () => {
    const other = await network.person('another', ['staff'])
    const admin = await network.person('an administrator', [], true)
    const mine = (await network.dial(laptop, web)).body.data.id
    const theirs = (await network.dial(other, web)).body.data.id
    const idsFor = async (who: Person) =>
      ((await network.ask(who, 'GET', '/sessions?limit=500')).body.data as { id: string }[]).map(({ id }) => id)

    expect(await idsFor(other)).toEqual([theirs])
    expect(await idsFor(laptop)).not.toContain(theirs)
    expect(await idsFor(admin)).toEqual(expect.arrayContaining([mine, theirs]))
    expect(await network.sessionIds()).toEqual(expect.arrayContaining([mine, theirs]))
  })

  it('hides the sessions of others from those who do not administer', async () => {
    const other = await network.person('curious', [])
    const { id } = (await network.dial(laptop, web)).body.data

    const statuses = await Promise.all(
      ['GET', 'DELETE'].map(async (method) => (await network.ask(other, method, `/sessions/${id}`)).status),
    )

    expect(statuses).toEqual([404, 404])
    expect(await network.sessionIds()).toContain(id)
  })

  it('finds sessions by service, identity, type and sign-in, and never by token', async () => {
    const { data } = (await network.dial(laptop, web)).body
    const findMatches = async (filter: string) =>
      (await network.call('GET', `/sessions?filter=${encodeURIComponent(filter)}`)).body.data?.map(
        ({ id }: { id: string }) => id,
      )

    expect(await findMatches(`service = "${web}" and identity = "${laptop.id}" and type = "Dial"`)).toEqual([data.id])
    expect(await findMatches(`apiSession = "${data.apiSessionId}"`)).toContain(data.id)
    expect(await findMatches(`token = "${data.token}"`)).toBeUndefined()
  })

  it('shows an empty route path while no router carries it, and 404 for no session', async () => {
    const { id } = (await network.dial(laptop, web)).body.data

    expect(await network.get(`/sessions/${id}/route-path`)).toEqual({ routePath: [] })
    expect((await network.call('GET', '/sessions/nope/route-path')).status).toBe(404)
  })

  it('lets its token ask for the routers of its service, and of no other', async () => {
    const { token } = (await network.dial(laptop, web)).body.data
    const ask = (path: string, sent: string) =>
      world.send({
        method: 'GET',
        path: `/edge/client/v1${path}`,
        token: laptop.token,
        headers: { 'session-token': sent },
      })

    expect((await ask(`/services/${web}/edge-routers`, token)).body.data.edgeRouters).toHaveLength(1)
    expect((await ask(`/services/${web}/edge-routers`, 'made up')).status).toBe(401)
  })
})

describe('a session ends', () => {
  const open = async (name: string) => {
    const who = await network.person(name, ['staff'])
    return { who, id: (await network.dial(who, web)).body.data.id as string }
  }

  it('when its owner deletes it', async () => {
    const { who, id } = await open('deleting')

    const response = await network.ask(who, 'DELETE', `/sessions/${id}`)

    expect(response.status).toBe(200)
    expect(await network.sessionIds()).not.toContain(id)
  })

  it('when an administrator deletes it', async () => {
    const { id } = await open('deleted')

    await network.change('DELETE', `/sessions/${id}`)

    expect(await network.sessionIds()).not.toContain(id)
  })

  it('when its owner signs out', async () => {
    const { who, id } = await open('signing out')

    await network.ask(who, 'DELETE', '/current-api-session')

    expect(await network.sessionIds()).not.toContain(id)
  })

  it('when the sign-in is idle for too long', async () => {
    const { id } = await open('idle')
    world.clock.advance(world.controller.auth.apiSessions.lifetime.timeoutMs + 1)

    await world.controller.auth.apiSessions.termination.deleteExpired(world.system)

    const left = await world.controller.store.db.selectFrom('sessions').select('id').where('id', '=', id).execute()
    expect(left).toEqual([])
  })

  it('when its identity is disabled, and when it is deleted', async () => {
    network = await smallNetwork(world)
    laptop = await network.person('a new laptop', ['staff'])
    const disabled = await open('disabled')
    const deleted = await open('gone')

    await network.change('POST', `/identities/${disabled.who.id}/disable`, { durationMinutes: 0 })
    await network.change('DELETE', `/identities/${deleted.who.id}`)

    const left = await network.sessionIds()
    expect(left).not.toContain(disabled.id)
    expect(left).not.toContain(deleted.id)
  })

  it('when its service is deleted', async () => {
    const service = await network.service('short-lived', ['web'])
    const { id } = (await network.dial(laptop, service)).body.data

    await network.change('DELETE', `/services/${service}`)

    expect(await network.sessionIds()).not.toContain(id)
  })

  it('survives a restart otherwise', async () => {
    const { id } = (await network.dial(laptop, web)).body.data
    await world.stop()
    await world.reopen()
    network = await smallNetwork(world)

    expect((await network.dial(laptop, web)).body.data.id).toBe(id)
  })
})
