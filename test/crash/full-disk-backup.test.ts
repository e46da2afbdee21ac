// A disk that takes nothing more while a backup is made or restored: the previous backup and the data stay as they were.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { BINARY, cleanEnvironment, controller, type Finished, run } from '../world/binary.ts'
import { copyOfTemplate } from '../world/controller.ts'
import { lacks } from '../world/machine.ts'

const env = cleanEnvironment()
const directory = copyOfTemplate()
const folder = mkdtempSync(join(tmpdir(), 'full-disk-backup-'))
const file = join(folder, 'backup')

beforeAll(async () => {
  expect((await controller(['db', 'backup', file, '--data-dir', directory], env)).code).toBe(0)
})
afterAll(() => {
  for (const path of [folder, join(directory, '..')]) rmSync(path, { recursive: true, force: true })
})

/** Runs a command whose files may not grow beyond so many bytes: to it that is what a full disk is. */
function withSmallDisk(bytes: number, ...args: readonly string[]): Promise<Finished> {
  return run('prlimit', [`--fsize=${bytes}`, process.execPath, BINARY, ...args], env)
}

function hasPrlimit(): boolean {
  try {
    execFileSync('prlimit', ['--version'])
    return true
  } catch {
    return false
  }
}

const contentOf = () =>
  ['database', 'config', 'auditKey'].map((name) => readFileSync(getDataPaths(directory)[name as 'config']))

describe.skipIf(lacks('prlimit', hasPrlimit()))('a full disk', () => {
  it.each([100_000, 300_000])('at %i bytes leaves the previous backup', async (bytes) => {
    const before = readFileSync(file)

    const { code, stderr } = await withSmallDisk(bytes, 'db', 'backup', file, '--data-dir', directory)

    expect([code, stderr]).toEqual([1, expect.stringMatching(/not enough space in .*\nTry: make space there/)])
    expect(readFileSync(file).equals(before)).toBe(true)
    expect(readdirSync(folder)).toEqual(['backup'])
  })

  it.each([1_000, 300_000])('at %i bytes leaves the data as they were, and a restore works later', async (bytes) => {
    const before = contentOf()

    const { code, stderr } = await withSmallDisk(bytes, 'db', 'restore', file, '--data-dir', directory, '--yes')

    expect([code, stderr]).toEqual([1, expect.stringMatching(/not enough space in .*\nTry: make space there/)])
    expect(contentOf().map((content, at) => content.equals(before[at] as Buffer))).toEqual([true, true, true])
    expect(readdirSync(directory)).not.toContain('restored.unfinished')
    expect((await controller(['db', 'restore', file, '--data-dir', directory, '--yes'], env)).code).toBe(0)
  })
})
