// The ids of tokens that were revoked one by one. A session that is revoked is deleted, and its tokens end with it.
import type { Kysely } from 'kysely'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'
import { apiSessionUnknownError } from '../api-sessions/caller-errors.ts'

export class RevokedTokens implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'revoked tokens'
  #ids = new Set<string>()

  /** Whether a token of this id was revoked. */
  has(jti: string): boolean {
    return this.#ids.has(jti)
  }

  /** Whether a token of this id was revoked, or is by a change that is not committed yet. */
  isRevokedIn({ uncommitted }: Pick<WriteContext, 'uncommitted'>, jti: string): boolean {
    return this.has(jti) || uncommitted.findNewest('revocations', jti)?.type === 'JTI'
  }

  /**
   * Requires that the access token of a caller was not revoked since its request was admitted.
   * @throws UNAUTHORIZED if it was
   */
  requireValidToken(tx: Pick<WriteContext, 'caller' | 'uncommitted'>): void {
    const { caller } = tx
    if (caller.kind !== 'identity' || caller.isActorOnly || caller.accessTokenId === undefined) return
    if (this.isRevokedIn(tx, caller.accessTokenId)) throw apiSessionUnknownError()
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('revocations').select('id').where('type', '=', 'JTI').execute()
    this.#ids = new Set(rows.map(({ id }) => id))
  }

  apply({ changes }: Commit): void {
    for (const { resource, id, after } of changes) {
      if (resource !== 'revocations') continue
      if (after?.type === 'JTI') this.#ids.add(id)
      else this.#ids.delete(id)
    }
  }
}
