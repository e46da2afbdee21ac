// The cluster key is replaced while controllers run: those that have the next one take it, and the former one opens nothing new.
import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { completeRekey, prepareRekey } from '../../server/cluster/rekey-cluster.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { listRebuilds } from '../../src/storage/cluster/rebuild.ts'
import { ClusterDirectories } from '../world/cluster-directories.ts'
import type { TestController } from '../world/controller.ts'
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
