// Directories that releases left: this build opens each, shows what that release showed, and adds to it what later releases add.
//
// A release keeps its own once, when it is made: KEEP_RELEASE=1 npx vitest run --project shared test/store/released
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { toCollectionPath } from '../../src/definitions/model/links.ts'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { resources } from '../../src/definitions/resources/index.ts'
import { version } from '../../src/foundation/version.ts'
import { createBackup } from '../../src/maintenance/backup/create-backup.ts'
import { restoreBackup } from '../../src/maintenance/backup/restore-backup.ts'
import { checkDatabase } from '../../src/maintenance/integrity/check-database.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { describeSchema, MIGRATIONS, type Migration } from '../../src/storage/migrate.ts'
import { ADMIN, MANAGEMENT, TestClock, type TestController, testController } from '../world/controller.ts'
import { exampleBody } from '../world/examples.ts'

const FOLDER = new URL('../fixtures/released/', import.meta.url).pathname

/** The schema that each released migration led to. A line is added by a release, and none is changed. */
const RELEASED_SCHEMAS: Readonly<Record<string, string>> = {
  '0001-initial': 'b36bf6baf358d6a21dd55cc9dac93a9870840647d084b8d3a997c71724e62ff3',
}

type Rows = Readonly<Record<string, unknown>>[]

/** The records of a directory, as the release showed them. */
interface Kept {
  /** When that was, in milliseconds of the epoch. */
  readonly at: number
  readonly records: Readonly<Record<string, Rows>>
}

const releases = readdirSync(FOLDER).toSorted()
const readKept = (release: string): Kept => JSON.parse(readFileSync(join(FOLDER, release, 'records.json'), 'utf8'))

const further: Migration = {
  name: '9999-further',
  async up(db) {
    await db.schema
      .alterTable('services')
      .addColumn('note', 'text', (column) => column.notNull().defaultTo('none'))
      .execute()
    await db.schema.createTable('additions').addColumn('n', 'integer').execute()
  },
}

/** Every record that the management API lists, by resource. */
async function listRecords(world: TestController): Promise<Record<string, Rows>> {
  const path = `${MANAGEMENT}/authenticate?method=password`
  const { body: session } = await world.send({ method: 'POST', path, body: ADMIN })
  const records: Record<string, Rows> = {}
  for (const resource of resources as readonly AnyResource[]) {
    // Each reader makes one by signing in.
    if (!resource.verbs.includes('list') || resource.plural === 'api-sessions') continue
    const listPath = `${MANAGEMENT}${toCollectionPath(resource)}?limit=500`
    const { body } = await world.send({ method: 'GET', path: listPath, token: session.data.token })
    records[resource.plural] = body.data
  }
  return records
}

/** Restores what a release kept, and calls with its directory. */
async function onKept(release: string, work: (directory: string, kept: Kept) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'released-'))
  try {
    const directory = join(folder, 'data')
    await restoreBackup({ file: join(FOLDER, release, 'backup.tar.gz'), directory, now: 0 })
    await work(directory, readKept(release))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe.each(releases)('the directory that release %s kept', (release) => {
  it.each([
    ['this build', MIGRATIONS],
    ['a build with a further migration', [...MIGRATIONS, further]],
  ])('is opened by %s, with all its records, its administrator and its audit', async (_, migrations) => {
    await onKept(release, async (directory, { at, records }) => {
      const world = await testController({ directory, migrations, clock: new TestClock(at) })
      const now = await listRecords(world)
      await world.stop()

      for (const [plural, rows] of Object.entries(records))
        for (const row of rows)
          expect(
            now[plural]?.find(({ id }) => id === row.id),
            plural,
          ).toMatchObject(row)
      if (migrations === MIGRATIONS)
        expect(await checkDatabase(directory, getDataPaths(directory))).toMatchObject({ findings: [] })
    })
  })
})

describe('a released migration', () => {
  it.each(Object.entries(RELEASED_SCHEMAS))('%s makes the schema that it made then', async (name, digest) => {
    const until = MIGRATIONS.findIndex((migration) => migration.name === name) + 1

    expect(await describeSchema(MIGRATIONS.slice(0, until))).toMatchObject({ migration: name, digest })
  })

  it('is part of every later build', () => {
    const released = Object.keys(RELEASED_SCHEMAS)

    expect(MIGRATIONS.slice(0, released.length).map(({ name }) => name)).toEqual(released)
  })
})

if (process.env.KEEP_RELEASE !== undefined)
  it('this release keeps a directory with a record of each resource, once', async () => {
    const own = join(FOLDER, version.version.slice(1))
    expect(existsSync(own), 'a release that was made is not made again').toBe(false)
    const world = await testController()
    const token = await world.admin()
    for (const resource of resources as readonly AnyResource[]) {
      if (!resource.verbs.includes('create')) continue
      const body = await exampleBody(world, resource, `kept ${resource.name}`)
      const path = MANAGEMENT + toCollectionPath(resource)
      const creation = await world.send({ method: 'POST', path, token, body })
      expect(creation.body.error, resource.plural).toBeUndefined()
    }
    mkdirSync(own, { recursive: true })
    const records = await listRecords(world)
    const at = world.clock.now()
    await createBackup({ directory: world.directory, file: join(own, 'backup.tar.gz'), now: at })
    writeFileSync(join(own, 'records.json'), `${JSON.stringify({ at, records })}\n`)
    await world.close()
  })
