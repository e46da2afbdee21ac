// The identities that have a verified MFA enrollment, in memory, because access decisions and sign-in advice read them.
import type { Kysely } from 'kysely'
import { mfaEnrollments } from '../../definitions/resources/mfa-enrollments.ts'
import type { Database } from '../../storage/database.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'

export class VerifiedMfa implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'verified MFA enrollments'
  #identityIds = new Set<string>()

  async rebuild(db: Kysely<Database>): Promise<void> {
    const rows = await db.selectFrom('mfa_enrollments').select('identityId').where('isVerified', '=', 1).execute()
    this.#identityIds = new Set(rows.map(({ identityId }) => identityId))
  }

  /** Whether an identity has verified TOTP. */
  has(identityId: string): boolean {
    return this.#identityIds.has(identityId)
  }

  apply({ changes }: Commit): void {
    for (const { resource, before, after } of changes) {
      if (resource !== mfaEnrollments.plural) continue
      if (after?.isVerified === true) this.#identityIds.add(after.identityId)
      else this.#identityIds.delete((after ?? before)?.identityId ?? '')
    }
  }
}
