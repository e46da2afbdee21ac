// An attacker who can write to the database, and to nothing else, tries to change what the audit says.

import { createHash, createHmac } from 'node:crypto'
import { rmSync, statSync, writeFileSync } from 'node:fs'
import type { Database } from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkDatabase } from '../../src/maintenance/integrity/check-database.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import type { ChainedRecord } from '../../src/storage/audit/audit-chain.ts'
import { SEALED_COLUMNS } from '../../src/storage/audit/audit-seal.ts'
import { toChange } from '../../src/storage/transactions/changes.ts'
import { type TestController, testController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { type Management, managementOf } from '../world/management.ts'
import { Sqlite } from '../world/sqlite.ts'

let world: TestController
let admin: Management

beforeEach(async () => {
  world = await testController()
  admin = await managementOf(world)
  for (const name of ['web', 'mail', 'files']) await admin.make('services', { name, encryptionRequired: true })
})
afterEach(() => world.close())

function tamper(change: (file: Database) => void): void {
  // Whether the controller writes afterwards, and so learns of it, is the tests' choice.
  allowFaults(/another process wrote to the database/)
  const file = new Sqlite(getDataPaths(world.directory).database)
  change(file)
  file.close()
}

/** Returns the findings of the running controller, and those of the check of its database while it is stopped. */
async function findings(): Promise<{ online: string[]; offline: readonly string[] }> {
  const { findings: online } = await admin.get('/controller/audit/verify')
  await world.stop()
  const offline = (await checkDatabase(world.directory, getDataPaths(world.directory))).findings
  world = await testController({ directory: world.directory })
  return { online, offline }
}

describe('an audit chain that is made anew', () => {
  type Hash = (previousHash: string, members: string) => string
  const forgeries: Readonly<Record<string, Hash>> = {
    'without a key': (previous, members) => createHash('sha256').update(previous).update(members).digest('hex'),
    'with an empty key': (previous, members) => createHmac('sha256', '').update(previous).update(members).digest('hex'),
    'with a key of zeros': (previous, members) =>
      createHmac('sha256', Buffer.alloc(32)).update(previous).update(members).digest('hex'),
  }

  it.each(Object.keys(forgeries))('%s is found', async (how) => {
    const forge = forgeries[how] as Hash
    tamper((file) => {
      const records = file.prepare('select * from audit_records order by n').all() as ChainedRecord[]
      const write = file.prepare('update audit_records set actorName = ?, previousHash = ?, hash = ? where n = ?')
      let previous = '0'.repeat(64)
      for (const record of records) {
        const forged = { ...record, actorName: 'mallory' }
        const hash = forge(previous, JSON.stringify(SEALED_COLUMNS.map((name) => forged[name])))
        write.run(forged.actorName, previous, hash, record.n)
        previous = hash
      }
    })

    const { online, offline } = await findings()

    expect(online).toContain('the audit record 1 was changed after it was written')
    expect(offline).toEqual(online)
  })

  it('by leaving nothing of it is found', async () => {
    tamper((file) => file.exec('delete from audit_records'))

    const { online, offline } = await findings()

    expect(online).toEqual([expect.stringMatching(/the audit is empty/)])
    expect(offline).toEqual(online)
  })

  it('is found where records are taken off the new end while the controller runs and writes on', async () => {
    tamper((file) => file.exec('delete from audit_records where n > (select max(n) - 2 from audit_records)'))
    await admin.make('services', { name: 'later', encryptionRequired: true })

    const { online, offline } = await findings()

    expect(online).toEqual([expect.stringMatching(/is broken before record \d+/)])
    expect(offline).toEqual(online)
  })
})

describe('a malformed audit record', () => {
  const malformed: Readonly<Record<string, string>> = {
    'an anchor that is not JSON':
      "update audit_records set operation = 'cut', resource = 'audit', after = '{' where n = 3",
    'an anchor that is null':
      "update audit_records set operation = 'cut', resource = 'audit', after = 'null' where n = 3",
    'an anchor without a hash':
      "update audit_records set operation = 'cut', resource = 'audit', after = '{}' where n = 3",
    'a list as an anchor': "update audit_records set operation = 'cut', resource = 'audit', after = '[1]' where n = 3",
    'values that are not JSON': "update audit_records set before = '}', after = '\u0001' where n = 3",
    'values that are not objects': "update audit_records set before = '1', after = '[]' where n = 3",
    'a time beyond all times': 'update audit_records set at = 9223372036854775807 where n = 3',
    'a time before all times': 'update audit_records set at = -9223372036854775808 where n = 3',
    'empty texts': "update audit_records set hash = '', operation = '', requestId = '' where n = 3",
  }

  it.each(Object.keys(malformed))('with %s is a finding, and the audit can still be read', async (what) => {
    tamper((file) => file.exec(malformed[what] as string))

    const list = await admin.call('GET', '/controller/audit?limit=500')
    const stream = await admin.call('GET', '/controller/audit?limit=-1')
    const record = await admin.call('GET', '/controller/audit/3')
    const { online, offline } = await findings()

    expect([list.status, stream.status, record.status]).toEqual([200, 200, 200])
    expect(list.body.data.map(({ id }: { id: number }) => id)).toContain(3)
    expect(stream.body.data).toEqual(list.body.data)
    expect(online).toContain('the audit record 3 was changed after it was written')
    expect(offline).toEqual(online)
  })

  it('of the wrong types, in a table that takes them, is a finding', async () => {
    tamper((file) => {
      file.exec('create table loose as select * from audit_records; drop table audit_records')
      file.exec('alter table loose rename to audit_records')
      file.exec("update audit_records set hash = null, previousHash = x'00', at = 'now', operation = 1.5 where n = 3")
    })

    const { findings: online } = await admin.get('/controller/audit/verify')
    await world.stop()
    const offline = (await checkDatabase(world.directory, getDataPaths(world.directory))).findings

    expect(online).toContain('the audit record 3 is malformed')
    expect(offline).toEqual(online)
  })
})

describe('the key of the audit', () => {
  const key = () => getDataPaths(world.directory).auditKey

  it('lies beside the database, for its owner alone', () => {
    expect(statSync(key()).mode & 0o777).toBe(0o600)
    expect(statSync(key()).size).toBe(32)
  })

  it.each([
    ['missing', () => rmSync(key())],
    ['cut short', () => writeFileSync(key(), 'short')],
  ])('that is %s is not replaced in silence: nothing starts, and the check says so', async (_what, change) => {
    await world.stop()
    change()

    const { findings: found } = await checkDatabase(world.directory, getDataPaths(world.directory))

    expect(found).toEqual([expect.stringMatching(/audit\.key/)])
    await expect(testController({ directory: world.directory })).rejects.toThrow(/audit\.key/)
    world = await testController()
  })

  it('that is another one shows, and is not taken for the right one', async () => {
    await world.stop()
    writeFileSync(key(), Buffer.alloc(32, 7))

    expect((await checkDatabase(world.directory, getDataPaths(world.directory))).findings).toContain(
      'the audit record 1 was changed after it was written',
    )
  })
})

it('names that no text can hold do not look like tampering', async () => {
  await world.system.write(async (tx) => {
    const before = { id: 'some-config', name: 'before' }
    const after = { ...before, name: 'broken \ud800 pair' }
    const change = { operation: 'update', audit: 'values', resource: 'configs', id: before.id, before, after } as const
    tx.record(toChange({ ...change, at: tx.clock.now() }))
  })

  expect((await findings()).online).toEqual([])
})
