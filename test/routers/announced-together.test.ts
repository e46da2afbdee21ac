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

/** Routers of which the first one notes the ids of the sessions that it was told have ended, message by message. */
function connect(count: number) {
  const messages: (string | undefined)[][] = []
  const announce = (announcement: SessionAnnouncement) => {
    if (announcement.kind === 'sessions-removed') messages.push(announcement.sessions.map(({ id }) => id))
  }
  const routers = Array.from({ length: count }, (_, at) => ({
    connection: { announce: at === 0 ? announce : () => {} },
  }))
  const connected = { hasEdgeRouters: true, listEdgeRouters: () => routers } as unknown as ConnectedRouters
  const sync = new SessionSync({
    connected,
    db: undefined as never,
    clock: new TestClock(),
    log: { debug() {}, info() {}, warn() {}, error() {} },
    apiSessions: { deriveToken: (id: string) => id } as unknown as ApiSessions,
    isLeading: () => true,
    catchUp: undefined,
  })
  return { sync, messages }
}

const end = (id: string) => ({ changes: [{ resource: 'sessions', operation: 'delete', id }] }) as unknown as Commit

describe('the changes of sessions', () => {
  it('reach a few routers within five milliseconds', async () => {
    const { sync, messages } = connect(10)

    sync.apply(end('first'))
    await vi.advanceTimersByTimeAsync(5)
    sync.apply(end('second'))
    await vi.advanceTimersByTimeAsync(5)

    expect(messages).toEqual([['first'], ['second']])
  })

  it('are sent to many routers together, after at most a tenth of a second', async () => {
    const { sync, messages } = connect(500)

    sync.apply(end('first'))
    await vi.advanceTimersByTimeAsync(40)
    sync.apply(end('second'))
    await vi.advanceTimersByTimeAsync(10)

    expect(messages).toEqual([['first', 'second']])

    const { sync: syncOfAll, messages: messagesOfAll } = connect(20_000)
    syncOfAll.apply(end('third'))
    await vi.advanceTimersByTimeAsync(100)
    expect(messagesOfAll).toEqual([['third']])
  })
})
