// A network file whose config types have schemas that take long to check: it is rejected, and others are served meanwhile.
import { once } from 'node:events'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { connect } from 'node:tls'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { ConfigSchemas } from '../../src/definitions/schema/config-schemas.ts'
import { MANAGEMENT } from '../world/controller.ts'
import type { FileSection } from '../world/network-files.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const PATTERN = '^(a|a)*$'
const ENDLESS = `${'a'.repeat(40)}!`
// Takes a few hundred milliseconds, and does not match.
const SLOW = `${'a'.repeat(23)}!`

const world = useController()
let people: People

beforeAll(async () => {
  people = await People.in(world, 'operator')
})

afterEach(() => void vi.restoreAllMocks())

const types = (...records: [name: string, schemaOfA: object][]): FileSection => ({
  resource: 'config-types',
  records: records.map(([name, a]) => ({ name, schema: { type: 'object', properties: { a } } })),
})

const configs = (count: number, configType: string, a: unknown): FileSection => ({
  resource: 'configs',
  records: Array.from({ length: count }, (_, at) => ({ name: `${configType} ${at}`, configType, data: { a } })),
})

const plan = (sections: readonly FileSection[]) => people.ask('POST', '/controller/network/plan', sections)

/** Keeps the processor for a time. */
function spin(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

describe('a file whose config data cannot be checked in time', () => {
  it('is rejected with the name of the config type, and its other configs are not checked', async () => {
    const checks = vi.spyOn(ConfigSchemas.prototype, 'findProblem')

    const { status, body } = await plan([
      types(['slow.v1', { type: 'string', pattern: PATTERN }], ['fast.v1', { type: 'string' }]),
      configs(1, 'fast.v1', 7),
      configs(60, 'slow.v1', ENDLESS),
    ])

    const { others, ...first } = body.error.cause
    expect(status).toBe(400)
    expect(first).toMatchObject({ field: '1.records.0.data.a' })
    expect(others).toMatchObject([{ field: '2.records.0.data', reason: expect.stringMatching(/"slow\.v1".*too long/) }])
    expect(checks).toHaveBeenCalledTimes(2)
  })

  it('is rejected if its checks pass, but take too long together', async () => {
    const checks = vi.spyOn(ConfigSchemas.prototype, 'findProblem')

    const { status, body } = await plan([
      types(['slow.v1', { type: 'string', not: { pattern: PATTERN } }]),
      configs(190, 'slow.v1', SLOW),
    ])

    expect(status).toBe(400)
    expect(body.error.cause.reason).toMatch(/"slow\.v1".*too long/)
    expect(body.error.cause.others).toBeUndefined()
    expect(checks.mock.calls.length).toBeLessThan(190)
  })
})

describe('config data that takes long to check', () => {
  const sections = [types(['slow.v1', { type: 'string' }]), configs(20, 'slow.v1', 'text')]

  it('lets other requests have a turn after each check', async () => {
    let turns = 0
    const turnsAtChecks: number[] = []
    vi.spyOn(ConfigSchemas.prototype, 'findProblem').mockImplementation(() => {
      turnsAtChecks.push(turns)
      spin(10)
      return undefined
    })
    let isPlanning = true
    const planning = plan(sections).finally(() => {
      isPlanning = false
    })
    for (; isPlanning; turns++) await setImmediate()

    expect((await planning).status).toBe(200)
    expect(turnsAtChecks).toHaveLength(20)
    expect(new Set(turnsAtChecks).size).toBe(20)
  })

  it('is not checked again in the transaction', async () => {
    const checksInBehavior = vi.spyOn(ConfigSchemas.prototype, 'assertMatches')
    const more = [...sections, { resource: 'configs', records: [{ name: 'other', configType: 'slow.v1', data: {} }] }]

    const { status } = await people.ask('POST', '/controller/network/apply', sections)
    const next = await people.ask('POST', '/controller/network/apply', more.slice(1))
    const changed = await people.ask('POST', '/controller/network/apply', [configs(20, 'slow.v1', 'other text')])

    expect([status, next.status, changed.status]).toEqual([200, 200, 200])
    expect(changed.body.data.at(-1)).toMatchObject({ changes: 20, failure: null })
    expect(checksInBehavior).not.toHaveBeenCalled()
  })

  it('is not checked any more when the client is gone', async () => {
    const { url, rootPem } = await world.listen()
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), ca: rootPem })
    await once(socket, 'secureConnect')
    const checks = vi.spyOn(ConfigSchemas.prototype, 'findProblem').mockImplementation(() => {
      socket.destroy()
      spin(10)
      return undefined
    })
    const body = JSON.stringify([types(['gone.v1', { type: 'string' }]), configs(150, 'gone.v1', 'text')])
    const path = `${MANAGEMENT}/controller/network/plan`
    const headers = `Host: localhost\r\nnet-session: ${people.token}\r\ncontent-type: application/json`
    socket.write(`POST ${path} HTTP/1.1\r\n${headers}\r\ncontent-length: ${body.length}\r\n\r\n${body}`)

    await expect.poll(() => checks.mock.calls.length, { timeout: 30_000 }).toBeGreaterThan(0)
    for (let count = 0; count < checks.mock.calls.length; ) {
      count = checks.mock.calls.length
      await setTimeout(200)
    }
    expect(checks.mock.calls.length).toBeLessThan(150)
  })
})

describe('a config type whose schema is refused', () => {
  it('is the only mistake: its configs are not checked', async () => {
    const { status, body } = await plan([types(['broken.v1', { type: 7 }]), configs(3, 'broken.v1', 'text')])

    expect(status).toBe(400)
    expect(body.error.cause).toMatchObject({ field: '0.records.0.schema' })
    expect(body.error.cause.others).toBeUndefined()
  })
})
