// The database that an operator states: open in another process, not a file, or on a disk without space for it.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { SourceConfiguration } from '../../src/adopt/source-configuration.ts'
import { requireUnlocked } from '../../src/adopt/source-files.ts'
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

const isRoot = process.geteuid?.() === 0
// An account without rights.
const UNPRIVILEGED = 65_534

/** A folder that only root can enter, or none if the tests are not root's. */
function makeClosedFolder(name: string): string {
  const path = join(folder, name)
  mkdirSync(path, { mode: isRoot ? 0o700 : 0 })
  return path
}

/** The error of the work, with the rights of another account if the tests are root's. */
function catchWithoutRights(work: () => unknown): unknown {
  if (isRoot) process.seteuid?.(UNPRIVILEGED)
  try {
    return work()
  } catch (error) {
    return error
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
}

it('a key that this account may not read leads to another account, and not to another path', () => {
  const key = join(makeClosedFolder('keys'), 'signer.key')
  const configuration = join(tmpdir(), `adopt-${process.pid}.yaml`)
  writeFileSync(configuration, `key: ${key}\n`)
  const source = SourceConfiguration.read({ path: configuration, env: {} })
  rmSync(configuration)

  expect(catchWithoutRights(() => source.pem('key'))).toMatchObject({
    code: 'FILE_UNUSABLE',
    message: `${key}, which key names, cannot be read: permission denied`,
    remedy: expect.stringMatching(/as an account that can read the files.*chown -R/),
  })
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

  it('in a folder that this account may not enter is not taken for a missing one', () => {
    const closed = makeClosedFolder('closed')
    expect(catchWithoutRights(() => requireUnlocked(join(closed, 'ctrl.db')))).toMatchObject({
      code: 'FILE_UNUSABLE',
      message: expect.stringMatching(/cannot be read: permission denied$/),
      remedy: expect.stringContaining('as an account that can read the files'),
    })
  })

  it('that does not exist, or is a directory, is refused', async () => {
    const path = join(folder, 'nowhere.db')
    const message = `the database ${path} does not exist`
    await expect(adopt(path)).rejects.toMatchObject({ code: 'NO_DATABASE', message })
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
