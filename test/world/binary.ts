// The real binary, as a person or a script starts it.
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { requireBuilt } from './built.ts'
import { recordErrorLines } from './faults.ts'

await requireBuilt()

export const BINARY = join(import.meta.dirname, '../../bin/run.js')

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** An environment of its own: no profile, no data directory and no setting of the person who runs the tests. */
export function cleanEnvironment(home = mkdtempSync(join(tmpdir(), 'controller-home-'))): NodeJS.ProcessEnv {
  const keptVariables = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('CONTROLLER_') && !name.startsWith('NODE_EXTRA'),
  )
  return {
    ...Object.fromEntries(keptVariables),
    HOME: home,
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_DATA_HOME: join(home, 'data'),
    XDG_STATE_HOME: join(home, 'state'),
    NO_COLOR: '1',
  }
}

/** Runs a program to its end, or until what it prints matches `until`. */
export function run(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { input, until, cwd }: { input?: string; until?: RegExp; cwd?: string } = {},
): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'pipe'], ...(cwd ? { cwd } : {}) })
    const out: Buffer[] = []
    const err: Buffer[] = []
    const collect = (into: Buffer[]) => (chunk: Buffer) => {
      into.push(chunk)
      if (until?.test(Buffer.concat(into).toString())) child.kill('SIGKILL')
    }
    child.stdout.on('data', collect(out))
    child.stderr.on('data', collect(err))
    child.on('error', reject)
    child.on('close', (code) =>
      resolve({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() }),
    )
    child.stdin.end(input)
  })
}

/** Runs a command of the controller to its end. */
export function controller(args: readonly string[], env: NodeJS.ProcessEnv, input?: string): Promise<Finished> {
  return run(process.execPath, [BINARY, ...args], env, input === undefined ? {} : { input })
}

export interface Served {
  readonly child: ChildProcess
  /** Everything it printed before it was ready. */
  readonly announced: string
  readonly url: string
  /** Asks it to stop and waits until it has. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

export interface ServeOptions {
  /** The descriptor that the log goes to; it is read and kept for a failed start by default. */
  readonly stderr?: number
  /** Whether messages can be sent to the process. */
  readonly hasChannel?: boolean
  /** The binary of another installation. */
  readonly binary?: string
}

/** Starts `controller serve` and waits until it listens. */
export function serve(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { stderr, hasChannel = false, binary = BINARY }: ServeOptions = {},
): Promise<Served> {
  const stdio: StdioOptions = ['ignore', 'pipe', stderr ?? 'pipe', ...(hasChannel ? (['ipc'] as const) : [])]
  const child = spawn(process.execPath, [binary, 'serve', ...args], { env, stdio })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  return new Promise((resolve, reject) => {
    let announced = ''
    let complaints = ''
    const recordErrors = recordErrorLines()
    child.stderr?.on('data', (chunk: Buffer) => {
      complaints += chunk.toString()
      recordErrors(chunk.toString())
    })
    child.stdout?.on('data', (chunk: Buffer) => {
      announced += chunk.toString()
      const [, url] = /^Controller\s+(\S+)/m.exec(announced) ?? []
      if (!url || !/^Root SHA-256.*\n/m.test(announced)) return
      resolve({
        child,
        announced,
        url,
        async stop(signal = 'SIGTERM') {
          child.kill(signal)
          return ended
        },
      })
    })
    void ended.then((code) => reject(new Error(`the controller ended with ${code}: ${complaints}`)))
  })
}
