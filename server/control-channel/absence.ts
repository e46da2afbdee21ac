// The dials that a router took for a controller while it was not connected to it. It sends all of them once it is connected again, also if
// their clients have given up, or have dialed at another controller since.
import type { Controller } from '../../src/controller/controller.ts'
import type { WaitingPlace } from '../../src/network/circuits/dials.ts'
import type { RouterHello } from '../../src/network/routers/router-connection.ts'

// Clients give up a dial after five seconds.
const MAX_ABSENCE_MS = 4_000

// The kept dials of a router are read within this time.
const READING_MS = 1_000

/** The dials that a router kept: until when, by the monotonic clock, they are read, and where it kept them. */
export interface KeptDials {
  readonly endAt: number
  readonly place: WaitingPlace
}

/** Returns undefined if the router was not away for longer than clients wait. */
export function findKeptDials(
  { clock, cluster, routers }: Pick<Controller, 'clock' | 'cluster' | 'routers'>,
  { routerId }: RouterHello,
  isNewProcess: boolean,
): KeptDials | undefined {
  if (isNewProcess) return undefined
  const lostAt = routers.connected.getDisconnectTime(routerId)
  // One that another process had may have been away for any time.
  const absentMs = lostAt === undefined ? undefined : clock.now() - lostAt
  if (absentMs !== undefined && absentMs < MAX_ABSENCE_MS) return undefined
  const others = routers.presence?.listNodesOf(routerId) ?? []
  const wasElsewhere = cluster?.nodes.list().some(({ name, isLive, details }) => {
    const wasInContact = isLive && (details.heldMs ?? 0) >= (absentMs ?? MAX_ABSENCE_MS)
    return name !== cluster.name && others.includes(name) && wasInContact
  })
  return { endAt: clock.monotonic() + READING_MS, place: wasElsewhere ? 'kept for one controller' : 'kept' }
}
