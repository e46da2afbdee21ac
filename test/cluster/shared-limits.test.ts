// The limits of what one identity may do, among several controllers: all of them together permit what one alone would.
import { describe, expect, it } from 'vitest'
import { TestCluster } from '../world/cluster.ts'
import type { TestController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const settings = { 'limits.signInsPerIdentity': 1 }
const BURST = 10

const world = useClusterPerTest(TestCluster)

/** How many times a controller lets a person sign in at once. */
async function countSignIns(node: TestController, name: string): Promise<number> {
  const people = await People.in(node, `administrator ${name}`)
  const person = await people.person()
  for (let count = 0; ; count += 1) if ((await people.signIn(person)).status === 429) return count
}

const countLive = (node: TestController) => node.controller.cluster?.nodes.liveCount

describe('a limit of what an identity may do', () => {
  it('is that of a single controller, or the part of each of two, while both run', async () => {
    const first = await world.cluster.open('first', { settings })
    expect(await countSignIns(first, 'alone')).toBe(BURST)

    const second = await world.cluster.open('second', { settings })
    await expect.poll(() => countLive(first)).toBe(2)
    await expect.poll(() => countLive(second)).toBe(2)
    expect(await countSignIns(first, 'one of two')).toBe(BURST / 2)
    expect(await countSignIns(second, 'the other one')).toBe(BURST / 2)

    await world.cluster.stop(second)
    await expect.poll(() => countLive(first)).toBe(1)
    expect(await countSignIns(first, 'alone again')).toBe(BURST)
  })
})
