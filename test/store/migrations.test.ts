// Migrations of a directory with data: all of them or none, after a backup; and never by an older program.
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { version } from '../../src/foundation/version.ts'
import { createBackup } from '../../src/maintenance/backup/create-backup.ts'
import { restoreBackup, verifyBackup } from '../../src/maintenance/backup/restore-backup.ts'
import { checkDatabase } from '../../src/maintenance/integrity/check-database.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { MIGRATIONS, type Migration } from '../../src/storage/migrate.ts'
import type { SqliteDatabase } from '../../src/storage/sqlite/connection.ts'
import { copyOfTemplate, MANAGEMENT, testController } from '../world/controller.ts'
import { Sqlite } from '../world/sqlite.ts'

const addition: Migration = {
  name: '0002-addition',
  up: (db) => db.schema.createTable('additions').addColumn('n', 'integer').execute(),
}
const failing: Migration = {
  name: '0003-failing',
  async up(db) {
    await db.deleteFrom('audit_records' as never).execute()
    throw new Error('it does not fit')
  },
}

let directory: string

beforeEach(() => {
  directory = copyOfTemplate()
})
afterEach(() => rmSync(join(directory, '..'), { recursive: true, force: true }))

function onDatabase<T>(work: (database: SqliteDatabase) => T): T {
  const database = new Sqlite(getDataPaths(directory).database)
  try {
    return work(database)
  } finally {
    database.close()
  }
}

const listTables = () =>
  onDatabase((database) =>
    database.prepare("select name from sqlite_master where type = 'table' order by name").pluck().all(),
  )
const listMigrations = () =>
  onDatabase((database) => database.prepare('select name, version from migrations order by name').all())
const countRecords = () =>
  onDatabase((database) => database.prepare('select count(*) from audit_records').pluck().get())
const listBackups = () => {
  const folder = join(directory, 'backups')
  return readdirSync(folder).map((name) => join(folder, name))
}

describe('a migration', () => {
  it('of a new directory makes no backup', async () => {
    const world = await testController({ directory })
    await world.stop()

    expect(readdirSync(directory)).not.toContain('backups')
    expect(listMigrations()).toEqual([{ name: '0001-initial', version: version.version }])
  })

  it('of a directory with data makes a backup first, which restores the data before it', async () => {
    const before = listTables()
    const world = await testController({ directory, migrations: [...MIGRATIONS, addition] })
    await world.stop()

    expect(listTables()).toEqual([...before, 'additions'].sort())
    expect(listMigrations()).toContainEqual({ name: '0002-addition', version: version.version })
    const [backup = ''] = listBackups()
    expect(backup).toMatch(/-migration\.tar\.gz$/)
    expect((await verifyBackup({ file: backup })).findings).toEqual([])
    await restoreBackup({ file: backup, directory, now: 0 })
    expect(listTables()).toEqual(before)
  })

  it('that fails leaves everything as it was, also what others before it did', async () => {
    const [tables, records, migrations] = [listTables(), countRecords(), listMigrations()]

    const opening = testController({ directory, migrations: [...MIGRATIONS, addition, failing] })

    await expect(opening).rejects.toMatchObject({
      name: 'MigrationError',
      message: 'the migration 0003-failing failed, and the data is unchanged: it does not fit',
    })
    expect([listTables(), countRecords(), listMigrations()]).toEqual([tables, records, migrations])
    expect(listBackups()).toHaveLength(1)
    const world = await testController({ directory })
    await world.stop()
  })

  it('does not begin if the backup before it cannot be made', async () => {
    const tables = listTables()
    const settings = { 'backup.directory': '/nowhere/at/all' }

    await expect(testController({ directory, settings, migrations: [...MIGRATIONS, addition] })).rejects.toThrow(
      /\/nowhere\/at\/all/,
    )

    expect(listTables()).toEqual(tables)
  })
})

describe('a backup of an older schema', () => {
  it('is restored, and migrated by the next start', async () => {
    const older = await testController({ directory })
    const token = await older.admin()
    await older.send({
      method: 'POST',
      path: `${MANAGEMENT}/identities`,
      token,
      body: { name: 'old', type: 'Device', isAdmin: false },
    })
    const file = join(directory, '..', 'older')
    await createBackup({ directory, file, now: 0 })
    await older.stop()
    const migrated = await testController({ directory, migrations: [...MIGRATIONS, addition] })
    await migrated.stop()

    await restoreBackup({ file, directory, now: 0 })
    const world = await testController({ directory, migrations: [...MIGRATIONS, addition] })

    expect(
      await world.controller.store.db.selectFrom('identities').select('name').orderBy('n').execute(),
    ).toContainEqual({ name: 'old' })
    await world.stop()
    expect(listTables()).toContain('additions')
  })
})

describe('a build with another schema under the same name', () => {
  const changed: Migration[] = MIGRATIONS.map(({ name, up }) => ({
    name,
    async up(db) {
      await up(db)
      await db.schema.alterTable('services').addColumn('note', 'text').execute()
    },
  }))

  it('does not open the data, and names both schemas', async () => {
    await expect(testController({ directory, migrations: changed })).rejects.toMatchObject({
      code: 'OTHER_SCHEMA',
      message: expect.stringMatching(
        /^the data has the schema [0-9a-f]{12} of another build of version \S+ \(0001-initial\), and this build has the schema [0-9a-f]{12}$/,
      ),
      remedy: expect.stringContaining('controller export'),
    })
    const world = await testController({ directory })
    await world.stop()
  })

  it('is named by the check of the database, and when a backup is verified', async () => {
    onDatabase((database) => database.exec("update migrations set schema = 'ffffffffffffffff'"))
    const file = join(directory, '..', 'other')
    await createBackup({ directory, file, now: 0 })

    await expect(checkDatabase(directory, getDataPaths(directory))).rejects.toMatchObject({
      code: 'OTHER_SCHEMA',
      message: expect.stringContaining('the schema ffffffffffff of another build'),
    })
    await expect(verifyBackup({ file })).rejects.toMatchObject({ code: 'OTHER_SCHEMA' })
  })

  it('is also one that stored no digest', async () => {
    onDatabase((database) => database.exec('alter table migrations drop column schema'))

    await expect(testController({ directory })).rejects.toMatchObject({
      code: 'OTHER_SCHEMA',
      message: expect.stringContaining('the schema unknown of another build'),
    })
  })
})

describe('an older program', () => {
  const migrateByNewer = () =>
    onDatabase((database) =>
      database
        .prepare('insert into migrations (name, at, version, schema) values (?, ?, ?, ?)')
        .run('0009-later', 0, 'v9.8.7', 'f'),
    )

  it('refuses a directory that a newer one migrated, and names its version', async () => {
    migrateByNewer()

    await expect(testController({ directory })).rejects.toMatchObject({
      code: 'NEWER_DATABASE',
      message: expect.stringContaining(
        `by version v9.8.7 of the controller (0009-later), and this is the older version ${version.version}`,
      ),
      remedy: expect.stringContaining('run version v9.8.7 or later'),
    })
  })

  it('is told to restore the backup of the upgrade, which the newer version made', async () => {
    migrateByNewer()

    await expect(testController({ directory })).rejects.toMatchObject({
      remedy: expect.stringMatching(
        /a backup from before that upgrade, which made one itself \(\S+-migration\.tar\.gz\)/,
      ),
    })
  })

  it('refuses a backup that a newer one made', async () => {
    const world = await testController({ directory })
    const database = new Sqlite(getDataPaths(directory).database)
    database
      .prepare('insert into migrations (name, at, version, schema) values (?, ?, ?, ?)')
      .run('0009-later', 0, 'v9.8.7', 'f')
    database.close()
    const file = join(directory, '..', 'newer')
    await createBackup({ directory, file, now: 0 })
    await world.stop()

    await expect(verifyBackup({ file })).rejects.toMatchObject({ code: 'NEWER_DATABASE' })
  })
})
