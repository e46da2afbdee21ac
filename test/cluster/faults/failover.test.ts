// The database fails over to its standby while nodes are in use: nothing is lost that the standby had to have, and no node goes on with what
// an asynchronous one lacks.
import { rmSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { listDifferentTables } from '../../../src/storage/sqlite/row-digest.ts'
import { MANAGEMENT } from '../../world/controller.ts'
import { TestPostgres } from '../../world/postgres.ts'
import { random } from '../../world/random.ts'
import { TcpProxy } from '../../world/tcp-proxy.ts'
import { Callers, type Prepared } from './callers.ts'
import { findViolations } from './checker.ts'
import { History } from './history.ts'
import { NodeProcesses } from './node-processes.ts'
import { prepare, times } from './prepare.ts'

const SECONDS = 20
const LEASE_MS = 3_000
const SOON = { timeout: 60_000 }

let primary: TestPostgres
let standby: TestPostgres
let nodes: NodeProcesses
let directory: string
let prepared: Prepared

beforeEach(async () => {
  primary = await TestPostgres.start()
  ;({ directory, prepared } = await prepare(SECONDS))
}, 120_000)
afterEach(async () => {
  await nodes?.close()
  await standby?.stop()
  await primary?.stop()
  rmSync(directory, { recursive: true, force: true })
})

const createIdentity = (at: number, name: string) =>
  nodes.all[at]!.send({
    method: 'POST',
    path: `${MANAGEMENT}/identities`,
    token: prepared.adminToken,
    body: { name, type: 'Default', isAdmin: false },
  })

describe('a failover of the database', () => {
  it('to a synchronous standby loses nothing that was acknowledged', async () => {
    const startStandby = async () => {
      standby = await primary.startStandby({ isSynchronous: true })
      return standby
    }
    nodes = await NodeProcesses.start(primary, directory, ['first', 'second'], startStandby)
    const history = new History()
    const until = performance.now() + SECONDS * 1_000
    const failOver = async () => {
      await wait((SECONDS * 1_000) / 3)
      await primary.crash()
      await standby.promote()
    }
    await Promise.all([failOver(), new Callers(nodes.all, prepared, history, random(1), until).run()])
    await expect.poll(async () => (await createIdentity(0, 'after the failover'))?.status, SOON).toBe(201)
    for (const node of nodes.all) await node.kill()

    expect(findViolations(await nodes.readLog(), history, LEASE_MS)).toEqual([])
    const [first, second] = await times(2, (at) => nodes.digestAtEnd(nodes.all[at]!))
    expect(listDifferentTables(first!, second!)).toEqual([])
  }, 240_000)

  it('to an asynchronous standby takes back what that lacks, at all nodes that have it', async () => {
    let replication: TcpProxy | undefined
    const startStandby = async () => {
      const { proxy, url } = await TcpProxy.before(primary.url)
      replication = proxy
      standby = await primary.startStandby({ isSynchronous: false, source: url })
      return standby
    }
    nodes = await NodeProcesses.start(primary, directory, ['first', 'second'], startStandby)
    expect((await createIdentity(0, 'replicated'))?.status).toBe(201)
    await primary.waitForStandby()
    replication!.isHolding = true
    for (let number = 0; number < 10; number += 1)
      expect((await createIdentity(number % 2, `lost ${number}`))?.status).toBe(201)
    await primary.crash()
    await standby.promote()
    const read = async (at: number) => {
      const node = nodes.all[at]!
      // A service manager starts a node again that has ended.
      if (!node.isRunning) await node.restart()
      const path = `${MANAGEMENT}/identities?filter=${encodeURIComponent('name contains "lost" or name contains "repl"')}`
      const outcome = await node.send({ method: 'GET', path, token: prepared.adminToken })
      return (outcome?.data as unknown as { name: string }[] | undefined)?.map?.(({ name }) => name)
    }
    for (const at of [0, 1]) await expect.poll(() => read(at), SOON).toEqual(['replicated'])
    for (const at of [0, 1])
      await expect.poll(async () => (await createIdentity(at, `again ${at}`))?.status, SOON).toBe(201)
    for (const node of nodes.all) await node.kill()
    const [first, second] = await times(2, (at) => nodes.digestAtEnd(nodes.all[at]!))

    expect(listDifferentTables(first!, second!)).toEqual([])
    replication!.close()
  }, 240_000)
})
