// A log that cannot be written: the controller serves on, stops when it is told to, and says what is missing.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { LogOutput } from '../../server/logging/log-output.ts'
import { createHttpTransport } from '../../src/client/http-transport.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { BINARY, cleanEnvironment } from '../world/binary.ts'
import { copyOfTemplate, MANAGEMENT } from '../world/controller.ts'
import { findFreePort } from '../world/free-port.ts'
import { lacks } from '../world/machine.ts'

type Output = 'pipe' | 'ignore' | number

let child: ChildProcess | undefined
afterEach(() => child?.kill('SIGKILL'))

/** Starts the controller with these outputs and waits until it takes connections. */
async function serving(stdout: Output, stderr: Output) {
  const directory = copyOfTemplate()
  const url = `127.0.0.1:${await findFreePort()}`
  const args = [BINARY, 'serve', '--data-dir', directory, '--listen', url]
  const env = { ...cleanEnvironment(), CONTROLLER_LOG_LEVEL: 'debug' }
  child = spawn(process.execPath, args, { env, stdio: ['ignore', stdout, stderr] })
  const ended = new Promise<number | null>((resolve) => child?.on('close', resolve))
  const rootPem = readFileSync(join(getDataPaths(directory).pki, 'root.crt'), 'utf8')
  const transport = createHttpTransport({ url: `https://${url}`, rootPem })
  while (!(await transport.send({ method: 'GET', path: '/version' }).catch(() => undefined))) await wait(50)
  return {
    pid: child.pid as number,
    async fail(count: number) {
      const body = { username: 'unknown', password: 'not the password' }
      const path = `${MANAGEMENT}/authenticate?method=password`
      const statuses: number[] = []
      for (let at = 0; at < count; at++) statuses.push((await transport.send({ method: 'POST', path, body })).status)
      return statuses
    },
    async stop() {
      await transport.close?.()
      child?.kill('SIGTERM')
      return ended
    },
  }
}

const lines = (text: string) => text.split('\n').filter((line) => line !== '')

describe('a controller', () => {
  it('serves and stops while its log is on a full disk', async () => {
    const full = openSync('/dev/full', 'w')
    const { fail, stop } = await serving('ignore', full)
    closeSync(full)

    expect(await fail(20)).toEqual(Array(20).fill(401))
    expect(await stop()).toBe(0)
  })

  it('serves and stops while everything that it prints is on a full disk', async () => {
    const full = openSync('/dev/full', 'w')
    const { fail, stop } = await serving(full, full)
    closeSync(full)

    expect(await fail(3)).toEqual(Array(3).fill(401))
    expect(await stop()).toBe(0)
  })

  it('serves and stops after the readers of its outputs are gone', async () => {
    const { fail, stop } = await serving('pipe', 'pipe')
    child?.stdout?.destroy()
    child?.stderr?.destroy()

    expect(await fail(20)).toEqual(Array(20).fill(401))
    expect(await stop()).toBe(0)
  })

  it('stops while its log is not read', async () => {
    const fifo = newFifo()
    const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK)
    const writer = openSync(fifo, constants.O_WRONLY)
    fill(fifo)
    const { fail, stop } = await serving('ignore', writer)
    closeSync(writer)

    expect(await fail(20)).toEqual(Array(20).fill(401))
    expect(await stop()).toBe(0)
    closeSync(reader)
  })

  it.skipIf(lacks('prlimit', spawnSync('prlimit', ['--version']).status === 0))(
    'writes what it could not write before, once there is room',
    async () => {
      const file = join(mkdtempSync(join(tmpdir(), 'log-')), 'log')
      const log = openSync(file, 'a')
      const { fail, stop, pid } = await serving('ignore', log)
      closeSync(log)
      const limit = (bytes: string) => execFileSync('prlimit', [`--pid=${pid}`, `--fsize=${bytes}:unlimited`])

      limit('1')
      await fail(5)
      const whileFull = readFileSync(file, 'utf8')
      limit('unlimited')
      while (!readFileSync(file, 'utf8').includes('/authenticate')) await wait(50)
      const code = await stop()

      expect(whileFull).not.toContain('/authenticate')
      expect(code).toBe(0)
      const logged = lines(readFileSync(file, 'utf8')).filter((line) => line.startsWith('{'))
      expect(logged.map((line) => JSON.parse(line)).at(-1)).toMatchObject({ msg: 'stopped' })
    },
  )
})

describe('a log that is not read', () => {
  it('loses whole lines beyond its bound, counts them, and tells the count when it is read again', async () => {
    const fifo = newFifo()
    const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK)
    const writer = openSync(fifo, constants.O_WRONLY)
    let dropped = 0
    const output = new LogOutput({
      fd: writer,
      maxQueuedBytes: 200_000,
      onRecovered(count) {
        dropped += count
        output.write('recovered\n')
      },
    })
    const line = (at: number) => `${JSON.stringify({ at, text: 'x'.repeat(200) })}\n`

    for (let at = 0; at < 5_000; at++) output.write(line(at))
    const read = await readUntil(reader, /recovered\n/)
    output.write(line(5_000))
    const after = await readUntil(reader, /5000.*\n/)
    closeSync(reader)
    closeSync(writer)

    const keptLines = lines(read).filter((text) => text !== 'recovered')
    expect(keptLines.map((text) => JSON.parse(text).at)).toEqual(keptLines.map((_, at) => at))
    expect(dropped).toBeGreaterThan(3_000)
    expect(keptLines.length + dropped).toBe(5_000)
    expect(JSON.parse(after).at).toBe(5_000)
  })
})

function newFifo(): string {
  const path = join(mkdtempSync(join(tmpdir(), 'fifo-')), 'log')
  execFileSync('mkfifo', [path])
  return path
}

/** Writes to a pipe until it takes nothing more. */
function fill(fifo: string): void {
  const script = `
    const { openSync, writeSync, constants } = require('node:fs')
    const pipe = openSync(process.argv[1], constants.O_WRONLY | constants.O_NONBLOCK)
    try { for (;;) writeSync(pipe, 'x') } catch {}
  `
  execFileSync(process.execPath, ['-e', script, fifo])
}

async function readUntil(fd: number, pattern: RegExp): Promise<string> {
  const buffer = Buffer.alloc(64 * 1024)
  let text = ''
  while (!pattern.test(text)) {
    const count = tryRead(fd, buffer)
    if (count > 0) text += buffer.toString('utf8', 0, count)
    else await wait(10)
  }
  return text
}

function tryRead(fd: number, buffer: Buffer): number {
  try {
    return readSync(fd, buffer)
  } catch {
    // Nothing is there yet.
    return 0
  }
}
