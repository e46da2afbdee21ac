// The events that concern the posture of an identity's machines. No record changes, so nothing is audited.
import type { WriteContext } from '../../storage/context.ts'

/** Names the events where changes name a resource; the id is that of the identity. */
export const POSTURE = 'posture'

/** Lets the sessions of an identity be judged again in the transaction, because its machines reported, or time has passed. */
export function recordPostureEvent(tx: WriteContext, identityId: string): void {
  const event = { operation: 'update', audit: 'none', resource: POSTURE, isForGuardsOnly: true } as const
  tx.record({ ...event, id: identityId, at: tx.clock.now() })
}
