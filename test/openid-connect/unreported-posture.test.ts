// Clients with the C SDK that signed in by OpenID Connect: routers of release 2 refuse them services with posture checks.
import { beforeAll, describe, expect, it } from 'vitest'
import { type Management, managementOf } from '../world/management.ts'
import { People, type Person } from '../world/people.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { useController } from '../world/use-controller.ts'
import { OpenIdClient } from './client.ts'

const world = useController({
  settings: {
    listeners: [{ address: '127.0.0.1:0', apis: ['client', 'management', 'oidc'], dialect: 'native' }],
    'oidc.announce': 'always',
  },
})
let manage: Management
let people: People
let routerId: string
let services: Readonly<Record<'guarded' | 'free', string>>

beforeAll(async () => {
  manage = await managementOf(world)
  people = await People.in(world)
  routerId = (await enrolledRouter(world, { name: 'edge' })).id
  const check = await manage.make('posture-checks', { name: 'domain', typeId: 'DOMAIN', domains: ['a.b'] })
  const makeService = async (name: string, postureCheckRoles: readonly string[]) => {
    const id = await manage.make('services', { name, encryptionRequired: true })
    const roles = { identityRoles: ['#all'], serviceRoles: [`@${id}`], postureCheckRoles }
    await manage.make('service-policies', { name, type: 'Dial', semantic: 'AnyOf', ...roles })
    return id
  }
  services = { guarded: await makeService('guarded', [`@${check}`]), free: await makeService('free', []) }
})

async function signIn(person: Person, type: string): Promise<void> {
  const client = new OpenIdClient(world, 'openziti')
  const id = await client.begin()
  const { username, password } = person
  const sdkInfo = { type, version: '1.14.0' }
  const { status } = await client.postJson('/oidc/login/password', { id, username, password, sdkInfo })
  expect(status).toBe(302)
  expect((await client.redeem(await client.finish(id))).status).toBe(200)
}

const setRelease = (version: string) =>
  world.controller.routers.provisioner.storeVersion(world.system, routerId, {
    version,
    revision: 'x',
    buildDate: 'x',
    os: 'linux',
    arch: 'amd64',
  })

async function readPostureLink(person: Person, service: keyof typeof services) {
  const { links } = await manage.get(`/controller/policy/advise/${person.id}/${services[service]}`)
  return links.find(({ link }: { link: string }) => link === 'posture')
}

async function listDiagnosed(): Promise<string[]> {
  const { diagnoses } = await manage.get('/controller/doctor')
  return diagnoses
    .filter(({ check }: { check: string }) => check === 'guarded services')
    .map(({ subject }: { subject: string }) => subject)
}

describe('a client with the C SDK that signed in by OpenID Connect', () => {
  it('is refused services with posture checks by routers of release 2, as advice and doctor say with the remedy', async () => {
    const person = await people.person({ name: 'with the C SDK' })
    await signIn(person, 'ziti-sdk-c')
    await setRelease('v1.6.5')
    expect((await readPostureLink(person, 'guarded')).message).not.toMatch(/routers of release 2/)
    expect(await listDiagnosed()).toEqual([])
    await setRelease('v2.0.3')
    expect(await readPostureLink(person, 'guarded')).toMatchObject({
      outcome: 'failed',
      message: expect.stringMatching(/routers of release 2 refuse guarded/),
      hint: expect.stringMatching(/ZITI_FORCE_LEGACY_AUTH/),
    })
    expect(await readPostureLink(person, 'free')).toMatchObject({ outcome: 'passed' })
    expect(await listDiagnosed()).toEqual(['identity with the C SDK'])
  })

  it.each(['ziti-sdk-golang', 'own'])('is told apart from one with another SDK: %s', async (type) => {
    await setRelease('v2.0.3')
    const person = await people.person()
    await signIn(person, type)
    expect((await readPostureLink(person, 'guarded')).message).not.toMatch(/routers of release 2/)
  })

  it('is told apart from one that signed in with a session header', async () => {
    await setRelease('v2.0.3')
    const { username, password, id, authenticatorId } = await people.person()
    const sdkInfo = { type: 'ziti-sdk-c', version: '1.14.0' }
    const { status } = await world.send({
      method: 'POST',
      path: '/edge/client/v1/authenticate?method=password',
      body: { username, password, sdkInfo },
    })
    expect(status).toBe(200)
    const link = await readPostureLink({ username, password, id, authenticatorId }, 'guarded')
    expect(link.message).not.toMatch(/routers of release 2/)
  })
})
