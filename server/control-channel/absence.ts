// The dials that a router took for a controller while it was not connected to it. It sends all of them once it is connected again, also if
// their clients have given up, or have dialed at another controller since.
import type { Controller } from '../../src/controller.ts'
import type { RouterHello } from '../../src/network/routers/router-connection.ts'

// Clients give up a dial after five seconds.
const MAX_ABSENCE_MS = 4_000

// The kept dials of a router are read within this time.
const READING_MS = 500

/** Until when, by the monotonic clock, dials may be older than their clients wait; undefined if the router was not away for long. */
export function findEndOfKeptDials(
  { clock, routers }: Pick<Controller, 'clock' | 'routers'>,
  { routerId }: RouterHello,
  isNewProcess: boolean,
): number | undefined {
  if (isNewProcess) return undefined
  const lostAt = routers.connected.getDisconnectTime(routerId)
  // One that another process had may have been away for any time.
  const isShort = lostAt !== undefined && clock.now() - lostAt < MAX_ABSENCE_MS
  return isShort ? undefined : clock.monotonic() + READING_MS
}
