// The queue of password comparisons: who waits, whose turn it is, and who is refused if the queue is full.
import { describe, expect, it } from 'vitest'
import { FairQueue, type FairQueueOptions, type Requester } from '../../src/authentication/credentials/fair-queue.ts'
import { TestClock } from '../world/controller.ts'

const anonymous = (source: string): Requester => ({ source, isPrivileged: false })
const privileged = (source: string): Requester => ({ source, isPrivileged: true })

/** Lets everything happen that waits for nothing but other promises. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

/** A queue whose work ends when the test says so. */
function makeQueue(options: Partial<FairQueueOptions> = {}) {
  const queue = new FairQueue({ concurrency: 1, maxWaiting: 100, clock: new TestClock(), ...options })
  const started: string[] = []
  const running = new Map<string, { end(): void; fail(): void }>()
  return {
    queue,
    /** The names of the works that have begun, in this order. */
    started,
    running,
    /** Asks for a work of that name. Returns its outcome. */
    ask(name: string, requester: Requester = anonymous(name)): Promise<string> {
      const outcome = queue.run(requester, () => {
        started.push(name)
        return new Promise<string>((resolve, reject) => {
          const end = (how: () => void) => () => {
            running.delete(name)
            how()
          }
          running.set(name, { end: end(() => resolve(name)), fail: end(() => reject(new Error(`${name} failed`))) })
        })
      })
      outcome.catch(() => {})
      return outcome
    },
    /** Ends one work after the other until none runs. */
    async drain(): Promise<void> {
      for (let [next] = running.values(); next; [next] = running.values()) {
        next.end()
        await settle()
      }
    },
  }
}

const REFUSAL = { code: 'SERVER_TOO_MANY_REQUESTS', status: 429, retryAfterSeconds: 1 }

describe('work', () => {
  it('runs at once while fewer run than may, and waits after that', async () => {
    const { queue, ask, started } = makeQueue({ concurrency: 2 })

    for (const name of ['a', 'b', 'c']) ask(name)
    await settle()

    expect(started).toEqual(['a', 'b'])
    expect(queue.waiting).toBe(1)
  })

  it('begins when another ends, and returns its own result', async () => {
    const { queue, ask, started, running } = makeQueue()
    const [first, second] = [ask('a'), ask('b')]
    await settle()

    running.get('a')?.end()

    expect(await first).toBe('a')
    await settle()
    expect([started, queue.waiting]).toEqual([['a', 'b'], 0])
    running.get('b')?.end()
    expect(await second).toBe('b')
  })

  it('that fails makes place like any other', async () => {
    const { ask, started, running } = makeQueue()
    const first = ask('a')
    ask('b')
    await settle()

    running.get('a')?.fail()

    await expect(first).rejects.toThrow('a failed')
    await settle()
    expect(started).toEqual(['a', 'b'])
  })

  it('never runs beside more than the limit, and finds its place free after all others have ended', async () => {
    const { queue, ask, running, drain } = makeQueue({ concurrency: 2 })
    for (let round = 0; round < 3; round++) {
      for (const name of ['a', 'b', 'c', 'd', 'e']) ask(name + round, anonymous(name))
      await settle()
      expect(running.size).toBe(2)
      await drain()
      expect([running.size, queue.waiting]).toEqual([0, 0])
    }
  })

  it('does not overtake work that waits', async () => {
    const { ask, started, running, drain } = makeQueue()
    ask('a')
    ask('b')
    await settle()

    running.get('a')?.end()
    ask('c')
    await settle()

    expect(running.size).toBe(1)
    await drain()
    expect(started).toEqual(['a', 'b', 'c'])
  })
})

describe('sources', () => {
  it('take turns, each with its oldest work first', async () => {
    const { ask, started, drain } = makeQueue()
    ask('now')
    for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) ask(name, anonymous(name.charAt(0)))
    await settle()

    await drain()

    expect(started).toEqual(['now', 'a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
  })

  it('that are new wait for at most one work of each other source', async () => {
    const { ask, started, running, drain } = makeQueue()
    ask('now')
    for (const name of ['a1', 'a2', 'b1', 'b2']) ask(name, anonymous(name.charAt(0)))
    await settle()
    running.get('now')?.end()
    await settle()

    ask('c1', anonymous('c'))
    await drain()

    expect(started).toEqual(['now', 'a1', 'b1', 'a2', 'c1', 'b2'])
  })
})

describe('a full queue', () => {
  it('tells those that it refuses to come one after the other, once it has had time for those that wait, within a minute', async () => {
    const clock = new TestClock()
    const { ask, running } = makeQueue({ concurrency: 2, maxWaiting: 3, clock })
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) ask(name, anonymous('crowd'))
    await settle()
    clock.advance(4_000)
    running.get('a')?.end()
    await settle()
    ask('g', anonymous('crowd'))
    await settle()

    const outcomes = await Promise.allSettled(
      Array.from({ length: 40 }, (_, at) => ask(`late ${at}`, anonymous('crowd'))),
    )

    const seconds = outcomes.map((outcome) => (outcome as PromiseRejectedResult).reason.retryAfterSeconds as number)
    // Two work at once, for four seconds each, and three wait.
    expect(seconds.slice(0, 4)).toEqual([8, 10, 12, 14])
    expect(Math.max(...seconds)).toBe(60)
    expect(Math.min(...seconds.slice(27))).toBe(6)
  })

  it('refuses a source whose share is as large as that of any other, and says when to try again', async () => {
    const { queue, ask } = makeQueue({ maxWaiting: 2 })
    for (const name of ['now', 'a', 'b']) ask(name)
    await settle()

    await expect(ask('c')).rejects.toMatchObject(REFUSAL)
    expect(queue.waiting).toBe(2)
  })

  it('refuses a source itself if it alone has filled the queue', async () => {
    const { queue, ask } = makeQueue({ maxWaiting: 2 })
    for (const name of ['now', 'a1', 'a2']) ask(name, anonymous('a'))
    await settle()

    await expect(ask('a3', anonymous('a'))).rejects.toMatchObject(REFUSAL)
    expect(queue.waiting).toBe(2)
  })

  it('refuses nothing until it is full', async () => {
    const { ask, started, drain } = makeQueue({ maxWaiting: 3 })
    const outcomes = ['now', 'a1', 'a2', 'a3'].map((name) => ask(name, anonymous('a')))
    await settle()

    await drain()

    expect(await Promise.all(outcomes)).toEqual(started)
  })

  it('gives the place of the newest work of the largest source to another source, and never runs that work', async () => {
    const { queue, ask, started, drain } = makeQueue({ maxWaiting: 5 })
    ask('now')
    ask('b1', anonymous('b'))
    const ofLargest = ['a1', 'a2', 'a3'].map((name) => ask(name, anonymous('a')))
    ask('d1', anonymous('d'))
    await settle()

    const newcomer = ask('c1', anonymous('c'))

    await expect(ofLargest[2]).rejects.toMatchObject(REFUSAL)
    expect(queue.waiting).toBe(5)
    await drain()
    expect(await newcomer).toBe('c1')
    expect(started).toEqual(['now', 'b1', 'a1', 'd1', 'c1', 'a2'])
  })

  it.each([
    { own: 0, ofLargest: 1, isAdmitted: false },
    { own: 0, ofLargest: 2, isAdmitted: true },
    { own: 1, ofLargest: 2, isAdmitted: false },
    { own: 1, ofLargest: 3, isAdmitted: true },
  ])(
    'with $own works of a source and $ofLargest of another admits it: $isAdmitted',
    async ({ own, ofLargest, isAdmitted }) => {
      const { ask, started, drain } = makeQueue({ maxWaiting: own + ofLargest })
      ask('now')
      for (let count = 0; count < own; count++) ask('own', anonymous('own'))
      for (let count = 0; count < ofLargest; count++) ask('other', anonymous('other'))
      await settle()

      const outcome = ask('latest', anonymous('own')).then(
        () => true,
        () => false,
      )
      await settle()
      await drain()

      expect(await outcome).toBe(isAdmitted)
      expect(started.includes('latest')).toBe(isAdmitted)
      expect(started.filter((name) => name === 'other')).toHaveLength(isAdmitted ? ofLargest - 1 : ofLargest)
    },
  )

  it('still has place for callers with a session, as many again', async () => {
    const { queue, ask } = makeQueue({ maxWaiting: 2 })
    for (const name of ['now', 'a', 'b']) ask(name)
    await settle()

    for (const name of ['p', 'q']) ask(name, privileged(name))
    await settle()

    expect(queue.waiting).toBe(4)
    await expect(ask('r', privileged('r'))).rejects.toMatchObject(REFUSAL)
    await expect(ask('c')).rejects.toMatchObject(REFUSAL)
  })
})
