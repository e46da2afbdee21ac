// Proves that the log leads from its newest snapshot to its head: then a controller whose own rows do not follow can be rebuilt.
import type { LogPosition } from '../commit-log.ts'
import { type LogCipher, LogPayloadError } from '../postgres/log-cipher.ts'
import type { LogConnection } from '../postgres/log-connection.ts'
import { LogContradictionError, proveRows, readRows } from '../postgres/log-rows.ts'
import { LogDatabaseError } from '../postgres/log-tables.ts'
import { readNewestSnapshot } from './snapshots.ts'

const READ_LIMIT = 512

/**
 * Reads every commit since the newest snapshot. Returns the place of the last one.
 * @throws LogContradictionError that names the commit which was changed, exchanged or removed; LogPayloadError; LogDatabaseError if
 * there is no snapshot
 */
export async function proveLog(connection: LogConnection, cipher: LogCipher): Promise<LogPosition> {
  let last: LogPosition = await connection.run((client) => readNewestSnapshot(client, cipher))
  for (;;) {
    const { position } = last
    const rows = await connection.run((client) => readRows(client, position, READ_LIMIT))
    for (const row of proveRows(cipher, last, rows, READ_LIMIT)) last = row
    if (last.position - position < READ_LIMIT) return last
  }
}

/** Whether an error of `proveLog` is about the log, and not about the way to it. */
export function isDamageError(error: unknown): boolean {
  return [LogContradictionError, LogPayloadError, LogDatabaseError].some((type) => error instanceof type)
}
