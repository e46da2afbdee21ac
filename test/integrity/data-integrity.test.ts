// Defects that another process writes into a database: found by a check, repaired if nothing is lost by it, and both audited.

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkDatabase } from '../../src/maintenance/integrity/check-database.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { makeAuthority } from '../world/authorities.ts'
import { MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { allowFaults, expectFaults } from '../world/faults.ts'
import { Sqlite } from '../world/sqlite.ts'

let world: TestController
let token: string

beforeEach(async () => {
  world = await testController()
  token = await world.admin()
})
afterEach(() => world.close())

const send = (method: string, path: string, body?: unknown) =>
  world.send({ method, path: MANAGEMENT + path, token, ...(body === undefined ? {} : { body }) })

async function create(plural: string, body: unknown): Promise<string> {
  const response = await send('POST', `/${plural}`, body)
  expect(response.status).toBe(201)
  return response.body.data.id
}

/** Changes the database as no code of the controller would: without foreign keys, and behind its back. */
function damage(...statements: readonly string[]): void {
  allowFaults(/another process wrote to the database/)
  const database = new Sqlite(getDataPaths(world.directory).database)
  database.pragma('foreign_keys = off')
  database.unsafeMode(true)
  for (const statement of statements) database.exec(statement)
  database.close()
}

/** Runs a check, or a repair, and returns its results. */
async function run(kind: 'check' | 'fix') {
  expect((await send('POST', `/database/${kind}-data-integrity`)).status).toBe(202)
  await world.controller.integrity.waitUntilIdle()
  return (await send('GET', '/database/data-integrity-results')).body.data
}

const service = (name: string, more: object = {}) => create('services', { name, encryptionRequired: true, ...more })
const policy = (name: string, serviceRoles: readonly string[]) =>
  create('service-policies', { name, type: 'Dial', semantic: 'AnyOf', serviceRoles, identityRoles: ['#all'] })

describe('a check of the data', () => {
  it('reports nothing before the first one', async () => {
    const { status, body } = await send('GET', '/database/data-integrity-results')

    expect(status).toBe(200)
    expect(body.data).toEqual({
      startTime: null,
      endTime: null,
      error: null,
      fixingErrors: false,
      inProgress: false,
      tooManyErrors: false,
      results: [],
    })
    expect(body.meta.pagination).toEqual({ limit: -1, offset: 0, totalCount: 0 })
  })

  it('finds nothing in intact data with every kind of record in use', async () => {
    const web = await service('web', { roleAttributes: ['a', 'b'] })
    await policy('by id', [`@${web}`])
    await policy('by attribute', ['#a'])

    const report = await run('check')

    expect(report).toMatchObject({ error: null, inProgress: false, fixingErrors: false, results: [] })
    expect(Date.parse(report.endTime)).toBeGreaterThanOrEqual(Date.parse(report.startTime))
  })

  it('runs once at a time, and its state can be read meanwhile', async () => {
    const first = await send('POST', '/database/fix-data-integrity')
    const second = await send('POST', '/database/check-data-integrity')
    const meanwhile = await send('GET', '/database/data-integrity-results')
    await world.controller.integrity.waitUntilIdle()

    expect([first.status, first.body.data]).toEqual([202, {}])
    expect([second.status, second.body.error.code]).toEqual([429, 'RATE_LIMITED'])
    expect(Number(second.headers['retry-after'])).toBeGreaterThan(0)
    expect(meanwhile.body.data).toMatchObject({ inProgress: true, endTime: null, results: [] })
    expect((await send('POST', '/database/check-data-integrity')).status).toBe(202)
    await world.controller.integrity.waitUntilIdle()
  })

  it('says how each defect shows, and changes nothing', async () => {
    const web = await service('web')
    const byId = await policy('by id', [`@${web}`])
    damage(`delete from services where id = '${web}'`)

    const report = await run('check')
    const again = await run('check')

    expect(report.results).toEqual(again.results)
    expect(report.results).toContainEqual({
      description: `serviceRoles of the service policy ${byId} names the service ${web}, which does not exist`,
      fixed: false,
    })
  })

  it('does not delay other requests if the database is large, because a thread does it', async () => {
    damage(
      'create table filler (text text)',
      `with recursive c(i) as (select 1 union all select i + 1 from c where i < 3000)
       insert into filler select hex(randomblob(500)) from c`,
    )
    const web = await service('web')
    await policy('by id', [`@${web}`])
    damage(`delete from services where id = '${web}'`)

    const { results } = await run('check')

    expect(results).toContainEqual({ description: expect.stringContaining(`the service ${web}`), fixed: false })
  })

  it('reports at most a thousand defects, and that there are more', async () => {
    damage(
      `with recursive c(i) as (select 1 union all select i + 1 from c where i < 1500)
       insert into services_role_attributes (value, n) select 'ghost', 100000 + i from c`,
    )

    const { results, tooManyErrors } = await run('check')

    expect(results).toHaveLength(1000)
    expect(tooManyErrors).toBe(true)
  })

  it('finds a changed audit record, as `db check` does offline', async () => {
    damage("update audit_records set entityName = 'changed' where n = 1")

    const { results } = await run('check')
    await world.stop()
    const { findings } = await checkDatabase(world.directory, getDataPaths(world.directory))
    world = await testController({ directory: world.directory })

    expect(results).toEqual([{ description: expect.stringContaining('audit record 1'), fixed: false }])
    expect(findings).toEqual(results.map(({ description }: { description: string }) => description))
  })
})

describe('a repair of the data', () => {
  const audited = async () => (await send('GET', '/controller/audit?limit=20')).body.data

  it('takes roles of records that do not exist out of policies, and audits it', async () => {
    const [gone, stays] = [await service('gone'), await service('stays')]
    const both = await policy('both', [`@${gone}`, `@${stays}`])
    damage(`delete from services where id = '${gone}'`)

    const report = await run('fix')

    expect(report.fixingErrors).toBe(true)
    expect(report.results.every(({ fixed }: { fixed: boolean }) => fixed)).toBe(true)
    expect((await send('GET', `/service-policies/${both}`)).body.data.serviceRoles).toEqual([`@${stays}`])
    expect(await audited()).toContainEqual(
      expect.objectContaining({ operation: 'update', resource: 'service-policies', entityId: both }),
    )
    expect((await run('check')).results).toEqual([])
  })

  it('deletes what belongs to a record that does not exist', async () => {
    const web = await service('web')
    const router = await create('routers', { name: 'north' })
    const terminator = await create('terminators', { service: web, router, binding: 'transport', address: 'tcp:x:1' })
    damage(`delete from routers where id = '${router}'`)

    await run('fix')

    const response = await send('GET', `/terminators/${terminator}`)
    const { results } = await run('check')
    expect([response.status, results]).toEqual([404, []])
  })

  it('restores the tables by which lists are filtered', async () => {
    const web = await service('web', { roleAttributes: ['staff', 'abroad'] })
    damage(
      "delete from services_role_attributes where value = 'staff'",
      "insert into services_role_attributes (value, n) values ('ghost', (select n from services)), ('ghost', 99999)",
    )
    const listed = async (attribute: string) => {
      const filter = encodeURIComponent(`anyOf(roleAttributes) = "${attribute}"`)
      return (await send('GET', `/services?filter=${filter}`)).body.data.map(({ id }: { id: string }) => id)
    }

    await run('fix')

    expect([await listed('staff'), await listed('ghost')]).toEqual([[web], []])
    expect((await run('check')).results).toEqual([])
  })

  it('rebuilds an index that lacks rows', async () => {
    await service('web')
    damage(
      'pragma writable_schema = on',
      `update sqlite_master set sql = sql || ' where 0' where name = 'services_name_unique'`,
    )
    damage('reindex services_name_unique')
    damage(
      'pragma writable_schema = on',
      `update sqlite_master set sql = replace(sql, ' where 0', '') where name = 'services_name_unique'`,
    )
    await world.stop()
    world = await testController({ directory: world.directory })
    token = (await world.signIn({ name: 'second administrator', isAdmin: true })).token

    const { results } = await run('fix')

    expect(results).toContainEqual({ description: expect.stringContaining('index services_name_unique'), fixed: true })
    expect((await run('check')).results).toEqual([])
  })

  it('renews the inventory of certificates', async () => {
    const ca = await create('cas', {
      name: 'ours',
      certPem: (await makeAuthority()).pem,
      isAuthEnabled: true,
      isOttCaEnrollmentEnabled: false,
      isAutoCaEnrollmentEnabled: false,
      identityRoles: [],
    })
    damage(
      `delete from certificates where sourceId = '${ca}'`,
      `insert into certificates (id, createdAt, updatedAt, tags, kind, subject, fingerprint, notBefore, notAfter, isCurrent, holderId, sourceId)
       values ('ghost', 0, 0, '{}', 'router', 'CN=ghost', 'aa', 0, 0, 1, null, 'ghost')`,
    )

    const { results } = await run('fix')
    const { body } = await send('GET', `/controller/certificates?filter=${encodeURIComponent('kind = "authority"')}`)

    expect(results.map(({ fixed }: { fixed: boolean }) => fixed)).toEqual([true, true])
    expect(body.data).toHaveLength(1)
    expect((await run('check')).results).toEqual([])
  })

  it('rebuilds the state in memory that differs from the rows', async () => {
    const web = await service('web', { roleAttributes: ['a'] })
    const { id, token: dialer } = await world.signIn()
    await policy('by attribute', ['#b'])
    damage(`update services set roleAttributes = '["b"]' where id = '${web}'`)
    damage(`update services_role_attributes set value = 'b' where n = (select n from services where id = '${web}')`)
    const checked = await run('check')
    await run('fix')

    expect(checked.results).toContainEqual({
      description: expect.stringContaining('the state in memory'),
      fixed: false,
    })
    expect((await run('check')).results).toEqual([])
    const services = await world.send({ method: 'GET', path: '/edge/client/v1/services', token: dialer })
    expect(services.body.data.map((each: { id: string }) => each.id)).toEqual([web])
    expect(id).toBeTruthy()
  })

  it('leaves what only a person can decide, and says so', async () => {
    const type = await create('config-types', { name: 'plain' })
    const config = await create('configs', { name: 'one', configTypeId: type, data: {} })
    damage(`update configs set configTypeId = 'gone' where id = '${config}'`)

    const { results } = await run('fix')

    expect(results).toEqual([
      {
        description: `configTypeId of the config ${config} names the config type gone, which does not exist`,
        fixed: false,
      },
    ])
  })

  it('makes a backup first, and does nothing if that fails', async () => {
    const web = await service('web')
    await policy('by id', [`@${web}`])
    damage(`delete from services where id = '${web}'`)
    await run('fix')
    expect(world.controller.backups.list()).toHaveLength(1)

    await world.stop()
    world = await testController({ directory: world.directory, settings: { 'backup.directory': '/nowhere/at/all' } })
    token = (await world.signIn({ name: 'second administrator', isAdmin: true })).token
    expectFaults(/the check of the data could not be completed/)
    const report = await run('fix')

    expect(report).toMatchObject({ results: [], inProgress: false, error: expect.stringContaining('/nowhere/at/all') })
  })
})

describe('a snapshot', () => {
  it('is made at most once a minute, and is audited', async () => {
    const first = await send('POST', '/database/snapshot', { anything: 'is ignored' })
    const tooSoon = await send('POST', '/database/snapshot')
    world.clock.advance(60_000)
    const later = await send('POST', '/database/snapshot')

    expect([first.status, first.body.data]).toEqual([200, {}])
    expect([tooSoon.status, tooSoon.body.error.code, tooSoon.headers['retry-after']]).toEqual([
      429,
      'RATE_LIMITED',
      '60',
    ])
    expect(later.status).toBe(200)
    const backups = world.controller.backups.list()
    expect(backups.map(({ kind }) => kind)).toEqual(['snapshot', 'snapshot'])
    const { body } = await send('GET', `/controller/audit?filter=${encodeURIComponent('resource = "backups"')}`)
    expect(body.data.map(({ entityId }: { entityId: string }) => entityId).sort()).toEqual(
      backups.map(({ name }) => name),
    )
  })
})
