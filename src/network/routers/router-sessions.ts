// API sessions as routers check them: each with its token, and the certificates by which its client may connect.
import type { Kysely } from 'kysely'
import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import type { Clock } from '../../foundation/clock.ts'
import type { Database } from '../../storage/database.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { RouterApiSession } from './router-connection.ts'

/** How many API sessions routers are told about in one message. */
export const PART_SIZE = 100

interface RouterSessionsParts {
  readonly db: Kysely<Database>
  readonly clock: Clock
  readonly apiSessions: ApiSessions
}

export class RouterSessions {
  readonly #parts: RouterSessionsParts

  constructor(parts: RouterSessionsParts) {
    this.#parts = parts
  }

  /** Reads some of them. Those that have ended are left out. */
  async read(ids: readonly string[]): Promise<RouterApiSession[]> {
    const { db, clock, apiSessions } = this.#parts
    // Routers verify the tokens of sessions by OpenID Connect themselves.
    const live = ids.flatMap((id) => apiSessions.get(id) ?? []).filter(({ clientId }) => clientId === null)
    if (live.length === 0) return []
    const identityIds = [...new Set(live.map(({ identity }) => identity.id))]
    const [ofIdentities, ofSessions] = await Promise.all([
      db
        .selectFrom('authenticators')
        .select(['identityId as holder', 'fingerprint'])
        .where('fingerprint', 'is not', null)
        .where(isOneOf(db, 'identityId', identityIds))
        .execute(),
      db
        .selectFrom('session_certificates')
        .select(['apiSessionId as holder', 'fingerprint'])
        .where('validTo', '>', clock.now())
        .where(isOneOf(db, 'apiSessionId', ids))
        .execute(),
    ])
    const fingerprints = groupFingerprints([...ofIdentities, ...ofSessions])
    return live.map(({ id, identity }) => ({
      id,
      token: apiSessions.deriveToken(id),
      identityId: identity.id,
      fingerprints: [...(fingerprints.get(identity.id) ?? []), ...(fingerprints.get(id) ?? [])],
    }))
  }

  /** The API sessions of identities, by their ids. */
  async listOfIdentities(identityIds: readonly string[]): Promise<string[]> {
    if (identityIds.length === 0) return []
    const { db } = this.#parts
    const rows = await db
      .selectFrom('api_sessions')
      .select('id')
      .where(isOneOf(db, 'identityId', identityIds))
      .execute()
    return rows.map(({ id }) => id)
  }

  /** A session as routers are told that it is removed. */
  toEnded(id: string): { readonly id: string; readonly token: string } {
    return { id, token: this.#parts.apiSessions.deriveToken(id) }
  }
}

/** Identity or API session → the fingerprints of its certificates. */
function groupFingerprints(
  rows: readonly { readonly holder: string; readonly fingerprint: string | null }[],
): Map<string, string[]> {
  const byHolder = new Map<string, string[]>()
  for (const { holder, fingerprint } of rows) {
    if (fingerprint === null) continue
    const fingerprints = byHolder.get(holder)
    if (fingerprints) fingerprints.push(fingerprint)
    else byHolder.set(holder, [fingerprint])
  }
  return byHolder
}
