// The ways of signing in that an identity has, or is about to get.
import { X509Certificate } from 'node:crypto'
import type { AuthPolicy } from '../../authentication/auth-policies.ts'
import { isSignerAllowed } from '../../authentication/auth-policies.ts'
import { toIsoTime } from '../../foundation/clock.ts'
import { isWithinDates } from '../../pki/certificates.ts'
import type { AdviceQuestion } from './subject.ts'

/** A way of signing in. */
export interface Way {
  readonly method: 'cert' | 'updb' | 'extJwt'
  readonly words: string
  /** The signer of the token, if it is one. */
  readonly signerId?: string
  /** Whether the identity must enroll before it has it. */
  readonly isToCome?: boolean
  /** The reason why it cannot be used; undefined if it can. */
  readonly flaw?: string
}

/** Whether an auth policy admits a way that has no flaw. */
export function isAdmitted({ method, signerId, flaw }: Way, policy: AuthPolicy): boolean {
  if (flaw !== undefined) return false
  return signerId === undefined ? policy.primary[method].allowed : isSignerAllowed(policy, signerId)
}

/** Every way: by its authenticators, by its outstanding enrollments, and by its external id. */
export async function findWays(question: AdviceQuestion): Promise<Way[]> {
  return [...(await presentWays(question)), ...(await comingWays(question)), ...listTokenWays(question)]
}

async function presentWays({ context, authPolicies, identity }: AdviceQuestion): Promise<Way[]> {
  const { db, clock } = context
  const { cert } = authPolicies.get(identity.authPolicyId).primary
  const rows = await db
    .selectFrom('authenticators')
    .select(['method', 'certPem'])
    .where('identityId', '=', identity.id)
    .orderBy('id')
    .execute()
  return rows.map(({ method, certPem }) => {
    if (method === 'updb') return { method, words: 'a password' }
    const isInTime = cert.allowExpiredCerts || !certPem || isWithinDates(new X509Certificate(certPem), clock.now())
    return { method, words: 'a certificate', ...(isInTime ? {} : { flaw: 'its certificate is outside its dates' }) }
  })
}

/** The ways that outstanding enrollments will give. */
async function comingWays({ context, identity }: AdviceQuestion): Promise<Way[]> {
  const { db, clock } = context
  const rows = await db
    .selectFrom('enrollments')
    .select(['id', 'method', 'expiresAt'])
    .where('identityId', '=', identity.id)
    .orderBy('id')
    .execute()
  return rows.map(({ method, expiresAt }) => {
    const until = toIsoTime(expiresAt)
    const gives = method === 'updb' ? 'password' : 'certificate'
    const way = {
      method: method === 'updb' ? 'updb' : 'cert',
      words: `the ${gives} it can enroll for until ${until}`,
      isToCome: true,
    } as const
    return expiresAt > clock.now() ? way : { ...way, flaw: `its enrollment expired at ${until}` }
  })
}

/**
 * Tokens that name the identity by its external id, which an administrator set for that purpose. Every identity has an id, so
 * a signer whose tokens name ids tells nothing about this one.
 */
function listTokenWays({ signers, identity }: AdviceQuestion): Way[] {
  if (identity.externalId === null) return []
  const externalIdSigners = [...signers.all()].filter(({ useExternalId }) => useExternalId)
  return externalIdSigners.map(({ id, name, enabled }) => {
    const way = { method: 'extJwt', signerId: id, words: `a token of ${name}` } as const
    return enabled ? way : { ...way, flaw: `its signer ${name} is disabled` }
  })
}
