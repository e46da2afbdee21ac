// The audit as administrators read it: who changed what, found by any of its members, and proof against tampering.

import { beforeEach, describe, expect, it } from 'vitest'
import { checkDatabase } from '../../src/maintenance/integrity/check-database.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { pruneAudit } from '../../src/storage/audit/audit-records.ts'
import { MANAGEMENT, TestClock } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { type Management, managementOf } from '../world/management.ts'
import { Sqlite } from '../world/sqlite.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const DAY = 86_400_000

const world = useControllerPerTest({ settings: { 'session.timeout': '365d' } })
let admin: Management

beforeEach(async () => {
  admin = await managementOf(world)
})

const listed = (query = '') => admin.get(`/controller/audit${query}`)
const filtered = (filter: string, more = '') => listed(`?filter=${encodeURIComponent(filter)}${more}`)
const verified = (query = '') => admin.get(`/controller/audit/verify${query}`)

async function service(name: string): Promise<string> {
  return admin.make('services', { name, encryptionRequired: true })
}

describe('the list of audit records', () => {
  it('says who changed what, when and from where, with what changed before and after', async () => {
    const id = await service('web')
    await admin.change('PATCH', `/services/${id}`, { roleAttributes: ['inside'] })

    const [record] = await listed('?limit=1')

    expect(record).toMatchObject({
      at: new Date(world.clock.now()).toISOString(),
      actorKind: 'identity',
      actorName: expect.stringMatching(/^administrator /),
      address: '127.0.0.1',
      requestId: expect.stringMatching(/^\w+-\w+$/),
      operation: 'update',
      resource: 'services',
      entityId: id,
      entityName: 'web',
      before: { roleAttributes: [] },
      after: { roleAttributes: ['inside'] },
    })
  })

  it('has a record for each create, update and delete, the newest first', async () => {
    const id = await service('web')
    await admin.change('PATCH', `/services/${id}`, { name: 'other' })
    await admin.change('DELETE', `/services/${id}`)

    const records = await filtered(`entityId = "${id}"`)

    expect(records.map(({ operation }: { operation: string }) => operation)).toEqual(['delete', 'update', 'create'])
    expect(records[0]).toMatchObject({ before: { name: 'other' }, after: null })
    expect(records[2]).toMatchObject({ before: null, after: { name: 'web' } })
  })

  it('knows that nothing happened when a request was refused', async () => {
    await service('web')
    const before = await listed('?limit=-1')

    await admin.refusal('POST', '/services', { name: 'web', encryptionRequired: true })

    expect(await listed('?limit=-1')).toEqual(before)
  })

  it.each([
    ['operation = "create" and resource = "services"', 3],
    ['entityName contains "web" sort by entityName limit 2', 2],
    ['actorKind = "system" and resource = "services"', 0],
    ['resource = "services" skip 1', 2],
    ['before = null', undefined],
  ])('can be asked for by %s', async (filter, count) => {
    for (const name of ['web 1', 'web 2', 'web 3']) await service(name)

    const response = await admin.call('GET', `/controller/audit?filter=${encodeURIComponent(filter)}`)

    if (count === undefined) expect(response.body.error.code).toBe('INVALID_FILTER')
    else expect(response.body.data).toHaveLength(count)
  })

  it('can be asked for all since a record that was seen, and by time', async () => {
    const [{ id: seen }] = await listed('?limit=1')
    world.clock.advance(DAY)
    const now = new Date(world.clock.now()).toISOString()
    await service('web')

    const since = await filtered(`id > ${seen} sort by id`)
    const today = await filtered(`at >= datetime(${now})`)

    expect(since.map(({ entityName }: { entityName: string }) => entityName)).toEqual(['web'])
    expect(today).toEqual(since)
  })

  it('pages, and streams as a whole', async () => {
    for (let at = 0; at < 12; at++) await service(`web ${at}`)

    const response = await admin.call('GET', '/controller/audit?limit=5&offset=5')
    const all = await admin.call('GET', '/controller/audit?limit=-1')

    expect(response.body.data).toEqual(all.body.data.slice(5, 10))
    expect(response.body.meta.pagination).toEqual({ limit: 5, offset: 5, totalCount: all.body.data.length })
    expect(all.body.meta.pagination.limit).toBe(-1)
    expect(all.body.meta.filterableFields).toContain('actorName')
  })

  it('shows one record by its number, and says where there is none', async () => {
    const [record] = await listed('?limit=1')

    expect(await admin.get(`/controller/audit/${record.id}`)).toEqual(record)
    expect(await admin.refusal('GET', '/controller/audit/999999')).toMatchObject({ status: 404, code: 'NOT_FOUND' })
    expect(await admin.refusal('GET', '/controller/audit/web')).toMatchObject({ status: 404, code: 'NOT_FOUND' })
  })

  it('never holds a password, a token or a key', async () => {
    const identityId = await admin.make('identities', {
      name: 'jane',
      type: 'Device',
      isAdmin: false,
      enrollment: { ott: true },
    })
    const { enrollment } = await admin.get(`/identities/${identityId}`)
    await admin.make('authenticators', {
      method: 'updb',
      identityId,
      username: 'jane',
      password: 'correct horse battery',
    })

    const { text } = await admin.call('GET', '/controller/audit?limit=-1')

    expect(text).not.toContain('correct horse battery')
    expect(text).not.toContain('$argon2')
    expect(text).not.toContain(enrollment.ott.token)
    expect(text).toContain('"***"')
  })
})

describe('the chain of audit records', () => {
  it('is whole, and says where it ends', async () => {
    await service('web')
    const [newest] = await listed('?limit=1')

    const report = await verified()

    expect(report).toMatchObject({ isWhole: true, findings: [], last: { id: newest.id, hash: newest.hash } })
    expect(report.records).toBe((await listed('?limit=-1')).length)
  })

  it.each([
    ['changed', "update audit_records set actorName = 'mallory' where n = 3", /record 3 was changed/],
    ['taken out', 'delete from audit_records where n = 3', /broken before record 4/],
    ['taken off the old end', 'delete from audit_records where n <= 2', /before record 3/],
  ])(
    'shows that a record was %s, to the controller and to the check of its database',
    async (_what, change, finding) => {
      allowFaults(/another process wrote to the database/)
      await service('web')
      const file = new Sqlite(getDataPaths(world.directory).database)
      file.exec(change)
      file.close()

      const report = await verified()

      expect(report.isWhole).toBe(false)
      expect(report.findings).toEqual([expect.stringMatching(finding)])
      await world.stop()
      const offline = await checkDatabase(world.directory, getDataPaths(world.directory))
      await world.reopen({ clock: new TestClock() })
      expect(offline.findings).toEqual(report.findings)
    },
  )

  it('reports, to a caller with an earlier hash, that the newest records were removed', async () => {
    allowFaults(/another process wrote to the database/)
    await service('web')
    const { last } = await verified()
    const file = new Sqlite(getDataPaths(world.directory).database)
    file.prepare('delete from audit_records where n = ?').run(last.id)
    file.close()

    expect((await verified()).isWhole).toBe(true)
    expect((await verified(`?hash=${last.hash}`)).findings).toEqual([`no record has the hash ${last.hash}`])
  })

  it('goes on where old records are cut off, and the cut is a record itself', async () => {
    await service('old')
    const { last } = await verified()
    world.clock.advance(30 * DAY)
    await service('new')

    const prunedCount = await pruneAudit(world.controller.store, world.system, DAY)

    expect(prunedCount).toBe(last.id)
    const [cut, kept, ...others] = await listed()
    expect(others).toEqual([])
    expect(kept).toMatchObject({ entityName: 'new' })
    expect(cut).toMatchObject({ operation: 'cut', actorKind: 'system', after: { through: last.id, hash: last.hash } })
    expect(await verified(`?hash=${last.hash}`)).toMatchObject({ isWhole: true, records: 2 })
  })

  it('keeps the newest record and its numbers, however old all of them are', async () => {
    const { last } = await verified()
    world.clock.advance(30 * DAY)

    await pruneAudit(world.controller.store, world.system, 0)
    await pruneAudit(world.controller.store, world.system, -1)

    expect((await verified()).first.id).toBeGreaterThanOrEqual(last.id)
    expect((await verified()).isWhole).toBe(true)
  })
})

describe('reading the audit', () => {
  it('is for administrators', async () => {
    const { token } = await world.signIn()

    for (const path of ['', '/verify', '/1']) {
      const response = await world.send({ method: 'GET', path: `${MANAGEMENT}/controller/audit${path}`, token })
      expect(response.status).toBe(401)
    }
  })
})
