// The sources of live state, by which access is decided besides records. They say "unknown" if no subsystem can tell.
//
// Connected routers and the health of terminators come from here, posture from `posture/reported-posture.ts`. Unknown
// never passes: a session is rejected, and advice reports that it cannot decide.
import type { Evidence } from '../policy/posture/evaluate-check.ts'
import { disconnectedNetwork, type LiveNetwork } from './live-network.ts'

/** The state of the hosts behind terminators. */
export interface TerminatorHealth {
  healthOf(terminatorId: string): Evidence
}

/** The sources of live state. */
export interface LiveSources {
  readonly network: LiveNetwork
  readonly terminators: TerminatorHealth
}

/** A stored terminator is there while its router is: a router that does not know one of those that it made has it removed. */
export const storedTerminators: TerminatorHealth = { healthOf: () => 'passing' }

/** Without any subsystem that watches: records alone decide, and what they do not hold is unknown. */
export const unknownLiveState: LiveSources = {
  network: disconnectedNetwork,
  terminators: { healthOf: () => 'unknown' },
}
