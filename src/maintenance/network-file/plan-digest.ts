// The digest of a plan: whether applying a file still does what was shown.
import { createHash } from 'node:crypto'
import type { PlanImpact } from './access-changes.ts'
import type { NetworkPlan } from './plan.ts'

/**
 * Returns a hash of what a plan shows: the network, the steps, the records that it deletes as they are, what that changes in others,
 * and the access that it changes. How many sessions would end is not in it, because users sign in and out all the time.
 * @param network what tells the network from all others
 */
export function computeDigest(network: string, { steps, cleared }: NetworkPlan, impact: PlanImpact): string {
  const hash = createHash('sha256')
  hash.update(network)
  for (const step of steps) {
    const { action, fileResource, label } = step
    const content = step.action === 'delete' ? step.before.updatedAt : step.members
    hash.update(JSON.stringify([action, fileResource.resource.plural, label, content]))
  }
  for (const { fileResource, label, members } of cleared)
    hash.update(JSON.stringify(['clear', fileResource.resource.plural, label, members]))
  const { gains, blockedGains, loses, blockedLosses, unreachable, gates, isComplete } = impact
  // Machines begin and cease to pass posture checks all the time.
  const effects = [toContent(gains, blockedGains), toContent(loses, blockedLosses), toContent(unreachable)]
  hash.update(JSON.stringify([effects, gates, isComplete]))
  return hash.digest('hex')
}

/** New records have other ids in every plan, so the order of pairs means nothing, nor which of many are named. */
function toContent(...effects: readonly PlanImpact['gains'][]): unknown {
  const pairs = effects.flatMap((effect) => effect.pairs)
  const count = effects.reduce((sum, { counts }) => sum + counts.pairs, 0)
  const toText = ({ identity, service, type }: (typeof pairs)[number]) => JSON.stringify([identity, service, type])
  return [count, pairs.length === count ? pairs.map(toText).sort() : []]
}
