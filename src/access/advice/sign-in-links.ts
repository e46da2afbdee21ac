// The links about who asks: the identity may sign in, and its auth policy can be met.
import type { AuthPolicy } from '../../authentication/auth-policies.ts'
import { listAuthenticatorIds } from '../../authentication/credentials/credentials.ts'
import { isDisabled } from '../../authentication/disabling.ts'
import { authPolicies } from '../../definitions/resources/auth-policies.ts'
import { toIsoTime } from '../../foundation/clock.ts'
import { type AdviceLink, type Remedy, toSentenceList } from './chain.ts'
import { describeEnrolling } from './enrolling.ts'
import { toPlainName } from './remedies.ts'
import { findSecondFactorGap } from './second-factor-gap.ts'
import { findWays, isAdmitted, type Way } from './sign-in-ways.ts'
import { type AdviceQuestion, findFreeRecordName } from './subject.ts'

// How long an enrollment that is proposed lasts.
const ENROLLMENT_MS = 24 * 60 * 60_000

export function identityLink({ context, identity }: AdviceQuestion): AdviceLink {
  const { name, disabledUntil } = identity
  if (!isDisabled(identity, context.clock.now())) {
    return { link: 'identity', outcome: 'passed', message: `${name} exists and is enabled` }
  }
  const until = disabledUntil === null ? '' : ` until ${toIsoTime(disabledUntil)}`
  const remedy: Remedy = { operation: 'enable', resource: 'identities', record: { id: identity.id, name } }
  return { link: 'identity', outcome: 'failed', message: `${name} is disabled${until}`, remedy }
}

export async function authPolicyLink(question: AdviceQuestion): Promise<AdviceLink> {
  const { identity } = question
  const policy = question.authPolicies.get(identity.authPolicyId)
  const ways = await findWays(question)
  const admitted = ways.filter((way) => isAdmitted(way, policy))
  if (admitted.length === 0) return explainNoWay(question, policy, ways)
  const words = toSentenceList(admitted.map((way) => way.words))
  const gap = findSecondFactorGap(question, policy)
  if (!gap) {
    const message = `auth policy ${policy.name} is met by ${words}`
    const isEnrolled = admitted.some(({ isToCome }) => !isToCome)
    if (isEnrolled) return { link: 'auth-policy', outcome: 'passed', message }
    const warning = `${identity.name} has not enrolled yet, and reaches nothing until it has`
    const isByCertificate = admitted.some(({ method }) => method === 'cert')
    const hint = isByCertificate ? { hint: await describeEnrolling(question, identity) } : {}
    return { link: 'auth-policy', outcome: 'passed', message, warning, ...hint }
  }
  const message = `besides ${words}, auth policy ${policy.name} requires ${gap.words}`
  const withoutSigner = { secondary: { ...policy.secondary, requireExtJwtSigner: null } }
  const repair = gap.isOwnersTask ? {} : await findPolicyRepair(question, ways, { ...policy, ...withoutSigner })
  return { link: 'auth-policy', outcome: 'failed', message, ...repair }
}

const METHOD_NOUNS = { cert: 'certificates', updb: 'passwords', extJwt: 'external tokens' } as const

async function explainNoWay(question: AdviceQuestion, policy: AuthPolicy, ways: readonly Way[]): Promise<AdviceLink> {
  const { identity } = question
  const link = { link: 'auth-policy', outcome: 'failed' } as const
  const closed = ways.find(({ flaw }) => flaw === undefined)
  if (closed) {
    const message = `auth policy ${policy.name} admits no ${METHOD_NOUNS[closed.method]}, and ${identity.name} has nothing else`
    const { method } = closed
    const primary = { ...policy.primary, [method]: { ...policy.primary[method], allowed: true } }
    return { ...link, message, ...(await findPolicyRepair(question, ways, { ...policy, primary })) }
  }
  const [flawed] = ways
  const message = flawed
    ? `${identity.name} cannot sign in: ${flawed.flaw}`
    : `${identity.name} has nothing to sign in with`
  const remedy = await newEnrollment(question)
  return { ...link, message, ...(remedy ? { remedy } : {}) }
}

/**
 * To change the auth policy of the identity would admit others too, so the remedy is another policy for this identity. If none
 * of the others admits it, a new one comes first.
 */
async function findPolicyRepair(
  question: AdviceQuestion,
  ways: readonly Way[],
  wanted: AuthPolicy,
): Promise<Pick<AdviceLink, 'remedy' | 'next'>> {
  const remedy = assignOtherPolicy(question, ways)
  return remedy ? { remedy } : { next: [await copyPolicy(question, wanted)] }
}

async function copyPolicy({ context, identity }: AdviceQuestion, policy: AuthPolicy): Promise<Remedy> {
  const name = await findFreeRecordName(context, authPolicies, `${toPlainName(policy)}-${toPlainName(identity)}`)
  const { requireTotp, requireExtJwtSigner } = policy.secondary
  const secondary = { requireTotp, ...(requireExtJwtSigner === null ? {} : { requireExtJwtSigner }) }
  return { operation: 'create', resource: authPolicies.plural, values: { name, primary: policy.primary, secondary } }
}

/**
 * Gives this identity an auth policy that it can meet; one with a second factor rather than one without. Undefined if there is
 * none.
 */
function assignOtherPolicy(question: AdviceQuestion, ways: readonly Way[]): Remedy | undefined {
  const { identity } = question
  const candidates = [...question.authPolicies.all()].filter(
    (policy) =>
      policy.id !== identity.authPolicyId &&
      ways.some((way) => isAdmitted(way, policy)) &&
      findSecondFactorGap(question, policy) === undefined,
  )
  const [best] = candidates.sort((a, b) => countSecondFactors(b) - countSecondFactors(a) || (a.name < b.name ? -1 : 1))
  if (!best) return undefined
  return {
    operation: 'update',
    resource: 'identities',
    record: { id: identity.id, name: identity.name },
    values: { authPolicyId: best.id },
    references: [{ id: best.id, name: best.name }],
  }
}

function countSecondFactors({ secondary }: AuthPolicy): number {
  return Number(secondary.requireTotp) + Number(secondary.requireExtJwtSigner !== null)
}

/** The change that lets the identity enroll, if its auth policy admits what it gets by that. */
async function newEnrollment({
  context,
  authPolicies: policies,
  identity,
}: AdviceQuestion): Promise<Remedy | undefined> {
  const { db, clock } = context
  if (!policies.get(identity.authPolicyId).primary.cert.allowed) return undefined
  const expiresAt = toIsoTime(clock.now() + ENROLLMENT_MS)
  const references = [{ id: identity.id, name: identity.name }]
  const enrollment = await db
    .selectFrom('enrollments')
    .select('id')
    .where('identityId', '=', identity.id)
    .where('method', '=', 'ott')
    .executeTakeFirst()
  if (enrollment) {
    return {
      operation: 'refresh',
      resource: 'enrollments',
      record: { id: enrollment.id },
      values: { expiresAt },
      references,
    }
  }
  // One that has a certificate already would have to lose it first.
  const { length } = await listAuthenticatorIds(db, identity.id, 'cert')
  if (length > 0) return undefined
  return {
    operation: 'create',
    resource: 'enrollments',
    values: { identityId: identity.id, method: 'ott', expiresAt },
    references,
  }
}
