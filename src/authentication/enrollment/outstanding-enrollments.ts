// Outstanding enrollments: finding one by its token, and consuming it.

import { type EnrollmentMethod, enrollments } from '../../definitions/resources/enrollments.ts'
import { errors } from '../../foundation/errors.ts'
import type { EntityStore } from '../../storage/entities/entities.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'

/** An enrollment of an identity or of a router. */
export interface OutstandingEnrollment {
  readonly identityId: string | null
  readonly edgeRouterId: string | null
  readonly transitRouterId: string | null
  readonly id: string
  readonly token: string
  readonly method: EnrollmentMethod
  readonly expiresAt: number
  readonly username: string | null
  readonly caId: string | null
  readonly isBootstrap: number
}

export const findOutstanding = prepareQuery((db, token: string) =>
  db
    .selectFrom('enrollments')
    .select(['id', 'token', 'identityId', 'edgeRouterId', 'transitRouterId'])
    .select(['method', 'expiresAt', 'username', 'caId', 'isBootstrap'])
    .where('token', '=', token),
)

const readToken = prepareQuery((db, id: string) => db.selectFrom('enrollments').select('token').where('id', '=', id))

/** Returns the identity that enrolls. @throws INVALID_ENROLLMENT_TOKEN if the enrollment is that of a router */
export function requireIdentity({ identityId }: OutstandingEnrollment): string {
  if (identityId === null) throw errors.INVALID_ENROLLMENT_TOKEN()
  return identityId
}

/**
 * Takes the enrollment away. Of two clients with the same token only the first one gets here, and none whose token was
 * replaced while it was at work.
 */
export async function consumeEnrollment(
  entities: EntityStore,
  tx: WriteContext,
  { id, token }: OutstandingEnrollment,
): Promise<void> {
  const [row] = await readToken(tx.db, id)
  if (row?.token !== token) throw errors.INVALID_ENROLLMENT_TOKEN()
  await entities.removeInTransaction(tx, enrollments, id)
}
