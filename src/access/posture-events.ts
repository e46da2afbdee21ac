// The events that concern the posture of an identity's machines. No record changes, so nothing is audited.
import type { WriteContext } from '../context.ts'

/** Names the events where changes name a resource; the id is that of the identity. */
export const POSTURE = 'posture'

/** The members of an API session that MFA checks read. */
export const MFA_TIMES = ['mfaPassedAt', 'wokenAt', 'unlockedAt'] as const

/** Lets the sessions of an identity be judged again in the transaction, because its machines reported, or time has passed. */
export function recordPostureEvent(tx: WriteContext, identityId: string): void {
  const event = { operation: 'update', audit: 'none', resource: POSTURE, isForGuardsOnly: true } as const
  tx.record({ ...event, id: identityId, at: tx.clock.now() })
}
