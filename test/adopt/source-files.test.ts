// The database that an operator states: open in another process, not a file, or on a disk without space for it.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { adoptNetwork } from '../../src/adopt.ts'
import { BINARY, cleanEnvironment, run } from '../world/binary.ts'
import { TestClock } from '../world/controller.ts'
import { lacks } from '../world/machine.ts'
import { NETWORK_TIME, unpackNetwork } from './networks.ts'

const hasFlock = existsSync('/proc/locks') && spawnSync('flock', ['--version']).status === 0
const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0
const folder = mkdtempSync(join(tmpdir(), 'source-'))
afterAll(() => rmSync(folder, { recursive: true }))

const { config, database } = unpackNetwork('1.6.5', join(folder, 'network'))
const directory = join(folder, 'data')
const adopt = (path = database) =>
  adoptNetwork({
    ...{ directory, configuration: config, database: path, env: {} },
    ...{ clock: new TestClock(NETWORK_TIME), osUser: 'operator' },
  })

describe('a database', () => {
  it.skipIf(lacks('flock', hasFlock))('that a process has open is refused until the process ends', async () => {
    const holder = spawn('flock', [database, 'sh', '-c', 'echo held; cat'], { stdio: ['pipe', 'pipe', 'ignore'] })
    await new Promise((resolve) => holder.stdout.once('data', resolve))
    await expect(adopt()).rejects.toMatchObject({ code: 'DATABASE_IN_USE', message: expect.stringContaining(database) })
    expect(existsSync(directory)).toBe(false)
    holder.stdin.end()
    await new Promise((resolve) => holder.once('close', resolve))
    const adoption = await adopt()
    adoption.discard()
  })

  it('that does not exist, or is a directory, is refused', async () => {
    await expect(adopt(join(folder, 'nowhere.db'))).rejects.toMatchObject({ code: 'NO_DATABASE' })
    await expect(adopt(folder)).rejects.toMatchObject({ code: 'NOT_A_DATABASE' })
    expect(existsSync(directory)).toBe(false)
  })
})

it.skipIf(lacks('prlimit', hasPrlimit))(
  'a compressed database that the disk has no space for leaves nothing behind',
  async () => {
    const snapshot = join(folder, 'state.bin')
    writeFileSync(snapshot, gzipSync(readFileSync(database)))
    const args = ['adopt', '--from', config, '--database', snapshot, '--data-dir', directory, '--yes']
    const limit = ['--fsize=700000:unlimited', process.execPath, BINARY, ...args]
    const { code, stderr } = await run('prlimit', limit, cleanEnvironment())
    expect([code, stderr]).toEqual([1, expect.stringMatching(/Try: .*(space|another directory)/)])
    expect(existsSync(directory) ? readdirSync(directory) : []).toEqual([])
  },
)
