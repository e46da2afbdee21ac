// The commands of clusters refuse what cannot succeed, and name what helps.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadOrCreateKey } from '../../src/pki/files.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { editConfigFile } from '../../src/settings/edit-config-file.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { copyOfTemplate } from '../world/controller.ts'
import { findFreePort } from '../world/free-port.ts'

const env = cleanEnvironment()
const folder = mkdtempSync(join(tmpdir(), 'cluster-commands-'))
const directories = [copyOfTemplate(), copyOfTemplate()] as const
afterAll(() => {
  for (const path of [folder, ...directories.map((directory) => join(directory, '..'))])
    rmSync(path, { recursive: true, force: true })
})

const cli = (...args: string[]) => commandLine(['cluster', ...args], env)

describe('controller cluster leave', () => {
  it('asks nothing if the directory is in no cluster', async () => {
    const [directory] = directories
    const { code, stderr } = await cli('leave', '--data-dir', directory)

    expect([code, stderr]).toEqual([
      1,
      `${directory} is in no cluster: its controller is alone\nTry: controller cluster init\n`,
    ])
  })

  it('names the way without the database, if that cannot be reached', async () => {
    const [, directory] = directories
    const { config, clusterKey } = getDataPaths(directory)
    const database = `postgres://controller@127.0.0.1:${await findFreePort()}/controller`
    editConfigFile(config, { 'cluster.database': database, 'cluster.name': 'one', 'cluster.tls': false })
    loadOrCreateKey(clusterKey, 32)

    const { code, stderr } = await cli('leave', '--data-dir', directory, '--yes')

    expect([code, stderr]).toEqual([
      8,
      expect.stringMatching(
        /^the database of the cluster cannot be used: .*\nTry: .* does not come back: --database-lost\n$/,
      ),
    ])
  })
})

describe('controller cluster join', () => {
  it('says where the cluster key is, which no backup holds', async () => {
    const words = ['--data-dir', join(folder, 'joined'), '--database', 'postgres://controller@127.0.0.1/none']
    const key = join(folder, 'no.key')
    const { code, stderr } = await cli('join', ...words, '--name', 'two', '--key', key)

    expect([code, stderr]).toEqual([
      1,
      `${key} is missing: copy cluster.key from the data directory of another controller\n`,
    ])
  })
})
