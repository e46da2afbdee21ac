// Of the policies that do not link two records: the one that lacks least.
import type { IndexedPolicy } from './policy-table.ts'
import { type Attributed, lackingAttributes, matches } from './side.ts'

/** Attributes that a record lacks for a side; undefined where the side asks for none, so that only an id would do. */
export type Lack = readonly string[] | undefined

export interface Miss {
  readonly policy: IndexedPolicy
  readonly subjectLacks: Lack
  /** Of the possible objects the one that lacks least. */
  readonly object: Attributed
  readonly objectLacks: Lack
}

/** What a lack costs to close: an id is one change, too. */
function costOf(lack: Lack): number {
  return lack === undefined ? 1 : lack.length
}

/** How many attributes, or ids, a miss is about. */
export function costOfMiss({ subjectLacks, objectLacks }: Miss): number {
  return costOf(subjectLacks) + costOf(objectLacks)
}

/** Whether one side alone keeps the policy from linking: then a change of one record mends it. */
export function isOneSided({ subjectLacks, objectLacks }: Miss): boolean {
  return costOf(subjectLacks) === 0 || costOf(objectLacks) === 0
}

/**
 * The policy that comes closest to linking the subject with one of the objects; undefined where there is no policy, or no
 * object. Of equals, one of which only one side lacks something comes first, then one that attributes mend before one that
 * needs an id; then the order of names decides.
 */
export function nearestMiss(
  policies: Iterable<IndexedPolicy>,
  subject: Attributed,
  objects: readonly Attributed[],
): Miss | undefined {
  let nearest: Miss | undefined
  for (const policy of policies) {
    const found = missOf(policy, subject, objects)
    if (found && (!nearest || isNearer(found, nearest))) nearest = found
  }
  return nearest
}

function missOf(policy: IndexedPolicy, subject: Attributed, objects: readonly Attributed[]): Miss | undefined {
  let object: Attributed | undefined = objects.find((one) => matches(policy.objects, one))
  let objectLacks: Lack = object ? [] : undefined
  for (const one of object ? [] : objects) {
    const lacks = lackingAttributes(policy.objects, one)
    if (!object || (lacks && (!objectLacks || lacks.length < objectLacks.length))) {
      object = one
      objectLacks = lacks
    }
  }
  return object && { policy, subjectLacks: lackingAttributes(policy.subjects, subject), object, objectLacks }
}

function isNearer(a: Miss, b: Miss): boolean {
  return comparison(a, b) < 0
}

function comparison(a: Miss, b: Miss): number {
  const needsId = (miss: Miss) => Number(miss.subjectLacks === undefined) + Number(miss.objectLacks === undefined)
  const isOpenOnBoth = (miss: Miss) => Number(!isOneSided(miss))
  return (
    costOfMiss(a) - costOfMiss(b) ||
    isOpenOnBoth(a) - isOpenOnBoth(b) ||
    needsId(a) - needsId(b) ||
    (a.policy.name < b.policy.name ? -1 : 1)
  )
}
