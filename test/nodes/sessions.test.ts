// API sessions among several controllers: their use at any of them counts at all, and so does their end.
import { describe, expect, it } from 'vitest'
import { CLIENT } from '../world/controller.ts'
import { useNetworkPerTest } from '../world/network-of-controllers.ts'

const world = useNetworkPerTest()
const MINUTE = 60_000

/** The status of a request of a session at a controller, by the order of the controllers. */
async function use(at: number, token: string): Promise<number> {
  const { status } = await world.nodes[at]!.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
  return status
}

/** Lets time pass, at the end of which each controller writes what others have to know, and the first one deletes what is over. */
async function pass(milliseconds: number): Promise<void> {
  world.network.advance(milliseconds)
  for (const { controller, system } of world.nodes) await controller.auth.apiSessions.flushUrgent(system)
  await world.network.catchUp()
  const [{ controller, system }] = world.nodes as [(typeof world.nodes)[0]]
  await controller.auth.apiSessions.termination.deleteExpired(system)
  await world.network.catchUp()
}

describe('an API session', () => {
  it('goes on at all controllers if it is used at one of them only, however late before its end', async () => {
    const { token } = await world.nodes[0]!.signIn()
    await world.network.catchUp()
    await pass(29 * MINUTE)
    expect(await use(1, token)).toBe(200)
    await pass(1_000)
    await pass(25 * MINUTE)

    expect(await use(0, token)).toBe(200)
    expect(await use(1, token)).toBe(200)
    expect(await world.network.listDifferences()).toEqual([])
  })

  it('is written at once only if it was not used for half of its time', async () => {
    const { token } = await world.nodes[0]!.signIn()
    await world.network.catchUp()
    const { controller, system } = world.nodes[1]!
    const countCommits = async () => {
      const before = world.network.log.commits.length
      await use(1, token)
      await controller.auth.apiSessions.flushUrgent(system)
      return world.network.log.commits.length - before
    }
    world.network.advance(14 * MINUTE)
    expect(await countCommits()).toBe(0)
    world.network.advance(15 * MINUTE)
    expect(await countCommits()).toBe(1)
  })

  it('ends at all of them if it is used at none', async () => {
    const { token } = await world.nodes[1]!.signIn()
    await world.network.catchUp()
    await pass(30 * MINUTE + 1_000)
    expect([await use(0, token), await use(1, token)]).toEqual([401, 401])
    await pass(10_000)
    for (const { controller } of world.nodes) expect(controller.auth.apiSessions.size).toBe(0)
  })

  it('does not become older by a use at another controller that is written later', async () => {
    const { id, token } = await world.nodes[0]!.signIn()
    await world.network.catchUp()
    const flush = (at: number) => world.nodes[at]!.controller.auth.apiSessions.flush(world.nodes[at]!.system)
    world.network.advance(MINUTE)
    await use(0, token)
    world.network.advance(MINUTE)
    await use(1, token)
    await flush(1)
    await flush(0)
    await world.network.catchUp()
    const [session] = world.nodes[0]!.controller.auth.apiSessions.listOfIdentity(id)
    const { db } = world.nodes[0]!.controller.store
    const row = await db.selectFrom('api_sessions').select('lastActivityAt').executeTakeFirstOrThrow()

    expect(row.lastActivityAt).toBe(world.nodes[1]!.clock.now())
    expect(session?.lastActivityAt).toBe(row.lastActivityAt)
    expect(await world.network.listDifferences()).toEqual([])
  })
})
