// A controller in a process of its own, on a fresh data directory, started as an operator would.
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Target } from '../generator/connection.ts'
import { requestBytes } from '../generator/requests.ts'
import { exchange } from './exchange.ts'
import { cpuMicroseconds, residentBytes } from './process-figures.ts'

export const ADMINISTRATOR = { username: 'admin', password: 'correct horse battery' } as const

const BINARY = new URL('../../../bin/run.js', import.meta.url).pathname
const KNOCK_INTERVAL_MS = 5
const START_TIMEOUT_MS = 60_000
const SHOWN_CHARACTERS = 2_000

export class ControllerProcess {
  readonly directory: string
  readonly target: Target
  #child: ChildProcess | undefined

  private constructor(directory: string, target: Target) {
    this.directory = directory
    this.target = target
  }

  /** Makes a data directory with an administrator below an existing directory. */
  static async make(parent: string, name: string): Promise<ControllerProcess> {
    const directory = join(parent, name)
    mkdirSync(directory)
    const password = join(directory, 'password')
    writeFileSync(password, ADMINISTRATOR.password, { mode: 0o600 })
    const target = { host: '127.0.0.1', port: await freePort() }
    const controller = new ControllerProcess(directory, target)
    const { username } = ADMINISTRATOR
    const listen = `${target.host}:${target.port}`
    const flags = ['--listen', listen, '--admin-username', username, '--admin-password-file', password]
    const init = controller.#spawn('init', [], flags)
    const [code] = await ended(init)
    if (code !== 0) throw new Error(`init ended with ${code}: ${controller.#complaints()}`)
    return controller
  }

  get data(): string {
    return join(this.directory, 'data')
  }

  get cpuMicroseconds(): number {
    return cpuMicroseconds(this.#pid)
  }

  get residentBytes(): number {
    return residentBytes(this.#pid)
  }

  /**
   * Starts it; resolves with the milliseconds until it had completed a request.
   * @param nodeOptions for the runtime, such as `--cpu-prof`
   */
  async start(nodeOptions: readonly string[] = []): Promise<number> {
    const begun = performance.now()
    this.launch(nodeOptions)
    const knock = requestBytes({ method: 'GET', path: '/version' })
    while (performance.now() - begun < START_TIMEOUT_MS) {
      const isThere = await exchange(this.target, knock).then(
        ({ status }) => status === 200,
        () => false,
      )
      if (isThere) return performance.now() - begun
      if (this.#child?.exitCode !== null) break
      await wait(KNOCK_INTERVAL_MS)
    }
    this.kill()
    throw new Error(`the controller did not start: ${this.#complaints()}`)
  }

  /** Starts it and waits for nothing. */
  launch(nodeOptions: readonly string[] = []): void {
    this.#child = this.#spawn('serve', nodeOptions, [])
  }

  /** Settles when it ends by itself. @throws then, with what it said last */
  async unexpectedEnd(): Promise<never> {
    const child = this.#child
    if (!child) throw new Error('the controller does not run')
    const [code, signal] = await ended(child)
    throw new Error(`the controller ended with ${code ?? signal}: ${this.#complaints()}`)
  }

  /** Asks it to end and waits until it has. */
  async stop(): Promise<void> {
    const child = this.#child
    if (!child) return
    this.#child = undefined
    if (child.exitCode !== null || child.signalCode !== null) return
    const end = ended(child)
    child.kill('SIGTERM')
    const [code, signal] = await end
    if (code !== 0) throw new Error(`the controller ended with ${code ?? signal}: ${this.#complaints()}`)
  }

  /** Ends it at once, whatever it does. */
  kill(): void {
    this.#child?.kill('SIGKILL')
  }

  get #pid(): number {
    if (!this.#child?.pid) throw new Error('the controller does not run')
    return this.#child.pid
  }

  get #log(): string {
    return join(this.directory, 'log')
  }

  #spawn(command: string, nodeOptions: readonly string[], flags: readonly string[]): ChildProcess {
    const log = openSync(this.#log, 'a')
    const args = [...nodeOptions, BINARY, command, '--data-dir', this.data, ...flags]
    const child = spawn(process.execPath, args, { stdio: ['ignore', log, log], env: plainEnvironment() })
    closeSync(log)
    return child
  }

  #complaints(): string {
    return readFileSync(this.#log, 'utf8').slice(-SHOWN_CHARACTERS)
  }
}

// What is measured is what the work costs, not when it is refused: all of it comes from one address, more than one should
// have to do at once.
const LIMITS = {
  CONTROLLER_LIMITS_DELAY: '60s',
  CONTROLLER_LIMITS_CONNECTIONS_PER_ADDRESS: '10000',
  CONTROLLER_LIMITS_SESSIONS_PER_IDENTITY: '1000000',
  CONTROLLER_LIMITS_SIGN_INS_PER_IDENTITY: '1000000',
  CONTROLLER_LIMITS_WRITES_PER_IDENTITY: '1000000',
} as const

/** Settings from the environment must not change what is measured. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const foreign = /^(CONTROLLER_|NODE_OPTIONS$|NODE_EXTRA_CA_CERTS$|NODE_V8_COVERAGE$)/
  const own = Object.entries(process.env).filter(([name]) => !foreign.test(name))
  return { ...Object.fromEntries(own), ...LIMITS }
}

function ended(child: ChildProcess): Promise<[number | null, NodeJS.Signals | null]> {
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve([code, signal]))
  })
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => probe.once('listening', resolve))
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port was bound')
  return address.port
}
