// The ids of tokens that were revoked one by one. A session that is revoked is deleted, and its tokens end with it.
import type { Kysely } from 'kysely'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'

export class RevokedTokens implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'revoked tokens'
  #ids = new Set<string>()

  /** Whether a token of this id was revoked. */
  has(jti: string): boolean {
    return this.#ids.has(jti)
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
