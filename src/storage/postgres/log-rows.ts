// Reads rows of the log, and proves that each was made to follow the one before it.
import type { Client } from 'pg'
import type { LogPosition } from '../commit-log.ts'
import { type LogCipher, LogPayloadError } from './log-cipher.ts'

// One statement, so that the head is that of the commits.
const READ_COMMITS = `
  select head.position as "headPosition", head.chain as "headChain", commits.position, commits.chain, commits.payload
  from controller.head left join lateral (
    select * from controller.commits where position > $1 order by position limit $2
  ) as commits on true order by commits.position`

/** The log does not lead on from a place: it lost commits, was changed, or has left the place behind. */
export class LogContradictionError extends Error {
  override readonly name = 'LogContradictionError'
}

/** One row for each commit that was asked for, with the head; one with the head alone if there is none. */
export interface LogRow {
  readonly headPosition: number
  readonly headChain: string
  readonly position: number | null
  readonly chain: string
  readonly payload: Buffer
}

/** A commit that follows `before`. */
export interface ProvenRow extends LogPosition {
  readonly before: LogPosition
  readonly payload: Buffer
}

/** @param limit the greatest number of commits; null for all */
export async function readRows(client: Client, after: number, limit: number | null): Promise<readonly LogRow[]> {
  return (await client.query<LogRow>(READ_COMMITS, [after, limit])).rows
}

/**
 * The commits of rows, each proven to follow the one before it, the first one `after`.
 * @param limit that of `readRows`
 * @throws LogContradictionError if they do not lead from there to the head; LogPayloadError if their key is not known
 */
export function* proveRows(
  cipher: LogCipher,
  after: LogPosition,
  rows: readonly LogRow[],
  limit: number | null,
): Generator<ProvenRow> {
  const [head] = rows
  if (!head) throw new LogContradictionError('the log has no head')
  let before = after
  for (const { position, chain, payload } of rows) {
    if (position === null) break
    if (position !== before.position + 1)
      throw new LogContradictionError(`the log has no commit ${before.position + 1}, and goes on with ${position}`)
    if (!cipher.leadsTo(chain, before, payload))
      throw new LogContradictionError(`the commit ${position} of the log does not follow the one before it`)
    yield { before, position, chain, payload }
    before = { position, chain }
  }
  requireEnd(head, before, limit !== null && before.position - after.position >= limit)
}

/** @throws LogContradictionError unless the last commit that was read is that of the head, or more follow */
function requireEnd({ headPosition, headChain }: LogRow, last: LogPosition, isLimited: boolean): void {
  if (headPosition < last.position)
    throw new LogContradictionError(`the log ends at ${headPosition}, before ${last.position}`)
  if (headPosition === last.position && headChain !== last.chain)
    throw new LogContradictionError(`the log has another commit ${last.position}`)
  if (headPosition > last.position && !isLimited)
    throw new LogContradictionError(`the log has no commit ${last.position + 1}, and ends at ${headPosition}`)
}

/** The reason for which the log does not lead on from a place; undefined if it does. */
export async function findFaultAfter(
  client: Client,
  cipher: LogCipher,
  place: LogPosition,
): Promise<string | undefined> {
  try {
    // To the first commit: whether it follows from there tells everything about the commits before.
    for (const _ of proveRows(cipher, place, await readRows(client, place.position, 1), 1));
    return undefined
  } catch (error) {
    if (error instanceof LogContradictionError || error instanceof LogPayloadError) return error.message
    throw error
  }
}
