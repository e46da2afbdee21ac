// The service policies that demand fewer posture checks after changes than before them.
import type { PolicyReader } from '../../policy/policy-index.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import { matchesSelector } from '../../policy/role-selector.ts'
import type { RecordChange } from '../../storage/transactions/changes.ts'
import type { Access } from '../access.ts'
import type { AffectedIdentity } from './affected-identities.ts'

/** A service policy that would no longer demand a posture check, whether the machines of its identities pass it now or not. */
export interface OpenedGate {
  readonly policy: { readonly id: string; readonly name: string }
  /** How many identities the policy matches. */
  readonly identities: number
  /** How many posture checks it still demands. */
  readonly remainingChecks: number
}

/** The service policies that demand a posture check before the changes, and not after them. */
export function findOpenedGates(
  access: Access,
  changes: readonly RecordChange[],
  subjects: readonly AffectedIdentity[],
): OpenedGate[] {
  const demanding = changes.flatMap((change) => findDemandingPolicies(access.index, change))
  const policies = [...new Map(demanding.map((policy) => [policy.id, policy])).values()]
  if (policies.length === 0) return []
  const demandsBefore = policies.map((policy) => access.index.listRequiredPostureChecks(policy))
  const demandsAfter = access.withHypothetical(changes, (index) =>
    policies.map(({ id }) => {
      const policy = index.findServicePolicy(id)
      return policy && index.listRequiredPostureChecks(policy)
    }),
  )
  return policies.flatMap((policy, at) => {
    const { id, name } = policy
    const remainingIds = demandsAfter[at]?.map((check) => check.id)
    // A policy that is deleted grants nothing.
    if (!remainingIds || demandsBefore[at]?.every((check) => remainingIds.includes(check.id))) return []
    const identities = subjects.filter(({ before }) => before && matchesSelector(policy.subjects, before)).length
    return [{ policy: { id, name }, identities, remainingChecks: remainingIds.length }]
  })
}

function findDemandingPolicies(index: PolicyReader, { resource, id }: RecordChange): IndexedPolicy[] {
  if (resource === 'posture-checks') return index.findServicePoliciesOfPostureCheck(id)
  const policy = resource === 'service-policies' ? index.findServicePolicy(id) : undefined
  return policy ? [policy] : []
}
