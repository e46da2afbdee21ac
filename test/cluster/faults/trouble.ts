// The faults that nodes meet: each begins, lasts for some time, and is over when its promise settles.
import { existsSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { lacks } from '../../world/machine.ts'
import type { TestPostgres } from '../../world/postgres.ts'
import type { Random } from '../../world/random.ts'
import type { NodeProcesses } from './node-processes.ts'

export interface Fault {
  readonly name: string
  /** How often it is chosen, among the others. */
  readonly weight: number
  run(): Promise<void>
}

/** How long a commit of a node is waited for. */
const COMMIT_TIMEOUT_MS = 5_000

/** Longer than a lease, or shorter. */
const duration = (random: Random) => 300 + random.below(7_000)

/** The faults of one node, and those of the database. */
export function listFaults(nodes: NodeProcesses, server: TestPostgres, random: Random): Fault[] {
  const node = random.pick(nodes.all)
  const { proxy } = node
  // When it has the lock, with everything that it commits on the way.
  const awaitCommit = async (run: () => void) => {
    const isPassedOn = random.below(2) === 0
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer)
        proxy.noticed = undefined
        resolve()
      }
      const timer = setTimeout(end, COMMIT_TIMEOUT_MS)
      const act = () => {
        run()
        end()
        return isPassedOn
      }
      proxy.noticed = { text: 'insert into controller.commits', run: act }
    })
  }
  return [
    {
      name: 'killed',
      weight: 3,
      run: async () => {
        await node.kill()
        await node.restart()
      },
    },
    {
      name: 'killed with the lock',
      weight: 3,
      run: async () => {
        await awaitCommit(() => node.killNow())
        await node.kill()
        await node.restart()
      },
    },
    {
      name: 'restored from its first directory',
      weight: 1,
      run: async () => {
        await node.kill()
        node.restoreFirst()
        await node.restart()
      },
    },
    {
      name: 'stopped with the lock',
      weight: 3,
      run: async () => {
        await awaitCommit(() => node.pause())
        await wait(duration(random))
        node.resume()
        // Bytes that were not passed on are lost.
        proxy.breakConnections()
      },
    },
    {
      name: 'without space on its disk',
      weight: lacks('prlimit', existsSync('/usr/bin/prlimit')) ? 0 : 2,
      run: async () => {
        await node.limitFiles(true)
        await wait(duration(random))
        if (node.isRunning) await node.limitFiles(false)
        else await node.restart()
      },
    },
    {
      name: 'stopped as by SIGSTOP',
      weight: 3,
      run: async () => {
        node.pause()
        await wait(duration(random))
        node.resume()
      },
    },
    {
      name: 'cut off from the database',
      weight: 3,
      run: async () => {
        proxy.isHolding = true
        await wait(duration(random))
        proxy.isHolding = false
        // Their bytes of that time are lost, so the connections are of no use.
        proxy.breakConnections()
      },
    },
    {
      name: 'cut off in one direction',
      weight: 2,
      run: async () => {
        const direction = random.pick(['isHoldingRequests', 'isHoldingResponses'] as const)
        proxy[direction] = true
        await wait(duration(random))
        proxy[direction] = false
        proxy.breakConnections()
      },
    },
    {
      name: 'without connections for a moment',
      weight: 2,
      run: async () => proxy.breakConnections(),
    },
    {
      name: 'before a commit that was changed in the database, for a time',
      weight: 2,
      run: async () => {
        proxy.isHolding = true
        await wait(random.below(1_000))
        await nodes.whileCommitIsChanged(async () => {
          proxy.isHolding = false
          proxy.breakConnections()
          await wait(duration(random))
        })
      },
    },
    { name: 'without a database, which crashed', weight: 1, run: () => server.restart() },
  ]
}

/** Lets one fault follow the other until the time is over. Returns how often each was met. */
export async function makeTrouble(
  nodes: NodeProcesses,
  server: TestPostgres,
  random: Random,
  until: number,
): Promise<Map<string, number>> {
  const met = new Map<string, number>()
  while (performance.now() < until) {
    // A service manager starts a node again that has ended by itself.
    for (const node of nodes.all) if (!node.isRunning) await node.restart()
    const fault = choose(listFaults(nodes, server, random), random)
    met.set(fault.name, (met.get(fault.name) ?? 0) + 1)
    await fault.run()
    await wait(random.below(2_000))
  }
  return met
}

function choose(faults: readonly Fault[], random: Random): Fault {
  return random.pick(faults.flatMap((fault) => Array.from({ length: fault.weight }, () => fault)))
}
