// Two controllers of one network: what one changes, the other serves.
import { describe, expect, it } from 'vitest'
import { TestCluster } from '../world/cluster.ts'
import { MANAGEMENT, type TestController } from '../world/controller.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const world = useClusterPerTest(TestCluster)

const readIdentity = ({ send }: TestController, id: string, token: string) =>
  send({ method: 'GET', path: `${MANAGEMENT}/identities/${id}`, token })

describe('two controllers of one network', () => {
  it('serve what either has changed, to sessions that began at either', async () => {
    const [first, second] = [await world.cluster.open('first'), await world.cluster.open('second')]
    const { token } = await first.signIn({ isAdmin: true })
    const { id } = await second.signIn({ name: 'made at the second' })
    await first.controller.store.catchUp()
    await second.controller.store.catchUp()
    for (const node of world.cluster.nodes) {
      const { status, body } = await readIdentity(node, id, token)
      expect([status, body?.data.name]).toEqual([200, 'made at the second'])
    }
  })

  it('follow each other without being asked', async () => {
    const [first, second] = [await world.cluster.open('first'), await world.cluster.open('second')]
    const { id, token } = await first.signIn({ isAdmin: true })
    await expect.poll(async () => (await readIdentity(second, id, token)).status, { timeout: 10_000 }).toBe(200)
  })
})
