// How long the changes of sessions are collected before routers are told about them.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { ApiSessions } from '../../src/authentication/api-sessions/api-sessions.ts'
import type { ConnectedRouters } from '../../src/network/routers/connected-routers.ts'
import type { SessionAnnouncement } from '../../src/network/routers/router-connection.ts'
import { SessionSync } from '../../src/network/routers/session-sync.ts'
import type { Commit } from '../../src/storage/transactions/changes.ts'
import { TestClock } from '../world/controller.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Routers to which an announcement takes so long; the first one notes the ids of the sessions that have ended, message by message. */
function connect(announcementMs: number) {
  const messages: (string | undefined)[][] = []
  const clock = new TestClock()
  const announce = (announcement: SessionAnnouncement) => {
    if (announcement.kind === 'sessions-removed') messages.push(announcement.sessions.map(({ id }) => id))
  }
  const routers = [{ connection: { announce } }, { connection: { announce: () => clock.advance(announcementMs) } }]
  const connected = { hasEdgeRouters: true, listEdgeRouters: () => routers } as unknown as ConnectedRouters
  const sync = new SessionSync({
    connected,
    db: undefined as never,
    clock,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    apiSessions: { deriveToken: (id: string) => id } as unknown as ApiSessions,
    isLeading: () => true,
    catchUp: undefined,
    listConnectedIdentityIds: () => [],
  })
  return { sync, messages }
}

const end = (id: string) => ({ changes: [{ resource: 'sessions', operation: 'delete', id }] }) as unknown as Commit

describe('the changes of sessions', () => {
  it('reach routers within five milliseconds', async () => {
    const { sync, messages } = connect(0)

    sync.apply(end('first'))
    await vi.advanceTimersByTimeAsync(5)
    sync.apply(end('second'))
    await vi.advanceTimersByTimeAsync(5)

    expect(messages).toEqual([['first'], ['second']])
  })

  it('wait together for nine times as long as the last announcement took, so that routers take a tenth of the time', async () => {
    const { sync, messages } = connect(20)

    sync.apply(end('first'))
    await vi.advanceTimersByTimeAsync(5)
    sync.apply(end('second'))
    await vi.advanceTimersByTimeAsync(100)
    sync.apply(end('third'))
    await vi.advanceTimersByTimeAsync(79)
    expect(messages).toEqual([['first']])

    await vi.advanceTimersByTimeAsync(1)
    expect(messages).toEqual([['first'], ['second', 'third']])
  })

  it('wait for a quarter of a second at most', async () => {
    const { sync, messages } = connect(1_000)

    sync.apply(end('first'))
    await vi.advanceTimersByTimeAsync(5)
    sync.apply(end('second'))
    await vi.advanceTimersByTimeAsync(250)

    expect(messages).toEqual([['first'], ['second']])
  })
})
