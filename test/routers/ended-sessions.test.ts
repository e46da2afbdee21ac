// The stored ends of sessions, for routers that are away: few rows, none of which is loaded.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { silentLog } from '../../src/foundation/log.ts'
import { EndedSessions } from '../../src/network/routers/ended-sessions.ts'
import { SqliteExecutor } from '../../src/storage/sqlite/executor.ts'
import { CLIENT } from '../world/controller.ts'
import { TestNetwork } from '../world/router/network.ts'

let network: TestNetwork

beforeEach(async () => {
  network = await TestNetwork.start()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await network.close()
})

const readEnds = () => network.world.controller.store.db.selectFrom('ended_sessions').selectAll().execute()
const readAbsences = () => network.world.controller.store.db.selectFrom('absent_routers').selectAll().execute()
const readCommitTime = async () =>
  (await network.world.controller.store.db.selectFrom('commit_position').select('at').executeTakeFirstOrThrow()).at

/** Has a client dial another service by the API session that it has. Returns the session. */
async function dialFurther(token: string): Promise<string> {
  const body = { serviceId: await network.service(), type: 'Dial' }
  return (await network.world.send({ method: 'POST', path: `${CLIENT}/sessions`, token, body })).body.data.id
}

describe('the end of a session', () => {
  it('is stored for its API session, once for any number of its sessions, with the time of the commit', async () => {
    await network.router(2)
    const client = await network.client(await network.service())
    const furtherId = await dialFurther(client.apiSessionToken)
    const lastingId = await dialFurther(client.apiSessionToken)
    for (const id of [client.sessionId, furtherId]) await network.manage.change('DELETE', `/sessions/${id}`)
    const endedAt = await readCommitTime()
    expect(await readEnds()).toEqual([expect.objectContaining({ endedAt })])
    await network.manage.change('DELETE', `/sessions/${lastingId}`)
    expect(await readEnds()).toEqual([expect.objectContaining({ endedAt: await readCommitTime() })])
  })

  it('is stored if a policy does not permit it any more, or its service is deleted', async () => {
    await network.router(2)
    const serviceId = await network.service()
    const clients = [await network.client(serviceId), await network.client(await network.service())]
    await network.manage.change('DELETE', `/services/${serviceId}`)
    expect(await readEnds()).toHaveLength(1)
    const [policy] = await network.manage.get('/service-policies?filter=type=1')
    await network.manage.change('DELETE', `/service-policies/${policy.id}`)
    expect(await readEnds()).toHaveLength(clients.length)
  })

  it('is not stored if its API session ends, and no longer then', async () => {
    await network.router(2)
    const { sessionId, apiSessionToken: token } = await network.client(await network.service())
    const other = await network.client(await network.service())
    await network.manage.change('DELETE', `/sessions/${sessionId}`)
    for (const one of [token, other.apiSessionToken])
      await network.world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, token: one })
    expect(await readEnds()).toEqual([])
  })

  it('is not stored in a network that has had no router of release 2, nor which routers are away', async () => {
    const router = await network.router()
    const { sessionId } = await network.client(await network.service())
    await network.manage.change('DELETE', `/sessions/${sessionId}`)
    await router.wire.close()
    await expect.poll(() => network.world.controller.routers.connected.size).toBe(0)
    await network.service()
    expect([await readEnds(), await readAbsences()]).toEqual([[], []])
  })
})

describe('a router', () => {
  it('is stored as absent from when it leaves until it has been back for a minute, and not after it was deleted', async () => {
    const [staying, returning] = [await network.router(2), await network.router(2)]
    const { connected, endedSessions } = network.world.controller.routers
    for (const { wire } of [staying, returning]) await wire.close()
    await expect.poll(readAbsences).toHaveLength(2)
    const back = await network.reconnect(returning.id, undefined, 2)
    await back.settle()
    endedSessions.tick()
    await network.service()
    expect(await readAbsences()).toHaveLength(2)
    network.advance(60_000)
    endedSessions.tick()
    await expect.poll(readAbsences).toEqual([expect.objectContaining({ routerId: staying.id })])
    expect(connected.get(returning.id)).toBeDefined()
    await network.manage.change('DELETE', `/edge-routers/${staying.id}`)
    expect(await readAbsences()).toEqual([])
  })
})

it('a process that starts reads no session, however many there are', async () => {
  await network.router(2)
  for (let nth = 0; nth < 3; nth += 1) await network.client(await network.service())
  const { clock, routers, sessionTokens, store } = network.world.controller
  const statements: string[] = []
  const { executeQuery } = SqliteExecutor.prototype
  vi.spyOn(SqliteExecutor.prototype, 'executeQuery').mockImplementation(function (this: SqliteExecutor, ...args) {
    statements.push(args[0].sql)
    return executeQuery.apply(this, args)
  })
  const { connected, sessionSync } = routers
  const createSystemContext = () => network.world.system
  const parts = { clock, connected, db: store.db, log: silentLog, sessionSync, sessionTokens, createSystemContext }
  await new EndedSessions({ ...parts, isLeading: () => true }).restart(store.db)
  expect(statements).toEqual([expect.stringContaining('commit_position')])
})
