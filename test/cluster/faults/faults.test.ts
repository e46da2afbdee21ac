// Nodes of a network that are killed, stopped and cut off at random, while callers go on: nothing that was acknowledged is lost, and no
// right outlives its end by more than the lease. CLUSTER_SECONDS says how long, and CLUSTER_SEED repeats a choice of faults.
import { rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listDifferentTables } from '../../../src/storage/sqlite/row-digest.ts'
import { TestPostgres } from '../../world/postgres.ts'
import { random } from '../../world/random.ts'
import { Callers } from './callers.ts'
import { findAgesOfEnds, findViolations } from './checker.ts'
import { History, type Write } from './history.ts'
import { NodeProcesses } from './node-processes.ts'
import { prepare, times } from './prepare.ts'
import { makeTrouble } from './trouble.ts'

const SECONDS = Number(process.env.CLUSTER_SECONDS ?? 60)
const SEED = Number(process.env.CLUSTER_SEED ?? Date.now() % 1_000_000)
const LEASE_MS = 3_000

let server: TestPostgres
beforeAll(async () => {
  server = await TestPostgres.start()
})
afterAll(() => server?.stop())

const count = (writes: readonly Write[], result: Write['result']) =>
  writes.filter((write) => write.result === result).length

/** Says what the run was like: a run that met nothing proves nothing. */
function report(history: History, met: ReadonlyMap<string, number>): void {
  const { writes, reads, grants } = history
  const faults = [...met].map(([name, number]) => `${number} ${name}`).join(', ')
  const oldest = findAgesOfEnds(history).reduce((most, { age }) => Math.max(most, age), 0)
  process.stdout.write(
    `seed ${SEED}: ${faults}; ${count(writes, 'acknowledged')} writes acknowledged, ${count(writes, 'unknown')} unknown, ` +
      `${reads.length} reads, ${grants.length} grants or refusals, the latest ${Math.round(oldest)} ms after the end of its right\n`,
  )
}

describe('nodes that are killed, stopped and cut off', () => {
  it(
    'lose nothing that was acknowledged, and grant no right for longer than the lease after its end',
    async () => {
      const { directory, prepared } = await prepare(SECONDS)
      const nodes = await NodeProcesses.start(server, directory, ['first', 'second', 'third'])
      try {
        const history = new History()
        const until = performance.now() + SECONDS * 1_000
        const callers = new Callers(nodes.all, prepared, history, random(SEED), until)
        const [met] = await Promise.all([makeTrouble(nodes, server, random(SEED + 1), until), callers.run()])
        for (const node of nodes.all) await node.kill()
        const log = await nodes.readLog()
        report(history, met)

        expect(findViolations(log, history, LEASE_MS), `CLUSTER_SEED=${SEED}`).toEqual([])
        // No fault takes a commit away, so the log leads on from the rows of each node, at all times.
        for (const node of nodes.all) expect(node.listRebuildReasons(), node.name).toEqual([])
        const [first, ...others] = await times(nodes.all.length, (at) => nodes.digestAtEnd(nodes.all[at]!))
        for (const other of others) expect(listDifferentTables(first!, other)).toEqual([])
        expect(count(history.writes, 'acknowledged')).toBeGreaterThan(SECONDS)
      } finally {
        await nodes.close()
        rmSync(directory, { recursive: true, force: true })
      }
    },
    SECONDS * 1_000 + 180_000,
  )
})
