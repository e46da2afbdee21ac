// Decides which of several controllers rebuilds its rows, if they differ at one position.
import { listDifferentTables, type RowDigests } from '../sqlite/row-digest.ts'

/** The rows of a controller at one position. */
export interface NodeDigests {
  readonly node: string
  readonly digests: RowDigests
  /** Whether they follow from a snapshot and the log alone, because the process began with a rebuild. */
  readonly isRebuilt: boolean
}

export type Judgement =
  | { readonly verdict: 'same' }
  /** `unclear`: a rebuild did not help, on either side. */
  | {
      readonly verdict: 'own rows' | 'rows of others' | 'unclear'
      readonly tables: readonly string[]
      readonly others: readonly string[]
    }

/**
 * Judges one controller. Rows that were rebuilt are right, because everyone can come to them; otherwise those that more controllers have,
 * and of as many, those of the first name. Each controller comes to the same result.
 */
export function judgeDigests(own: NodeDigests, others: readonly NodeDigests[]): Judgement {
  const all = [own, ...others]
  const right = [...all].sort((one, other) => compareTrust(all, one, other))[0] as NodeDigests
  const reference = isSame(own, right) ? others.find((other) => !isSame(own, other)) : right
  if (!reference) return { verdict: 'same' }
  const different = others.filter((other) => !isSame(own, other))
  const facts = {
    tables: listDifferentTables(own.digests, reference.digests),
    others: different.map(({ node }) => node).sort(),
  }
  if (own.isRebuilt && different.some(({ isRebuilt }) => isRebuilt)) return { verdict: 'unclear', ...facts }
  return { verdict: isSame(own, right) ? 'rows of others' : 'own rows', ...facts }
}

/** The more trusted first. */
function compareTrust(all: readonly NodeDigests[], one: NodeDigests, other: NodeDigests): number {
  const countAlike = (node: NodeDigests) => all.filter((each) => isSame(each, node)).length
  const isBacked = (node: NodeDigests) => all.some((each) => each.isRebuilt && isSame(each, node))
  return (
    Number(isBacked(other)) - Number(isBacked(one)) ||
    countAlike(other) - countAlike(one) ||
    (one.node < other.node ? -1 : 1)
  )
}

function isSame(one: NodeDigests, other: NodeDigests): boolean {
  return listDifferentTables(one.digests, other.digests).length === 0
}
