// The posture of machines among several controllers: what one accepted counts at the others, also when time takes a right away.
import { describe, expect, it } from 'vitest'
import { type SmallNetwork, smallNetwork } from '../access/network.ts'
import { useNetworkPerTest } from '../world/network-of-controllers.ts'

const world = useNetworkPerTest()
const MINUTE = 60_000

/** A service that an identity may dial if it passes a posture check, and the network as each controller serves it. */
async function guard(check: object) {
  const [first, second] = await Promise.all(world.nodes.map((node) => smallNetwork(node)))
  const a = first as SmallNetwork
  const b = second as SmallNetwork
  await a.router('north')
  await a.openRouters()
  const service = await a.service('web', ['web'])
  const checkId = await a.make('posture-checks', { name: 'check', ...check })
  await a.servicePolicy('Dial', ['#staff'], ['#web'], { postureCheckRoles: [`@${checkId}`] })
  const person = await a.person('one', ['staff'])
  await world.network.catchUp()
  return { a, b, service, person }
}

/** The rows of sessions for services, as each controller has them. */
async function countSessions(): Promise<number[]> {
  await world.network.catchUp()
  const counts = world.nodes.map(async ({ controller }) => {
    const rows = await controller.store.db.selectFrom('sessions').select('id').execute()
    return rows.length
  })
  return Promise.all(counts)
}

/** Has one controller revoke what time has ended. Returns how many commits it made. */
async function revokeExpired(at: number): Promise<number> {
  const before = world.network.log.commits.length
  const { posture, contexts } = world.nodes[at]!.controller
  await posture.deadlines.revokeExpired(contexts)
  return world.network.log.commits.length - before
}

describe('the posture that a machine reported to one controller', () => {
  it('grants at the other one, and takes away there what it granted', async () => {
    const { a, b, service, person } = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    expect((await b.dial(person, service)).status).toBe(409)
    await a.report(person, { typeId: 'DOMAIN', domain: 'a.b' })
    await world.network.catchUp()
    expect((await b.dial(person, service)).status).toBe(201)
    expect(await countSessions()).toEqual([1, 1])

    await a.report(person, { typeId: 'DOMAIN', domain: 'c.d' })
    expect(await countSessions()).toEqual([0, 0])
    expect((await b.dial(person, service)).status).toBe(409)
    expect(await world.network.listDifferences()).toEqual([])
  })

  it('is gone at both once the identity has been deleted at either', async () => {
    const { a, b, person } = await guard({ typeId: 'DOMAIN', domains: ['a.b'] })
    await a.report(person, { typeId: 'DOMAIN', domain: 'a.b' })
    await world.network.catchUp()
    await b.change('DELETE', `/identities/${person.id}`)
    await world.network.catchUp()

    expect(world.nodes.map(({ controller }) => controller.posture.reported.findMachine(person.id))).toEqual([
      undefined,
      undefined,
    ])
  })
})

describe('the time that takes a right away', () => {
  /** A session that was opened at the first controller, and lasts two minutes after the proof of a second factor. */
  async function openSession() {
    const { a, service, person } = await guard({ typeId: 'MFA', timeoutSeconds: 120 })
    const { controller, system } = world.nodes[0]!
    const [session] = controller.auth.apiSessions.listOfIdentity(person.id)
    await system.write((tx) => controller.auth.apiSessions.totp.complete(tx, session!.id))
    expect((await a.dial(person, service)).status).toBe(201)
    await world.network.catchUp()
    for (const at of [0, 1]) await revokeExpired(at)
  }

  it('is known to the other controller, which revokes once the one that granted it is gone', async () => {
    await openSession()
    world.network.advance(2 * MINUTE - 2_000)
    await revokeExpired(1)
    expect(await countSessions()).toEqual([1, 1])
    world.network.advance(4_000)
    await revokeExpired(1)

    expect(await countSessions()).toEqual([0, 0])
  })

  it('is judged by one of them, after which the other has nothing left to do', async () => {
    await openSession()
    world.network.advance(2 * MINUTE + 2_000)
    expect(await revokeExpired(0)).toBe(1)
    await world.network.catchUp()

    expect(await revokeExpired(1)).toBe(0)
  })

  it('is prolonged at both by another proof at either', async () => {
    await openSession()
    const { controller, system } = world.nodes[1]!
    world.network.advance(MINUTE)
    const [session] = await controller.store.db.selectFrom('sessions').select('apiSessionId').execute()
    await system.write((tx) => controller.auth.apiSessions.totp.complete(tx, session!.apiSessionId))
    await world.network.catchUp()
    world.network.advance(MINUTE + 2_000)
    await revokeExpired(0)
    expect(await countSessions()).toEqual([1, 1])
    world.network.advance(MINUTE)
    await revokeExpired(0)

    expect(await countSessions()).toEqual([0, 0])
  })
})
