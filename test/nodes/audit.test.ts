// The audit of controllers that share a log: one chain, in which each record names the controller that wrote it.

import { describe, expect, it } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { testController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { managementOf } from '../world/management.ts'
import { useNetworkPerTest } from '../world/network-of-controllers.ts'
import { Sqlite } from '../world/sqlite.ts'

interface AuditRecord {
  readonly id: number
  readonly entityName: string | null
  readonly node: string | null
}

const world = useNetworkPerTest()

/** Makes a service on each node in turn. */
async function makeServices() {
  const managements = []
  for (const node of world.nodes) {
    const management = await managementOf(node)
    await management.make('services', { name: `of ${node.name}`, encryptionRequired: true })
    managements.push(management)
  }
  await world.network.catchUp()
  return managements
}

/** The ages of the audit that its records state, in their order. */
async function readAges(): Promise<number[]> {
  await world.network.catchUp()
  const { db } = world.nodes[0]!.controller.store
  const rows = await db.selectFrom('audit_records').select('elapsed').orderBy('n').execute()
  return rows.map(({ elapsed }) => elapsed)
}

describe('the audit of two controllers', () => {
  it('is the same chain on both, and each record names the controller that wrote it', async () => {
    const managements = await makeServices()
    const lists: AuditRecord[][] = []
    for (const management of managements) {
      expect((await management.get('/controller/audit/verify')).findings).toEqual([])
      lists.push(await management.get('/controller/audit?limit=500'))
    }
    const nodesByService = lists[0]
      ?.filter(({ entityName }) => entityName?.startsWith('of '))
      .map(({ entityName, node }) => [entityName, node])

    expect(lists[1]).toEqual(lists[0])
    expect(nodesByService).toEqual([
      ['of node 2', 'node 2'],
      ['of node 1', 'node 1'],
    ])
  })

  it('is filtered by the controller', async () => {
    const [management] = await makeServices()
    const records: AuditRecord[] = await management!.get(
      `/controller/audit?filter=${encodeURIComponent('node = "node 2" and resource = "services"')}`,
    )

    expect(records.map(({ entityName }) => entityName)).toEqual(['of node 2'])
  })

  it('tells that another controller was put in the place of the one that wrote a record', async () => {
    const [, second] = await makeServices()
    allowFaults(/another process wrote to the database/)
    const file = new Sqlite(getDataPaths(world.nodes[1]!.directory).database)
    file.prepare("update audit_records set node = 'node 1' where entityName = 'of node 2'").run()
    file.close()

    expect((await second!.get('/controller/audit/verify')).findings).toContainEqual(
      expect.stringMatching(/was changed after it was written/),
    )
  })

  it('becomes older at each record, whatever the clocks of the controllers show', async () => {
    const [first, second] = world.nodes
    const age = Math.max(...world.nodes.map(({ controller }) => controller.store.auditElapsed()))
    first!.clock.set(-3_600_000)
    second!.clock.set(3_600_000)
    for (const node of [first!, second!, first!, second!]) {
      world.network.advance(1_000)
      const management = await managementOf(node)
      await management.make('services', { name: `${node.name} ${node.clock.now()}`, encryptionRequired: true })
    }
    const ages = await readAges()

    expect(ages).toEqual(ages.toSorted((a, b) => a - b))
    expect(ages.at(-1)! - age, 'only the time that passed counts').toBe(4_000)
  })

  it('becomes older while a controller does not run by what its own clock says of that time', async () => {
    const [first, second] = world.nodes
    second!.clock.set(3_600_000)
    await (await managementOf(second!)).make('services', { name: 'ahead', encryptionRequired: true })
    await (await managementOf(first!)).make('services', { name: 'behind', encryptionRequired: true })
    const age = (await readAges()).at(-1)!
    world.network.advance(5_000)
    const reopened = await world.network.restart(second!.name)

    expect(reopened.controller.store.auditElapsed() - age).toBe(5_000)
  })
})

describe('the audit of a single controller', () => {
  it('names no controller', async () => {
    const alone = await testController()
    try {
      const management = await managementOf(alone)
      const [newest] = await management.get('/controller/audit?limit=1')
      expect(newest.node).toBeNull()
    } finally {
      await alone.close()
    }
  })
})
