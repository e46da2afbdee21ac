// Inspections, as the tools of operators request them: what the controller holds in memory, without any secret.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FABRIC } from '../world/controller.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { SimulatedRouter } from '../world/router/simulated-router.ts'
import { useController } from '../world/use-controller.ts'

const apis = ['client', 'management', 'fabric', 'control']
const world = useController({ settings: { listeners: [{ address: '127.0.0.1:0', apis, dialect: 'native' }] } })
let token: string
let router: { id: string }
let simulated: SimulatedRouter

beforeAll(async () => {
  await world.controller.membership.announce(world.system, {})
  const address = await world.listen()
  token = await world.admin()
  const enrolled = await enrolledRouter(world, { name: 'north', kind: 'edge-routers' })
  router = enrolled
  simulated = await SimulatedRouter.open({ ...address, ...enrolled })
  simulated.introduce(enrolled.id)
  await simulated.takeType(2)
})
afterAll(async () => {
  await simulated.close()
})

const send = (body: object, session = token) =>
  world.send({ method: 'POST', path: `${FABRIC}/inspections`, headers: { 'zt-session': session }, body })

async function inspect(name: string, appRegex = '.*') {
  const { status, body } = await send({ appRegex, requestedValues: [name] })
  expect(status).toBe(200)
  return body
}

describe('an inspection', () => {
  it('shows values under the id of the controller, without an envelope', async () => {
    const appId = world.controller.membership.ownId

    expect(await inspect('links')).toEqual({
      success: true,
      errors: [],
      values: [{ appId, name: 'links', value: { links: [] } }],
    })
  })

  it('shows the routers that are connected', async () => {
    const [{ value }] = (await inspect('connected-routers')).values

    expect(value).toEqual([{ Id: router.id, Name: 'north', Version: 'v1.6.5', ConnectTime: expect.any(String) }])
  })

  it('shows which identities are connected to which routers', async () => {
    const connected = world.controller.routers.connected.get(router.id)
    if (!connected) throw new Error('the router is not connected')
    world.controller.routers.connected.reportIdentities(connected, [{ identityId: 'laptop', isConnected: true }], true)

    const [{ value }] = (await inspect('identity-connection-statuses')).values

    expect(value).toEqual({
      connections: {
        laptop: {
          connected_routers: {
            [router.id]: {
              router_id: router.id,
              closed: false,
              time_since_last_write: expect.stringMatching(/^\d+s$/),
            },
          },
          last_reported_state: 'online',
        },
      },
    })
  })

  it('shows what waits for routers', async () => {
    expect((await inspect('router-messaging')).values[0].value).toEqual({
      routerUpdates: [],
      terminatorValidations: [],
    })
  })

  it('shows the settings', async () => {
    const [{ value }] = (await inspect('CONFIG')).values

    expect(value).toMatchObject({ 'session.timeout': expect.any(Number), advertise: ['127.0.0.1:1280'] })
  })

  it('of a controller that the expression does not match shows nothing', async () => {
    expect(await inspect('links', '^another$')).toEqual({ success: true, errors: [], values: [] })
  })

  it('names the values that it does not know', async () => {
    const { success, errors, values } = await inspect('link')

    expect([success, values]).toEqual([false, []])
    expect(errors).toEqual([expect.stringMatching(/: there is no value link: did you mean links\?$/)])
  })

  it('says what is wrong with an expression', async () => {
    const { success, errors } = await inspect('links', 'a{1000}')

    expect([success, errors]).toEqual([false, [expect.stringContaining('counted repetition')]])
  })

  it.each([
    ['without an expression', { requestedValues: ['links'] }, 'appRegex'],
    ['without values', { appRegex: '.*' }, 'requestedValues'],
    [
      'of too many values',
      { appRegex: '.*', requestedValues: Array.from({ length: 21 }, (_, at) => `a${at}`) },
      'requestedValues',
    ],
  ])('%s is refused', async (_what, body, field) => {
    const response = await send(body)

    expect([response.status, response.body.error.cause.field]).toEqual([400, field])
  })

  it('is for administrators', async () => {
    const client = await world.signIn({ name: 'phone' })

    expect((await send({ appRegex: '.*', requestedValues: ['links'] }, client.token)).status).toBe(401)
  })
})
