// The links about who asks: the identity may sign in, and its auth policy can be met.
import { X509Certificate } from 'node:crypto'
import { listAuthenticatorIds } from '../../auth/credentials.ts'
import { isDisabled } from '../../auth/disabling.ts'
import { toIsoTime } from '../../clock.ts'
import { isWithinDates } from '../../pki/certificates.ts'
import { type Link, type Remedy, toSentenceList } from './chain.ts'
import type { AdviceQuestion } from './subject.ts'

// How long an enrollment that is proposed lasts.
const ENROLLMENT_MS = 24 * 60 * 60_000

export function identityLink({ context, identity }: AdviceQuestion): Link {
  const { name, disabledUntil } = identity
  if (!isDisabled(identity, context.clock.now())) {
    return { link: 'identity', outcome: 'passed', message: `${name} exists and is enabled` }
  }
  const until = disabledUntil === null ? '' : ` until ${toIsoTime(disabledUntil)}`
  const remedy: Remedy = { operation: 'enable', resource: 'identities', record: { id: identity.id, name } }
  return { link: 'identity', outcome: 'failed', message: `${name} is disabled${until}`, remedy }
}

/** A way of signing in that the identity has, or is about to get. */
interface Way {
  readonly method: 'cert' | 'updb'
  readonly words: string
  /** Why it is worth nothing, where that is so. */
  readonly flaw?: string
}

export async function authPolicyLink(question: AdviceQuestion): Promise<Link> {
  const { authPolicies, identity } = question
  const policy = authPolicies.get(identity.authPolicyId)
  const ways = [...(await presentWays(question)), ...(await comingWays(question))]
  const admitted = ways.filter(({ method, flaw }) => flaw === undefined && policy.primary[method].allowed)
  if (admitted.length === 0) return unmet(question, policy, ways)
  const words = toSentenceList(admitted.map((way) => way.words))
  if (policy.secondary.requireTotp) {
    const message = `auth policy ${policy.name} asks for one-time passwords beside ${words}, and ${identity.name} has set up none`
    return { link: 'auth-policy', outcome: 'failed', message }
  }
  return { link: 'auth-policy', outcome: 'passed', message: `auth policy ${policy.name} is met by ${words}` }
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

/** What outstanding enrollments will give. */
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
    } as const
    return expiresAt > clock.now() ? way : { ...way, flaw: `its enrollment expired at ${until}` }
  })
}

async function unmet(
  question: AdviceQuestion,
  policy: { readonly id: string; readonly name: string },
  ways: readonly Way[],
): Promise<Link> {
  const { identity } = question
  const link = { link: 'auth-policy', outcome: 'failed' } as const
  const [closed] = ways.filter(({ flaw }) => flaw === undefined)
  if (closed) {
    const noun = closed.method === 'cert' ? 'certificates' : 'passwords'
    const message = `auth policy ${policy.name} admits no ${noun}, and ${identity.name} has nothing else`
    return {
      ...link,
      message,
      remedy: {
        operation: 'update',
        resource: 'auth-policies',
        record: { id: policy.id, name: policy.name },
        values: { primary: { [closed.method]: { allowed: true } } },
      },
    }
  }
  const [flawed] = ways
  const message = flawed
    ? `${identity.name} cannot sign in: ${flawed.flaw}`
    : `${identity.name} has nothing to sign in with`
  const remedy = await newEnrollment(question)
  return { ...link, message, ...(remedy ? { remedy } : {}) }
}

/** What lets the identity enroll, if its auth policy admits what it gets by that. */
async function newEnrollment({ context, authPolicies, identity }: AdviceQuestion): Promise<Remedy | undefined> {
  const { db, clock } = context
  if (!authPolicies.get(identity.authPolicyId).primary.cert.allowed) return undefined
  const expiresAt = toIsoTime(clock.now() + ENROLLMENT_MS)
  const expired = await db
    .selectFrom('enrollments')
    .select('id')
    .where('identityId', '=', identity.id)
    .where('method', '=', 'ott')
    .executeTakeFirst()
  if (expired) {
    return { operation: 'refresh', resource: 'enrollments', record: { id: expired.id }, values: { expiresAt } }
  }
  // One that has a certificate already would have to lose it first.
  const { length } = await listAuthenticatorIds(db, identity.id, 'cert')
  if (length > 0) return undefined
  return {
    operation: 'create',
    resource: 'enrollments',
    values: { identityId: identity.id, method: 'ott', expiresAt },
    references: [{ id: identity.id, name: identity.name }],
  }
}
