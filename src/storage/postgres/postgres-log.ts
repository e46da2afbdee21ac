// A log in PostgreSQL that several controllers share: the database orders commits, and makes them durable.
//
// The lock of the head is the right to make the next commit. A commit also states the head that it follows, so that a controller which
// lost its lock unnoticed cannot commit. When a response is lost, the commit is looked up by its id.
import pg, { type Client } from 'pg'
import { newId } from '../../foundation/ids.ts'
import {
  type CommitDraft,
  type CommitLog,
  type LoggedCommit,
  type LogPosition,
  OutcomeUnknownError,
  type Turn,
  type UnreadCommit,
} from '../commit-log.ts'
import type { LogCipher } from './log-cipher.ts'
import { LogConnection, type LogDatabase } from './log-connection.ts'
import { findUnderLock, LOCK_HEAD, SET_TIMEOUTS } from './log-lock.ts'
import { type LogRow, proveRows, readRows } from './log-rows.ts'
import { makeKeyCheck } from './log-tables.ts'

// How long, and how often, the outcome of a commit is looked up whose response was lost.
const LOOK_UP_MS = 10_000
const LOOK_UP_PAUSE_MS = 200

const INSERT_COMMIT = `
  with head as (
    update controller.head set position = $1, chain = $2 where position = $3 and chain = $4 returning position
  )
  insert into controller.commits (position, id, node, at, chain, payload) select position, $5, $6, $7, $2, $8 from head`

// Of a commit that was taken, and no other.
const SET_SCHEMA = 'update controller.head set migration = $2, schema_digest = $3, release = $4 where chain = $1'

const SET_KEY_CHECK = 'update controller.head set key_check = $2 where chain = $1'

const FIND_COMMIT = 'select from controller.commits where position = $1 and id = $2'

/** The database did not take a commit. */
export class LogUnavailableError extends Error {
  override readonly name = 'LogUnavailableError'
}

interface PostgresLogParts {
  readonly database: LogDatabase
  readonly cipher: LogCipher
  /** The name of this controller. */
  readonly node: string
}

export class PostgresLog implements CommitLog {
  readonly isDeciding = true
  readonly needsRows = true
  readonly node: string
  readonly #cipher: LogCipher
  #network: string | undefined
  /** Of one turn at a time. */
  readonly #commits: LogConnection
  readonly #reads: LogConnection
  #turns = 0
  #waitedMs = 0

  constructor({ database, cipher, node }: PostgresLogParts) {
    this.#cipher = cipher
    this.node = node
    this.#commits = new LogConnection(database)
    this.#reads = new LogConnection(database)
  }

  /** How many turns this controller has had, and how long it has waited for them. */
  get stats() {
    return { turns: this.#turns, waitedMs: this.#waitedMs }
  }

  /** Has the head prove the newest cluster key from the next commit on, which is encrypted under it. */
  proveKey(network: string): void {
    this.#network = network
  }

  acquire(after: LogPosition): Promise<Turn> {
    const askedAt = performance.now()
    return this.#commits.run(async (client) => {
      // Sent at once, without waiting for the response to each. What is read is what the holder of the lock before has committed.
      const [, , , rows] = await Promise.all([
        client.query('begin'),
        client.query(SET_TIMEOUTS),
        client.query(LOCK_HEAD),
        readRows(client, after.position, null),
      ])
      this.#turns += 1
      this.#waitedMs += performance.now() - askedAt
      const missed = this.#prove(after, rows, null)
      const before = missed.at(-1) ?? after
      let isOver = false
      return {
        missed,
        publish: (draft) => {
          isOver = true
          return this.#publish(client, before, draft)
        },
        abandon: async () => {
          // Not awaited: it can only fail together with the connection.
          if (!isOver) client.query('rollback').catch(() => this.#commits.end())
          isOver = true
        },
      }
    })
  }

  async readAfter(after: LogPosition, limit: number): Promise<readonly LoggedCommit[]> {
    const rows = await this.#reads.run((client) => readRows(client, after.position, limit))
    return this.#prove(after, rows, limit).map((commit) => commit.read())
  }

  async close(): Promise<void> {
    this.#commits.end()
    this.#reads.end()
  }

  async #publish(client: Client, before: LogPosition, draft: CommitDraft): Promise<LoggedCommit> {
    const id = newId()
    const payload = this.#cipher.seal(JSON.stringify({ ...draft, id, node: this.node }), before)
    const chain = this.#cipher.extend(before, payload)
    const commit = { ...draft, id, node: this.node, chain }
    const { migration } = draft
    const head = [draft.position, chain, before.position, before.chain]
    // Its session has ended, and so has its transaction: nothing is sent any more.
    if (client.connection.stream.destroyed) throw new LogUnavailableError('the turn of this controller has ended')
    const insertion = client.query(INSERT_COMMIT, [...head, id, this.node, draft.at, payload])
    try {
      await Promise.all([
        insertion,
        ...(migration
          ? [client.query(SET_SCHEMA, [chain, migration.migration, migration.digest, migration.release])]
          : []),
        ...(this.#network === undefined
          ? []
          : [client.query(SET_KEY_CHECK, [chain, makeKeyCheck(this.#cipher, this.#network)])]),
        client.query('commit'),
      ])
      this.#network = undefined
    } catch (cause) {
      this.#commits.end()
      if (!(await isRefused(insertion)) && (await this.#lookUp(draft.position, id))) return commit
      throw new LogUnavailableError('the database did not take the commit', { cause })
    }
    if ((await insertion).rowCount === 1) return commit
    throw new LogUnavailableError('another controller has committed meanwhile')
  }

  /** Finds out whether a commit is in the log. @throws OutcomeUnknownError if the database does not tell in time */
  async #lookUp(position: number, id: string): Promise<boolean> {
    const endsAt = performance.now() + LOOK_UP_MS
    for (;;) {
      try {
        return await this.#commits.run((client) => findUnderLock(client, FIND_COMMIT, [position, id]))
      } catch (cause) {
        if (performance.now() > endsAt)
          throw new OutcomeUnknownError('nothing tells whether a commit was taken', { cause })
        await new Promise((resolve) => setTimeout(resolve, LOOK_UP_PAUSE_MS))
      }
    }
  }

  /** The commits of rows that lead on from a position. @throws LogContradictionError if they do not; LogPayloadError */
  #prove(after: LogPosition, rows: readonly LogRow[], limit: number | null): UnreadCommit[] {
    return Array.from(proveRows(this.#cipher, after, rows, limit), ({ before, position, chain, payload }) => ({
      position,
      chain,
      read: () => ({ ...(JSON.parse(this.#cipher.open(payload, before)) as LoggedCommit), position, chain }),
    }))
  }
}

/** Whether the database itself has refused a query: then the rest of its transaction has no effect. */
async function isRefused(query: Promise<unknown>): Promise<boolean> {
  return query.then(
    () => false,
    (error) => error instanceof pg.DatabaseError,
  )
}
