// Commands on a data directory while no controller runs on it.
import { mkdtempSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import type { SqliteDatabase } from '../../src/storage/sqlite/connection.ts'
import { lockDirectory } from '../../src/storage/sqlite/directory-lock.ts'
import { cleanEnvironment, controller, type Served, serve } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { copyOfTemplate } from '../world/controller.ts'
import { writeProfiles } from '../world/profiles.ts'
import { Sqlite } from '../world/sqlite.ts'

const env = cleanEnvironment()
const directory = copyOfTemplate()
const offline = ['--offline', '--data-dir', directory]
const cli = (...args: string[]) => commandLine(args, env)

/** Runs statements on a database that no process has open. */
function onDatabase<T>(file: string, work: (database: SqliteDatabase) => T): T {
  const database = new Sqlite(file)
  try {
    return work(database)
  } finally {
    database.close()
  }
}

describe('--offline', () => {
  it('goes through the same checks, and is audited with the user of this machine', async () => {
    const creation = await cli('identity', 'create', 'local-made', '--role', 'staff', '-o', 'json', ...offline)
    const refused = await cli('identity', 'create', 'bad', '--role', '#x', ...offline)

    const audited = onDatabase(getDataPaths(directory).database, (database) =>
      database
        .prepare('select actorKind, actorName, address, entityId from audit_records order by n desc limit 1')
        .get(),
    )
    expect(creation.code).toBe(0)
    expect(audited).toEqual({
      actorKind: 'local',
      actorName: userInfo().username,
      address: expect.toSatisfy((address) => address === null || address === '127.0.0.1'),
      entityId: JSON.parse(creation.stdout).id,
    })
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain(`${directory}: roleAttributes may not begin`)
  })

  it('shows as unknown what only a running controller would know', async () => {
    const router = await cli('edge-router', 'create', 'north', '-o', 'json', ...offline)
    const table = await cli('edge-router', 'list', ...offline)
    const identity = await cli('identity', 'create', 'seen', '-o', 'json', ...offline)

    expect(JSON.parse(router.stdout)).toMatchObject({ isOnline: null })
    expect(table.stdout).toMatch(/^north .* unknown$/m)
    expect(JSON.parse(identity.stdout)).toMatchObject({
      hasEdgeRouterConnection: null,
      edgeRouterConnectionStatus: 'unknown',
    })
  })

  it('renews no certificate, also if one is due', async () => {
    const { pki } = getDataPaths(directory)
    const files = () => readdirSync(pki).map((name) => [name, readFileSync(join(pki, name), 'utf8')])
    const before = files()

    const { code } = await commandLine(['identity', 'list', ...offline], {
      ...env,
      CONTROLLER_ADVERTISE: '["not-in-the-certificate.example:1280"]',
    })

    expect(code).toBe(0)
    expect(files()).toEqual(before)
  })

  it('has no identity of its own', async () => {
    const { code, stderr } = await cli('whoami', ...offline)

    expect(code).toBe(4)
    expect(stderr).toMatch(/Try: omit --offline/)
  })

  it('takes the directory from the environment', async () => {
    const { stdout } = await commandLine(['identity', 'list', '--offline', '-o', 'name'], {
      ...env,
      CONTROLLER_DATA_DIR: directory,
    })

    expect(stdout).toMatch(/^local-made$/m)
  })

  it('prints the enrollment JWT of an identity', async () => {
    const { stdout } = await cli('identity', 'create', 'local-device', '-o', 'jwt', ...offline)

    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  })

  it('is refused with 8 while another process works on the directory', async () => {
    const unlock = lockDirectory(directory)

    const { code, stderr } = await controller(['identity', 'list', ...offline, '-o', 'json'], env)
    unlock()

    expect(code).toBe(8)
    expect(JSON.parse(stderr)).toMatchObject({
      code: 'DIRECTORY_LOCKED',
      hint: expect.stringMatching(/omit --offline/),
    })
  })

  it('lets go of the directory when a command fails', async () => {
    await cli('identity', 'get', 'unknown', ...offline)

    const { code } = await controller(['identity', 'list', ...offline], env)

    expect(code).toBe(0)
  })
})

describe('the command that a hint of a failed command proposes', () => {
  it('works on the same data directory, or asks the same controller', async () => {
    const home = cleanEnvironment()
    const own = copyOfTemplate()
    const rootPem = readFileSync(join(own, 'pki/root.crt'), 'utf8')
    writeProfiles(home, { test: { url: 'https://127.0.0.1:9', rootPem, token: 'x' } })

    const offline = await commandLine(['identity', 'get', 'nina', '--offline', '--data-dir', own], home)
    const byVariable = await commandLine(['identity', 'get', 'nina', '--offline'], {
      ...home,
      CONTROLLER_DATA_DIR: own,
    })
    const help = await commandLine(['identity', 'create', '--offline', '--data-dir', own], home)
    const unknownProfile = await commandLine(['identity', 'list', '--profile', 'none'], home)

    expect(offline.stderr).toContain(`Try: controller identity list --offline --data-dir ${own}\n`)
    expect(byVariable.stderr).toContain('Try: controller identity list --offline\n')
    expect(help.stderr).toContain('Try: controller identity create --help\n')
    expect(unknownProfile.stderr).toContain('Try: controller profile list\n')
  })
})

describe('a controller that cannot be reached', () => {
  let served: Served
  const home = cleanEnvironment()
  const own = join(mkdtempSync(join(tmpdir(), 'offline-')), 'a b')

  beforeAll(async () => {
    renameSync(copyOfTemplate(), own)
    served = await serve(['--data-dir', own, '--listen', '127.0.0.1:0'], home)
  })
  afterAll(() => served?.stop())

  it('gives the same command with --offline where its data is on this machine', async () => {
    const rootPem = readFileSync(join(own, 'pki/root.crt'), 'utf8')
    writeProfiles(home, { test: { url: 'https://127.0.0.1:9', rootPem, token: 'x' } })
    await served.stop()

    const here = await commandLine(['identity', 'list', '--profile', 'test', '--filter', 'name = "a b"'], home)
    const withNames = await commandLine(['identity', 'get', '--profile', 'test', '--', '-x'], home)
    const elsewhere = cleanEnvironment()
    writeProfiles(elsewhere, { test: { url: 'https://127.0.0.1:9', rootPem, token: 'x' } })
    const byVariable = await commandLine(['identity', 'list'], { ...elsewhere, CONTROLLER_DATA_DIR: own })
    const nowhere = await commandLine(['identity', 'list'], elsewhere)

    expect([here.code, byVariable.code, nowhere.code]).toEqual([8, 8, 8])
    expect(here.stderr).toContain(
      `Try: controller identity list --filter 'name = "a b"' --offline --data-dir '${own}'\n`,
    )
    expect(withNames.stderr).toContain(`Try: controller identity get --offline --data-dir '${own}' -- -x\n`)
    expect(byVariable.stderr).toContain('Try: controller identity list --offline')
    expect(nowhere.stderr).not.toContain('--offline')
  })

  it.each(['whoami', 'access', 'mfa status', 'current-identity get'])(
    'does not suggest --offline for %s, because a data directory has no current identity',
    async (command) => {
      const { code, stderr } = await commandLine([...command.split(' '), '--profile', 'test'], home)

      expect(code).toBe(8)
      expect(stderr).toContain('Try: start it with controller serve')
    },
  )

  it('has its directory found by the profile, as the commands on a database find it', async () => {
    const { code, stdout } = await commandLine(['identity', 'list', '--offline', '-o', 'name'], home)

    expect(code).toBe(0)
    expect(stdout).toMatch(/^Default Admin$/m)
  })
})

describe('db', () => {
  const dir = copyOfTemplate()
  const on = (...args: string[]) => cli('db', ...args, '--data-dir', dir)
  const { database } = getDataPaths(dir)

  it('check finds a database whole', async () => {
    const { code, stdout } = await on('check', '-o', 'json')

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ isWhole: true, findings: [], pendingMigrations: [] })
  })

  it('check detects a changed audit record, and ends with 3', async () => {
    await cli('service', 'create', 'web', '--offline', '--data-dir', dir)
    onDatabase(database, (file) =>
      file.exec(`update audit_records set actorName = 'mallory' where n = (select max(n) from audit_records)`),
    )

    const { code, stdout } = await on('check')

    expect(code).toBe(3)
    expect(stdout).toMatch(/audit record \d+ was changed after it was written/)
  })

  it('migrate --dry-run tries what is missing on a copy, and ends with 3 where there is something', async () => {
    const current = await on('migrate', '--dry-run')
    onDatabase(database, (file) => file.exec('delete from migrations; drop table audit_records'))
    const pending = await on('migrate', '--dry-run', '-o', 'json')

    expect(current.code).toBe(0)
    expect(current.stdout).toMatch(/has the newest schema/)
    // The first migration cannot run twice, so the trial fails, and nothing of it is left behind.
    expect(pending.code).toBe(1)
    expect(onDatabase(database, (file) => file.prepare('select count(*) as n from migrations').get())).toEqual({ n: 0 })
  })

  it.each(['check', 'migrate'])('%s does not wait: a directory in use is 8', async (verb) => {
    const unlock = lockDirectory(dir)

    const { code } = await controller(['db', verb, '--data-dir', dir], env)
    unlock()

    expect(code).toBe(8)
  })

  it('says so where there is no database', async () => {
    const { code, stderr } = await cli('db', 'check', '--data-dir', dirname(dir))

    expect(code).toBe(5)
    expect(stderr).toMatch(/controller init/)
  })
})
