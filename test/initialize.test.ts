// A new data directory that another process makes at the same moment.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { joinCluster } from '../server/cluster/join-cluster.ts'
import { startController } from '../server/start.ts'
import { systemClock } from '../src/foundation/clock.ts'
import { initializeDirectory } from '../src/initialize.ts'
import { getDataPaths } from '../src/settings/data-directory.ts'
import { CLUSTER_KEY_BYTES } from '../src/storage/postgres/log-cipher.ts'
import { copyOfTemplate } from './world/controller.ts'

const folder = mkdtempSync(join(tmpdir(), 'initialize-'))
afterAll(() => rmSync(folder, { recursive: true }))

const existing = copyOfTemplate()
const readRoot = (directory: string) => readFileSync(join(getDataPaths(directory).pki, 'root.crt'), 'utf8')
/** Makes the directory of a controller, as another process does. */
const makeMeanwhile = (directory: string) => cpSync(existing, directory, { recursive: true })
const administrator = { username: 'other', password: 'another battery' }

describe('a directory that becomes that of a controller', () => {
  it('while it is to be initialized stays as it is', async () => {
    const directory = join(folder, 'initialized')

    const initialization = initializeDirectory({ directory, settings: {}, clock: systemClock, administrator })
    makeMeanwhile(directory)

    await expect(initialization).rejects.toMatchObject({
      code: 'ALREADY_INITIALISED',
      message: `${directory} is already the data directory of a controller`,
    })
    expect(readRoot(directory)).toBe(readRoot(existing))
  })

  it('while one more controller of a network is to be made of it stays as it is', async () => {
    const root = readRoot(existing)
    const clusterKeyFile = join(folder, 'cluster.key')
    writeFileSync(clusterKeyFile, Buffer.alloc(CLUSTER_KEY_BYTES, 1), { mode: 0o600 })
    const settings = { 'cluster.database': 'postgres://controller@127.0.0.1:9/none', 'cluster.name': 'two' }
    const options = { directory: existing, env: {}, clock: systemClock, osUser: 'tester', settings, clusterKeyFile }

    await expect(joinCluster(options)).rejects.toMatchObject({ code: 'ALREADY_INITIALISED' })
    expect(readRoot(existing)).toBe(root)
  })

  it('while it is started for the first time is served', async () => {
    const directory = join(folder, 'served')
    const settings = { listeners: [{ address: '127.0.0.1:0' }], advertise: ['127.0.0.1:1280'] }

    const start = startController({ directory, settings, env: {}, logTo: { write: () => {} } })
    makeMeanwhile(directory)
    const running = await start
    await running.close()

    expect([running.written, running.bootstrapToken]).toEqual([[], undefined])
    expect(readRoot(directory)).toBe(readRoot(existing))
  })
})
