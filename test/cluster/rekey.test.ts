// The cluster key is replaced while controllers run: those that have the next one take it, and the former one opens nothing new.
import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { completeRekey, prepareRekey } from '../../server/cluster/rekey-cluster.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { listRebuilds } from '../../src/storage/cluster/rebuild.ts'
import { BINARY, cleanEnvironment } from '../world/binary.ts'
import { ClusterDirectories } from '../world/cluster-directories.ts'
import type { TestController } from '../world/controller.ts'
import { TcpProxy } from '../world/tcp-proxy.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const AT_TWO = { settings: { advertise: ['two.example:1280'] } }

const world = useClusterPerTest(ClusterDirectories)

const readKey = (directory: string) => readFileSync(getDataPaths(directory).clusterKey)

const copyNextKey = (from: string, to: string) =>
  copyFileSync(getDataPaths(from).nextClusterKey, getDataPaths(to).nextClusterKey)

const listNames = async ({ controller }: TestController) =>
  (await controller.store.db.selectFrom('identities').select('name').execute()).map(({ name }) => name)

/** Two controllers of a cluster, the second of which does not run, and the next key at the first. */
async function prepare() {
  const first = await world.cluster.begin()
  const second = await world.cluster.join(first, 'two')
  const former = readKey(first)
  const options = { ...world.cluster.common, directory: first }
  prepareRekey(options)
  return { first, second, former, options }
}

describe('the next cluster key', () => {
  it('is taken at once by a controller that runs and has it', async () => {
    const { first, second, former, options } = await prepare()
    copyNextKey(first, second)
    const two = await world.cluster.open(second, AT_TWO)
    await two.signIn({ name: 'before' })
    expect((await completeRekey(options)).stopped).toEqual([])
    await two.controller.store.catchUp()
    await two.signIn({ name: 'after' })
    for (const directory of [first, second]) {
      expect(readKey(directory)).not.toEqual(former)
      expect(existsSync(getDataPaths(directory).nextClusterKey)).toBe(false)
    }
    expect(readKey(second)).toEqual(readKey(first))
    expect(await listNames(await world.cluster.open(first))).toEqual(expect.arrayContaining(['before', 'after']))
    expect(listRebuilds(first)).toEqual([])
  })

  it('is not used while a controller runs that lacks it', async () => {
    const { second, former, options, first } = await prepare()
    await world.cluster.open(second, AT_TWO)
    await expect(completeRekey(options)).rejects.toMatchObject({
      code: 'KEY_NOT_COPIED',
      message: expect.stringMatching(/^two would not/),
      remedy: expect.stringContaining('cluster.key.next'),
    })
    expect(readKey(first)).toEqual(former)
  })

  it('has to be made first, and is used once', async () => {
    const { options } = await prepare()
    expect((await completeRekey(options)).stopped).toEqual(['two'])
    await expect(completeRekey(options)).rejects.toMatchObject({ code: 'NO_NEXT_KEY' })
  })
})

describe('a controller that was stopped meanwhile', () => {
  it('follows with both keys', async () => {
    const { first, second, options } = await prepare()
    const one = await world.cluster.open(first)
    await one.signIn({ name: 'under the former key' })
    await world.cluster.stop(one)
    copyNextKey(first, second)
    await completeRekey(options)
    const two = await world.cluster.open(second, AT_TWO)
    expect(await listNames(two)).toContain('under the former key')
    expect(readKey(second)).toEqual(readKey(first))
    expect(listRebuilds(second)).toEqual([])
  })

  it('is refused with the former key, and rebuilt with the new one alone', async () => {
    const { first, second, options } = await prepare()
    const one = await world.cluster.open(first)
    await one.signIn({ name: 'under the former key' })
    await world.cluster.stop(one)
    await completeRekey(options)
    await expect(world.cluster.open(second, AT_TWO)).rejects.toThrow(/copy cluster\.key from another controller/)
    copyFileSync(getDataPaths(first).clusterKey, getDataPaths(second).clusterKey)
    const two = await world.cluster.open(second, AT_TWO)
    await two.signIn({ name: 'after' })
    expect(await listNames(two)).toContain('after')
    expect(listRebuilds(second)).toMatchObject([{ lostRecords: { count: 0 } }])
  })

  it('can join with the new key', async () => {
    const { first, options } = await prepare()
    await completeRekey(options)
    await world.cluster.join(first, 'three')
    expect(await world.cluster.sql('select count(*)::int as count from controller.snapshots')).toEqual([{ count: 1 }])
  })
})

/** Completes the replacement in a process that is killed when it sends a statement. */
async function completeUntil(directory: string, text: string, isPassedOn: boolean): Promise<boolean> {
  const { proxy, url } = await TcpProxy.before(world.cluster.url)
  const environment = { ...cleanEnvironment(), CONTROLLER_CLUSTER_DATABASE: url }
  const args = [BINARY, 'cluster', 'rekey', '--complete', '--data-dir', directory]
  const child = spawn(process.execPath, args, { env: environment, stdio: 'ignore' })
  let isKilled = false
  const run = () => {
    isKilled = child.kill('SIGKILL')
    return isPassedOn
  }
  proxy.noticed = { text, run }
  await new Promise((resolve) => child.on('close', resolve))
  proxy.close()
  return isKilled
}

describe('a replacement that is killed', () => {
  it.each([
    ['before the log has the commit', 'insert into controller.commits', false],
    ['after the log has the commit', 'insert into controller.commits', true],
    ['before the snapshot', 'insert into controller.snapshots ', false],
    ['before the snapshot is whole', 'update controller.snapshots set manifest', false],
    ['after the snapshot is whole', 'update controller.snapshots set manifest', true],
    ['before snapshots under the former key are deleted', 'delete from controller.snapshots', false],
  ])('%s, is completed by the next run, and no controller is rebuilt', async (_, text, isPassedOn) => {
    const { first, second, former, options } = await prepare()
    copyNextKey(first, second)
    expect(await completeUntil(first, text, isPassedOn)).toBe(true)
    // Whatever was done by then, a controller that has both keys goes on.
    const two = await world.cluster.open(second, AT_TWO)
    await two.signIn({ name: 'meanwhile' })
    await world.cluster.stop(two)

    await completeRekey(options)
    expect(readKey(first)).not.toEqual(former)
    for (const directory of [first, second]) {
      expect(await listNames(await world.cluster.open(directory, directory === second ? AT_TWO : {}))).toContain(
        'meanwhile',
      )
      expect(listRebuilds(directory)).toEqual([])
      expect(existsSync(getDataPaths(directory).nextClusterKey)).toBe(false)
      expect(readKey(directory)).toEqual(readKey(first))
    }
    await world.cluster.join(first, 'three')
  })

  it('between the two files of a controller leaves no next key that is the current one', async () => {
    const { first, options } = await prepare()
    const next = readFileSync(getDataPaths(first).nextClusterKey)
    await completeRekey(options)
    expect(readKey(first)).toEqual(next)
    writeFileSync(getDataPaths(first).nextClusterKey, next, { mode: 0o600 })
    const one = await world.cluster.open(first)
    await one.signIn()
    await world.cluster.stop(one)
    expect(existsSync(getDataPaths(first).nextClusterKey)).toBe(false)

    prepareRekey(options)
    await completeRekey(options)
    expect(readKey(first)).not.toEqual(next)
  })
})
