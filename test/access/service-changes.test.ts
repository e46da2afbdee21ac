// The times of changes with little memory, a clock that is set, and requests that overlap: a change is never missed.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Access } from '../../src/access/access.ts'
import { unknownPosture } from '../../src/access/posture/reported-posture.ts'
import { ServiceChanges } from '../../src/access/services/service-changes.ts'
import type { ServiceDigest } from '../../src/access/services/service-digests.ts'
import type { ReadContext } from '../../src/storage/context.ts'
import { TestClock } from '../world/controller.ts'

const START = 1_000_000
const CLIENTS = [0, 1, 2, 3]
const NO_TRANSITIONS = { lastAt: 0, nextAt: Number.POSITIVE_INFINITY, now: 0 }
const context = undefined as unknown as ReadContext

const client = (id: number) => ({
  apiSession: { id: `session ${id}`, createdAt: START },
  viewer: { identity: { id: `identity ${id}`, attributes: ['staff'] }, isAdmin: false },
})

/** Changes of services whose digests the test sets. */
function makeChanges({ maxBytes = 1_000_000 } = {}) {
  const clock = new TestClock(START)
  const access = new Access(unknownPosture)
  const contents = new Map<string, string>()
  let transitions: ServiceDigest['transitions'] = NO_TRANSITIONS
  const pending: (() => void)[] = []
  let isHeld = false
  const digests = {
    async compute(_context: ReadContext, { identity }: { identity: { id: string } }): Promise<ServiceDigest> {
      const computed = { digest: contents.get(identity.id) ?? '', isExact: true, transitions }
      if (isHeld) await new Promise<void>((resolve) => pending.push(resolve))
      return computed
    },
  }
  const changes = new ServiceChanges({ access, clock, digests, startedAt: START, maxBytes })
  return {
    access,
    clock,
    contents,
    poll: (id: number) => changes.getLastChange(context, client(id).apiSession, client(id).viewer),
    end: (id: number) => {
      const session = { resource: 'api-sessions', operation: 'delete', audit: 'none', id: `session ${id}` } as const
      changes.apply({ position: 1, at: 1, changes: [{ ...session, at: clock.now() }], tables: [] })
    },
    setTransitions: (next: ServiceDigest['transitions']) => {
      transitions = next
    },
    hold: () => {
      isHeld = true
    },
    release: () => {
      isHeld = false
      for (const resolve of pending.splice(0)) resolve()
    },
  }
}

describe('with room for two of four clients', () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('poll' as const), id: fc.constantFrom(...CLIENTS) }),
    fc.record({ do: fc.constant('change' as const), id: fc.constantFrom(...CLIENTS), isShared: fc.boolean() }),
    fc.record({ do: fc.constant('stamp' as const) }),
    fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 1_000) }),
    fc.record({ do: fc.constant('set' as const), ms: fc.constantFrom(-5_000, 5_000) }),
  )

  it('a time never goes back, and is another one after each change', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 100, size: 'max' }), async (steps) => {
        const { access, clock, contents, poll } = makeChanges({ maxBytes: 2 * 350 })
        const lastPolls = new Map<number, { time: number; content: string | undefined }>()
        let version = 0
        for (const each of steps) {
          if (each.do === 'pass') clock.advance(each.ms)
          if (each.do === 'set') clock.set(each.ms)
          if (each.do === 'stamp') access.updates.stampAll(clock.now())
          if (each.do === 'change') {
            contents.set(`identity ${each.id}`, `${++version}`)
            const roles = { semantic: 'AnyOf', isAll: false, ids: new Set<string>() } as const
            if (each.isShared) access.updates.stamp({ ...roles, attributes: new Set(['staff']) }, clock.now())
            else access.updates.stampIdentity(`identity ${each.id}`, clock.now())
          }
          if (each.do !== 'poll') continue
          const time = await poll(each.id)
          const content = contents.get(`identity ${each.id}`)
          const last = lastPolls.get(each.id)
          expect(time).toBeGreaterThanOrEqual(last?.time ?? 0)
          if (last && last.content !== content) expect(time).toBeGreaterThan(last.time)
          lastPolls.set(each.id, { time, content })
        }
      }),
      { numRuns: 300 },
    )
  })
})

describe('a request that overlaps with a change', () => {
  it('does not hide the change from the next one', async () => {
    const { access, contents, poll, hold, release, clock } = makeChanges()
    const first = await poll(0)
    access.updates.stampAll(clock.now())
    hold()
    const overlapping = poll(0)
    contents.set('identity 0', 'changed')
    access.updates.stampIdentity('identity 0', clock.now())
    release()

    expect(await overlapping).toBe(first)
    expect(await poll(0)).toBeGreaterThan(first)
  })

  it('does not take back what a later request saw', async () => {
    const { access, contents, poll, hold, release, clock } = makeChanges()
    await poll(0)
    access.updates.stampAll(clock.now())
    hold()
    const earlier = poll(0)
    contents.set('identity 0', 'changed')
    access.updates.stampIdentity('identity 0', clock.now())
    const later = poll(0)
    release()

    const [, laterTime] = await Promise.all([earlier, later])
    expect(await poll(0)).toBe(laterTime)
  })
})

describe('time alone', () => {
  it('moves the time once the digest has changed by it, although the wall clock was set back meanwhile', async () => {
    const { clock, contents, poll, setTransitions } = makeChanges()
    setTransitions({ lastAt: 0, nextAt: START + 60_000, now: START })
    const before = await poll(0)
    clock.advance(59_000)
    expect(await poll(0)).toBe(before)

    clock.set(-3_600_000)
    clock.advance(1_000)
    contents.set('identity 0', 'timed out')
    setTransitions({ lastAt: clock.now(), nextAt: Number.POSITIVE_INFINITY, now: clock.now() })

    const after = await poll(0)
    expect(after).toBeGreaterThan(before)
    expect(await poll(0)).toBe(after)
  })

  it('is seen although the digest before was dropped', async () => {
    const { clock, poll, end, setTransitions } = makeChanges()
    setTransitions({ lastAt: 0, nextAt: START + 60_000, now: START })
    const before = await poll(0)
    end(0)
    clock.advance(60_000)
    setTransitions({ lastAt: START + 60_000, nextAt: Number.POSITIVE_INFINITY, now: clock.now() })

    expect(await poll(0)).toBe(START + 60_000)
    expect(before).toBe(START)
  })
})
