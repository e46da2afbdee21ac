// `controller quickstart`: from nothing to a served network in one command, up to what a router and a device need.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { BINARY, cleanEnvironment, controller } from '../world/binary.ts'
import { findFreePort } from '../world/free-port.ts'

const home = mkdtempSync(join(tmpdir(), 'quickstart-'))
const env = cleanEnvironment(home)
const network = join(home, 'quickstart')

/** Starts the command, and waits until it serves. */
async function start(words: readonly string[], ready: RegExp, folder = home, environment = env) {
  const child = spawn(process.execPath, [BINARY, 'quickstart', ...words], { cwd: folder, env: environment })
  let stdout = ''
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      stdout += chunk
      if (ready.test(stdout)) resolve()
    })
    child.on('close', (code) => reject(new Error(`it ended with ${code}: ${stderr}`)))
  })
  return { child, stdout, readStderr: () => stderr }
}

const stop = (child: ChildProcess) =>
  new Promise<number | null>((resolve) => {
    child.on('close', resolve)
    child.kill('SIGTERM')
  })

let first: Awaited<ReturnType<typeof start>>
let port: number
beforeAll(async () => {
  port = await findFreePort()
  first = await start(['--listen', `127.0.0.1:${port}`], /curl .*\n/)
}, 90_000)
afterAll(() => first?.child.kill('SIGKILL'))

const cli = (...words: string[]) => controller(words, env)

describe('a quickstart', () => {
  it('makes an administrator with a random password, shows it once, and stores it nowhere', () => {
    const [, password = ''] = /^Password +(\S+) \(shown once/m.exec(first.stdout) ?? []

    expect(password).toMatch(/^[\w-]{24}$/)
    expect(first.stdout.split(password)).toHaveLength(2)
    expect(first.stdout).toMatch(/^Administrator +admin$/m)
    expect(readFileSync(join(env.XDG_CONFIG_HOME ?? '', 'controller', 'profiles.json'), 'utf8')).not.toContain(password)
  })

  it('leaves a profile that is signed in', async () => {
    const { code, stdout } = await cli('whoami')

    expect([code, stdout]).toEqual([0, expect.stringContaining('an administrator')])
  })

  it('names the next commands, with paths that exist', () => {
    const commands = first.stdout.split('\n').filter((line) => line.startsWith('  '))

    expect(commands.map((line) => line.trim())).toEqual([
      'ziti router enroll quickstart/edge-1.yml --jwt quickstart/edge-1.jwt',
      'ziti router run quickstart/edge-1.yml',
      'controller enroll quickstart/laptop.jwt',
      'ziti tunnel proxy hello:9000 -i quickstart/laptop.json',
      'curl --cacert quickstart/data/pki/root.crt https://127.0.0.1:9000/version',
    ])
    for (const file of ['edge-1.yml', 'edge-1.jwt', 'laptop.jwt'])
      expect(statSync(join(network, file)).mode & 0o777).toBe(0o600)
  })

  it('writes a router configuration that names this controller, and hosts services', () => {
    const configuration = parse(readFileSync(join(network, 'edge-1.yml'), 'utf8'))

    expect(configuration.ctrl.endpoint).toBe(`tls:127.0.0.1:${port}`)
    expect(configuration.listeners).toEqual([
      { binding: 'edge', address: 'tls:127.0.0.1:3022', options: { advertise: '127.0.0.1:3022' } },
      { binding: 'tunnel', options: { mode: 'host' } },
    ])
    expect(decodeJwt(readFileSync(join(network, 'edge-1.jwt'), 'utf8')).em).toBe('erott')
  })

  it('leaves only the router and the host to be started', async () => {
    const { code, stdout } = await cli('policy', 'advise', 'laptop', 'hello')

    expect(code).toBe(3)
    for (const link of ['service policy', 'edge router policy', 'service edge router policy'])
      expect(stdout).toMatch(new RegExp(`^ +✓ ${link} `, 'm'))
    expect(stdout).toMatch(/✗ common router .*edge-1/)
  })

  it('grants the example to its device alone', async () => {
    await cli('identity', 'create', 'other', '--no-ott')

    expect((await cli('policy', 'what', 'other', '-o', 'name')).stdout).toBe('')
    expect((await cli('policy', 'what', 'laptop', '-o', 'name')).stdout).toBe('hello\n')
  })

  it('serves what exists when it is started again, and creates nothing', async () => {
    expect(await stop(first.child)).toBe(0)
    const before = readFileSync(join(network, 'edge-1.yml'), 'utf8')

    const second = await start([], /^Root SHA-256.*\n/m)
    const { code } = await cli('identity', 'get', 'laptop')
    await stop(second.child)

    expect(second.readStderr()).toMatch(/exists already: nothing is created/)
    expect(second.stdout).not.toMatch(/Password|bootstrap/)
    expect(code).toBe(0)
    expect(readFileSync(join(network, 'edge-1.yml'), 'utf8')).toBe(before)
  }, 90_000)

  it('creates nothing if another process listens at its address, so that it can be repeated with another one', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'quickstart-'))
    const occupant = createServer().listen(0, '127.0.0.1')
    await once(occupant, 'listening')
    const address = `127.0.0.1:${(occupant.address() as AddressInfo).port}`

    const { code, stderr } = await controller(
      ['quickstart', join(folder, 'network'), '--listen', address],
      cleanEnvironment(),
    )
    occupant.close()

    expect([code, stderr]).toEqual([
      8,
      expect.stringContaining(`cannot listen on ${address}: another process listens there`),
    ])
    expect(readdirSync(folder)).toEqual([])
  })

  it('takes the administrator from flags, and shows no password then', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'quickstart-'))
    const passwordFile = join(folder, 'password')
    writeFileSync(passwordFile, 'correct horse battery\n')
    const flags = ['--admin-username', 'anna', '--admin-password-file', passwordFile]

    const run = await start(
      [...flags, '--listen', `127.0.0.1:${await findFreePort()}`],
      /curl .*\n/,
      folder,
      cleanEnvironment(),
    )
    await stop(run.child)

    expect(run.stdout).toMatch(/^Administrator +anna$/m)
    expect(run.stdout).not.toMatch(/Password|correct horse/)
  }, 90_000)

  it('names the program by its path if npm runs it in a clone, where it is not in PATH', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'quickstart-'))
    const byNpm = { ...cleanEnvironment(), npm_lifecycle_event: 'quickstart' }

    const run = await start(['--listen', `127.0.0.1:${await findFreePort()}`], /curl .*\n/, folder, byNpm)
    await stop(run.child)

    expect(run.stdout).toContain('\n  bin/controller enroll quickstart/laptop.jwt\n')
    expect(run.stdout).toContain('change it with: bin/controller passwd')
  }, 90_000)
})

// The process kills itself, because another one could be too late, if it is paused.
const KILL_AT_ONCE = `
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  const { renameSync } = fs
  fs.renameSync = (from, to) => {
    renameSync(from, to)
    if (String(to).endsWith('/config.yaml')) process.kill(process.pid, 'SIGKILL')
  }
  syncBuiltinESMExports()`

describe('a quickstart that was killed before it printed its password', () => {
  const folder = mkdtempSync(join(tmpdir(), 'quickstart-'))
  const own = cleanEnvironment()
  const data = join(folder, 'quickstart', 'data')
  let words: string[]

  beforeAll(async () => {
    words = ['--listen', `127.0.0.1:${await findFreePort()}`]
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(KILL_AT_ONCE)}`
    const options = { cwd: folder, env: { ...own, NODE_OPTIONS }, stdio: 'ignore' } as const
    const child = spawn(process.execPath, [BINARY, 'quickstart', ...words], options)
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
  }, 90_000)

  it('is not served, because no person could sign in: the next one says what to remove', async () => {
    const before = readFileSync(join(data, 'pki', 'root.crt'), 'utf8')

    const { code, stderr } = await controller(['quickstart', join(folder, 'quickstart'), ...words], own)

    expect([code, stderr]).toEqual([
      6,
      expect.stringMatching(/not printed yet how to sign in\nTry: .*rm -r \S+data \S+/),
    ])
    expect(readFileSync(join(data, 'pki', 'root.crt'), 'utf8')).toBe(before)
  })

  it('begins anew once that is removed, and is complete then', async () => {
    const { stderr } = await controller(['quickstart', join(folder, 'quickstart'), ...words], own)
    const [, ...paths] = /rm -r (\S+) (\S+), and/.exec(stderr)!
    for (const path of paths) rmSync(path, { recursive: true })

    const again = await start(words, /curl .*\n/, folder, own)
    await stop(again.child)
    const later = await start([], /^Root SHA-256.*\n/m, folder, own)
    await stop(later.child)

    expect(again.stdout).toMatch(/^Password +\S+ \(shown once/m)
    expect(later.readStderr()).toContain('exists already: nothing is created')
  }, 90_000)
})

describe('a quickstart at an IPv6 address', () => {
  it('is refused before anything is created, because routers cannot reach it there', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'quickstart-'))

    const { code, stderr } = await controller(
      ['quickstart', join(folder, 'network'), '--listen', `[::1]:${await findFreePort()}`],
      cleanEnvironment(),
    )

    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/^--advertise must be HOST:PORT, with a name or an IPv4 address, not \[::1\]:\d+$/m),
    ])
    expect(readdirSync(folder)).toEqual([])
  })
})
