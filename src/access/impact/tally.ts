// Counts the pairs of identities and services that changes concern, and holds a few of them as examples.

import type { PolicyType } from '../../policy/policy-index.ts'
import type { RecordChange } from '../../storage/transactions/changes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { AffectedIdentity } from './affected-identities.ts'

/** How many identities and services an effect is about, how many pairs of them, and a few of these. */
export interface Effect {
  readonly identities: number
  readonly services: number
  readonly pairs: number
  readonly examples: readonly Pair[]
}

interface Pair {
  readonly identity: Named
  readonly serviceId: string
  readonly type: PolicyType
}

interface Named {
  readonly id: string
  readonly name: string
}

/** An effect on permissions that posture does not let their identities use at the moment. */
export interface BlockedEffect extends Effect {
  readonly examples: readonly (Pair & {
    /** The posture checks that do not pass, of the policy that comes closest. */
    readonly blockedBy: readonly Named[]
  })[]
}

export class Tally {
  readonly #identities = new Set<string>()
  readonly #services = new Set<string>()
  readonly #examples: Pair[] = []
  readonly #checkIds: (readonly string[])[] = []
  readonly #maxExamples: number
  #pairs = 0

  constructor(maxExamples: number) {
    this.#maxExamples = maxExamples
  }

  /** @param findChecks the posture checks that block a pair */
  add(
    { id, name }: AffectedIdentity,
    type: PolicyType,
    serviceIds: readonly string[],
    findChecks: (serviceId: string) => readonly string[] = () => [],
  ): void {
    if (serviceIds.length > 0) this.#identities.add(id)
    this.#pairs += serviceIds.length
    for (const serviceId of serviceIds) {
      this.#services.add(serviceId)
      if (this.#examples.length === this.#maxExamples) continue
      this.#examples.push({ identity: { id, name }, serviceId, type })
      this.#checkIds.push(findChecks(serviceId))
    }
  }

  /** For each example: ids of the posture checks that block it. */
  get checkIds(): readonly (readonly string[])[] {
    return this.#checkIds
  }

  /** The counts so far. */
  toEffect(): Effect {
    return {
      identities: this.#identities.size,
      services: this.#services.size,
      pairs: this.#pairs,
      examples: this.#examples,
    }
  }
}

/** The effect with the names of the posture checks; those of checks that are new or have another name by the changes. */
export async function nameBlockingChecks(
  context: Context,
  changes: readonly RecordChange[],
  tally: Tally,
): Promise<BlockedEffect> {
  const effect = tally.toEffect()
  const ids = [...new Set(tally.checkIds.flat())]
  const rows =
    ids.length === 0
      ? []
      : await context.db
          .selectFrom('posture_checks')
          .select(['id', 'name'])
          .where(isOneOf(context.db, 'id', ids))
          .execute()
  const names = new Map(rows.map(({ id, name }) => [id, name]))
  for (const { resource, id, after } of changes) {
    if (resource === 'posture-checks' && after) names.set(id, after.name)
  }
  const named = (checkIds: readonly string[] = []) => checkIds.map((id) => ({ id, name: names.get(id) ?? id }))
  return {
    ...effect,
    examples: effect.examples.map((pair, at) => ({ ...pair, blockedBy: named(tally.checkIds[at]) })),
  }
}
