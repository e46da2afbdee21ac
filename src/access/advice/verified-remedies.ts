// Verifies proposed changes before they are shown: by the evaluator, which decides afterwards, and with what else they open.
//
// Remedies add to sets, so that one does not undo another.

import { getResource } from '../../definitions/resources/index.ts'
import type { PolicyReader } from '../../policy/policy-index.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import { find } from '../../storage/entities/entities.ts'
import { type RecordChange, toRecordChange } from '../../storage/transactions/changes.ts'
import { computeImpact } from '../impact/compute-impact.ts'
import type { AdviceLink, OpenedAccess, Remedy } from './chain.ts'
import type { AdviceQuestion } from './subject.ts'

/** Whether a link passes, judged by the index and by the identity as they would be after a change. */
export type LinkCheck = (index: PolicyReader, identity: RoleBearer) => boolean

interface VerifiedRemedy extends Remedy {
  readonly alsoOpens: OpenedAccess
}

/**
 * Returns those of the changes that repair the link, the one that opens the least first. A change that opens something to other
 * identities is left out if another one does not.
 */
export async function verifyRemedies(
  question: AdviceQuestion,
  candidates: readonly (Remedy | undefined)[],
  isRepaired: LinkCheck,
): Promise<Pick<AdviceLink, 'remedy' | 'alternatives'>> {
  const verified: VerifiedRemedy[] = []
  for (const candidate of candidates) {
    const alsoOpens = candidate && (await judgeRemedy(question, candidate, isRepaired))
    if (candidate && alsoOpens) verified.push({ ...candidate, alsoOpens })
  }
  const isForIdentity = ({ alsoOpens }: VerifiedRemedy) => alsoOpens.otherIdentities === 0
  const safe = verified.some(isForIdentity) ? verified.filter(isForIdentity) : verified
  const [remedy, ...alternatives] = safe.sort((a, b) => countOpened(a) - countOpened(b))
  return { ...(remedy ? { remedy } : {}), ...(alternatives.length > 0 ? { alternatives } : {}) }
}

function countOpened({ alsoOpens }: VerifiedRemedy): number {
  return alsoOpens.otherIdentities + alsoOpens.otherServices
}

/** The access that a change opens besides this service to this identity; undefined if it does not repair the link. */
async function judgeRemedy(
  question: AdviceQuestion,
  remedy: Remedy,
  isRepaired: LinkCheck,
): Promise<OpenedAccess | undefined> {
  const { access, store, context, service, type } = question
  const change = await findRecordChange(question, remedy)
  if (!change) return undefined
  const identity = toChangedIdentity(question, change)
  const isAllowed = () => access.decide({ identity, serviceId: service.id, type }).isAllowed
  const after = access.withHypothetical([change], (index) =>
    isRepaired(index, identity) ? { isAllowed: isAllowed() } : undefined,
  )
  if (!after) return undefined
  const { gains, isComplete } = await computeImpact({ access, store }, context, [change])
  const wasAllowed = access.decide({ identity: question.identity, serviceId: service.id, type }).isAllowed
  const ownPairs = after.isAllowed && !wasAllowed ? 1 : 0
  const otherIdentities = Math.max(0, gains.identities - ownPairs)
  const hasThisService = ownPairs > 0 || otherIdentities > 0
  return { otherIdentities, otherServices: Math.max(0, gains.services - Number(hasThisService)), isComplete }
}

/** The change of the record as the index reads it; undefined if the record does not exist. */
async function findRecordChange(
  { context }: AdviceQuestion,
  { resource, record, values = {}, adds = {} }: Remedy,
): Promise<RecordChange | undefined> {
  if (!record) {
    const id = 'proposed'
    return toRecordChange(resource, id, undefined, { id, postureCheckRoles: [], ...values })
  }
  const before = (await find(context, getResource(resource), record.id)) as Record<string, unknown> | undefined
  if (!before) return undefined
  const sets = Object.entries(adds).map(([name, entries]) => [name, [...(before[name] as string[]), ...entries]])
  const after = { ...before, ...values, ...Object.fromEntries(sets) }
  return toRecordChange(resource, record.id, before, after)
}

/** Attributes of identities are not part of the index. */
function toChangedIdentity({ identity }: AdviceQuestion, { resource, id, after }: RecordChange): RoleBearer {
  const isSame = resource === 'identities' && id === identity.id
  return isSame ? { id, attributes: (after as { roleAttributes?: string[] }).roleAttributes ?? [] } : identity
}
