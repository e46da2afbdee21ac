// How an identity or a router enrolls: the commands that write its token, and the one that uses the token.
import type { NamedRecord } from './chain.ts'
import { toPlainName } from './remedies.ts'
import type { AdviceQuestion } from './subject.ts'

/** Whether an identity has anything to sign in with. */
export async function hasEnrolled({ context: { db } }: AdviceQuestion, { id }: NamedRecord): Promise<boolean> {
  const identity = await db
    .selectFrom('identities')
    .leftJoin('authenticators', 'authenticators.identityId', 'identities.id')
    .select(['externalId', 'authenticators.id as authenticatorId'])
    .where('identities.id', '=', id)
    .executeTakeFirst()
  return identity !== undefined && (identity.authenticatorId !== null || identity.externalId !== null)
}

/** How an identity enrolls that never did, in one sentence without a full stop. */
export async function describeEnrolling({ context }: AdviceQuestion, identity: NamedRecord): Promise<string> {
  const { db, clock } = context
  const enrollment = await db
    .selectFrom('enrollments')
    .select(['id', 'method', 'expiresAt'])
    .where('identityId', '=', identity.id)
    .where('method', '=', 'ott')
    .executeTakeFirst()
  const word = toPlainName(identity)
  const tokenCommand =
    enrollment === undefined
      ? `controller enrollment create --identity ${word} --method ott --jwt-file ${word}.jwt`
      : enrollment.expiresAt > clock.now()
        ? `controller identity get ${word} -o jwt > ${word}.jwt`
        : `controller enrollment refresh ${enrollment.id} --jwt-file ${word}.jwt`
  return `${identity.name} has never enrolled: ${tokenCommand}, then on its machine: controller enroll ${word}.jwt`
}

/** How an edge router enrolls, in one sentence without a full stop. */
export async function describeRouterEnrolling({ context }: AdviceQuestion, router: NamedRecord): Promise<string> {
  const { db, clock } = context
  const enrollment = await db
    .selectFrom('enrollments')
    .select('expiresAt')
    .where('edgeRouterId', '=', router.id)
    .executeTakeFirst()
  const word = toPlainName(router)
  const tokenCommand =
    enrollment && enrollment.expiresAt > clock.now()
      ? `controller edge-router get ${word} -o jwt > ${word}.jwt`
      : `controller edge-router re-enroll ${word} --jwt-file ${word}.jwt`
  return `${tokenCommand}, then on its machine: ziti router enroll ${word}.yml --jwt ${word}.jwt (docs/routers.md)`
}
