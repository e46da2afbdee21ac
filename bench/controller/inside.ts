// Loaded into a controller (`--import`) for the few measurements that cannot be made from outside: what its commits take, and
// its memory after a forced garbage collection.
import type { Statement } from 'better-sqlite3'
import { loadSqlite } from '../../src/storage/sqlite/sqlite-library.ts'

/** All commits since the start. */
export interface CommitFigures {
  readonly count: number
  readonly milliseconds: number
  readonly cpuMicroseconds: number
}

/** After a forced garbage collection. */
export interface MemoryFigures {
  readonly heapBytes: number
  readonly residentBytes: number
}

export type Question = 'commits' | 'memory'

const commits = { count: 0, milliseconds: 0, cpuMicroseconds: 0 }

const Sqlite = loadSqlite()
const { prepare } = Sqlite.prototype
Sqlite.prototype.prepare = function (this: unknown, text: string) {
  const statement = prepare.call(this, text) as Statement
  return text === 'commit' ? timed(statement) : statement
} as typeof prepare

/** A commit does not wait for other work of this process, so what the process takes meanwhile is the commit's. */
function timed(statement: Statement): Statement {
  const run = statement.run.bind(statement)
  statement.run = () => {
    const [begun, cpuBefore] = [performance.now(), process.cpuUsage()]
    const result = run()
    const { user, system } = process.cpuUsage(cpuBefore)
    commits.count += 1
    commits.milliseconds += performance.now() - begun
    commits.cpuMicroseconds += user + system
    return result
  }
  return statement
}

function readMemory(): MemoryFigures {
  // The second one frees what the finalizers of the first one have released.
  for (let turn = 0; turn < 2; turn++) globalThis.gc?.()
  const { heapUsed, external, rss } = process.memoryUsage()
  return { heapBytes: heapUsed + external, residentBytes: rss }
}

process.on('message', (question: Question) => process.send?.(question === 'commits' ? commits : readMemory()))
// The channel to the bench does not keep the controller from ending.
process.channel?.unref()
