// The changes of sessions since routers were told about them last, and the announcements that follow from these.
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import { authenticators } from '../../definitions/resources/authenticators.ts'
import { sessionCertificates } from '../../definitions/resources/session-certificates.ts'
import { sessions } from '../../definitions/resources/sessions.ts'
import type { Change } from '../../storage/transactions/changes.ts'
import type { SessionAnnouncement } from './router-connection.ts'
import { PART_SIZE, type RouterSessions } from './router-sessions.ts'

// Tokens are short; a router handles each message in a task of its own.
const TOKENS_PER_MESSAGE = 1_000

export class SessionChanges {
  readonly #addedIds = new Set<string>()
  readonly #changedIds = new Set<string>()
  /** Identities whose certificates changed. */
  readonly #identityIds = new Set<string>()
  readonly #removedIds: string[] = []
  readonly #removedSessionIds: string[] = []

  get isEmpty(): boolean {
    const sizes = [this.#addedIds.size, this.#changedIds.size, this.#identityIds.size]
    return [...sizes, this.#removedIds.length, this.#removedSessionIds.length].every((size) => size === 0)
  }

  note({ resource, operation, id, before, after }: Change): void {
    if (resource === apiSessions.plural) {
      if (operation === 'create') this.#addedIds.add(id)
      // Routers were not told about sessions by OpenID Connect, and learn of their end by a revocation.
      if (operation === 'delete' && !this.#addedIds.delete(id) && !before?.clientId) this.#removedIds.push(id)
    } else if (resource === sessionCertificates.plural) {
      const record = after ?? before
      if (record) this.#changedIds.add(record.apiSessionId)
    } else if (resource === authenticators.plural) {
      const record = after ?? before
      if (record?.method === 'cert') this.#identityIds.add(record.identityId)
    } else if (resource === sessions.plural && operation === 'delete') {
      this.#removedSessionIds.push(id)
    }
  }

  /** Has routers be told about an API session, whatever changed. */
  noteChanged(apiSessionId: string): void {
    this.#changedIds.add(apiSessionId)
  }

  /** Removals come last: a session that was announced and ended in one batch must not remain. */
  async toAnnouncements(routerSessions: RouterSessions): Promise<SessionAnnouncement[]> {
    const ofIdentities = await routerSessions.listOfIdentities([...this.#identityIds])
    const changedIds = new Set([...this.#changedIds, ...ofIdentities])
    return [
      ...(await announceLive('api-sessions-added', [...this.#addedIds], routerSessions)),
      ...(await announceLive(
        'api-sessions-updated',
        [...changedIds].filter((id) => !this.#addedIds.has(id)),
        routerSessions,
      )),
      ...announceEnded('api-sessions-removed', this.#removedIds, routerSessions),
      ...announceEnded('sessions-removed', this.#removedSessionIds, routerSessions),
    ]
  }
}

async function announceLive(
  kind: 'api-sessions-added' | 'api-sessions-updated',
  ids: readonly string[],
  routerSessions: RouterSessions,
): Promise<SessionAnnouncement[]> {
  const announcements: SessionAnnouncement[] = []
  for (const part of split(ids, PART_SIZE)) {
    const apiSessions = await routerSessions.read(part)
    if (apiSessions.length > 0) announcements.push({ kind, apiSessions })
  }
  return announcements
}

/** Announcements that sessions, or API sessions, have ended. */
export function announceEnded(
  kind: 'api-sessions-removed' | 'sessions-removed',
  ids: readonly string[],
  routerSessions: RouterSessions,
): SessionAnnouncement[] {
  return split(ids, TOKENS_PER_MESSAGE).map((part) => ({
    kind,
    sessions: part.map((id) => routerSessions.toEnded(id)),
  }))
}

function split<T>(values: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(values.length / size) }, (_, at) => values.slice(at * size, (at + 1) * size))
}
