// Guesses at passwords by the hundred: they do not keep the right passwords of others from being compared.
import * as argon2 from 'argon2'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { FairQueue } from '../../src/authentication/credentials/fair-queue.ts'
import { CLIENT, TestClock, type TestResponse } from '../world/controller.ts'
import { PASSWORD, People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

// As it is, with every call noted.
vi.mock('argon2', { spy: true })

const GUESSER = '192.0.2.1'
const OTHER = '198.51.100.7'

// A comparison takes longer than a request before it, so that guesses wait for their turn.
const SLOW = { memoryCost: 8_192, timeCost: 1, parallelism: 1 }

// However slow the machine is, no comparison takes too long.
const world = useController({ settings: { 'limits.answerTime': '10m' }, passwordCost: SLOW })
let people: People

beforeAll(async () => {
  people = await People.in(world)
  noteArrival()
})
beforeEach(() => void vi.mocked(argon2.verify).mockClear())

/** Four hundred guesses from one source, all at once, and what became of them. */
function guesses(username: string, from = (_at: number) => GUESSER): Promise<TestResponse[]> {
  const guess = (at: number) => people.signIn({ username, password: `guess number ${at}` }, {}, from(at))
  return Promise.all(Array.from({ length: 400 }, (_, at) => guess(at)))
}

/** Resolves when a comparison has begun. */
function waitForComparison(): Promise<void> {
  return vi.waitFor(() => expect(argon2.verify).toHaveBeenCalled(), { timeout: 20_000 })
}

/** How many other comparisons began between the moment that the right password was to be compared and its own. */
function comparedBefore(): number {
  return vi.mocked(argon2.verify).mock.calls.findIndex(([, password]) => password === PASSWORD) - begunAtArrival
}

let begunAtArrival = 0

function noteArrival() {
  const { passwordHasher } = world.controller.auth
  const verify = passwordHasher.verify.bind(passwordHasher)
  vi.spyOn(passwordHasher, 'verify').mockImplementation((hash, password, context) => {
    if (password === PASSWORD) begunAtArrival = vi.mocked(argon2.verify).mock.calls.length
    return verify(hash, password, context)
  })
}

function statuses(responses: readonly TestResponse[]): number[] {
  return [...new Set(responses.map(({ status }) => status))].sort()
}

describe('four hundred guesses of one source', { timeout: 120_000 }, () => {
  it('move the right password of another source by one turn', async () => {
    const [victim, user] = [await people.person(), await people.person()]
    const storm = guesses(victim.username)
    await waitForComparison()

    const response = await people.signIn(user, {}, OTHER)

    expect(comparedBefore()).toBeLessThanOrEqual(1)
    expect(response.status).toBe(200)
    expect(statuses(await storm)).toEqual([401, 429])
  })

  it('from one /64 of IPv6 have no more turns than one address', async () => {
    const [victim, user] = [await people.person(), await people.person()]
    const storm = guesses(victim.username, (at) => `2001:db8:1:2::${at.toString(16)}`)
    await waitForComparison()

    const response = await people.signIn(user, {}, '2001:db8:1:3::1')

    expect(comparedBefore()).toBeLessThanOrEqual(1)
    expect(response.status).toBe(200)
    await storm
  })

  it('do not delay clients that are signed in, also at the same address', async () => {
    const [victim, user] = [await people.person(), await people.person()]
    const token = await people.sessionOf(user)
    vi.mocked(argon2.verify).mockClear()
    const storm = guesses(victim.username)
    await waitForComparison()

    const response = await world.send({
      method: 'PATCH',
      path: `${CLIENT}/current-identity/authenticators/${user.authenticatorId}`,
      body: { currentPassword: PASSWORD, password: 'another horse' },
      token,
      from: GUESSER,
    })

    expect(comparedBefore()).toBeLessThanOrEqual(1)
    expect(response.status).toBe(200)
    await storm
  })
})

describe('a fair queue', () => {
  const MAX_WAITING = 6

  /** A queue whose work ends when the test says so; `started` has the sources in the order of their turns. */
  function queue() {
    const fair = new FairQueue({ concurrency: 1, maxWaiting: MAX_WAITING, clock: new TestClock() })
    const started: string[] = []
    const refused: string[] = []
    const ends: (() => void)[] = []
    const add = (name: string, isPrivileged = false) => {
      const requester = { source: name.charAt(0), isPrivileged }
      const work = () => {
        started.push(name)
        return new Promise<void>((resolve) => ends.push(resolve))
      }
      fair.run(requester, work).catch(() => refused.push(name))
    }
    const finishAll = async () => {
      for (let end = ends.shift(); end; end = ends.shift()) {
        end()
        await new Promise(setImmediate)
      }
    }
    return { fair, started, refused, add, finishAll }
  }

  it('lets sources take turns, each in the order in which its own came', async () => {
    const { add, started, finishAll } = queue()
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) add(name)

    await finishAll()

    expect(started).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
  })

  it('takes places from the source with the most waiters, the newest first, until the shares are equal', async () => {
    const { add, started, refused, finishAll, fair } = queue()
    for (const name of ['a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'b1', 'b2', 'b3', 'b4', 'c1', 'c2', 'c3'])
      add(name)

    await finishAll()

    expect(refused.sort()).toEqual(['a3', 'a4', 'a5', 'a6', 'a7', 'b3', 'b4', 'c3'])
    expect(started).toEqual(['a0', 'a1', 'b1', 'c1', 'a2', 'b2', 'c2'])
    expect(fair.waiting).toBe(0)
  })

  it('refuses a newcomer where every source has one place', async () => {
    const { add, refused, finishAll } = queue()
    for (const name of ['z0', 'a1', 'b1', 'c1', 'd1', 'e1', 'f1', 'g1']) add(name)

    await finishAll()

    expect(refused).toEqual(['g1'])
  })

  it('has places for favoured callers if anonymous ones fill it', async () => {
    const { add, refused, started, finishAll } = queue()
    for (const name of ['z0', 'a1', 'b1', 'c1', 'd1', 'e1', 'f1']) add(name)
    add('k1', true)

    await finishAll()

    expect(refused).toEqual([])
    expect(started.at(-1)).toBe('k1')
  })

  it('goes on after work that failed', async () => {
    const fair = new FairQueue({ concurrency: 1, maxWaiting: 1, clock: new TestClock() })
    const requester = { source: 'a', isPrivileged: false }

    await expect(fair.run(requester, () => Promise.reject(new Error('no memory')))).rejects.toThrow('no memory')

    await expect(fair.run(requester, async () => 'done')).resolves.toBe('done')
  })
})
