// A controller in a process of its own, on a fresh data directory, started as an operator would.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, cpSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { findFreePort } from '../../test/world/free-port.ts'
import type { Target } from '../generator/connection.ts'
import { requestBytes } from '../generator/requests.ts'
import { exchange } from './exchange.ts'
import type { CommitFigures, MemoryFigures, Question } from './inside.ts'
import { readLauncherSettings } from './launcher-settings.ts'
import { countDescriptors, cpuMicroseconds, residentBytes } from './process-figures.ts'

export const ADMINISTRATOR = { username: 'admin', password: 'correct horse battery' } as const

const BINARY = new URL('../../bin/run.js', import.meta.url).pathname
const INSIDE = new URL('./inside.js', import.meta.url).href
const KNOCK_INTERVAL_MS = 5
const START_TIMEOUT_MS = 60_000
const SHOWN_CHARACTERS = 2_000

interface SpawnOptions {
  /** Environment variables. */
  readonly settings?: Readonly<Record<string, string>>
  readonly isObserved?: boolean
}

export class ControllerProcess {
  readonly directory: string
  readonly target: Target
  #child: ChildProcess | undefined

  private constructor(directory: string, target: Target) {
    this.directory = directory
    this.target = target
  }

  /** Makes a new directory, without a data directory in it. */
  static async makeEmpty(directory: string): Promise<ControllerProcess> {
    mkdirSync(directory)
    return new ControllerProcess(directory, { host: '127.0.0.1', port: await findFreePort() })
  }

  /** Makes a new directory, and a data directory with an administrator in it. */
  static async make(directory: string): Promise<ControllerProcess> {
    const controller = await ControllerProcess.makeEmpty(directory)
    const password = join(directory, 'password')
    writeFileSync(password, ADMINISTRATOR.password, { mode: 0o600 })
    const { username } = ADMINISTRATOR
    const flags = ['--listen', controller.address, '--admin-username', username, '--admin-password-file', password]
    await controller.run('init', flags)
    return controller
  }

  /** Makes one of a copy of another one's directory, as `copyTo` leaves it. */
  static async makeFrom(copy: string, directory: string): Promise<ControllerProcess> {
    cpSync(copy, directory, { recursive: true })
    return new ControllerProcess(directory, { host: '127.0.0.1', port: await findFreePort() })
  }

  /** Runs another command on its data directory while it does not run. @throws what it said, if it fails */
  async run(command: string, flags: readonly string[]): Promise<void> {
    const [code] = await ended(this.#spawn(command, [], flags))
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${this.#complaints()}`)
  }

  /** Copies its directory while it does not run. */
  copyTo(directory: string): void {
    cpSync(this.directory, directory, { recursive: true })
  }

  /** Whether it runs with the means of `startObserved`. */
  get isObserved(): boolean {
    return this.#child?.connected === true
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

  /** The number of files and connections that it has open. */
  get descriptors(): number {
    return countDescriptors(this.#pid)
  }

  /**
   * Starts it; resolves with the milliseconds until it had completed a request.
   * @param nodeOptions for the runtime, such as `--cpu-prof`
   */
  async start(nodeOptions: readonly string[] = []): Promise<number> {
    const begun = performance.now()
    this.launch(nodeOptions)
    return this.#waitUntilItResponds(begun)
  }

  /**
   * Starts it with the means to measure what only the process itself knows.
   * @param settings environment variables
   */
  async startObserved(settings: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#child = this.#spawn('serve', ['--expose-gc', '--import', INSIDE], [], { settings, isObserved: true })
    await this.#waitUntilItResponds(performance.now())
  }

  readCommits(): Promise<CommitFigures> {
    return this.#ask('commits')
  }

  readMemory(): Promise<MemoryFigures> {
    return this.#ask('memory')
  }

  async #ask<T>(question: Question): Promise<T> {
    const child = this.#child
    if (!child?.connected) throw new Error('the controller was not started to be observed')
    const reply = once(child, 'message')
    child.send(question)
    return (await reply)[0] as T
  }

  async #waitUntilItResponds(begun: number): Promise<number> {
    const knock = requestBytes({ method: 'GET', path: '/version' })
    while (performance.now() - begun < START_TIMEOUT_MS) {
      const isThere = await exchange(this.target, knock).then(
        ({ status }) => status === 200,
        () => false,
      )
      // If it has ended, another process has taken its port meanwhile.
      if (this.#child?.exitCode !== null) break
      if (isThere) return performance.now() - begun
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

  get address(): string {
    return `${this.target.host}:${this.target.port}`
  }

  get #log(): string {
    return join(this.directory, 'log')
  }

  #spawn(
    command: string,
    nodeOptions: readonly string[],
    flags: readonly string[],
    { settings = {}, isObserved = false }: SpawnOptions = {},
  ): ChildProcess {
    const log = openSync(this.#log, 'a')
    const launcher = readLauncherSettings()
    const args = [
      ...launcher.nodeOptions,
      ...nodeOptions,
      BINARY,
      ...command.split(' '),
      '--data-dir',
      this.data,
      ...flags,
    ]
    const env = {
      ...plainEnvironment(),
      ...launcher.environment,
      CONTROLLER_LISTENERS: JSON.stringify([{ address: this.address }]),
      ...settings,
    }
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', log, log, ...(isObserved ? ['ipc' as const] : [])],
      env,
    })
    closeSync(log)
    return child
  }

  #complaints(): string {
    return readFileSync(this.#log, 'utf8').slice(-SHOWN_CHARACTERS)
  }
}

// The bench measures what work costs, not when it is refused: all of it comes from one address, more than one should
// have to do at once.
const LIMITS = {
  CONTROLLER_LIMITS_DELAY: '60s',
  CONTROLLER_LIMITS_CONNECTIONS: '50000',
  CONTROLLER_LIMITS_CONNECTIONS_PER_ADDRESS: '10000',
  CONTROLLER_LIMITS_SESSIONS_PER_IDENTITY: '1000000',
  CONTROLLER_LIMITS_SIGN_INS_PER_IDENTITY: '1000000',
  CONTROLLER_LIMITS_WRITES_PER_IDENTITY: '1000000',
} as const

/** Settings from the environment must not change what is measured. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const foreign = /^(CONTROLLER_|NODE_OPTIONS$|GLIBC_TUNABLES$|NODE_EXTRA_CA_CERTS$|NODE_V8_COVERAGE$)/
  const own = Object.entries(process.env).filter(([name]) => !foreign.test(name))
  return { ...Object.fromEntries(own), ...LIMITS }
}

function ended(child: ChildProcess): Promise<[number | null, NodeJS.Signals | null]> {
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve([code, signal]))
  })
}
