// Posture of sessions by OpenID Connect: routers of release 2 judge the machine, by what clients report to them alone. A client has no
// connection to a router before it has a session for a service.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CLIENT, type TestResponse } from '../world/controller.ts'
import { newName } from '../world/names.ts'
import { People } from '../world/people.ts'
import type { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { bind, newAddress } from '../world/router/hosting.ts'
import { TestNetwork } from '../world/router/network.ts'
import { bearer, OpenIdClient } from './client.ts'

const LISTENERS = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control', 'oidc'], dialect: 'native' }]
const DOMAIN = { typeId: 'DOMAIN', domains: ['a.b'] }

let network: TestNetwork
let people: People
let serviceId: string

beforeEach(async () => {
  network = await TestNetwork.start({ settings: { listeners: LISTENERS, 'session.timeout': '24h' } })
  people = await People.in(network.world, newName('administrator'))
  serviceId = await network.service()
  for (const { id, type } of await people.manage('GET', '/service-policies'))
    if (type === 'Dial') await people.manage('DELETE', `/service-policies/${id}`)
})
afterEach(() => network.close())

/** Opens the service to machines that pass the check. Returns the id of the check. */
async function guard(check: object): Promise<string> {
  const id = await network.manage.make('posture-checks', { name: newName('check'), ...check })
  const roles = { identityRoles: ['#all'], serviceRoles: ['#all'], postureCheckRoles: [`@${id}`] }
  for (const type of ['Dial', 'Bind'])
    await network.manage.make('service-policies', { name: newName('policy'), type, semantic: 'AnyOf', ...roles })
  return id
}

interface Caller {
  readonly accessToken: string
  ask(method: string, path: string, body?: object): Promise<TestResponse>
}

async function signIn(): Promise<Caller> {
  const tokens = await new OpenIdClient(network.world).signIn(await people.person())
  return {
    accessToken: tokens.access_token,
    ask: (method, path, body) =>
      network.world.send({
        ...{ method, path: CLIENT + path, headers: bearer(tokens.access_token) },
        ...(body === undefined ? {} : { body }),
      }),
  }
}

const openSession = (caller: Caller, type = 'Dial') => caller.ask('POST', '/sessions', { serviceId, type })

async function isDialOpen(router: ForwardingRouter, caller: Caller, token: string): Promise<boolean> {
  const { type, circuitId } = await router.dial({ token, apiSessionToken: caller.accessToken })
  return circuitId !== '' && type !== 20002
}

describe('a session by OpenID Connect for a service that demands posture', () => {
  it('is opened although the machine has not reported to the controller, and dials over a router of release 2', async () => {
    await guard(DOMAIN)
    const router = await network.router(2)
    await network.terminator(serviceId, router)
    const caller = await signIn()

    const { status, body } = await openSession(caller)

    expect([status, body.error?.code]).toEqual([201, undefined])
    expect(await isDialOpen(router, caller, body.data.token)).toBe(true)
  })

  it('neither dials nor hosts over a router of release 1, which judges nothing, whatever the machine reported', async () => {
    const check = await guard(DOMAIN)
    const router = await network.router(1)
    await network.terminator(serviceId, router)
    const caller = await signIn()
    const { body } = await openSession(caller)
    await caller.ask('POST', '/posture-response', { ...DOMAIN, id: check, domain: 'a.b' })
    const hosting = await openSession(caller, 'Bind')
    const host = { sessionToken: hosting.body.data.token, apiToken: caller.accessToken }

    expect(await isDialOpen(router, caller, body.data.token)).toBe(false)
    expect(await bind(router.wire, { address: newAddress(), client: host })).not.toMatchObject({ result: 0 })
  })

  it('stays open if another check or policy demands more of the machine', async () => {
    const check = await guard(DOMAIN)
    await network.router(2)
    const caller = await signIn()
    const { body } = await openSession(caller)

    await network.manage.change('PATCH', `/posture-checks/${check}`, { ...DOMAIN, domains: ['c.d'] })

    expect((await caller.ask('GET', `/sessions/${body.data.id}`)).status).toBe(200)
  })

  it('is not opened before the second factor that a check demands, of which the controller knows', async () => {
    await guard({ typeId: 'MFA', timeoutSeconds: 600 })

    const { status, body } = await openSession(await signIn())

    expect([status, body.error?.code]).toEqual([409, 'INVALID_POSTURE'])
  })

  it('ends with the right to the service', async () => {
    await guard(DOMAIN)
    await network.router(2)
    const caller = await signIn()
    const { body } = await openSession(caller)

    for (const { id } of await people.manage('GET', '/service-policies'))
      await people.manage('DELETE', `/service-policies/${id}`)

    expect((await caller.ask('GET', `/sessions/${body.data.id}`)).status).toBe(404)
  })
})

describe('a session with a token of its own for such a service', () => {
  it('is not opened before the machine has reported what passes', async () => {
    await guard(DOMAIN)
    const token = await people.sessionOf(await people.person())
    const body = { serviceId, type: 'Dial' }

    const response = await network.world.send({ method: 'POST', path: `${CLIENT}/sessions`, token, body })

    expect([response.status, response.body.error?.code]).toEqual([409, 'INVALID_POSTURE'])
  })
})
