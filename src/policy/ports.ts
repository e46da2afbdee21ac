// What decides about access beyond records: asked of whoever knows, answered "unknown" where nobody does.

/** What is known of something: `unknown` is never taken for `passing`. */
export type Evidence = 'passing' | 'failing' | 'unknown'

/** What a posture check finds on the machine of an identity. */
export interface PostureFinding {
  readonly evidence: Evidence
  /** What was reported, for people to read; absent where nothing was. */
  readonly reported?: unknown
}

/** What machines have reported about themselves. */
export interface Posture {
  /** `apiSessionId` is the sign-in it is about; without one, what holds for every sign-in of the identity. */
  find(postureCheckId: string, identityId: string, apiSessionId?: string): PostureFinding
}

/** Which routers are connected. */
export interface RouterPresence {
  presenceOf(routerId: string): 'online' | 'offline' | 'unknown'
}

/** What is known of the hosts behind terminators. */
export interface TerminatorHealth {
  healthOf(terminatorId: string): Evidence
}

/** All that is asked beyond records. */
export interface LiveStatePorts {
  readonly posture: Posture
  readonly routers: RouterPresence
  readonly terminators: TerminatorHealth
}

/** Where no subsystem knows anything: records alone decide, and what they do not hold is unknown. */
export const unknownLiveState: LiveStatePorts = {
  posture: { find: () => ({ evidence: 'unknown' }) },
  routers: { presenceOf: () => 'unknown' },
  terminators: { healthOf: () => 'unknown' },
}
