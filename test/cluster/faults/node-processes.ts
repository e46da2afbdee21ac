// Controllers of one network as processes of their own, each behind a proxy to the database, which a test stops, kills and cuts off.
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { systemClock } from '../../../src/foundation/clock.ts'
import { loadKey } from '../../../src/pki/files.ts'
import { getDataPaths, REBUILD_FILE } from '../../../src/settings/data-directory.ts'
import { AUDIT_KEY_BYTES, AuditSealer } from '../../../src/storage/audit/audit-seal.ts'
import { listRebuilds } from '../../../src/storage/cluster/rebuild.ts'
import { uploadSnapshot } from '../../../src/storage/cluster/upload-snapshot.ts'
import type { LogPosition } from '../../../src/storage/commit-log.ts'
import { LogConnection } from '../../../src/storage/postgres/log-connection.ts'
import { createLog } from '../../../src/storage/postgres/log-tables.ts'
import { PostgresLog } from '../../../src/storage/postgres/postgres-log.ts'
import { openForReading } from '../../../src/storage/sqlite/connection.ts'
import { readLogStart, setNetwork } from '../../../src/storage/sqlite/log-start.ts'
import { digestRows, type RowDigests } from '../../../src/storage/sqlite/row-digest.ts'
import { openSqliteStore } from '../../../src/storage/sqlite/sqlite-store.ts'
import { cleanEnvironment, type Served, serve } from '../../world/binary.ts'
import { allowFaults } from '../../world/faults.ts'
import { findFreePort } from '../../world/free-port.ts'
import { CLUSTER_KEY, logCipher } from '../../world/log-start.ts'
import type { TestPostgres } from '../../world/postgres.ts'
import { TcpProxy } from '../../world/tcp-proxy.ts'

const runFile = promisify(execFile)

const REQUEST_TIMEOUT_MS = 12_000

/** Run twice, it changes nothing. */
const CHANGE_COMMIT =
  'update controller.commits set payload = set_byte(payload, 40, get_byte(payload, 40) # 1) where position = $1'

/** A response; undefined if none came, so that nothing tells whether the request had an effect. */
export type Outcome =
  | { readonly status: number; readonly code: string | undefined; readonly data: Readonly<Record<string, unknown>> }
  | undefined

export interface ClusterRequest {
  readonly method: string
  readonly path: string
  readonly token?: string
  readonly body?: unknown
}

/** The way to the database, which a test can break. */
interface DatabaseAccess {
  readonly proxies: readonly TcpProxy[]
  readonly url: string
}

async function openAccess(url: string, standby: TestPostgres | undefined): Promise<DatabaseAccess> {
  const primary = await TcpProxy.before(url)
  if (!standby) return { proxies: [primary.proxy], url: primary.url }
  const second = await TcpProxy.before(standby.url)
  return { proxies: [primary.proxy, second.proxy], url: joinHosts(primary.url, second.url) }
}

/** The URL of the database of the first one, at either host. */
function joinHosts(primary: string, standby: string): string {
  const { host } = new URL(primary)
  return primary.replace(host, `${host},${new URL(standby).host}`)
}

export class NodeProcess {
  readonly name: string
  readonly directory: string
  /** The directory that it began with. */
  readonly #copiedFrom: string
  /** Before the database; before its primary and its standby, if it has one. */
  readonly proxies: readonly TcpProxy[]
  isStopped = false
  /** The reasons of rebuilds in directories that it does not have any more. */
  readonly #formerRebuilds: string[] = []
  readonly #databaseUrl: string
  readonly #rootPem: string
  readonly #port: number
  #agent: Agent
  #served: Served | undefined

  constructor(name: string, [directory, copiedFrom]: readonly [string, string], access: DatabaseAccess, port: number) {
    this.name = name
    this.directory = directory
    this.#copiedFrom = copiedFrom
    this.proxies = access.proxies
    this.#databaseUrl = access.url
    this.#port = port
    this.#rootPem = readFileSync(join(getDataPaths(directory).pki, 'root.crt'), 'utf8')
    this.#agent = this.#newAgent()
  }

  get proxy(): TcpProxy {
    return this.proxies[0] as TcpProxy
  }

  get isRunning(): boolean {
    return this.#served !== undefined && this.#served.child.exitCode === null && this.#served.child.signalCode === null
  }

  async start(): Promise<void> {
    const environment = {
      ...cleanEnvironment(),
      CONTROLLER_CLUSTER_DATABASE: this.#databaseUrl,
      CONTROLLER_CLUSTER_NAME: this.name,
      CONTROLLER_CLUSTER_TLS: 'false',
      CONTROLLER_LISTENERS: JSON.stringify([{ address: `127.0.0.1:${this.#port}` }]),
    }
    this.#agent.destroy()
    this.#agent = this.#newAgent()
    this.#served = await serve(['--data-dir', this.directory], environment)
  }

  /** Starts it again and again until it runs: meanwhile the database may be away. */
  async restart(until = performance.now() + 60_000): Promise<void> {
    for (;;) {
      try {
        return await this.start()
      } catch (error) {
        if (performance.now() > until) throw error
      }
    }
  }

  async kill(): Promise<void> {
    this.isStopped = false
    await this.#served?.stop('SIGKILL')
  }

  /** Kills it at once, without waiting for its end. */
  killNow(): void {
    this.#served?.child.kill('SIGKILL')
  }

  /** Puts the content of its first directory in place of its own, while it does not run. */
  restoreFirst(): void {
    this.#formerRebuilds.push(...listRebuildReasons(this.directory))
    rmSync(this.directory, { recursive: true })
    cpSync(this.#copiedFrom, this.directory, { recursive: true })
  }

  /** The reasons for which its rows were rebuilt, or will be at its next start: each time, they were not those of the log. */
  listRebuildReasons(): string[] {
    return [...this.#formerRebuilds, ...listRebuildReasons(this.directory)]
  }

  /** Lets it write nothing to files any more, as if its disk was full, or again. */
  async limitFiles(isFull: boolean): Promise<void> {
    await runFile('prlimit', [`--pid=${this.#served?.child.pid}`, `--fsize=${isFull ? 0 : 'unlimited'}:unlimited`])
  }

  pause(): void {
    this.isStopped = true
    this.#served?.child.kill('SIGSTOP')
  }

  resume(): void {
    this.isStopped = false
    this.#served?.child.kill('SIGCONT')
  }

  async stop(): Promise<void> {
    if (this.isRunning) await this.#served?.stop()
  }

  send({ method, path, token, body }: ClusterRequest): Promise<Outcome> {
    return new Promise((resolve) => {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const outgoing = request(
        {
          ...{ method, path, agent: this.#agent, host: '127.0.0.1', port: this.#port, timeout: REQUEST_TIMEOUT_MS },
          headers: {
            ...(token ? { 'zt-session': token } : {}),
            ...(text ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) } : {}),
          },
        },
        (response) => {
          const parts: Buffer[] = []
          response.on('data', (part: Buffer) => parts.push(part))
          response.on('error', () => resolve(undefined))
          response.on('end', () => {
            const { data = {}, error } = parseBody(Buffer.concat(parts).toString())
            resolve({ status: response.statusCode ?? 0, code: error?.code, data })
          })
        },
      )
      outgoing.on('timeout', () => outgoing.destroy(new Error('no response')))
      outgoing.on('error', () => resolve(undefined))
      outgoing.end(text)
    })
  }

  close(): void {
    this.#agent.destroy()
    for (const proxy of this.proxies) proxy.close()
  }

  #newAgent(): Agent {
    return new Agent({ keepAlive: true, maxSockets: 8, ca: this.#rootPem, servername: 'localhost' })
  }
}

function listRebuildReasons(directory: string): string[] {
  const reasons = listRebuilds(directory).map(({ reason }) => reason)
  const request = join(directory, REBUILD_FILE)
  return existsSync(request) ? [...reasons, JSON.parse(readFileSync(request, 'utf8')).reason] : reasons
}

function parseBody(text: string): { data?: Readonly<Record<string, unknown>>; error?: { code: string } } {
  return text.startsWith('{') ? JSON.parse(text) : {}
}

export class NodeProcesses {
  readonly all: readonly NodeProcess[]
  readonly #log: PostgresLog
  readonly #start: LogPosition
  readonly #folder: string
  readonly #url: string

  private constructor(
    all: readonly NodeProcess[],
    { log, start, url }: { readonly log: PostgresLog; readonly start: LogPosition; readonly url: string },
    folder: string,
  ) {
    this.all = all
    this.#log = log
    this.#start = start
    this.#url = url
    this.#folder = folder
  }

  /** Starts nodes that begin with the content of a directory. @param startStandby is called once the log is there */
  static async start(
    server: TestPostgres,
    directory: string,
    names: readonly string[],
    startStandby?: () => Promise<TestPostgres>,
  ): Promise<NodeProcesses> {
    // Nodes log errors while the database is away, or while others hold the log.
    allowFaults(/./)
    const url = await server.createDatabase()
    const folder = mkdtempSync(join(tmpdir(), 'nodes-'))
    const { clusterKey, database } = getDataPaths(directory)
    writeFileSync(clusterKey, CLUSTER_KEY, { mode: 0o600 })
    setNetwork(database, 'test network')
    const start = readLogStart(database)
    const connection = new LogConnection({ url, isPlain: true })
    await connection.run((client) => createLog(client, start, logCipher))
    // A node that has to be rebuilt begins with it.
    await uploadSnapshot(connection, logCipher, database)
    connection.end()
    const standby = await startStandby?.()
    const nodes: NodeProcess[] = []
    for (const name of names) {
      const own = join(folder, name)
      cpSync(directory, own, { recursive: true })
      nodes.push(new NodeProcess(name, [own, directory], await openAccess(url, standby), await findFreePort()))
    }
    for (const node of nodes) await node.start()
    const log = new PostgresLog({
      database: { url: standby ? joinHosts(url, standby.url) : url, isPlain: true },
      cipher: logCipher,
      node: 'checker',
    })
    return new NodeProcesses(nodes, { log, start, url }, folder)
  }

  /** All commits, from the first one. @throws if their chain is broken */
  readLog() {
    return this.#log.readAfter(this.#start, Number.MAX_SAFE_INTEGER)
  }

  /** Changes one bit of the last commit in the database while `work` lasts. */
  async whileCommitIsChanged(work: () => Promise<void>): Promise<void> {
    const client = new pg.Client({ connectionString: this.#url })
    await client.connect()
    try {
      const { rows } = await client.query('select position from controller.head')
      const change = () => client.query(CHANGE_COMMIT, [rows[0].position])
      await change()
      await work().finally(change)
    } finally {
      await client.end()
    }
  }

  /** The digests of the rows of a node that does not run, once its rows have followed the log to its end. */
  async digestAtEnd({ directory }: NodeProcess): Promise<RowDigests> {
    const { database, auditKey } = getDataPaths(directory)
    const fail = (error: unknown) => {
      throw error
    }
    const store = await openSqliteStore(database, systemClock, {
      ...{ log: this.#log, fail, reportError: fail },
      auditSealer: new AuditSealer(loadKey(auditKey, AUDIT_KEY_BYTES)),
    })
    await store.catchUp()
    await store.close()
    const connection = openForReading(database)
    try {
      return digestRows(connection)
    } finally {
      connection.close()
    }
  }

  async close(): Promise<void> {
    for (const node of this.all) {
      await node.kill()
      node.close()
    }
    await this.#log.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
