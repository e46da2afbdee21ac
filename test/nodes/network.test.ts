// Controllers of one network: what one has committed, the others serve.
import { describe, expect, it } from 'vitest'
import { MANAGEMENT } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'
import { useNetworkPerTest } from '../world/network-of-controllers.ts'

describe('two controllers that share a log', () => {
  const world = useNetworkPerTest()

  it('serve what the other has committed, and a session that began there', async () => {
    const [first, second] = world.nodes as [(typeof world.nodes)[0], (typeof world.nodes)[0]]
    const token = await first.admin()
    const created = await first.send({
      method: 'POST',
      path: `${MANAGEMENT}/services`,
      body: { name: 'printer', encryptionRequired: false },
      token,
    })
    await world.network.catchUp()
    const list = await second.send({ method: 'GET', path: `${MANAGEMENT}/services`, token })

    expect(created.status).toBe(201)
    expect(list.body.data.map(({ name }: { name: string }) => name)).toEqual(['printer'])
    expect(await world.network.listDifferences()).toEqual([])
  })

  it('refuse changes while they cannot reach the log, and follow afterwards', async () => {
    const [first, second] = world.nodes as [(typeof world.nodes)[0], (typeof world.nodes)[0]]
    const token = await first.admin()
    await world.network.catchUp()
    world.network.cutOff.add(second.name)
    expectFaults(/STORAGE_UNAVAILABLE/)
    const body = { name: 'printer', encryptionRequired: false }
    const refused = await second.send({ method: 'POST', path: `${MANAGEMENT}/services`, body, token })
    world.network.cutOff.clear()
    await first.send({ method: 'POST', path: `${MANAGEMENT}/services`, body, token })
    const reopened = await world.network.restart(second.name)
    await world.network.catchUp()
    const list = await reopened.send({ method: 'GET', path: `${MANAGEMENT}/services`, token })

    expect(refused.status).toBe(503)
    expect(list.body.data).toHaveLength(1)
    expect(await world.network.listDifferences()).toEqual([])
  })
})
