// The secret members of an MFA enrollment, which only some operations show, and only to its owner.

import type { ComputedInput } from '../../definitions/resources/define.ts'
import type { mfaEnrollments } from '../../definitions/resources/mfa-enrollments.ts'
import { EMPTY_OR_NULL } from '../../definitions/schema/json-forms.ts'
import type { Behavior } from '../../storage/behavior.ts'
import { RawJson } from '../../storage/records/raw-json.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import type { EncryptedMfa, MfaSecrets } from './mfa-secrets.ts'

/** How an enrollment is shown to its owner: with what verifies it if it is not verified, or with the recovery codes. */
export type MfaView = 'setup' | 'recovery-codes'

const NO_CODES = new RawJson(EMPTY_OR_NULL)

export class MfaEnrollmentBehavior implements Behavior<typeof mfaEnrollments> {
  readonly #secrets: MfaSecrets

  constructor(secrets: MfaSecrets) {
    this.#secrets = secrets
  }

  async computeFields(
    context: ReadContext,
    rows: readonly ComputedInput[],
    view: unknown,
  ): Promise<Record<string, unknown>[]> {
    const records: Record<string, unknown>[] = []
    for (const row of rows) records.push(await this.#revealSecrets(context, row, view as MfaView | undefined))
    return records
  }

  async #revealSecrets({ db }: ReadContext, row: ComputedInput, view: MfaView | undefined) {
    const enrollment = row as unknown as EncryptedMfa
    if (view === 'recovery-codes') return { recoveryCodes: this.#secrets.decryptRecoveryCodes(enrollment) }
    if (view !== 'setup' || row.isVerified === 1) return { recoveryCodes: NO_CODES }
    const query = db
      .selectFrom('identities')
      .select('name')
      .where('id', '=', row.identityId as string)
    const { name } = await query.executeTakeFirstOrThrow()
    return {
      provisioningUrl: this.#secrets.getProvisioningUrl(enrollment, name),
      recoveryCodes: this.#secrets.decryptRecoveryCodes(enrollment),
    }
  }
}
