// The sources of live state, by which access is decided besides records. They say "unknown" if no subsystem can tell.
//
// Connected routers and the health of terminators come from here, posture from `posture/reported-posture.ts`. Unknown
// never passes: a session is rejected, and advice reports that it cannot decide.
import type { Evidence } from '../policy/posture/evaluate-check.ts'
import { disconnectedNetwork, type LiveNetwork } from './live-network.ts'

/** What is known of the hosts behind terminators. */
export interface TerminatorHealth {
  healthOf(terminatorId: string): Evidence
}

/** The sources of live state. */
export interface LiveSources {
  readonly network: LiveNetwork
  readonly terminators: TerminatorHealth
}

/** Those that routers made are removed if their router does not know them: one that is stored is there while its router is. */
export const storedTerminators: TerminatorHealth = { healthOf: () => 'passing' }

/** Without any subsystem that watches: records alone decide, and what they do not hold is unknown. */
export const unknownLiveState: LiveSources = {
  network: disconnectedNetwork,
  terminators: { healthOf: () => 'unknown' },
}
