// Of the policies that do not link two records: the one that lacks least.
import type { IndexedPolicy } from './policy-table.ts'
import { findLackingAttributes, matchesSelector, type RoleBearer } from './role-selector.ts'

/** Attributes that a record lacks for a side; undefined where the side asks for none, so that only an id would do. */
export type MissingAttributes = readonly string[] | undefined

export interface Miss {
  readonly policy: IndexedPolicy
  readonly subjectLacks: MissingAttributes
  /** Of the possible objects the one that lacks least. */
  readonly object: RoleBearer
  readonly objectLacks: MissingAttributes
}

/** What a lack costs to close: an id is one change, too. */
function countMissing(lack: MissingAttributes): number {
  return lack === undefined ? 1 : lack.length
}

/** How many attributes, or ids, a miss is about. */
export function missCost({ subjectLacks, objectLacks }: Miss): number {
  return countMissing(subjectLacks) + countMissing(objectLacks)
}

/** Whether one side alone keeps the policy from linking: then a change of one record mends it. */
export function isOneSided({ subjectLacks, objectLacks }: Miss): boolean {
  return countMissing(subjectLacks) === 0 || countMissing(objectLacks) === 0
}

/**
 * The policy that comes closest to linking the subject with one of the objects; undefined where there is no policy, or no
 * object. Of equals, one of which only one side lacks something comes first, then one that attributes mend before one that
 * needs an id; then the order of names decides.
 */
export function findNearestMiss(
  policies: Iterable<IndexedPolicy>,
  subject: RoleBearer,
  objects: readonly RoleBearer[],
): Miss | undefined {
  let nearest: Miss | undefined
  for (const policy of policies) {
    const found = toMiss(policy, subject, objects)
    if (found && (!nearest || isNearer(found, nearest))) nearest = found
  }
  return nearest
}

function toMiss(policy: IndexedPolicy, subject: RoleBearer, objects: readonly RoleBearer[]): Miss | undefined {
  let object: RoleBearer | undefined = objects.find((one) => matchesSelector(policy.objects, one))
  let objectLacks: MissingAttributes = object ? [] : undefined
  for (const one of object ? [] : objects) {
    const lacks = findLackingAttributes(policy.objects, one)
    if (!object || (lacks && (!objectLacks || lacks.length < objectLacks.length))) {
      object = one
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
