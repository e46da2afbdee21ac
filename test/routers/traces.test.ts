// Traces of identities: what the controller logs of their connections, and what routers are told to log.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RecordingLog, recordingLog } from '../world/recording-log.ts'
import type { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { type TestClient, TestNetwork } from '../world/router/network.ts'

let network: TestNetwork
let log: RecordingLog
let router: ForwardingRouter
let serviceId: string
let client: TestClient

beforeAll(async () => {
  log = recordingLog()
  network = await TestNetwork.start({ log })
  router = await network.router()
  serviceId = await network.service()
  await network.terminator(serviceId, router)
  client = await network.client(serviceId)
})
afterAll(() => network.close())

const trace = (spec: object) => network.manage.change('PUT', `/identities/${client.identityId}/trace`, spec)

/** Dials, and returns the route that the router received, and the lines that the controller logged of the trace. */
async function dial() {
  const from = log.lines.length
  const { circuitId } = await router.dial(client)
  const route = router.routes.find((one) => one.circuitId === circuitId)
  const lines = log.lines.slice(from).filter(({ fields }) => fields.traceId !== undefined)
  return { circuitId, route, lines: lines.map(({ message }) => message), fields: lines[0]?.fields }
}

describe('a traced identity', () => {
  it('has its connections logged by the controller and by routers', async () => {
    await trace({ enabled: true, duration: '10m', traceId: 'why', channels: ['all'] })
    const { circuitId, route, lines, fields } = await dial()

    expect(lines).toEqual(['traced: a path was selected', 'traced: the path was established'])
    expect(fields).toMatchObject({ traceId: 'why', circuitId, routerIds: [router.id], linkIds: [] })
    expect(route?.context).toMatchObject({
      channelMask: 3,
      fields: { traceId: 'why', circuitId, identityId: client.identityId, sessionId: client.sessionId, serviceId },
    })
  })

  it.each([
    ['selectPath', 1, ['traced: a path was selected']],
    ['establishPath', 2, ['traced: the path was established']],
  ])('has only %s logged if only that is asked for', async (channel, channelMask, expected) => {
    await trace({ enabled: true, duration: '10m', channels: [channel, 'no-such-channel'] })
    const { route, lines } = await dial()

    expect(route?.context?.channelMask).toBe(channelMask)
    expect(lines).toEqual(expected)
  })

  it('has it logged why it was not connected', async () => {
    await trace({ enabled: true, duration: '10m' })
    router.reply = () => ({ code: 0, text: 'the host is not there' })
    const { lines } = await dial()
    router.reply = () => 'success'

    expect(lines.filter((line) => line === 'traced: the path could not be established')).toHaveLength(2)
    expect(lines.at(-1)).toBe('traced: no circuit was created')
  })

  it('is traced no more when the time is over, or the trace is ended', async () => {
    await trace({ enabled: true, duration: '10m' })
    network.world.clock.advance(600_000)
    const late = await dial()
    await trace({ enabled: true, duration: '10m' })
    await trace({ enabled: false })
    const ended = await dial()

    for (const { route, lines } of [late, ended]) expect([route?.context, lines]).toEqual([undefined, []])
  })
})

describe('other identities', () => {
  it('are not traced', async () => {
    await trace({ enabled: true, duration: '10m' })
    const other = await network.client(serviceId)
    const { circuitId } = await router.dial(other)

    expect(router.routes.find((one) => one.circuitId === circuitId)?.context).toBeUndefined()
  })
})
