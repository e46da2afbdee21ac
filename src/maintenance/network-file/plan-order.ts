// Orders the changes of a plan so that each finds what it refers to, and no two records hold one unique value at a time.
import type { DeleteStep, PlanStep } from './plan-step.ts'
import { listClaims, listUniqueValues, makeClaimError } from './unique-values.ts'

/**
 * Records are created and changed after those that they refer to, and deleted before them, at the end. A record whose unique
 * value another one takes over is deleted or changed first, and so is one without a name, which nothing refers to.
 * @param changes in the order of their references
 * @param deletions in that order, too
 * @throws COULD_NOT_VALIDATE if records exchange unique values, by the place of one of them
 */
export function orderSteps(changes: readonly PlanStep[], deletions: readonly DeleteStep[]): PlanStep[] {
  const claims = new Set(
    changes.flatMap((step) => (step.action === 'delete' ? [] : listClaims(step).map(({ key }) => key))),
  )
  const isInTheWay = ({ fileResource: { resource }, before }: DeleteStep) =>
    !('name' in resource.fields) || listUniqueValues(resource, before).some(({ key }) => claims.has(key))
  const lastFirst = deletions.toReversed()
  return [...lastFirst.filter(isInTheWay), ...sortByReleases(changes), ...lastFirst.filter((step) => !isInTheWay(step))]
}

/**
 * Each change after that by which another record gives up the value which it claims. Both are of one resource, so the order of
 * their references stays.
 */
function sortByReleases(changes: readonly PlanStep[]): readonly PlanStep[] {
  const releases = mapReleases(changes)
  if (releases.size === 0) return changes
  const sorted: PlanStep[] = []
  const sortedSteps = new Set<PlanStep>()
  /** By the change that has to come first. */
  const delayed = new Map<PlanStep, PlanStep[]>()
  const findBlocking = (step: PlanStep) => {
    if (step.action === 'delete') return undefined
    const claim = listClaims(step).find(({ key }) => {
      const release = releases.get(key)
      return release !== undefined && release !== step && !sortedSteps.has(release)
    })
    return claim && { claim, release: releases.get(claim.key) as PlanStep }
  }
  for (const change of changes) {
    const ready = [change]
    for (let step = ready.pop(); step; step = ready.pop()) {
      const blocking = findBlocking(step)
      if (blocking) {
        delayed.set(blocking.release, [...(delayed.get(blocking.release) ?? []), step])
        continue
      }
      sorted.push(step)
      sortedSteps.add(step)
      ready.push(...(delayed.get(step) ?? []))
      delayed.delete(step)
    }
  }
  const [exchange] = [...delayed.values()].flat().flatMap((step) => findBlocking(step) ?? [])
  if (!exchange) return sorted
  const reason = `is now that of ${exchange.release.label}, which takes that of another record: free one of them first, in a file of its own`
  throw makeClaimError(exchange.claim, reason)
}

/** By unique value: the change after which its record does not have it. */
function mapReleases(changes: readonly PlanStep[]): ReadonlyMap<string, PlanStep> {
  const releases = new Map<string, PlanStep>()
  for (const step of changes) {
    if (step.action !== 'change') continue
    const { resource } = step.fileResource
    const keptKeys = new Set(listUniqueValues(resource, step.after).map(({ key }) => key))
    for (const { key } of listUniqueValues(resource, step.before)) if (!keptKeys.has(key)) releases.set(key, step)
  }
  return releases
}
