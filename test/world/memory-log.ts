// A log in memory that several stores of a test share, with the faults of a database that is reached over a network.
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import {
  type CommitDraft,
  type CommitLog,
  type LoggedCommit,
  type LogPosition,
  OutcomeUnknownError,
  type Turn,
} from '../../src/storage/commit-log.ts'

/** The fault of one call. */
export type Fault =
  /** The log is out of reach: nothing happens. */
  | 'refused'
  /** The connection ends after the log has done its part, and the caller finds out nothing. */
  | 'unknown'
  /** The same, but the caller looks up what became of its commit. */
  | 'looked up'
  /** The process of the caller ends before the log has its commit: nothing returns. */
  | 'crash before'
  | 'crash after'

export type FaultSource = (call: 'acquire' | 'publish' | 'read') => Fault | undefined

const START: LogPosition = { position: 0, chain: '' }

export class LogOutOfReachError extends Error {}

export class MemoryLog {
  readonly #start: LogPosition
  readonly #commits: string[] = []
  #lastChain: string
  #ids = 0
  /** Settles once the holder of the lock lets go of it. */
  #unlocked: Promise<void> = Promise.resolve()

  /** Begins where the rows of the nodes are: by default, where a new database begins. */
  constructor(start = START) {
    this.#start = start
    this.#lastChain = start.chain
  }

  /** Every commit, in order. */
  get commits(): readonly LoggedCommit[] {
    return this.#commits.map((text) => JSON.parse(text) as LoggedCommit)
  }

  /** Loses its last commit, as if a standby without it had taken over. */
  loseLast(): void {
    this.#commits.pop()
    this.#lastChain = this.commits.at(-1)?.chain ?? this.#start.chain
  }

  /** The log as one node sees it. */
  connect(node: string, findFault: FaultSource = () => undefined): CommitLog {
    return {
      node,
      isDeciding: true,
      needsRows: true,
      acquire: async (after) => {
        const fault = findFault('acquire')
        if (fault === 'refused') throw new LogOutOfReachError('refused')
        const unlock = await this.#lock()
        try {
          // Others wait meanwhile, and the event loop serves them.
          await setImmediate()
          if (fault !== undefined) throw new LogOutOfReachError('the connection ended with the lock')
          return this.#beginTurn(node, this.#readAfter(after), unlock, findFault)
        } catch (error) {
          unlock()
          throw error
        }
      },
      readAfter: async (after, limit) => {
        await setImmediate()
        if (findFault('read') !== undefined) throw new LogOutOfReachError('refused')
        return this.#readAfter(after).slice(0, limit)
      },
    }
  }

  #beginTurn(node: string, missed: readonly LoggedCommit[], unlock: () => void, findFault: FaultSource): Turn {
    return {
      missed: missed.map((commit) => ({ ...commit, read: () => commit })),
      abandon: async () => unlock(),
      publish: async (draft) => {
        const fault = findFault('publish')
        await setImmediate()
        if (fault === 'crash before') return endProcess(unlock)
        if (fault === 'refused') {
          unlock()
          throw new LogOutOfReachError('refused')
        }
        const commit = this.#append(draft, node)
        if (fault === 'crash after') return endProcess(unlock)
        unlock()
        if (fault === 'unknown') throw new OutcomeUnknownError('no response')
        if (fault === 'looked up') await setImmediate()
        return commit
      },
    }
  }

  #lock(): Promise<() => void> {
    const before = this.#unlocked
    let unlock = () => {}
    this.#unlocked = new Promise((resolve) => {
      unlock = resolve
    })
    return before.then(() => unlock)
  }

  #append(draft: CommitDraft, node: string): LoggedCommit {
    const expected = this.#start.position + this.#commits.length + 1
    if (draft.position !== expected) throw new Error(`the commit ${draft.position} was offered in place of ${expected}`)
    const payload = JSON.stringify(draft)
    this.#lastChain = createHash('sha256').update(this.#lastChain).update(payload).digest('hex')
    const commit = JSON.stringify({ ...draft, chain: this.#lastChain, id: `commit ${++this.#ids}`, node })
    this.#commits.push(commit)
    return JSON.parse(commit) as LoggedCommit
  }

  #readAfter({ position, chain }: LogPosition): LoggedCommit[] {
    const count = position - this.#start.position
    const last = count === 0 ? this.#start : (JSON.parse(this.#commits[count - 1] ?? '{}') as Partial<LogPosition>)
    if (last.chain !== chain) throw new Error(`the log does not lead on from ${position}`)
    return this.#commits.slice(count).map((text) => JSON.parse(text) as LoggedCommit)
  }
}

/** The session of a process that ends, ends too: its lock is free, and the process never learns of it. */
function endProcess(unlock: () => void): Promise<never> {
  unlock()
  return new Promise(() => {})
}
