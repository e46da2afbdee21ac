// Health: what probes are told, while all is well and while it is not.
import { renameSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { buildApp } from '../../server/app.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { type TestController, type TestOptions, testController, tlsTransport } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'
import { recordingLog } from '../world/recording-log.ts'

let world: TestController
afterEach(() => world.close())

async function open(options: TestOptions = {}): Promise<void> {
  world = await testController(options)
}

const get = (path: string) => world.send({ method: 'GET', path })

const CHECKS = ['database', 'disk', 'server-certificate']

describe('a controller that can serve requests', () => {
  it.each(['/health', '/health/ready', '/health-checks', '/health-checks/v1'])('says so at %s', async (path) => {
    await open()

    const { status, body } = await get(path)

    expect(status).toBe(200)
    expect(body.data.healthy).toBe(true)
    expect(body.data.checks.map(({ id, healthy }: { id: string; healthy: boolean }) => [id, healthy])).toEqual(
      CHECKS.map((id) => [id, true]),
    )
    expect(Date.parse(body.data.checks[0].lastCheckTime)).toBe(world.clock.now())
    expect(body.data.checks[0].lastCheckDuration).toMatch(/^\d+\.\d+ms$/)
  })

  it('is alive, whatever the checks say', async () => {
    await open({ settings: { 'health.minFreeDisk': '999999999999MiB' } })

    const { status, body } = await get('/health/live')

    expect(status).toBe(200)
    expect(body.data).toEqual({ healthy: true, checks: [] })
  })

  it('leaves out times if a probe asks for the short form', async () => {
    await open()

    const { body } = await get('/health-checks?type=short')

    expect(body.data).toEqual({ healthy: true, checks: CHECKS.map((id) => ({ id, healthy: true })) })
  })
})

describe('a controller whose disk is almost full', () => {
  const settings = { 'health.minFreeDisk': '999999999999MiB' }

  it('is not ready, says since when, and logs it once', async () => {
    const log = recordingLog()
    await open({ settings, log })
    expectFaults(/returned 503/)
    const since = new Date(world.clock.now()).toISOString()
    await get('/health')
    world.clock.advance(1_000)

    const { status, body } = await get('/health')

    expect(status).toBe(503)
    expect(body.data.healthy).toBe(false)
    expect(body.data.checks[1]).toMatchObject({
      id: 'disk',
      healthy: false,
      err: 'the disk of the data directory is almost full',
      consecutiveFailures: 2,
      failingSince: since,
    })
    expect(log.lines.filter(({ message }) => message === 'a health check fails')).toHaveLength(1)
  })

  it('responds with 200 to probes of OpenZiti controllers, which read what the body says', async () => {
    await open({ settings })

    const { status, body } = await get('/health-checks')

    expect([status, body.data.healthy]).toEqual([200, false])
  })
})

describe('a controller whose database was replaced', () => {
  it('is not ready', async () => {
    await open()
    expectFaults(/returned 503/)
    const { database } = getDataPaths(world.directory)
    renameSync(database, `${database}.moved`)

    const { status, body } = await get('/health/ready')
    renameSync(`${database}.moved`, database)

    expect(status).toBe(503)
    expect(body.data.checks[0]).toMatchObject({ id: 'database', healthy: false, err: 'the database cannot be used' })
  })
})

describe('a controller whose server certificate has expired', () => {
  it('is not ready until it has another one', async () => {
    await open()
    expectFaults(/returned 503/)
    world.clock.set(20 * 365 * 86_400_000)
    const { status, body } = await get('/health')

    world.clock.set(-20 * 365 * 86_400_000)
    world.clock.advance(1_000)

    expect([status, body.data.checks[2].id, body.data.checks[2].healthy]).toEqual([503, 'server-certificate', false])
    expect((await get('/health')).status).toBe(200)
  })
})

describe('a controller that refuses requests because of its load', () => {
  it('still responds to probes', async () => {
    await open()
    const app = await buildApp(world.controller, { load: { delayMs: 60_000 } })
    const statusOf = async (url: string) => (await app.inject({ method: 'GET', url })).statusCode

    expect(await statusOf('/version')).toBe(429)
    for (const path of ['/health', '/health/live', '/health-checks']) expect(await statusOf(path)).toBe(200)
    await app.close()
  })
})

describe('the checks', () => {
  it('run at most once a second, however many probes ask', async () => {
    await open()
    const { body: first } = await get('/health')
    world.clock.set(500)
    const { body: second } = await get('/health')
    world.clock.set(-500)
    world.clock.advance(1_000)
    const { body: third } = await get('/health')

    expect(second.data.checks[0].lastCheckTime).toBe(first.data.checks[0].lastCheckTime)
    expect(third.data.checks[0].lastCheckTime).not.toBe(first.data.checks[0].lastCheckTime)
  })
})

describe('a listener', () => {
  it('carries health unless its apis leave it out', async () => {
    await open({ settings: { listeners: [{ address: '127.0.0.1:0', apis: ['client'] }, { address: '127.0.0.1:0' }] } })
    const { addresses, rootPem } = await world.listen()
    const statuses = []
    for (const address of addresses) {
      statuses.push((await tlsTransport(`https://${address}`, rootPem).send({ method: 'GET', path: '/health' })).status)
    }

    expect(statuses).toEqual([404, 200])
  })

  it('without TLS serves health over plain HTTP', async () => {
    await open({
      settings: {
        listeners: [{ address: '127.0.0.1:0' }, { address: '127.0.0.1:0', apis: ['health'], tls: false }],
      },
    })
    const { addresses } = await world.listen()

    expect((await fetch(`http://${addresses[1]}/health/live`)).status).toBe(200)
    expect((await fetch(`http://${addresses[1]}/metrics`)).status).toBe(404)
  })
})
