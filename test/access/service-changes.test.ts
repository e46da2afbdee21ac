// The times of changes with little memory, several controllers, a clock that is set, and requests that overlap: no change is missed.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Access } from '../../src/access/access.ts'
import { unknownPosture } from '../../src/access/posture/reported-posture.ts'
import { ServiceChanges } from '../../src/access/services/service-changes.ts'
import type { ServiceDigest } from '../../src/access/services/service-digests.ts'
import type { Commit } from '../../src/storage/transactions/changes.ts'
import type { ReadContext } from '../../src/storage/transactions/context.ts'
import { TestClock } from '../world/controller.ts'

const START = 1_000_000
const CLIENTS = [0, 1, 2, 3]
const NO_ROLES = { serviceRoles: [], postureCheckRoles: [] }
const NO_TRANSITIONS = { lastAt: 0, nextAt: Number.POSITIVE_INFINITY, now: 0 }
const context = undefined as unknown as ReadContext

const client = (id: number) => ({
  apiSession: { id: `session ${id}`, createdAt: START },
  viewer: { identity: { id: `identity ${id}`, attributes: ['staff'] }, isAdmin: false },
})

/** Commits of changes that concern one client, those with a role, or everyone, as every process receives them: as JSON. */
class Feed {
  readonly clock = new TestClock(START)
  readonly commits: string[] = []
  /** By position: the services of each client. */
  readonly contents: (readonly string[])[] = [CLIENTS.map(() => '')]
  #last = { position: 0, at: START }

  commit(concerned: number | 'staff' | 'all', contents: Readonly<Record<number, string>> = {}): void {
    const { clock } = this
    this.#last = { position: this.#last.position + 1, at: Math.max(clock.now(), this.#last.at + 1) }
    const facts = { operation: 'update', audit: 'none', at: clock.now() } as const
    const policy = { id: 'p', type: 'Dial', semantic: 'AnyOf', identityRoles: ['#staff'], ...NO_ROLES }
    const changes = {
      all: { ...facts, resource: 'config-types', id: 't', before: { name: 'one' }, after: { name: 'other' } },
      staff: { ...facts, operation: 'create', resource: 'service-policies', id: 'p', after: policy },
    }
    const one = { ...facts, resource: 'machines', id: `identity ${concerned}` }
    const change = typeof concerned === 'number' ? one : changes[concerned]
    this.commits.push(JSON.stringify({ ...this.#last, changes: [change], tables: [] }))
    this.contents.push((this.contents.at(-1) ?? []).map((content, id) => contents[id] ?? content))
  }
}

/** A controller that follows commits, and compares services whose digests are the contents of the feed. */
class Follower {
  readonly #feed: Feed
  readonly #maxShownBytes: number
  #access!: Access
  #changes!: ServiceChanges
  #position = 0
  transitions: ServiceDigest['transitions'] = NO_TRANSITIONS
  isHeld = false
  readonly #pending: (() => void)[] = []

  constructor(feed: Feed, maxShownBytes = 1_000_000) {
    this.#feed = feed
    this.#maxShownBytes = maxShownBytes
    this.restart()
  }

  /** Loses all but the rows. */
  restart(): void {
    const access = new Access(unknownPosture)
    const { at } = JSON.parse(this.#feed.commits[this.#position - 1] ?? `{"at":${START}}`) as Commit
    access.updates.stampAll(at)
    this.#access = access
    const digests = {
      compute: async (_: ReadContext, { identity }: { identity: { id: string } }): Promise<ServiceDigest> => {
        const { transitions } = this
        const digest = `${this.contentOf(Number(identity.id.at(-1)))} ${transitions.lastAt}`
        if (this.isHeld) await new Promise<void>((resolve) => this.#pending.push(resolve))
        return { digest, isExact: true, transitions }
      },
    }
    const { clock } = this.#feed
    this.#changes = new ServiceChanges({ access, clock, digests, maxShownBytes: this.#maxShownBytes })
  }

  /** Follows some commits, or all. */
  follow(count = Number.POSITIVE_INFINITY): void {
    const commits = this.#feed.commits.slice(this.#position, this.#position + count)
    this.#position += commits.length
    for (const commit of commits.map((text) => JSON.parse(text) as Commit)) {
      this.#access.apply(commit)
      this.#changes.apply(commit)
    }
  }

  contentOf(id: number): string {
    return this.#feed.contents[this.#position]?.[id] ?? ''
  }

  get isCurrent(): boolean {
    return this.#position === this.#feed.commits.length
  }

  poll(id: number): Promise<number> {
    return this.#changes.getLastChange(context, client(id).apiSession, client(id).viewer)
  }

  /** The API session of a client ends: what it was shown is dropped. */
  end(id: number): void {
    const change = { resource: 'api-sessions', operation: 'delete', audit: 'none', id: `session ${id}`, at: 1 } as const
    this.#changes.apply({ position: 1, at: 1, changes: [change], tables: [] })
  }

  release(): void {
    this.isHeld = false
    for (const resolve of this.#pending.splice(0)) resolve()
  }
}

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('poll' as const), id: fc.constantFrom(...CLIENTS) }) },
  fc.record({ do: fc.constant('change' as const), id: fc.constantFrom(...CLIENTS), isShared: fc.boolean() }),
  fc.record({ do: fc.constant('undo' as const), id: fc.constantFrom(...CLIENTS) }),
  fc.record({ do: fc.constant('stamp' as const) }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 1_000) }),
  fc.record({ do: fc.constant('set' as const), ms: fc.constantFrom(-5_000, 5_000) }),
)
const steps = fc.array(step, { minLength: 20, maxLength: 100, size: 'max' })

/** Makes a change, or lets time pass. */
function perform(
  feed: Feed,
  each: Exclude<typeof step extends fc.Arbitrary<infer T> ? T : never, { do: 'poll' }>,
): void {
  if (each.do === 'pass') feed.clock.advance(each.ms)
  if (each.do === 'set') feed.clock.set(each.ms)
  if (each.do === 'stamp') feed.commit('all')
  if (each.do === 'undo') feed.commit(each.id, { [each.id]: '' })
  if (each.do === 'change') feed.commit(each.isShared ? 'staff' : each.id, { [each.id]: `${feed.commits.length}` })
}

describe('with room for two of four clients', () => {
  it('a time never goes back, and is another one after each change', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const feed = new Feed()
        const follower = new Follower(feed, 2 * 350)
        const lastPolls = new Map<number, { time: number; content: string }>()
        for (const each of sequence) {
          if (each.do !== 'poll') perform(feed, each)
          follower.follow()
          if (each.do !== 'poll') continue
          const time = await follower.poll(each.id)
          const content = follower.contentOf(each.id)
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

describe('of several controllers', () => {
  it('the next one returns no earlier time, and a later one after each change, wherever the clock stands', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const feed = new Feed()
        let current = new Follower(feed)
        const lastPolls = new Map<number, { time: number; content: string }>()
        for (const [at, each] of sequence.entries()) {
          if (each.do !== 'poll') perform(feed, each)
          // Now and then everyone moves to one that follows the same commits, and has shown nothing yet.
          if (at % 7 === 6) current = new Follower(feed)
          current.follow()
          if (each.do !== 'poll') continue
          const time = await current.poll(each.id)
          const content = current.contentOf(each.id)
          const last = lastPolls.get(each.id)
          expect(time).toBeGreaterThanOrEqual(last?.time ?? 0)
          if (last && last.content !== content) expect(time).toBeGreaterThan(last.time)
          lastPolls.set(each.id, { time, content })
        }
      }),
      { numRuns: 300 },
    )
  })

  it('none returns the time of what a client has for other services, although they lag, restart, and drop what they showed', async () => {
    const moves = fc.array(
      fc.record({ to: fc.nat({ max: 2 }), commits: fc.nat({ max: 3 }), restarts: fc.nat({ max: 9 }), step }),
      { minLength: 20, maxLength: 100, size: 'max' },
    )
    await fc.assert(
      fc.asyncProperty(moves, async (sequence) => {
        const feed = new Feed()
        const followers = [new Follower(feed), new Follower(feed, 2 * 350), new Follower(feed, 2 * 350)]
        const fetched = new Map<number, { time: number; content: string }>()
        for (const { to, commits, restarts, step: each } of sequence) {
          const follower = followers[to] as Follower
          follower.follow(commits)
          if (restarts === 0) follower.restart()
          if (each.do !== 'poll') perform(feed, each)
          else {
            const time = await follower.poll(each.id)
            const content = follower.contentOf(each.id)
            const last = fetched.get(each.id)
            if (last?.time === time) expect(content).toBe(last.content)
            fetched.set(each.id, { time, content })
          }
        }
      }),
      { numRuns: 300 },
    )
  })

  it('those that were not used before return the same time', async () => {
    const feed = new Feed()
    const [one, other] = [new Follower(feed), new Follower(feed)]
    feed.commit(0, { 0: 'changed' })
    feed.commit('staff')
    feed.commit(1)
    one.follow()
    other.follow()
    feed.clock.set(-3_600_000)

    for (const id of CLIENTS) expect(await other.poll(id)).toBe(await one.poll(id))
  })
})

describe('a request that overlaps with a change', () => {
  it('does not hide the change from the next one', async () => {
    const feed = new Feed()
    const follower = new Follower(feed)
    const first = await follower.poll(0)
    feed.commit('all')
    follower.follow()
    follower.isHeld = true
    const overlapping = follower.poll(0)
    feed.commit(0, { 0: 'changed' })
    follower.follow()
    follower.release()

    expect(await overlapping).toBe(first)
    expect(await follower.poll(0)).toBeGreaterThan(first)
  })

  it('does not take back what a later request saw', async () => {
    const feed = new Feed()
    const follower = new Follower(feed)
    await follower.poll(0)
    feed.commit('all')
    follower.follow()
    follower.isHeld = true
    const earlier = follower.poll(0)
    feed.commit(0, { 0: 'changed' })
    follower.follow()
    const later = follower.poll(0)
    follower.release()

    const [, laterTime] = await Promise.all([earlier, later])
    expect(await follower.poll(0)).toBe(laterTime)
  })
})

describe('time alone', () => {
  const isUntil = (nextAt: number, now: number, lastAt = 0) => ({ lastAt, nextAt, now })

  it('moves the time once the digest has changed by it, although the wall clock was set back meanwhile', async () => {
    const feed = new Feed()
    const follower = new Follower(feed)
    follower.transitions = isUntil(START + 60_000, START)
    const before = await follower.poll(0)
    feed.clock.advance(59_000)
    expect(await follower.poll(0)).toBe(before)

    feed.clock.set(-3_600_000)
    feed.clock.advance(1_000)
    follower.transitions = isUntil(Number.POSITIVE_INFINITY, feed.clock.now(), feed.clock.now())

    const after = await follower.poll(0)
    expect(after).toBeGreaterThan(before)
    expect(await follower.poll(0)).toBe(after)
  })

  it('is seen although the digest before was dropped, and by another controller alike', async () => {
    const feed = new Feed()
    const [follower, other] = [new Follower(feed), new Follower(feed)]
    follower.transitions = isUntil(START + 60_000, START)
    const before = await follower.poll(0)
    follower.end(0)
    feed.clock.advance(60_000)
    follower.transitions = isUntil(Number.POSITIVE_INFINITY, feed.clock.now(), START + 60_000)
    other.transitions = follower.transitions

    expect(await follower.poll(0)).toBe(START + 60_000)
    expect(await other.poll(0)).toBe(START + 60_000)
    expect(before).toBe(START)
  })
})
