// Metrics: what a monitoring system reads, where, and that it stays bounded.
import { beforeAll, describe, expect, it } from 'vitest'
import type { Transport } from '../../src/client/transport.ts'
import { MANAGEMENT, testController, tlsTransport } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'

const LISTENERS = [
  { address: '127.0.0.1:0', dialect: 'native' },
  { address: '127.0.0.1:0', apis: ['metrics', 'health'], tls: false },
]

const world = useController({ settings: { listeners: LISTENERS } })
let monitoringUrl: string
let overTls: Transport

beforeAll(async () => {
  const { url, rootPem, addresses } = await world.listen()
  overTls = tlsTransport(url, rootPem)
  monitoringUrl = `http://${addresses[1]}`
})

it('the listener without TLS serves what its settings name, and nothing else', async () => {
  const status = async (path: string) => (await fetch(`${monitoringUrl}${path}`)).status

  expect([await status('/health'), await status('/metrics')]).toEqual([200, 200])
  for (const path of ['/', '/version', '/.well-known/est/cacerts', '/edge/client/v1/version'])
    expect([path, await status(path)]).toEqual([path, 404])
})

async function scrape(): Promise<string> {
  world.clock.advance(1_000)
  const response = await fetch(`${monitoringUrl}/metrics`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  return response.text()
}

/** The values of a metric by its labels, as they are written. */
function readSamples(text: string, name: string): Record<string, number> {
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return Object.fromEntries(
    lines.map((line) => [
      line.slice(name.length, line.lastIndexOf(' ')),
      Number(line.slice(line.lastIndexOf(' ') + 1)),
    ]),
  )
}

describe('the metrics', () => {
  it('count requests by API, operation and status, and how long they take', async () => {
    const token = await world.admin()
    await world.send({ method: 'GET', path: `${MANAGEMENT}/services`, token })
    await world.send({ method: 'GET', path: `${MANAGEMENT}/services`, token })
    await world.send({ method: 'GET', path: `${MANAGEMENT}/services` })
    await world.send({ method: 'GET', path: `${MANAGEMENT}/no-such-path` })

    const text = await scrape()
    const requests = readSamples(text, 'controller_requests_total')

    expect(requests['{api="management",operation="listServices",status="200"}']).toBe(2)
    expect(requests['{api="management",operation="listServices",status="401"}']).toBe(1)
    expect(requests['{api="none",operation="none",status="404"}']).toBe(1)
    expect(readSamples(text, 'controller_request_duration_seconds_count')).toMatchObject({
      '{api="management",operation="listServices"}': 3,
    })
  })

  it('have one series for all paths that do not exist', async () => {
    for (let at = 0; at < 20; at++) await world.send({ method: 'GET', path: `/edge/management/v1/nothing-${at}` })

    const series = Object.keys(readSamples(await scrape(), 'controller_requests_total'))

    expect(series.filter((labels) => labels.includes('operation="none"'))).toHaveLength(1)
  })

  it('show sessions, records, commits, queues, the audit and the ends of certificates', async () => {
    const before = await scrape()
    await world.signIn({ name: 'measured' })
    const after = await scrape()
    const change = (name: string, labels = '') =>
      (readSamples(after, name)[labels] ?? 0) - (readSamples(before, name)[labels] ?? 0)

    expect(change('controller_api_sessions')).toBe(1)
    expect(change('controller_records', '{resource="identities"}')).toBe(1)
    expect(change('controller_commits_total')).toBe(1)
    expect(change('controller_audit_records_total')).toBeGreaterThan(0)
    expect(readSamples(after, 'controller_write_queue_length')).toEqual({ '': 0 })
    expect(readSamples(after, 'controller_password_queue_length')).toEqual({ '': 0 })
    expect(readSamples(after, 'controller_routers_connected')).toEqual({ '': 0 })
    expect(readSamples(after, 'controller_links')).toEqual({ '': 0 })
    expect(readSamples(after, 'controller_circuits')).toEqual({ '': 0 })
    expect(readSamples(after, 'controller_event_loop_delay_seconds')).toEqual({ '': 0 })
    const end = Date.parse(world.controller.authority.server.certificate.validTo) / 1_000
    expect(readSamples(after, 'controller_own_certificate_not_after_seconds')['{kind="server"}']).toBe(end)
    expect(readSamples(after, 'controller_health_check')['{check="database"}']).toBe(1)
    expect(after).toMatch(/^process_resident_memory_bytes \d+/m)
  })

  it('are declared once each, as Prometheus demands', async () => {
    const names = [...(await scrape()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)

    expect(names.length).toBeGreaterThan(20)
    expect(new Set(names).size).toBe(names.length)
  })

  it('name no identity and no service', async () => {
    await world.signIn({ name: 'a-person-whom-metrics-must-not-name' })

    expect(await scrape()).not.toContain('a-person-whom')
  })

  it('are not served by other listeners, and the listener without TLS serves nothing else', async () => {
    expect((await overTls.send({ method: 'GET', path: '/metrics' })).status).toBe(404)
    for (const path of ['/edge/management/v1/version', '/edge/client/v1/version', '/protocols', '/zac/']) {
      expect([path, (await fetch(monitoringUrl + path)).status]).toEqual([path, 404])
    }
    expect((await fetch(`${monitoringUrl}/metrics`, { method: 'POST' })).status).toBe(405)
  })
})

describe('a controller without a listener for metrics', () => {
  it('has none', async () => {
    const other = await testController()
    const response = await other.send({ method: 'GET', path: '/metrics' })
    await other.close()

    expect(response.status).toBe(404)
  })
})
