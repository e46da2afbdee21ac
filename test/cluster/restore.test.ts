// A backup is restored in a cluster: all its controllers have the restored state and nothing newer, whether they run or not.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { reviewSettings } from '../../server/cluster/cluster-settings.ts'
import { leaveCluster } from '../../server/cluster/leave-cluster.ts'
import { completeRekey, prepareRekey } from '../../server/cluster/rekey-cluster.ts'
import { type RestoreClusterOptions, restoreCluster } from '../../server/cluster/restore-cluster.ts'
import { createBackup } from '../../src/maintenance/backup/create-backup.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { editConfigFile } from '../../src/settings/edit-config-file.ts'
import { listRebuilds } from '../../src/storage/cluster/rebuild.ts'
import { MIGRATIONS, type Migration } from '../../src/storage/migrate.ts'
import { LogCipher } from '../../src/storage/postgres/log-cipher.ts'
import { LogContradictionError } from '../../src/storage/postgres/log-rows.ts'
import { LogUnavailableError, PostgresLog } from '../../src/storage/postgres/postgres-log.ts'
import { openForReading, openForWriting } from '../../src/storage/sqlite/connection.ts'
import { DirectoryLockedError, lockDirectory } from '../../src/storage/sqlite/directory-lock.ts'
import { readLogStart } from '../../src/storage/sqlite/log-start.ts'
import { listDifferentTables } from '../../src/storage/sqlite/row-digest.ts'
import { BINARY, cleanEnvironment } from '../world/binary.ts'
import { ClusterDirectories } from '../world/cluster-directories.ts'
import { commandLine } from '../world/command-line.ts'
import { MANAGEMENT, type TestController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { digestFile } from '../world/shadow.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

/** A migration of the next release. */
const addNote: Migration = {
  name: '0002-note',
  async up(db: Kysely<unknown>) {
    await db.schema
      .alterTable('services')
      .addColumn('note', 'text', (column) => column.notNull().defaultTo(''))
      .execute()
  },
}
const AT_TWO = { settings: { advertise: ['two.example:1280'] } }
const AT_THREE = { settings: { advertise: ['three.example:1280'] } }
// Faults of a controller that runs, until it ends.
const CUT_OFF = /the log of the cluster cannot be read|a duty could not be proven|no contact with the cluster/

const world = useClusterPerTest(ClusterDirectories)

const listNames = async ({ controller }: TestController) =>
  (await controller.store.db.selectFrom('identities').select('name').execute()).map(({ name }) => name)

const backupFile = () => join(world.cluster.folder, 'controller.tar.gz')

async function backUp(directory: string): Promise<string> {
  await createBackup({ directory, file: backupFile(), now: world.cluster.common.clock.now() })
  return backupFile()
}

const restore = (directory: string, options: Partial<RestoreClusterOptions> = {}) =>
  restoreCluster({ ...world.cluster.common, directory, file: backupFile(), ...options })

async function readHead(): Promise<{ position: number; epoch: number; network: string }> {
  const [head] = await world.cluster.sql('select position::float8, epoch::int, network from controller.head')
  return head as never
}

/** Two controllers that run, and a backup of the first; since then an identity was made, and another one renamed. */
async function prepare() {
  const first = await world.cluster.begin()
  const second = await world.cluster.join(first, 'two')
  const failures: Error[] = []
  const one = await world.cluster.open(first)
  const two = await world.cluster.open(second, { ...AT_TWO, fail: (error) => failures.push(error) })
  const { id, token } = await one.signIn({ name: 'as backed up', isAdmin: true })
  await backUp(first)
  const path = `${MANAGEMENT}/identities/${id}`
  const rename = await two.send({ method: 'PATCH', path, token: await two.admin(), body: { name: 'renamed' } })
  expect(rename.status).toBe(200)
  const newer = await two.signIn({ name: 'newer', isAdmin: true })
  await one.controller.store.catchUp()
  return { first, second, one, two, failures, id, token, newer }
}

async function expectRestored(node: TestController, { token, newer }: { token: string; newer: { token: string } }) {
  const names = await listNames(node)
  expect(names).toContain('as backed up')
  expect(names).not.toContain('newer')
  expect(names).not.toContain('renamed')
  const ask = (token: string) => node.send({ method: 'GET', path: `${MANAGEMENT}/identities?limit=500`, token })
  expect((await ask(newer.token)).status).toBe(401)
  const response = await ask(token)
  expect(response.status).toBe(200)
  expect(response.body.data.map(({ name }: { name: string }) => name).sort()).toEqual([...names].sort())
}

/** Ends a controller whose log is another one by now: what it would store at its end is refused. */
const end = (node: TestController) => world.cluster.stop(node).catch(() => undefined)

/** Resolves once a session waits for a lock that another one holds. `pg_stat_activity` alone still names, for a moment, one that has got its lock. */
async function waitForLock(): Promise<void> {
  const query = `select from pg_stat_activity join pg_locks using (pid)
    where datname = current_database() and wait_event_type = 'Lock' and not granted`
  while ((await world.cluster.sql(query)).length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** A session that holds the lock of the head, as a controller does that commits. */
const lockHead = () => holdLock('select from controller.head for update')

async function holdLock(statement: string) {
  const client = new pg.Client({ connectionString: world.cluster.url })
  await client.connect()
  await client.query('begin')
  await client.query(statement)
  return {
    async release(): Promise<void> {
      await client.query('rollback')
      await client.end()
    },
  }
}

describe('a backup of a cluster', () => {
  it('is restored for all controllers while they are stopped', async () => {
    const { first, second, one, two, ...rest } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    const before = await readHead()
    const report = await restore(first)
    expect(report).toMatchObject({ replaced: listRebuilds(first)[0]?.folder, running: [], findings: [] })
    const head = await readHead()
    expect(head).toMatchObject({ epoch: before.epoch + 1, network: before.network })
    expect(head.position).toBeGreaterThan(before.position)
    const nodes = [await world.cluster.open(first), await world.cluster.open(second, AT_TWO)]
    for (const node of nodes) await expectRestored(node, rest)
    await nodes[0]!.signIn({ name: 'made after' })
    await nodes[1]!.controller.store.catchUp()
    expect(await listNames(nodes[1]!)).toContain('made after')
    expect([listRebuilds(first).length, listRebuilds(second).length]).toEqual([1, 1])
  }, 90_000)

  it('is restored while others run, which grant and commit nothing since, and have it once they start again', async () => {
    allowFaults(CUT_OFF, /a request failed|5\d\d/)
    const { first, second, one, two, failures, ...rest } = await prepare()
    await world.cluster.stop(one)
    expect((await restore(first)).running).toEqual(['two'])
    await expect.poll(() => failures.length, { timeout: 30_000 }).toBeGreaterThan(0)
    expect(failures[0]?.message).toMatch(/^the backup of \S+ was restored for all controllers; the next start/)
    two.clock.advance(two.controller.config['cluster.lease'])
    const path = `${MANAGEMENT}/identities`
    const [read, write] = await Promise.all([
      two.send({ method: 'GET', path, token: rest.newer.token }),
      two.send({ method: 'POST', path, token: rest.newer.token, body: { name: 'late', type: 'User', isAdmin: false } }),
    ])
    expect([read.status, write.status]).toEqual([503, 503])
    await end(two)
    const nodes = [await world.cluster.open(first), await world.cluster.open(second, AT_TWO)]
    for (const node of nodes) {
      await expectRestored(node, rest)
      expect(await listNames(node)).not.toContain('late')
    }
  }, 90_000)

  it('is restored by a controller that the backup is not of, and that has joined since', async () => {
    const first = await world.cluster.begin()
    const one = await world.cluster.open(first)
    const { token } = await one.signIn({ name: 'as backed up', isAdmin: true })
    await backUp(first)
    const newer = await one.signIn({ name: 'newer' })
    await world.cluster.stop(one)
    const second = await world.cluster.join(first, 'two')
    const settings = readFileSync(getDataPaths(second).config, 'utf8')
    await restore(second)
    expect(readFileSync(getDataPaths(second).config, 'utf8')).toBe(settings)
    for (const [directory, options] of [
      [first, {}],
      [second, AT_TWO],
    ] as const)
      await expectRestored(await world.cluster.open(directory, options), { token, newer })
  })

  it('is restored without the settings of its time on which the controllers agree', async () => {
    const { first, one, two } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    editConfigFile(getDataPaths(first).config, { 'session.timeout': '20m' })
    const options = { ...world.cluster.common, directory: first }
    await reviewSettings({ ...options, isAccepted: true })
    await restore(first)
    const { settings, differences } = await reviewSettings({ ...options, isAccepted: false })
    expect([settings['session.timeout'], differences]).toEqual(['20m', []])
  })

  it('of an older schema is migrated by the release that restores it, for all controllers', async () => {
    const { first, second, one, two, ...rest } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    const newer = { migrations: [...MIGRATIONS, addNote] }
    for (const [directory, options] of [
      [first, {}],
      [second, AT_TWO],
    ] as const)
      await world.cluster.stop(await world.cluster.open(directory, { ...options, ...newer }))
    await restore(first, newer)
    const head = await world.cluster.sql('select migration from controller.head')
    expect(head).toEqual([{ migration: addNote.name }])
    const nodes = [await world.cluster.open(first, newer), await world.cluster.open(second, { ...AT_TWO, ...newer })]
    for (const node of nodes) {
      await expectRestored(node, rest)
      const { rows } = await sql`select note from services`.execute(node.controller.store.db)
      expect(rows).toEqual([])
    }
    expect(listDifferentTables(digestFile(first), digestFile(second))).toEqual([])
    for (const node of nodes) await world.cluster.stop(node)
    await expect(world.cluster.open(first)).rejects.toThrow(/the log was migrated by release/)
  }, 120_000)

  it('is restored although the log has no commit of its time any more', async () => {
    const { first, second, one, two, ...rest } = await prepare()
    await one.controller.cluster?.snapshots.make(one.system)
    await one.signIn({ name: 'newest' })
    await one.controller.cluster?.snapshots.make(one.system)
    for (const node of [one, two]) await world.cluster.stop(node)
    await world.cluster.sql('delete from controller.commits')
    await restore(first)
    for (const node of [await world.cluster.open(second, AT_TWO), await world.cluster.open(first)])
      await expectRestored(node, rest)
  })

  it('is restored at a controller that lacked what was newer', async () => {
    const { first, second, one, two, ...rest } = await prepare()
    await world.cluster.stop(two)
    for (const name of ['a', 'b']) await one.signIn({ name })
    await world.cluster.stop(one)
    await restore(first)
    const again = await world.cluster.open(second, AT_TWO)
    await expectRestored(again, rest)
    expect(await listNames(again)).not.toContain('a')
    expect(listRebuilds(second)).toHaveLength(1)
  })

  it('is restored after the cluster key was replaced, with the keys of its time', async () => {
    const { first, second, one, two, ...rest } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    const former = readFileSync(getDataPaths(first).clusterKey)
    const options = { ...world.cluster.common, directory: first }
    prepareRekey(options)
    copyFileSync(getDataPaths(first).nextClusterKey, getDataPaths(second).nextClusterKey)
    await completeRekey(options)
    await restore(first)
    expect(readFileSync(getDataPaths(first).clusterKey)).not.toEqual(former)
    for (const node of [await world.cluster.open(first), await world.cluster.open(second, AT_TWO)])
      await expectRestored(node, rest)
    const third = await world.cluster.open(await world.cluster.join(first, 'three'), AT_THREE)
    await expectRestored(third, rest)
  })

  it('has another timeline and a later position for routers that have newer data', async () => {
    const { first, second, one, two } = await prepare()
    const { index } = one.controller.routers.model
    for (const node of [one, two]) await world.cluster.stop(node)
    const readTimeline = (directory: string) => {
      const connection = openForReading(getDataPaths(directory).database)
      const timeline = connection.prepare('select timeline from commit_position').pluck().get()
      connection.close()
      return timeline
    }
    const before = readTimeline(first)
    await restore(first)
    const again = await world.cluster.open(second, AT_TWO)
    expect(readTimeline(first)).not.toBe(before)
    expect(readTimeline(second)).toBe(readTimeline(first))
    expect(again.controller.routers.model.index).toBeGreaterThan(index)
  })

  it('names a controller again that has left since, until it is deleted', async () => {
    const { first, second, one, two, token } = await prepare()
    await two.controller.membership.announce(two.system, {})
    await one.controller.store.catchUp()
    await backUp(first)
    for (const node of [one, two]) await world.cluster.stop(node)
    await leaveCluster({ ...world.cluster.common, directory: second, isLast: false, isDatabaseLost: false })
    await restore(first)
    const { controller, send } = await world.cluster.open(first)
    const names = controller.store.db.selectFrom('controllers').select('node').where('node', '=', 'two')
    expect(await names.execute()).toHaveLength(1)
    const remove = (name: string) => send({ method: 'DELETE', path: `${MANAGEMENT}/controller/nodes/${name}`, token })
    expect((await remove('two')).status).toBe(200)
    expect(await names.execute()).toEqual([])
    expect((await remove('two')).status).toBe(404)
  })

  it('is what every controller says of the rows that it replaced, and that nothing was lost', async () => {
    allowFaults(CUT_OFF, /a request failed|5\d\d/)
    const { first, second, one, two, failures } = await prepare()
    await world.cluster.stop(one)
    await restore(first)
    await expect.poll(() => failures.length, { timeout: 30_000 }).toBeGreaterThan(0)
    const restored = /^the backup of \S+ was restored for all controllers; the next start of this controller rebuilds/
    expect(failures[0]?.message).toMatch(restored)
    await end(two)
    // Also those that start after the next snapshot.
    const again = await world.cluster.open(first)
    await again.controller.cluster?.snapshots.make(again.system)
    const nodes = [again, await world.cluster.open(second, AT_TWO)]
    for (const { controller, system } of nodes) {
      const { diagnoses } = await controller.doctor.diagnose(system)
      const [rebuild, ...others] = diagnoses.filter(({ check }) => check === 'log of the cluster')
      expect(others).toEqual([])
      expect(rebuild?.message).toMatch(
        /because the backup of \S+ was restored for all controllers; \d+ audit records of \S+ to \S+ are newer than the backup;/,
      )
      expect(`${rebuild?.message} ${rebuild?.remedy}`).not.toMatch(/lost|lack|missing/)
    }
  }, 90_000)

  it('is not what a controller says that loses commits afterwards', async () => {
    const { first, second, one, two } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    await restore(first)
    const readReason = () => listRebuilds(second).at(-1)?.reason
    await world.cluster.stop(await world.cluster.open(second, AT_TWO))
    expect(readReason()).toMatch(/^the backup of/)
    const { database } = getDataPaths(second)
    const connection = openForWriting(database)
    connection.prepare("update commit_position set chain = 'another'").run()
    connection.close()
    await world.cluster.open(second, AT_TWO)
    expect(readReason()).not.toMatch(/backup/)
  })

  it('is named in the audit, with what the controller of the directory had', async () => {
    const { first, one, two, token } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    await restore(first)
    const filter = encodeURIComponent('resource = "cluster"')
    const path = `${MANAGEMENT}/controller/audit?filter=${filter}`
    const { body } = await (await world.cluster.open(first)).send({ method: 'GET', path, token })
    const records = body.data as { method?: string; reason?: string }[]
    expect(records).toContainEqual(
      expect.objectContaining({
        method: 'restore',
        reason: expect.stringMatching(/^the backup of \S+ was restored for all/),
      }),
    )
    expect(records).toContainEqual(
      expect.objectContaining({
        method: 'rebuild',
        reason: expect.stringMatching(/because the backup of \S+ was restored/),
      }),
    )
  })
})

describe('a commit at another controller', () => {
  it('that has its turn first is taken back with everything newer, and none follows from it', async () => {
    const { first, one, two, failures } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    expect(failures).toEqual([])
    const cipher = new LogCipher(readFileSync(getDataPaths(first).clusterKey))
    const log = new PostgresLog({ database: { url: world.cluster.url, isPlain: true }, cipher, node: 'two' })
    const place = readLogStart(getDataPaths(first).database)
    // The restore waits where it stores its snapshot: all before it would take a part of the two seconds that a turn may last.
    const snapshots = await holdLock('lock table controller.snapshots in exclusive mode')
    const restoring = restore(first)
    await waitForLock()
    const turn = await log.acquire(place)
    const before = turn.missed.at(-1) ?? place
    const draft = (position: number) => ({ position, at: 1, changes: [], tables: [], rows: [] })
    await snapshots.release()
    await waitForLock()
    const commit = await turn.publish(draft(before.position + 1))
    await restoring
    expect(await world.cluster.sql('select from controller.commits where id = $1', [commit.id])).toEqual([])
    await expect(log.acquire(commit)).rejects.toThrow(LogContradictionError)
    await expect(log.readAfter(place, 1)).rejects.toThrow(LogContradictionError)
    await log.close()
  })

  it('that lost its lock before is refused', async () => {
    const { first, one, two } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    const cipher = new LogCipher(readFileSync(getDataPaths(first).clusterKey))
    const log = new PostgresLog({ database: { url: world.cluster.url, isPlain: true }, cipher, node: 'two' })
    const place = readLogStart(getDataPaths(first).database)
    const turn = await log.acquire(place)
    const before = turn.missed.at(-1) ?? place
    await world.cluster.sql(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    )
    await restore(first)
    const draft = { position: before.position + 1, at: 1, changes: [], tables: [], rows: [] }
    await expect(turn.publish(draft)).rejects.toThrow(LogUnavailableError)
    await log.close()
  })

  it('is in none of the states, although it was stored while the backup was being restored', async () => {
    allowFaults(CUT_OFF, /a request failed|5\d\d/)
    const { first, second, one, two, failures, newer } = await prepare()
    await world.cluster.stop(one)
    let isOver = false
    const statuses: number[] = []
    const storm = (async () => {
      for (let nth = 0; !isOver; nth += 1) {
        const body = { name: `storm ${nth}`, type: 'User', isAdmin: false }
        const path = `${MANAGEMENT}/identities`
        statuses.push((await two.send({ method: 'POST', path, token: newer.token, body })).status)
      }
    })()
    await restore(first)
    const { position } = await readHead()
    await expect.poll(() => failures.length, { timeout: 30_000 }).toBeGreaterThan(0)
    isOver = true
    await storm
    expect(statuses).toContain(201)
    expect(statuses.at(-1)).toBe(503)
    const since = await world.cluster.sql('select node from controller.commits where position > $1', [position])
    expect(since.filter(({ node }) => node === 'two')).toEqual([])
    await end(two)
    for (const [directory, options] of [
      [first, {}],
      [second, AT_TWO],
    ] as const) {
      const names = await listNames(await world.cluster.open(directory, options))
      expect(names.filter((name) => name.startsWith('storm'))).toEqual([])
    }
  }, 90_000)
})

describe('a restore that is killed', () => {
  const start = (directory: string) =>
    spawn(process.execPath, [BINARY, 'db', 'restore', backupFile(), '--data-dir', directory, '--yes'], {
      env: cleanEnvironment(),
      stdio: 'ignore',
    })

  it('before its transaction leaves all as they were', async () => {
    const { first, second, one, two } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    const before = await readHead()
    const lock = await lockHead()
    const child = start(first)
    await waitForLock()
    child.kill('SIGKILL')
    await once(child, 'exit')
    await lock.release()
    expect(await readHead()).toEqual(before)
    for (const [directory, options] of [
      [first, {}],
      [second, AT_TWO],
    ] as const) {
      expect(await listNames(await world.cluster.open(directory, options))).toContain('newer')
      expect(listRebuilds(directory)).toEqual([])
    }
    const third = await world.cluster.join(first, 'three')
    expect(await listNames(await world.cluster.open(third, AT_THREE))).toContain('newer')
  })

  it('after its transaction has restored all, also the one of its directory', async () => {
    const { first, second, one, two, ...rest } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    const child = start(first)
    while ((await readHead()).epoch === 1) await new Promise((resolve) => setTimeout(resolve, 1))
    child.kill('SIGKILL')
    await once(child, 'exit')
    for (const node of [await world.cluster.open(first), await world.cluster.open(second, AT_TWO)])
      await expectRestored(node, rest)
  })
})

describe('a restore whose connection to the database ends', () => {
  const endSession = (waiting: 'Lock' | 'SyncRep') =>
    world.cluster.sql(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and (wait_event_type = $1 or wait_event = $1)`,
      [waiting],
    )

  /** Has commits wait for a standby that there is not. */
  async function setStandby(name: string): Promise<void> {
    await world.cluster.sql(`alter system set synchronous_standby_names = '${name}'`)
    await world.cluster.sql('select pg_reload_conf()')
  }

  /** Resolves once a commit waits for the standby: the server takes a new setting some time after it was told to. */
  async function waitForStandby(): Promise<void> {
    const cancel = `select pg_cancel_backend(pid) from pg_stat_activity
      where datname = current_database() and wait_event = 'SyncRep'`
    for (let isWaiting = false; !isWaiting; ) {
      let isOver = false
      const commit = world.cluster.sql(`select pg_logical_emit_message(true, 'test', '')`).finally(() => {
        isOver = true
      })
      while (!isOver && !isWaiting) isWaiting = (await world.cluster.sql(cancel)).length > 0
      await commit
    }
  }

  it('before its commit says that nothing was restored', async () => {
    const { first, one, two } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    const before = await readHead()
    const lock = await lockHead()
    const refusal = expect(restore(first)).rejects.toMatchObject({
      code: 'NOT_RESTORED',
      message: expect.stringContaining('nothing was restored'),
    })
    await waitForLock()
    await endSession('Lock')
    await lock.release()
    await refusal
    expect(await readHead()).toEqual(before)
  })

  it('says that nothing was restored if another controller has the lock for too long', async () => {
    const { first, one, two } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    const before = await readHead()
    const lock = await lockHead()
    await expect(restore(first)).rejects.toMatchObject({
      code: 'NOT_RESTORED',
      message: expect.stringMatching(/nothing was restored: .*lock timeout/),
    })
    await lock.release()
    expect(await readHead()).toEqual(before)
    await restore(first)
    expect(await readHead()).toMatchObject({ epoch: 2 })
  }, 60_000)

  it('while it is committed goes on', async () => {
    const { first, one, two } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    const lock = await lockHead()
    const result = restore(first)
    await waitForLock()
    await setStandby('missing')
    try {
      await waitForStandby()
      await lock.release()
      while ((await endSession('SyncRep')).length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    } finally {
      await setStandby('')
    }
    expect(await result).toMatchObject({ running: [] })
    expect(await readHead()).toMatchObject({ epoch: 2 })
  })
})

describe('a backup that cannot be restored in a cluster', () => {
  const expectUntouched = async (directory: string, head: unknown) => {
    expect(await readHead()).toEqual(head)
    expect(existsSync(join(directory, 'restored.unfinished'))).toBe(false)
    expect(await listNames(await world.cluster.open(directory))).toContain('newer')
  }

  it('is one of another cluster', async () => {
    const { first, one, two } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    const head = await readHead()
    const other = world.cluster.makeAlone()
    await backUp(other)
    const remedy = expect.stringMatching(/backup of this cluster; or begin another .*controller cluster leave/)
    await expect(restore(first)).rejects.toMatchObject({
      ...{ code: 'OTHER_NETWORK', remedy },
      message: expect.stringContaining('was made by a controller that was alone'),
    })
    const connection = openForWriting(getDataPaths(other).database)
    connection.prepare("update commit_position set network = 'another one'").run()
    connection.close()
    await backUp(other)
    await expect(restore(first)).rejects.toMatchObject({
      ...{ code: 'OTHER_NETWORK', remedy },
      message: expect.stringContaining('is of the cluster another one'),
    })
    await expectUntouched(first, head)
  })

  it('is one of a newer release', async () => {
    const { first, second, one, two } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    const head = await readHead()
    const connection = openForWriting(getDataPaths(second).database)
    connection
      .prepare(
        "insert into migrations (name, version, at, schema) select '9999-newer', '9.0.0', at, schema from migrations limit 1",
      )
      .run()
    connection.close()
    await backUp(second)
    await expect(restore(first)).rejects.toMatchObject({
      code: 'NEWER_DATABASE',
      remedy: expect.stringContaining('9.0.0'),
    })
    await expectUntouched(first, head)
  })

  it('is any while the controller of the directory runs', async () => {
    const { first, one, two } = await prepare()
    for (const node of [one, two]) await world.cluster.stop(node)
    const head = await readHead()
    const unlock = lockDirectory(first)
    await expect(restore(first)).rejects.toThrow(DirectoryLockedError)
    unlock()
    await expectUntouched(first, head)
  })
})

describe('controller db restore', () => {
  it('says that it is for all controllers, which run, and what comes next', async () => {
    allowFaults(CUT_OFF)
    const { first, one, failures } = await prepare()
    await world.cluster.stop(one)
    const env = cleanEnvironment()
    const question = await commandLine(['db', 'restore', backupFile(), '--data-dir', first], env)
    expect(question.stderr).toMatch(/all controllers of the cluster/)
    expect(question.code).not.toBe(0)
    expect((await readHead()).epoch).toBe(1)
    const restored = await commandLine(['db', 'restore', backupFile(), '--data-dir', first, '--yes'], env)
    expect(restored).toMatchObject({ code: 0, stderr: '' })
    expect(restored.stdout).toMatch(/So does the log of the cluster/)
    expect(restored.stdout).toContain('These run, and end now: two.')
    expect(restored.stdout).toContain(`The database before is in ${listRebuilds(first)[0]?.folder}`)
    await expect.poll(() => failures.length, { timeout: 30_000 }).toBeGreaterThan(0)
  })
})
