// Finds out, if the log does not lead on from the rows of this controller, which of the two is wrong.
//
// Rows that are wrong are rebuilt, which the next start does: the process ends. If the log itself is damaged, that would not help: the
// controller stays, grants nothing, and says which commit it is.
import type { Log } from '../../foundation/log.ts'
import { getDataPaths } from '../../settings/data-directory.ts'
import { type LogCipher, LogPayloadError } from '../postgres/log-cipher.ts'
import { type LogDatabase, withLogConnection } from '../postgres/log-connection.ts'
import { findFaultAfter, LogContradictionError } from '../postgres/log-rows.ts'
import { readLogStart } from '../sqlite/log-start.ts'
import { isDamageError, proveLog } from './prove-log.ts'
import { describeRestoreSince } from './snapshots.ts'

/** Each judgement may read the whole log. */
const MIN_INTERVAL_MS = 10_000

export interface JudgeParts {
  /** The data directory. */
  readonly directory: string
  readonly database: LogDatabase
  readonly cipher: LogCipher
  readonly log: Log
  /** Stops the process. */
  readonly fail: (error: Error) => void
}

export class ContradictionJudge {
  readonly #parts: JudgeParts
  #judgedAt = Number.NEGATIVE_INFINITY
  #isJudging = false

  constructor(parts: JudgeParts) {
    this.#parts = parts
  }

  /** Takes an error with which the log could not be followed. */
  note(error: unknown): void {
    if (!(error instanceof LogContradictionError || error instanceof LogPayloadError)) return
    if (this.#isJudging || performance.now() - this.#judgedAt < MIN_INTERVAL_MS) return
    this.#isJudging = true
    void this.#judge().finally(() => {
      this.#isJudging = false
      this.#judgedAt = performance.now()
    })
  }

  async #judge(): Promise<void> {
    const { directory, database, cipher, log, fail } = this.#parts
    try {
      const own = readLogStart(getDataPaths(directory).database)
      const fault = await withLogConnection(database, async (connection) => {
        const firstFault = await connection.run((client) => findFaultAfter(client, cipher, own))
        if (firstFault === undefined) return undefined
        await proveLog(connection, cipher)
        const restore = await connection.run((client) => describeRestoreSince(client, cipher, own))
        return restore ?? `the log of the cluster does not lead on from this controller: ${firstFault}`
      })
      if (fault !== undefined) fail(new Error(`${fault}; the next start of this controller rebuilds its rows`))
    } catch (error) {
      if (isDamageError(error))
        log.error({ err: error }, 'the log of the cluster is damaged: this controller grants nothing')
      else log.warn({ err: error }, 'the log of the cluster could not be examined')
    }
  }
}
