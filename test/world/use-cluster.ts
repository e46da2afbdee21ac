// Gives the tests of a file a PostgreSQL server, and each of them a new network of several controllers in it.
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { TestPostgres } from './postgres.ts'

export interface ClusterWorld<Network> {
  readonly server: TestPostgres
  /** The network of the running test. */
  readonly cluster: Network
}

/** Starts the server and creates the networks of the tests that follow, and ends them. @param kind what kind of network */
export function useClusterPerTest<Network extends { close(): unknown }>(kind: {
  create(server: TestPostgres): Promise<Network>
}): ClusterWorld<Network> {
  const world: { server?: TestPostgres; cluster?: Network } = {}
  beforeAll(async () => {
    world.server = await TestPostgres.start()
  }, 60_000)
  afterAll(() => world.server?.stop())
  beforeEach(async () => {
    world.cluster = await kind.create(world.server as TestPostgres)
  })
  afterEach(() => world.cluster?.close())
  return world as ClusterWorld<Network>
}
