// Finds the policy that comes closest to linking two records that no policy links.
import type { IndexedPolicy } from './policy-table.ts'
import { findLackingAttributes, matchesSelector, type RoleBearer } from './role-selector.ts'

/** Attributes that a record lacks for a selector; undefined if the selector names none, so that only an id can match. */
type MissingAttributes = readonly string[] | undefined

export interface Miss {
  readonly policy: IndexedPolicy
  readonly subjectLacks: MissingAttributes
  /** The candidate object that lacks the fewest attributes. */
  readonly object: RoleBearer
  readonly objectLacks: MissingAttributes
}

/** The number of changes that a match needs; adding an id is one change. */
function countMissing(lack: MissingAttributes): number {
  return lack === undefined ? 1 : lack.length
}

/** The number of attributes and ids that are missing. */
export function missCost({ subjectLacks, objectLacks }: Miss): number {
  return countMissing(subjectLacks) + countMissing(objectLacks)
}

/** Whether only one selector does not match, so that a change of one record is a remedy. */
export function isOneSided({ subjectLacks, objectLacks }: Miss): boolean {
  return countMissing(subjectLacks) === 0 || countMissing(objectLacks) === 0
}

/**
 * Returns the policy that comes closest to linking the subject with one of the objects; undefined if there is no policy or no
 * object. Ties are broken in this order: one-sided misses first, misses that need only attributes before those that need an
 * id, then by name.
 */
export function findNearestMiss(
  policies: Iterable<IndexedPolicy>,
  subject: RoleBearer,
  objects: readonly RoleBearer[],
): Miss | undefined {
  let nearest: Miss | undefined
  for (const policy of policies) {
    const miss = toMiss(policy, subject, objects)
    if (miss && (!nearest || isNearer(miss, nearest))) nearest = miss
  }
  return nearest
}

function toMiss(policy: IndexedPolicy, subject: RoleBearer, objects: readonly RoleBearer[]): Miss | undefined {
  let object: RoleBearer | undefined = objects.find((candidate) => matchesSelector(policy.objects, candidate))
  let objectLacks: MissingAttributes = object ? [] : undefined
  for (const candidate of object ? [] : objects) {
    const lacks = findLackingAttributes(policy.objects, candidate)
    if (!object || (lacks && (!objectLacks || lacks.length < objectLacks.length))) {
      object = candidate
      objectLacks = lacks
    }
  }
  return object && { policy, subjectLacks: findLackingAttributes(policy.subjects, subject), object, objectLacks }
}

function isNearer(a: Miss, b: Miss): boolean {
  return compareMisses(a, b) < 0
}

function compareMisses(a: Miss, b: Miss): number {
  const needsId = (miss: Miss) => Number(miss.subjectLacks === undefined) + Number(miss.objectLacks === undefined)
  const isOpenOnBoth = (miss: Miss) => Number(!isOneSided(miss))
  return (
    missCost(a) - missCost(b) ||
    isOpenOnBoth(a) - isOpenOnBoth(b) ||
    needsId(a) - needsId(b) ||
    (a.policy.name < b.policy.name ? -1 : 1)
  )
}
