// Controllers that share a log in PostgreSQL, each with a directory of its own, in one process.
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { LogConnection } from '../../src/storage/postgres/log-connection.ts'
import { createLog } from '../../src/storage/postgres/log-tables.ts'
import { readLogStart, setNetwork } from '../../src/storage/sqlite/log-start.ts'
import { copyOfTemplate, type TestController, type TestOptions, testController } from './controller.ts'
import { allowFaults } from './faults.ts'
import { CLUSTER_KEY, logCipher } from './log-start.ts'
import type { TestPostgres } from './postgres.ts'

export class TestCluster {
  readonly url: string
  readonly nodes: TestController[] = []
  readonly #first: string

  private constructor(url: string, first: string) {
    this.url = url
    this.#first = first
  }

  /** Creates the log of a network that has no commits yet. */
  static async create(server: TestPostgres): Promise<TestCluster> {
    // On a busy machine, contact with the database can be lost for a while.
    allowFaults(/the log of the cluster cannot be read|a duty could not be proven|no contact with the cluster/)
    const url = await server.createDatabase()
    const directory = copyOfTemplate()
    const { clusterKey, database } = getDataPaths(directory)
    writeFileSync(clusterKey, CLUSTER_KEY, { mode: 0o600 })
    setNetwork(database, 'test network')
    const connection = new LogConnection({ url, isPlain: true })
    await connection.run((client) => createLog(client, readLogStart(database), logCipher))
    connection.end()
    return new TestCluster(url, directory)
  }

  /** Opens a controller that begins with the rows of a network without commits, or on the directory of one that was stopped. */
  async open(name: string, options: TestOptions = {}): Promise<TestController> {
    const directory = options.directory ?? this.#copyFirst()
    const settings = { 'cluster.database': this.url, 'cluster.name': name, 'cluster.tls': false, ...options.settings }
    const node = await testController({ ...options, directory, settings })
    this.nodes.push(node)
    return node
  }

  /** Stops a controller, and keeps its directory. */
  async stop(node: TestController): Promise<void> {
    this.nodes.splice(this.nodes.indexOf(node), 1)
    await node.stop()
  }

  #copyFirst(): string {
    const directory = copyOfTemplate()
    cpSync(this.#first, directory, { recursive: true, force: true })
    return directory
  }

  async close(): Promise<void> {
    for (const node of this.nodes) await node.close()
    rmSync(this.#first, { recursive: true, force: true })
  }
}
