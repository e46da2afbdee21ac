// Several controllers of one network, each with a directory of its own, that share a log in memory.
import { afterEach, beforeEach } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { openForReading } from '../../src/storage/sqlite/connection.ts'
import { ControlStatements } from '../../src/storage/sqlite/control-statements.ts'
import { listDifferentTables } from '../../src/storage/sqlite/row-digest.ts'
import { copyOfTemplate, TestClock, type TestController, type TestOptions, testController } from './controller.ts'
import { type FaultSource, MemoryLog } from './memory-log.ts'
import { digestFile, listDifferencesInMemory } from './shadow.ts'

export interface NetworkOptions extends Omit<TestOptions, 'directory' | 'clock' | 'commitLog' | 'isFollowed'> {
  /** How many controllers there are, which is two by default. They are called `node 1`, `node 2` and so on. */
  readonly count?: number
  /** The faults of the log, as a node sees it. */
  readonly findFault?: (node: string) => FaultSource
}

export interface NetworkNode extends TestController {
  readonly name: string
}

export class NetworkOfControllers {
  readonly log: MemoryLog
  readonly nodes: NetworkNode[] = []
  /** The names of the nodes that cannot reach the log at present. */
  readonly cutOff = new Set<string>()
  readonly #options: NetworkOptions

  private constructor(log: MemoryLog, options: NetworkOptions) {
    this.log = log
    this.#options = options
  }

  static async open(options: NetworkOptions = {}): Promise<NetworkOfControllers> {
    const directories = Array.from({ length: options.count ?? 2 }, copyOfTemplate)
    const network = new NetworkOfControllers(new MemoryLog(readPosition(directories[0]!)), options)
    const startedAt = new TestClock().now()
    for (const [at, directory] of directories.entries())
      network.nodes.push(await network.#openNode(`node ${at + 1}`, directory, new TestClock(startedAt)))
    await network.catchUp()
    return network
  }

  /** Lets time pass on every node. Their clocks show the same at the beginning. */
  advance(milliseconds: number): void {
    for (const { clock } of this.nodes) clock.advance(milliseconds)
  }

  /** Has every node that reaches the log apply what the others have committed. */
  async catchUp(): Promise<void> {
    for (const { name, controller } of this.nodes) if (!this.cutOff.has(name)) await controller.store.catchUp()
  }

  /** Opens a node again, with its rows and its clock, as another process. */
  async restart(name: string): Promise<NetworkNode> {
    const at = this.nodes.findIndex((node) => node.name === name)
    const { directory, clock, stop } = this.nodes[at] as NetworkNode
    await stop()
    const node = await this.#openNode(name, directory, clock)
    this.nodes[at] = node
    return node
  }

  /** The differences between the nodes after all have followed: in rows, and in memory. */
  async listDifferences(): Promise<string[]> {
    await this.catchUp()
    const [first, ...others] = this.nodes as [NetworkNode, ...NetworkNode[]]
    const digests = digestFile(first.directory)
    const differences = (await first.controller.store.projections.findDifferences()).map(
      ({ projection, description }) => `${first.name}: ${projection}: ${description}`,
    )
    for (const { name, directory, controller } of others) {
      const tables = listDifferentTables(digests, digestFile(directory))
      const inMemory = await listDifferencesInMemory(controller.store, first.controller.store)
      differences.push(...[...tables.map((table) => `rows of ${table}`), ...inMemory].map((text) => `${name}: ${text}`))
    }
    return differences
  }

  async close(): Promise<void> {
    this.cutOff.clear()
    for (const node of this.nodes) await node.close()
  }

  async #openNode(name: string, directory: string, clock: TestClock): Promise<NetworkNode> {
    const { count: _, findFault, ...options } = this.#options
    const findOther = findFault?.(name)
    const commitLog = this.log.connect(name, (call) => (this.cutOff.has(name) ? 'refused' : findOther?.(call)))
    const controller = await testController({ ...options, directory, clock, commitLog })
    return Object.assign(controller, { name })
  }
}

/** New controllers of one network for each test of the file, or of the block that calls this. */
export function useNetworkPerTest(options: NetworkOptions = {}): {
  readonly network: NetworkOfControllers
  readonly nodes: readonly NetworkNode[]
} {
  let opened: NetworkOfControllers | undefined
  const current = (): NetworkOfControllers => {
    if (!opened) throw new Error('the network is open in tests and in the hooks after useNetworkPerTest only')
    return opened
  }
  beforeEach(async () => {
    opened = await NetworkOfControllers.open(options)
  })
  afterEach(async () => {
    const closing = opened
    opened = undefined
    await closing?.close()
  })
  return {
    get network() {
      return current()
    },
    get nodes() {
      return current().nodes
    },
  }
}

function readPosition(directory: string) {
  const connection = openForReading(getDataPaths(directory).database)
  try {
    return new ControlStatements(connection).readLast()
  } finally {
    connection.close()
  }
}
