// The lock of the head of the log, which is the right to make the next commit.
import type { Client } from 'pg'

// Others wait this long for the lock before their changes are refused: commands of OpenZiti give up after five seconds.
const LOCK_TIMEOUT_MS = 4_000
// How long a controller that stopped keeps the lock.
const IDLE_TIMEOUT_MS = 2_000

/** For the transaction in progress only, so that a pooler may give the connection to others. */
export const LIMIT_WAITING = `select set_config('lock_timeout', '${LOCK_TIMEOUT_MS}', true)`

/** The same, and the session ends if its controller stops while it has the lock. */
export const SET_TIMEOUTS = `${LIMIT_WAITING},
  set_config('idle_in_transaction_session_timeout', '${IDLE_TIMEOUT_MS}', true)`

export const LOCK_HEAD = 'select from controller.head for update'

/**
 * Whether a query finds the row of a transaction whose response was lost. It looks under the lock, because the session that sent the
 * transaction may be at work on it still.
 */
export async function findUnderLock(client: Client, query: string, values: readonly unknown[]): Promise<boolean> {
  await client.query('begin')
  await client.query(SET_TIMEOUTS)
  await client.query(LOCK_HEAD)
  const { rowCount } = await client.query(query, [...values])
  // A row whose session ended is visible although no standby has it. A commit after it proves that one does.
  if (rowCount === 1) await client.query('update controller.head set proof = proof + 1')
  await client.query('commit')
  return rowCount === 1
}
