// Traces of identities among several controllers: whichever of them is asked, all of them trace, or stop.
import { beforeEach, describe, expect, it } from 'vitest'
import { MANAGEMENT, type TestController } from '../world/controller.ts'
import { newName } from '../world/names.ts'
import { useNetworkPerTest } from '../world/network-of-controllers.ts'

const MINUTES = 60_000

const world = useNetworkPerTest()

const TRACE = { enabled: true, duration: '10m' }

let token: string

beforeEach(async () => {
  token = await nodeAt(1).admin()
  await world.network.catchUp()
})

const nodeAt = (number: 1 | 2) => world.nodes[number - 1] as TestController

/** Sends a trace to one of the controllers. Resolves with the status once both have followed. */
async function trace(number: 1 | 2, id: string, body: object): Promise<number> {
  const path = `${MANAGEMENT}/identities/${id}/trace`
  const { status } = await nodeAt(number).send({ method: 'PUT', path, body, token })
  await world.network.catchUp()
  return status
}

/** The id of an identity that both controllers know. */
async function makeIdentity(): Promise<string> {
  const { id } = await nodeAt(1).signIn({ name: newName('identity') })
  await world.network.catchUp()
  return id
}

const listTraceIds = (id: string) => world.nodes.map(({ controller }) => controller.fabric.traces.find(id)?.traceId)

describe('the trace of an identity', () => {
  it('begins at every controller, and is ended by another one than began it', async () => {
    const id = await makeIdentity()
    expect(await trace(1, id, { ...TRACE, traceId: 'why', channels: ['selectPath'] })).toBe(200)
    expect(listTraceIds(id)).toEqual(['why', 'why'])
    const [begun, followed] = world.nodes.map(({ controller }) => controller.fabric.traces.find(id))
    expect(followed).toEqual(begun)
    expect(followed?.channels).toEqual(['selectPath'])

    expect(await trace(2, id, { enabled: false })).toBe(200)
    expect(listTraceIds(id)).toEqual([undefined, undefined])
  })

  it('is replaced at every controller by a later one', async () => {
    const id = await makeIdentity()
    await trace(1, id, { ...TRACE, traceId: 'earlier' })
    await trace(2, id, { ...TRACE, traceId: 'later' })
    expect(listTraceIds(id)).toEqual(['later', 'later'])
  })

  it('ends at every controller when its time is over', async () => {
    const id = await makeIdentity()
    await trace(1, id, { ...TRACE, traceId: 'why' })
    world.network.advance(10 * MINUTES - 1)
    expect(listTraceIds(id)).toEqual(['why', 'why'])
    world.network.advance(1)
    expect(listTraceIds(id)).toEqual([undefined, undefined])
  })

  it('is ended by a controller that was restarted and has none, and ends with its identity', async () => {
    const [ended, deleted] = [await makeIdentity(), await makeIdentity()]
    for (const id of [ended, deleted]) await trace(1, id, { ...TRACE, traceId: 'why' })
    const { send } = await world.network.restart('node 2')
    await world.network.catchUp()
    expect(listTraceIds(ended)).toEqual(['why', undefined])

    await trace(2, ended, { enabled: false })
    await send({ method: 'DELETE', path: `${MANAGEMENT}/identities/${deleted}`, token })
    await world.network.catchUp()
    expect([listTraceIds(ended), listTraceIds(deleted)]).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ])
  })

  it('is not begun if too many identities are traced, whichever controllers were asked', async () => {
    const id = await makeIdentity()
    for (const { controller, system, name } of world.nodes) {
      const { traces } = controller.fabric
      const until = system.clock.now() + 10 * MINUTES
      await system.write(async (tx) => {
        for (let count = 0; count < 500; count++)
          traces.begin(tx, `${name} ${count}`, { traceId: 'many', channels: [], until })
      })
      await world.network.catchUp()
    }
    for (const number of [1, 2] as const) expect(await trace(number, id, TRACE)).toBe(429)

    world.network.advance(10 * MINUTES)
    expect(await trace(2, id, TRACE)).toBe(200)
  })
})
