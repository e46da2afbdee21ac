// Duties that one of several controllers has, by a real database.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Clock, systemClock } from '../../src/foundation/clock.ts'
import { silentLog } from '../../src/foundation/log.ts'
import { Duty } from '../../src/storage/cluster/duty.ts'
import { LogConnection } from '../../src/storage/postgres/log-connection.ts'
import { createLog } from '../../src/storage/postgres/log-tables.ts'
import { LOG_START, logCipher } from '../world/log-start.ts'
import { TestPostgres } from '../world/postgres.ts'
import { TcpProxy } from '../world/tcp-proxy.ts'

const LEASE_MS = 2_000
const SOON = { timeout: 20_000, interval: 5 }

let server: TestPostgres
let url: string
/** The events of the duties of a test, in order. */
let events: string[]
let opened: { close(): Promise<void> | void }[]

beforeAll(async () => {
  server = await TestPostgres.start()
}, 60_000)
afterAll(() => server?.stop())

beforeEach(async () => {
  url = await server.createDatabase()
  const connection = new LogConnection({ url, isPlain: true })
  await connection.run((client) => createLog(client, LOG_START, logCipher))
  connection.end()
  events = []
  opened = []
})
afterEach(async () => {
  for (const each of opened.reverse()) await each.close()
})

interface Options {
  readonly at?: string
  readonly clock?: Clock
}

function seek(node: string, { at = url, clock = systemClock }: Options = {}): Duty {
  const database = { url: at, isPlain: true }
  const duty = new Duty({ name: 'fabric', node, database, clock, log: silentLog, leaseMs: LEASE_MS })
  duty.onAcquired(() => events.push(`${node} has it`))
  duty.onLost(() => events.push(`${node} lost it`))
  opened.push(duty)
  return duty
}

async function seekFirst(node: string, options?: Options): Promise<Duty> {
  const duty = seek(node, options)
  await expect.poll(() => duty.isHeld, SOON).toBe(true)
  return duty
}

describe('a duty', () => {
  it('is that of one controller, whose name the others read', async () => {
    const first = await seekFirst('first')
    const second = seek('second')
    await expect.poll(() => second.holder, SOON).toBe('first')
    expect([first.isHeld, second.isHeld, first.holder]).toEqual([true, false, 'first'])
  })

  it('is taken by one of two controllers that seek it at once', async () => {
    const duties = ['first', 'second'].map((node) => seek(node))
    await expect.poll(() => duties.map(({ holder }) => holder !== undefined), SOON).toEqual([true, true])
    expect(duties.filter(({ isHeld }) => isHeld)).toHaveLength(1)
    expect(events).toHaveLength(1)
  })

  it('passes on when its holder closes, which no longer has it by then', async () => {
    const first = await seekFirst('first')
    const second = seek('second')
    await first.close()
    await expect.poll(() => second.isHeld, SOON).toBe(true)
    expect(events).toEqual(['first has it', 'first lost it', 'second has it'])
  })

  it('is lost by a holder that the database does not hear, before another one has it, and not taken back', async () => {
    const { proxy, url: at } = await TcpProxy.before(url)
    const first = await seekFirst('first', { at })
    opened.unshift(proxy)
    const second = seek('second')
    proxy.isHolding = true
    await expect.poll(() => second.isHeld, SOON).toBe(true)
    expect(events).toEqual(['first has it', 'first lost it', 'second has it'])
    proxy.isHolding = false
    await expect.poll(() => first.holder, SOON).toBe('second')
    expect([first.isHeld, second.isHeld]).toEqual([false, true])
  })

  it('is kept over a restart of the database, or lost before another controller has it', async () => {
    const duties = [await seekFirst('first'), seek('second')]
    await server.restart()
    await expect.poll(() => duties.filter(({ isHeld }) => isHeld).length, SOON).toBe(1)
    await expect.poll(() => new Set(duties.map(({ holder }) => holder)).size, SOON).toBe(1)
    const holders = events.map((event) => (event.endsWith('has it') ? 1 : -1))
    let count = 0
    for (const change of holders) {
      count += change
      expect([0, 1]).toContain(count)
    }
  })

  it('is over for a machine that was suspended longer than the lease, before the machine does anything', async () => {
    let suspendedMs = 0
    const clock = { now: () => systemClock.now() + suspendedMs, monotonic: systemClock.monotonic }
    const duty = await seekFirst('first', { clock })
    suspendedMs = LEASE_MS
    expect(duty.isHeld).toBe(false)
    await expect.poll(() => duty.isHeld, SOON).toBe(true)
    expect(events).toEqual(['first has it', 'first lost it', 'first has it'])
  })

  it('is free for a second process of the same name only when the first one has lost it', async () => {
    const first = await seekFirst('same')
    const second = seek('same')
    await expect.poll(() => second.holder, SOON).toBe('same')
    expect([first.isHeld, second.isHeld]).toEqual([true, false])
  })
})
