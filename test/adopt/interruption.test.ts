// Adoptions that do not end as they should: killed, or on a full disk. What is left is not a controller, and can be deleted.
import { spawn, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { isInitialized } from '../../src/initialize.ts'
import { BINARY, cleanEnvironment, run } from '../world/binary.ts'
import { lacks } from '../world/machine.ts'
import { unpackNetwork } from './networks.ts'

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0
const folder = mkdtempSync(join(tmpdir(), 'interrupted-'))
afterAll(() => rmSync(folder, { recursive: true }))

const network = unpackNetwork('1.6.5', join(folder, 'network'))
// The moment of a copy is not that of its original: a later write would show.
utimesSync(network.database, new Date(1_700_000_000_000), new Date(1_700_000_000_000))

// The process sends the signal to itself, by a thread of its own: another process, if it is paused, could send it too late.
const SIGNAL_ONCE_THERE = `
  const { isMainThread, Worker } = require('node:worker_threads')
  const watch = \`
    const { existsSync, readdirSync } = require('node:fs')
    const { join } = require('node:path')
    const { SIGNAL, SIGNAL_BELOW, SIGNAL_AT } = process.env
    const pause = new Int32Array(new SharedArrayBuffer(4))
    const list = () => (existsSync(SIGNAL_BELOW) ? readdirSync(SIGNAL_BELOW, { recursive: true }) : [])
    while (!list().some((path) => join('/', path).endsWith(SIGNAL_AT))) Atomics.wait(pause, 0, 0, 1)
    process.kill(process.pid, SIGNAL)\`
  if (isMainThread && String(process.argv[1]).endsWith('run.js')) new Worker(watch, { eval: true }).unref()`
const signaller = join(folder, 'signaller.cjs')
writeFileSync(signaller, SIGNAL_ONCE_THERE)

/** Starts a command that gets a signal once there is a path below a folder with this end. Resolves with its exit code and the signal that ended it. */
function runInterrupted(
  args: readonly string[],
  { below, at, signal, ...others }: { below: string; at: string; signal: NodeJS.Signals; TMPDIR?: string },
): Promise<readonly [code: number | null, signal: NodeJS.Signals | null]> {
  const watching = { NODE_OPTIONS: `--require=${signaller}`, SIGNAL: signal, SIGNAL_BELOW: below, SIGNAL_AT: at }
  const env = { ...cleanEnvironment(), ...watching, ...others }
  const child = spawn(process.execPath, [BINARY, ...args], { env, stdio: 'ignore' })
  return new Promise((resolve) => child.on('exit', (code, by) => resolve([code, by])))
}

/** For a test that starts three processes, each of which adopts. */
const THREE_PROCESSES_MS = 120_000

/** Everything about the files of the former controller that a write would change. */
function describeSource(): unknown {
  const paths = readdirSync(network.home, { recursive: true }).map((path) => join(network.home, String(path)))
  return paths.sort().map((path) => {
    const { mtimeMs, size } = statSync(path)
    return [path, mtimeMs, size, statSync(path).isFile() ? readFileSync(path).toString('base64') : '']
  })
}

const source = describeSource()
const toArgs = (directory: string) => ['adopt', '--from', network.config, '--data-dir', directory, '--yes']
const adopt = (directory: string) => run(process.execPath, [BINARY, ...toArgs(directory)], cleanEnvironment())

describe('an adoption that is killed', () => {
  it.each(['pki', 'controller.db', 'controller.db-wal'])(
    'once %s is there leaves no controller; the directory is deleted, and the adoption is made again',
    { timeout: THREE_PROCESSES_MS },
    async (name) => {
      const directory = join(folder, `killed-${name}`)
      const options = { below: directory, at: `/${name}`, signal: 'SIGKILL' } as const
      expect(await runInterrupted(toArgs(directory), options)).toEqual([null, 'SIGKILL'])

      expect(isInitialized(directory)).toBe(false)
      const again = await adopt(directory)
      expect([again.code, again.stderr]).toEqual([6, expect.stringContaining('delete this one first')])
      expect(describeSource()).toEqual(source)

      rmSync(directory, { recursive: true })
      expect((await adopt(directory)).code).toBe(0)
      expect(isInitialized(directory)).toBe(true)
    },
  )
})

describe('a trial of an adoption', () => {
  it.each<[NodeJS.Signals, number]>([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ])('that is ended by %s leaves no keys of the former network behind', async (signal, exitCode) => {
    const temporary = mkdtempSync(join(folder, 'temporary-'))
    const options = { below: temporary, at: '.key', signal, TMPDIR: temporary }

    expect(await runInterrupted(['adopt', '--from', network.config, '--dry-run'], options)).toEqual([exitCode, null])
    expect(readdirSync(temporary)).toEqual([])
  })
})

describe('an adoption on a full disk', () => {
  it.skipIf(lacks('prlimit', hasPrlimit)).each([1, 20_000, 200_000, 600_000])(
    'ends after %i bytes with an error about the disk, and leaves nothing behind',
    async (bytes) => {
      const directory = join(folder, `full-${bytes}`)
      mkdirSync(directory)
      const limit = [`--fsize=${bytes}:unlimited`, process.execPath, BINARY, ...toArgs(directory)]
      const { code, stderr } = await run('prlimit', limit, cleanEnvironment())
      expect([code, stderr]).toEqual([1, expect.stringMatching(/Try: .*(space|another directory)/)])
      expect(readdirSync(directory)).toEqual([])
      expect(describeSource()).toEqual(source)
    },
  )
})

/** Has a process find the disk full when the settings, which are written last, get their name. */
const FULL_AT_THE_END = `
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  const { renameSync } = fs
  fs.renameSync = (from, to) => {
    if (to.endsWith('/config.yaml')) throw Object.assign(new Error(''), { code: 'ENOSPC', syscall: 'write' })
    renameSync(from, to)
  }
  syncBuiltinESMExports()`

it('an adoption whose settings cannot be written says what helps, and leaves nothing behind', async () => {
  const directory = join(folder, 'full-at-the-end')
  const options = `--import=data:text/javascript,${encodeURIComponent(FULL_AT_THE_END)}`

  const { code, stderr } = await run(process.execPath, [BINARY, ...toArgs(directory)], {
    ...cleanEnvironment(),
    NODE_OPTIONS: options,
  })

  const message = expect.stringMatching(/\S+ cannot be used: the disk is full\nTry: free some space on the disk/)
  expect([code, stderr]).toEqual([1, message])
  expect(existsSync(directory)).toBe(false)
})
