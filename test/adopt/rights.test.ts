// The proof of an adoption: it refuses databases whose rights cannot be continued as they were, and is repeated later.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { adoptNetwork, verifyAdoption } from '../../src/adopt.ts'
import { isInitialized } from '../../src/initialize.ts'
import { MANAGEMENT, TestClock, testController } from '../world/controller.ts'
import { type EditableBucket, editDatabase } from './edited-database.ts'
import { findRecordId, NETWORK_TIME, unpackNetwork } from './networks.ts'

const folder = mkdtempSync(join(tmpdir(), 'rights-'))
afterAll(() => rmSync(folder, { recursive: true }))

const service = findRecordId('1.6.5', 'services', 'echo')
const router = findRecordId('1.6.5', 'routers', 'router-quickstart')
const client = findRecordId('1.6.5', 'identities', 'client')
const policy = findRecordId('1.6.5', 'servicePolicies', 'dial')

function prepare(name: string, edit?: (records: EditableBucket) => void) {
  const { config, database } = unpackNetwork('1.6.5', join(folder, name))
  if (edit) editDatabase(database, edit)
  const directory = join(folder, `data-${name}`)
  return { directory, configuration: config, env: {}, clock: new TestClock(NETWORK_TIME), osUser: 'operator' }
}

describe('an adoption is refused, and leaves nothing behind,', () => {
  it.each<[string, (records: EditableBucket) => void, string]>([
    [
      'if the policies grant a service that the former controller had not granted',
      (records) => records.at('identities', client, 'dialServices').delete(`\x05${service}`),
      `${client} may dial ${service}, which the former controller did not grant`,
    ],
    [
      'if the policies grant an edge router that the former controller had not granted',
      (records) => records.at('identities', client, 'routers').delete(`\x05${router}`),
      `${client} may use the router ${router}, which the former controller did not grant`,
    ],
    [
      'if a service could be used over an edge router that the former controller had not granted',
      (records) => records.at('services', service, 'edge', 'edgeRouters').delete(`\x05${router}`),
      `${service} may be used over the router ${router}, which the former controller did not grant`,
    ],
    [
      'if the policies have a role that the former controller had not applied yet',
      (records) => records.at('servicePolicies', policy, 'identityRoles').add('#hosts'),
      'may dial',
    ],
  ])('%s', async (_, edit, difference) => {
    const options = prepare(`refused-${difference.length}`, edit)
    const refusal = await adoptNetwork(options).catch((error) => error)
    expect(refusal).toMatchObject({ code: 'RIGHTS_DIFFER', message: expect.stringContaining(difference) })
    expect(isInitialized(options.directory)).toBe(false)
  })

  it('if the database is that of another network than the configuration', async () => {
    const { database } = unpackNetwork('1.6.5-three-roots', join(folder, 'other-network'))
    const options = { ...prepare('refused-other-network'), database }
    await expect(adoptNetwork(options)).rejects.toMatchObject({ code: 'OTHER_NETWORK' })
    expect(isInitialized(options.directory)).toBe(false)
  })
})

describe('the proof of an adoption', () => {
  it('counts the same rights when it is repeated, and refuses once a policy grants more', async () => {
    const options = prepare('again')
    const { report, complete } = await adoptNetwork(options)
    complete()
    expect((await verifyAdoption(options)).rights).toEqual(report.rights)

    const world = await testController({ directory: options.directory, clock: options.clock })
    const body = { name: 'more', type: 'Dial', semantic: 'AnyOf', identityRoles: ['#all'], serviceRoles: ['#all'] }
    const path = `${MANAGEMENT}/service-policies`
    expect((await world.send({ method: 'POST', path, token: await world.admin(), body })).status).toBe(201)
    await world.stop()

    await expect(verifyAdoption(options)).rejects.toMatchObject({ code: 'RIGHTS_DIFFER' })
  })
})
