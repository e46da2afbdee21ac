// Controllers of one network as processes of their own, with the PostgreSQL server that orders what they change.
import { join } from 'node:path'
import pg from 'pg'
import { TestPostgres } from '../../test/world/postgres.ts'
import { TcpProxy } from '../../test/world/tcp-proxy.ts'
import { ControllerProcess } from './controller-process.ts'

export class ClusterProcesses {
  readonly all: readonly ControllerProcess[]
  readonly #server: TestPostgres
  readonly #database: string
  readonly #proxy: TcpProxy
  /** How long those that were added to the first one took to join. */
  readonly joinSeconds: readonly number[]

  private constructor(
    all: readonly ControllerProcess[],
    server: TestPostgres,
    database: string,
    proxy: TcpProxy,
    joinSeconds: readonly number[],
  ) {
    this.all = all
    this.#server = server
    this.#database = database
    this.#proxy = proxy
    this.joinSeconds = joinSeconds
  }

  /** Makes several controllers of one, in a new directory. They do not run yet. @param alone does not run either, and stays as it is */
  static async make(
    alone: ControllerProcess,
    directory: string,
    [firstName, ...otherNames]: readonly [string, ...string[]],
  ): Promise<ClusterProcesses> {
    const server = await TestPostgres.start()
    const direct = await server.createDatabase()
    const { proxy, url } = await TcpProxy.before(direct)
    try {
      const database = ['--database', url, '--no-tls']
      const first = await ControllerProcess.makeFrom(alone.directory, join(directory, firstName))
      await first.run('cluster init', [...database, '--name', firstName])
      const all = [first]
      const joinSeconds: number[] = []
      for (const name of otherNames) {
        const controller = await ControllerProcess.makeEmpty(join(directory, name))
        const addresses = ['--listen', controller.address, '--advertise', controller.address]
        const begun = performance.now()
        const key = join(first.data, 'cluster.key')
        await controller.run('cluster join', [...database, '--key', key, '--name', name, ...addresses])
        joinSeconds.push((performance.now() - begun) / 1000)
        all.push(controller)
      }
      return new ClusterProcesses(all, server, direct, proxy, joinSeconds)
    } catch (error) {
      proxy.close()
      await server.stop()
      throw error
    }
  }

  /** Has everything that they and the database tell each other take so much longer. */
  set delayMs(milliseconds: number) {
    this.#proxy.delayMs = milliseconds
  }

  /** How many commits led to the end of the log. */
  async readPosition(): Promise<number> {
    const client = new pg.Client({ connectionString: this.#database })
    await client.connect()
    try {
      const { rows } = await client.query<{ position: string }>('select position from controller.head')
      return Number(rows[0]?.position)
    } finally {
      await client.end()
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((controller) => controller.stop()))
    this.#proxy.close()
    await this.#server.stop()
  }
}
