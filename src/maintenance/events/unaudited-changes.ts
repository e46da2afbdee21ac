// The events of commits that the audit does not record: sessions that begin and end, and verdicts of posture checks that change.
import type { Access } from '../../access/access.ts'
import type { SessionDirectory } from '../../access/posture/schedule-verdicts.ts'
import type { Change, Commit } from '../../storage/transactions/changes.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import type { NetworkEvent } from './event.ts'
import type { EventFeed } from './event-feed.ts'
import { findChangedVerdicts } from './posture-verdicts.ts'

interface UnauditedChangesParts {
  readonly access: Access
  readonly apiSessions: SessionDirectory
  readonly feed: EventFeed
}

/** Without a watcher it looks at nothing. */
export class UnauditedChanges implements SideEffect {
  readonly kind = 'side effect'
  readonly name = 'events of sessions and posture'
  readonly #parts: UnauditedChangesParts

  constructor(parts: UnauditedChangesParts) {
    this.#parts = parts
  }

  apply({ changes }: Commit): void {
    const { access, apiSessions, feed } = this.#parts
    if (!feed.isWatched) return
    for (const change of changes) {
      const happened = describeSession(change)
      if (happened) feed.add(happened)
      if (access.index.hasPostureChecks)
        for (const verdict of findChangedVerdicts(access, apiSessions, change)) feed.add(verdict)
    }
  }

  /** No row has the events that could not be passed on. */
  async restart(): Promise<void> {}
}

function describeSession(change: Change): NetworkEvent | undefined {
  const { resource, id, operation } = change
  if (operation !== 'create' && operation !== 'delete') return undefined
  const isBegun = operation === 'create'
  if (resource === 'api-sessions') {
    const session = change.after ?? change.before
    if (!session) return undefined
    const { identityId, ipAddress, clientId } = session
    const details = { identityId, ipAddress, isByOpenIdConnect: clientId !== null }
    return { type: isBegun ? 'api-session-begun' : 'api-session-ended', resource, id, related: [identityId], details }
  }
  if (resource === 'sessions') {
    const session = change.after ?? change.before
    if (!session) return undefined
    const { identityId, serviceId, apiSessionId, type: sessionType } = session
    const details = { identityId, serviceId, apiSessionId, sessionType }
    const related = [identityId, serviceId, apiSessionId]
    return { type: isBegun ? 'session-begun' : 'session-ended', resource, id, related, details }
  }
  return undefined
}
