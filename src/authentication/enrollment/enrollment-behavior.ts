// The rules of enrollments: an identity has one of a method outstanding, it ends in the future, and has its JWT.

import type { AnyRow } from '../../definitions/resources/define.ts'
import type { EnrollmentMethod, enrollments } from '../../definitions/resources/enrollments.ts'
import type { Instant } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import { newToken } from '../../foundation/ids.ts'
import type { Behavior, Draft } from '../../storage/behavior.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { Context, ReadContext, WriteContext } from '../../storage/transactions/context.ts'
import { assertUsernameFree } from '../credentials/usernames.ts'
import { requireNoRouter } from '../router-identities.ts'
import type { Enrollment, EnrollmentIssuer } from './enrollments.ts'

export class EnrollmentBehavior implements Behavior<typeof enrollments> {
  readonly #issuer: EnrollmentIssuer

  constructor(issuer: EnrollmentIssuer) {
    this.#issuer = issuer
  }

  /**
   * Of an enrollment that an administrator asks for.
   * @throws REFERENCED_ENTITY_NOT_FOUND with the member that does not fit, COULD_NOT_VALIDATE if the identity is a router's
   */
  async prepareCreate({ db, clock }: Context, { next }: Draft<typeof enrollments>): Promise<undefined> {
    assertInFuture({ clock }, next.expiresAt)
    const identity = await db.selectFrom('identities').select('id').where('id', '=', next.identityId).executeTakeFirst()
    if (!identity) throw unsuitableFieldError('identityId', 'does not exist', next.identityId)
    await requireNoRouter({ db }, identity.id)
    if (next.method === 'updb' && next.username === null)
      throw unsuitableFieldError('username', 'is required for the method updb')
    if (next.method !== 'ottca') return
    if (next.caId === null) throw unsuitableFieldError('caId', 'is required for the method ottca')
    const [authority] = await findAuthority(db, next.caId)
    if (!authority) throw unsuitableFieldError('caId', 'does not exist', next.caId)
  }

  /** The authority may be verified later: only then can the token be used. @throws ENROLLMENT_EXISTS, USERNAME_TAKEN */
  async check(tx: WriteContext, next: Enrollment, previous: Enrollment | undefined): Promise<void> {
    if (previous) return
    if (next.method !== 'updb') next.username = null
    if (next.method !== 'ottca') next.caId = null
    if (next.token === '') next.token = newToken()
    if (next.identityId === null) return
    const [outstanding] = await findOfMethod(tx.db, next.identityId, next.method)
    if (outstanding) {
      const reason = `is outstanding already: refresh or delete the enrollment ${outstanding.id}`
      throw errors.ENROLLMENT_EXISTS({ field: 'method', reason, value: next.method })
    }
    if (next.username !== null) await assertUsernameFree(tx, next.username, next.identityId)
  }

  async deriveFields(_context: ReadContext, rows: readonly AnyRow[]): Promise<Record<string, unknown>[]> {
    return Promise.all(
      rows.map(async (row) => ({
        jwt: await this.#issuer.signJwt(row as unknown as Enrollment),
      })),
    )
  }
}

const findOfMethod = prepareQuery((db, identityId: string, method: EnrollmentMethod) =>
  db.selectFrom('enrollments').select('id').where('identityId', '=', identityId).where('method', '=', method),
)

const findAuthority = prepareQuery((db, id: string) => db.selectFrom('cas').select('id').where('id', '=', id))

/** @throws REFERENCED_ENTITY_NOT_FOUND: clients know this code for a time that has passed */
export function assertInFuture({ clock }: Pick<ReadContext, 'clock'>, expiresAt: Instant): void {
  if (expiresAt <= clock.now())
    throw unsuitableFieldError('expiresAt', 'must be in the future', new Date(expiresAt).toISOString())
}

function unsuitableFieldError(field: string, reason: string, value?: unknown) {
  return errors.REFERENCED_ENTITY_NOT_FOUND({ field, reason, value })
}
