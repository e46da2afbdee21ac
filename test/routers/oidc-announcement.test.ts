// Sign-in by OpenID Connect is announced to clients only if they do not lose routers by it.
import { afterEach, describe, expect, it } from 'vitest'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import type { Overrides } from '../../src/settings/settings.ts'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { groupedHeaders, SimulatedRouter } from '../world/router/simulated-router.ts'

const OIDC_NAMES = ['OIDC_AUTH', 'OIDC_AUTH_WITH_CSR']
const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'oidc', 'control'], dialect: 'native' }]

let world: TestController
let manage: Management

async function open(settings: Overrides = {}, directory?: string): Promise<void> {
  world = await testController({
    settings: { listeners, ...settings },
    ...(directory === undefined ? {} : { directory }),
  })
  manage = await managementOf(world)
}
afterEach(() => world.close())

let names = 0

/** Enrolls a router. With a release, it has connected with that one. */
async function addRouter(release?: string, kind: 'edge-routers' | 'routers' = 'edge-routers'): Promise<string> {
  const { id } = await enrolledRouter(world, { name: `router-${++names}`, kind })
  if (release !== undefined) await connect(id, release)
  return id
}

async function connect(id: string, version: string): Promise<void> {
  const software = { version, revision: 'abc', buildDate: '2026-01-01', os: 'linux', arch: 'amd64' }
  await world.controller.routers.provisioner.storeVersion(world.system, id, software)
}

async function readVersion(path = '/version') {
  const { status, body } = await world.send({ method: 'GET', path })
  expect(status).toBe(200)
  return body.data
}

async function readOverTls(url: string, rootPem: string) {
  const transport = createHttpTransport({ url, rootPem })
  const { text } = await transport.send({ method: 'GET', path: '/version' })
  await transport.close()
  return JSON.parse(text).data
}

/** Whether sign-in by OpenID Connect is announced: in full, or not at all. */
async function isAnnounced(): Promise<boolean> {
  const { capabilities, apiVersions } = await readVersion()
  const oidc = apiVersions['edge-oidc']
  expect(capabilities.includes('OIDC_AUTH')).toBe(oidc !== undefined)
  return oidc !== undefined
}

describe('sign-in by OpenID Connect is announced', () => {
  it('with its path and its address, in the same words at each address of the version', async () => {
    await open()
    const data = await readVersion()
    expect(data.capabilities).toEqual(['OIDC_AUTH'])
    expect(data.apiVersions['edge-oidc']).toEqual({
      v1: { apiBaseUrls: ['https://127.0.0.1:1280/oidc'], path: '/oidc', version: 'v1' },
    })
    for (const path of ['/', `${CLIENT}/version`, `${MANAGEMENT}/version`])
      expect(await readVersion(path)).toEqual(data)
  })

  it('with certificate requests only by their setting, because some clients do not connect then', async () => {
    await open({ 'oidc.announceCertificateRequests': true })
    expect((await readVersion()).capabilities.sort()).toEqual(OIDC_NAMES)
  })

  it.each<[string, (string | undefined)[], boolean]>([
    ['without routers', [], true],
    ['of routers of release 2', ['v2.0.3', '2.1.0', 'v10.0.0-pre1'], true],
    ['of routers of release 1', ['v1.6.5', 'v1.1.15'], false],
    ['of routers of both releases', ['v2.0.3', 'v1.6.5'], false],
    ['of a router that never connected', ['v2.0.3', undefined], false],
    ['of a router whose build has no release', ['v0.0.0'], false],
    ['of a router whose version is not one', ['next'], false],
  ])('or not in a network %s (%j): %s', async (_name, releases, expected) => {
    await open()
    for (const release of releases) await addRouter(release)
    expect(await isAnnounced()).toBe(expected)
    await world.stop()
    await open({}, world.directory)
    expect(await isAnnounced()).toBe(expected)
  })

  it('until a router connects with release 1, and again once it is updated; one that has not enrolled does not count', async () => {
    await open()
    const id = await addRouter('v2.0.3')
    await manage.make('edge-routers', { name: 'not-enrolled' })
    expect(await isAnnounced()).toBe(true)
    await connect(id, 'v1.6.5')
    expect(await isAnnounced()).toBe(false)
    await connect(id, 'v2.0.3')
    expect(await isAnnounced()).toBe(true)
  })

  it('once the last router of release 1 is deleted, or has to enroll again', async () => {
    await open()
    const [deleted, enrollingAgain] = [await addRouter('v1.6.5', 'routers'), await addRouter('v1.6.5')]
    await manage.change('DELETE', `/routers/${deleted}`)
    expect(await isAnnounced()).toBe(false)
    await manage.change('POST', `/edge-routers/${enrollingAgain}/re-enroll`)
    expect(await isAnnounced()).toBe(true)
  })

  it('as soon as a router connects for the first time, with release 2', async () => {
    await open()
    await world.controller.membership.announce(world.system, {})
    const router = await enrolledRouter(world, { name: 'north' })
    expect(await isAnnounced()).toBe(false)
    const { cert, key } = router
    const connection = await SimulatedRouter.open({ ...(await world.listen()), cert, key, respondsToHeartbeats: false })
    connection.introduce(router.id, groupedHeaders())
    await expect.poll(isAnnounced).toBe(true)
    await connection.close()
  })

  it.each([
    ['always', 'v1.6.5', true],
    ['never', 'v2.0.3', false],
  ])('%s if the setting says so, whatever the release of a router is (%s)', async (mode, release, expected) => {
    await open({ 'oidc.announce': mode })
    await addRouter(release)
    expect(await isAnnounced()).toBe(expected)
  })

  it('only by listeners that carry it', async () => {
    const address = '127.0.0.1:0'
    await open({ listeners: [{ address, apis: ['client', 'management'] }, { address }] })
    const { addresses, rootPem } = await world.listen()
    const announced = []
    for (const url of addresses) announced.push((await readOverTls(`https://${url}`, rootPem)).capabilities)
    expect(announced).toEqual([[], ['OIDC_AUTH']])
  })
})

describe('the routers of release 1', () => {
  const listSupport = async () =>
    Object.fromEntries(
      (await manage.get('/routers')).map(({ name, supportsOidc }: Record<string, unknown>) => [name, supportsOidc]),
    )
  const diagnose = async () => {
    const { checks, diagnoses } = await manage.get('/controller/doctor')
    const ofOidc = diagnoses.filter(({ check }: { check: string }) => check === 'oidc')
    return { summary: checks.find(({ name }: { name: string }) => name === 'oidc').summary, diagnoses: ofOidc }
  }

  it('are named by the list of routers, and by the doctor if others are newer', async () => {
    await open()
    names = 0
    await addRouter('v1.6.5')
    await manage.make('edge-routers', { name: 'not-enrolled' })
    expect(await diagnose()).toEqual({
      summary: expect.stringMatching(/not announced, because no router/),
      diagnoses: [],
    })
    await addRouter('v2.0.3')
    await addRouter(undefined, 'routers')
    expect(await listSupport()).toEqual({
      'router-1': false,
      'not-enrolled': null,
      'router-2': true,
      'router-3': false,
    })
    const { diagnoses } = await diagnose()
    expect(diagnoses).toEqual([
      {
        check: 'oidc',
        subject: 'edge-router router-1',
        message:
          'it last connected with release v1.6.5: as long as it has enrolled, sign-in by OpenID Connect is not announced to clients',
        remedy: 'update it to release 2.0 or later, or: controller edge-router delete router-1',
      },
      expect.objectContaining({
        subject: 'router router-3',
        message: expect.stringMatching(/^it has never connected: /),
      }),
    ])
  })

  it('are named by the doctor if the setting announces it nevertheless', async () => {
    await open({ 'oidc.announce': 'always' })
    await addRouter('v1.6.5')
    expect((await diagnose()).diagnoses).toMatchObject([
      { message: expect.stringMatching(/clients .* cannot use it$/) },
    ])
  })

  it('are not in the way if it is never announced', async () => {
    await open({ 'oidc.announce': 'never' })
    await addRouter('v1.6.5')
    expect(await diagnose()).toEqual({ summary: expect.stringMatching(/by the setting/), diagnoses: [] })
  })
})
