// Data directories of the controllers of a cluster, as its commands make them, and the controllers that run on them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { beginCluster } from '../../server/cluster/begin-cluster.ts'
import { joinCluster } from '../../server/cluster/join-cluster.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { copyOfTemplate, TestClock, type TestController, type TestOptions, testController } from './controller.ts'
import type { TestPostgres } from './postgres.ts'

const SERVED = { listeners: [{ address: '127.0.0.1:0', apis: ['client', 'management'], dialect: 'native' }] }

export class ClusterDirectories {
  readonly url: string
  /** The options of every command. */
  readonly common = { env: {}, clock: new TestClock(), osUser: 'operator' }
  readonly folder = mkdtempSync(join(tmpdir(), 'cluster-'))
  readonly #directories: string[] = [this.folder]
  readonly #opened: TestController[] = []

  private constructor(url: string) {
    this.url = url
  }

  static async create(server: TestPostgres): Promise<ClusterDirectories> {
    return new ClusterDirectories(await server.createDatabase())
  }

  /** The settings of a node in the cluster. */
  place(name: string) {
    return { 'cluster.database': this.url, 'cluster.name': name, 'cluster.tls': false }
  }

  /** The directory of a controller that is alone. */
  makeAlone(): string {
    const directory = copyOfTemplate()
    this.#directories.push(directory)
    return directory
  }

  async begin(name = 'one', directory = this.makeAlone()): Promise<string> {
    await beginCluster({ ...this.common, directory, settings: this.place(name) })
    return directory
  }

  async join(first: string, name: string): Promise<string> {
    const directory = join(this.folder, name)
    const settings = { ...this.place(name), advertise: [`${name}.example:1280`] }
    await joinCluster({ ...this.common, directory, settings, clusterKeyFile: getDataPaths(first).clusterKey })
    return directory
  }

  async open(directory: string, { settings, ...options }: TestOptions = {}): Promise<TestController> {
    const node = await testController({ directory, settings: { ...SERVED, ...settings }, ...options })
    this.#opened.push(node)
    return node
  }

  /** Stops a controller, and keeps its directory. */
  async stop(node: TestController): Promise<void> {
    this.#opened.splice(this.#opened.indexOf(node), 1)
    await node.stop()
  }

  /** Runs a statement as an administrator of the database does. */
  async sql(text: string, values: unknown[] = []): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: this.url })
    await client.connect()
    try {
      const result = await client.query(text, values)
      return result.rows as Record<string, unknown>[]
    } finally {
      await client.end()
    }
  }

  async close(): Promise<void> {
    for (const node of this.#opened) await node.stop().catch(() => undefined)
    for (const directory of this.#directories) rmSync(directory, { recursive: true, force: true })
  }
}
