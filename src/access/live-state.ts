// What decides about access beyond records: the sources of live state, which say "unknown" if no subsystem can tell.
import { disconnectedNetwork, type LiveNetwork } from '../routers/live-network.ts'

/** What is known of something: `unknown` is never taken for `passing`. */
export type Evidence = 'passing' | 'failing' | 'unknown'

/** What a posture check finds on the machine of an identity. */
export interface PostureFinding {
  readonly evidence: Evidence
  /** What the machine reported, for people to read; absent if it reported nothing. */
  readonly reported?: unknown
}

/** What machines have reported about themselves. */
export interface Posture {
  /** @param apiSessionId the API session it is about; without one, the finding holds for every API session of the identity */
  find(postureCheckId: string, identityId: string, apiSessionId?: string): PostureFinding
}

/** What is known of the hosts behind terminators. */
export interface TerminatorHealth {
  healthOf(terminatorId: string): Evidence
}

/** The sources of live state. */
export interface LiveState {
  readonly posture: Posture
  readonly network: LiveNetwork
  readonly terminators: TerminatorHealth
}

/** Without any subsystem that watches: records alone decide, and what they do not hold is unknown. */
export const unknownLiveState: LiveState = {
  posture: { find: () => ({ evidence: 'unknown' }) },
  network: disconnectedNetwork,
  terminators: { healthOf: () => 'unknown' },
}
