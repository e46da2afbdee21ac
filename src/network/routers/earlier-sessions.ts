// Ends what clients opened by sessions of earlier processes of the controller, when those sessions end.
//
// Routers of release 1 do not follow the end of a session whose token is signed, and those of release 2 leave its circuits open if the SDK
// controls their flow. This process does not know the circuits that an earlier one created. So routers close all connections of the client,
// which may come back at once: its API session lasts.
import type { Kysely } from 'kysely'
import type { SessionTokens } from '../../access/sessions/session-tokens.ts'
import { sessions } from '../../definitions/resources/sessions.ts'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { SideEffect } from '../../storage/transactions/projection.ts'
import type { ConnectedRouter, ConnectedRouters } from './connected-routers.ts'
import type { SessionSync } from './session-sync.ts'

interface EarlierSessionsParts {
  readonly connected: ConnectedRouters
  readonly sessionSync: Pick<SessionSync, 'reconnectClients'>
  readonly sessionTokens: Pick<SessionTokens, 'areSigned'>
}

export class EarlierSessions implements SideEffect {
  readonly kind = 'side effect'
  readonly name = 'sessions of earlier processes'
  readonly #parts: EarlierSessionsParts
  /** Session → its API session: those that last, of all that existed when this process began. Undefined until then. */
  #lasting: Map<string, string> | undefined
  /** The API sessions of those that have ended since, in order. */
  readonly #ended: string[] = []
  /** Router → how many of them it was told about; routers that have heard of none are missing. */
  readonly #toldCounts = new Map<string, number>()

  constructor(parts: EarlierSessionsParts) {
    this.#parts = parts
  }

  async restart(db: Kysely<Database>): Promise<void> {
    // Routers of release 1 end a session whose token was opaque then, and there was none of release 2.
    if (!this.#lasting && !this.#parts.sessionTokens.areSigned) {
      this.#lasting = new Map()
      return
    }
    const rows = await db.selectFrom('sessions').select(['id', 'apiSessionId']).execute()
    const present = new Map(rows.map(({ id, apiSessionId }) => [id, apiSessionId]))
    if (this.#lasting) this.#end([...this.#lasting.keys()].filter((id) => !present.has(id)))
    else this.#lasting = present
  }

  apply({ changes }: Commit): void {
    const endedIds: string[] = []
    for (const { resource, operation, id } of changes) {
      if (operation !== 'delete') continue
      if (resource === sessions.plural) endedIds.push(id)
      else if (resource === 'edge-routers') this.#toldCounts.delete(id)
    }
    this.#end(endedIds)
  }

  #end(sessionIds: readonly string[]): void {
    const clients = new Set<string>()
    for (const id of sessionIds) {
      const apiSessionId = this.#lasting?.get(id)
      if (apiSessionId === undefined) continue
      this.#lasting?.delete(id)
      clients.add(apiSessionId)
    }
    if (clients.size === 0) return
    this.#ended.push(...clients)
    for (const router of this.#parts.connected.listEdgeRouters()) this.tellMissed(router)
  }

  /** Has a router close what it has not heard of, because it was away. */
  tellMissed(router: ConnectedRouter): void {
    const missed = this.#ended.slice(this.#toldCounts.get(router.id) ?? 0)
    if (missed.length === 0) return
    this.#toldCounts.set(router.id, this.#ended.length)
    this.#parts.sessionSync.reconnectClients(router, [...new Set(missed)])
  }
}
