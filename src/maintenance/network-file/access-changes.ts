// Finds who would gain or lose which access by a plan: by the policy index as it would be after all its changes.
import { computeImpact, type Impact, type ImpactParts } from '../../access/impact/compute-impact.ts'
import { edgeRouterPolicies } from '../../definitions/resources/edge-router-policies.ts'
import { edgeRouters } from '../../definitions/resources/edge-routers.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { services } from '../../definitions/resources/services.ts'
import { toTunnelerRecords } from '../../network/routers/router-provisioner.ts'
import type { PolicyType } from '../../policy/policy-index.ts'
import { find, newEntity } from '../../storage/entities/entities.ts'
import { type RecordChange, toRecordChange } from '../../storage/transactions/changes.ts'
import type { Context, ReadContext } from '../../storage/transactions/context.ts'
import { KnownNames } from './known-names.ts'
import type { PlannedValues, PlanStep } from './plan-step.ts'

/** A right to dial or host. */
interface NamedRight {
  readonly identity: string
  readonly service: string
  readonly type: PolicyType
  /** The posture checks that do not pass, if the policies grant it and posture blocks it at the moment. */
  readonly blockedBy?: readonly string[]
}

/** How many rights, and the first of them by name. */
interface NamedEffect {
  readonly counts: { readonly identities: number; readonly services: number; readonly pairs: number }
  readonly pairs: readonly NamedRight[]
}

export interface PlanImpact extends Pick<Impact, 'sessions' | 'isComplete'> {
  readonly gains: NamedEffect
  readonly loses: NamedEffect
  readonly blockedGains: NamedEffect
  readonly blockedLosses: NamedEffect
  readonly unreachable: NamedEffect
  /** Policies that would demand less of machines. */
  readonly gates: readonly { readonly name: string; readonly identities: number; readonly remainingChecks: number }[]
}

/** How many rights of an effect are named. */
const MAX_NAMED_RIGHTS = 1_000

/** Compares access before and after a plan, with names. */
export async function computePlanImpact(
  parts: ImpactParts,
  context: Context,
  steps: readonly PlanStep[],
): Promise<PlanImpact> {
  const changes = await listRecordChanges(context, steps)
  const impact = await computeImpact(parts, context, changes, MAX_NAMED_RIGHTS)
  const { gains, loses, blockedGains, blockedLosses, unreachable, gates, ...others } = impact
  const names = new KnownNames(context)
  for (const { fileResource, label, id } of steps) {
    if (fileResource.resource.plural === services.plural) names.add(services, label, id)
  }
  const named = async ({ examples, ...counts }: Impact['gains'] | Impact['blockedGains']): Promise<NamedEffect> => {
    await names.loadIds(
      services.plural,
      examples.map(({ serviceId }) => serviceId),
    )
    const pairs = examples.map(({ identity, serviceId, type, ...more }) => {
      const right = { identity: identity.name, service: names.findName(serviceId) ?? serviceId, type }
      return 'blockedBy' in more ? { ...right, blockedBy: more.blockedBy.map(({ name }) => name) } : right
    })
    return { counts, pairs }
  }
  return {
    ...others,
    gains: await named(gains),
    loses: await named(loses),
    blockedGains: await named(blockedGains),
    blockedLosses: await named(blockedLosses),
    unreachable: await named(unreachable),
    gates: gates.map(({ policy, ...gate }) => ({ name: policy.name, ...gate })),
  }
}

/** Every record that the steps change, once, with what the controller creates and deletes along with edge routers. */
async function listRecordChanges(context: ReadContext, steps: readonly PlanStep[]): Promise<RecordChange[]> {
  const changes: RecordChange[] = []
  const changedIdentities = new Set<string>()
  for (const step of steps) {
    const { fileResource, id } = step
    const resource = fileResource.resource.plural
    if (resource === identities.plural) changedIdentities.add(id)
    changes.push(toRecordChange(resource, id, getBefore(step), step.action === 'delete' ? undefined : step.after))
  }
  for (const step of steps) {
    if (step.fileResource.resource.plural !== edgeRouters.plural) continue
    for (const change of await listTunnelerChanges(context, step)) {
      if (change.resource !== identities.plural || !changedIdentities.has(change.id)) changes.push(change)
    }
  }
  return changes
}

/** The record before the plan; an identity that comes with an edge router of the plan does not exist yet. */
function getBefore(step: PlanStep): PlannedValues | undefined {
  if (step.action === 'create' || (step.action === 'change' && step.isCreatedByPlan)) return undefined
  return step.before
}

/** The identity and the policy that come or go with the tunneler of an edge router. */
async function listTunnelerChanges(context: ReadContext, step: PlanStep): Promise<RecordChange[]> {
  const hadTunneler = step.action !== 'create' && step.before.isTunnelerEnabled === true
  const hasTunneler = step.action !== 'delete' && step.after.isTunnelerEnabled === true
  if (hadTunneler === hasTunneler) return []
  const { id, label: name } = step
  if (hasTunneler) {
    const { identity, policy } = toTunnelerRecords({ id, name })
    return [
      toRecordChange(identities.plural, id, undefined, newEntity(context, identities, identity)),
      toRecordChange(edgeRouterPolicies.plural, id, undefined, newEntity(context, edgeRouterPolicies, policy as never)),
    ]
  }
  const identity = await find(context, identities, id)
  const policy = await find(context, edgeRouterPolicies, id)
  return [
    ...(identity ? [toRecordChange(identities.plural, id, identity, undefined)] : []),
    ...(policy ? [toRecordChange(edgeRouterPolicies.plural, id, policy, undefined)] : []),
  ]
}
