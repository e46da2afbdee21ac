// Several controllers on the oldest release of PostgreSQL that the machine has: all other tests run on the newest.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listDifferentTables } from '../../src/storage/sqlite/row-digest.ts'
import { TestCluster } from '../world/cluster.ts'
import { MANAGEMENT } from '../world/controller.ts'
import { lacks } from '../world/machine.ts'
import { findOlderPrograms, TestPostgres } from '../world/postgres.ts'
import { digestFile } from '../world/shadow.ts'

const programs = findOlderPrograms()
const isMissing = lacks(
  'an older PostgreSQL, below /usr/lib/postgresql or at CONTROLLER_TEST_POSTGRES',
  programs !== undefined,
)

describe.skipIf(isMissing)(`on ${programs ? readRelease(programs) : 'an older PostgreSQL'}`, () => {
  let server: TestPostgres
  let cluster: TestCluster

  beforeAll(async () => {
    server = await TestPostgres.start({ programs: programs as string })
    cluster = await TestCluster.create(server)
  }, 60_000)
  afterAll(async () => {
    await cluster?.close()
    await server?.stop()
  })

  it('controllers share what they commit, take turns with duties, are drained, and diagnosed', async () => {
    const one = await cluster.open('one')
    const two = await cluster.open('two')
    const token = await one.admin()
    const createAll = [one, two].map(({ send }, at) =>
      Array.from({ length: 10 }, (_, nth) => {
        const body = { name: `service ${at} ${nth}`, encryptionRequired: true }
        return send({ method: 'POST', path: `${MANAGEMENT}/services`, token, body })
      }),
    )
    for (const { status } of await Promise.all(createAll.flat())) expect(status).toBe(201)
    for (const node of cluster.nodes) await node.controller.store.catchUp()
    expect(listDifferentTables(digestFile(one.directory), digestFile(two.directory))).toEqual([])
    const drained = await one.send({ method: 'POST', path: `${MANAGEMENT}/controller/nodes/one/drain`, token })
    expect(drained.status).toBe(200)
    await expect.poll(() => two.controller.cluster?.hasTimers, { timeout: 20_000 }).toBe(true)
    const { body } = await two.send({ method: 'GET', path: `${MANAGEMENT}/controller/doctor`, token })
    const incomplete = body.data.diagnoses.filter(({ message }: { message: string }) =>
      message.startsWith('the check could not be completed'),
    )
    expect(incomplete).toEqual([])
  })
})

function readRelease(folder: string): string {
  return execFileSync(join(folder, 'postgres'), ['--version'], { encoding: 'utf8' }).trim()
}
