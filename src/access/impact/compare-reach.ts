// Compares what identities reach before and after changes that are not made.
import type { Clock } from '../../foundation/clock.ts'
import type { Bitset } from '../../policy/bitset.ts'
import type { PolicyReader, PolicyType } from '../../policy/policy-index.ts'
import type { RecordChange } from '../../storage/transactions/changes.ts'
import type { Access } from '../access.ts'
import type { EvaluatedPolicy } from '../decision.ts'
import type { AffectedIdentity } from './affected-identities.ts'
import {
  computeReach,
  findCutOff,
  NO_REACH,
  NO_SLOTS,
  type Reach,
  type ServicePaths,
  SharedGrants,
  type SlotsByType,
  TYPES,
} from './reach.ts'
import type { Tally } from './tally.ts'

/** The differences, counted. */
export interface Tallies {
  readonly loses: Tally
  readonly gains: Tally
  readonly blockedLosses: Tally
  readonly blockedGains: Tally
  readonly unreachable: Tally
}

/** A reach after the changes, and the services that it gains by them: a new one is in the index only while they are tried. */
interface ReachAfter extends Reach {
  readonly gains: ReadonlyMap<PolicyType, readonly string[]>
}

/** Compares the reach of some identities. Returns the time that this took besides trying the changes, in milliseconds. */
export function compareReach(
  access: Access,
  changes: readonly RecordChange[],
  subjects: readonly AffectedIdentity[],
  paths: readonly ServicePaths[],
  tallies: Tallies,
  clock: Clock,
): number {
  const stopwatch = new Stopwatch(clock)
  const grantsBefore = new SharedGrants()
  const before = stopwatch.run(() =>
    subjects.map((subject) => (subject.before ? computeReach(access, subject.before, grantsBefore) : NO_REACH)),
  )
  const grantsAfter = new SharedGrants()
  const after = access.withHypothetical(changes, (index) =>
    stopwatch.run(() =>
      subjects.map((subject, at) =>
        computeReachAfter({ access, index, grants: grantsAfter }, subject, before[at] as Reach, tallies.blockedGains),
      ),
    ),
  )
  stopwatch.run(() => {
    for (const [at, subject] of subjects.entries())
      addDifferences(access, subject, before[at] as Reach, after[at], paths, tallies)
  })
  return stopwatch.elapsedMs
}

/** Adds up the time of synchronous work. */
class Stopwatch {
  readonly #clock: Clock
  #elapsedMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get elapsedMs(): number {
    return this.#elapsedMs
  }

  run<T>(work: () => T): T {
    const startedAt = this.#clock.monotonic()
    const result = work()
    this.#elapsedMs += this.#clock.monotonic() - startedAt
    return result
  }
}

/** Undefined for an identity that would be gone. */
function computeReachAfter(
  { access, index, grants }: { readonly access: Access; readonly index: PolicyReader; readonly grants: SharedGrants },
  subject: AffectedIdentity,
  before: Reach,
  blockedGains: Tally,
): ReachAfter | undefined {
  if (!subject.after) return undefined
  const after = computeReach(access, subject.after, grants)
  addBlocked(access, blockedGains, subject, after, before.grants)
  const gains = TYPES.map((type) => {
    const slots = (after.rights.get(type) as Bitset).without(before.rights.get(type) as Bitset)
    return [type, index.listServicesInSlots(slots)] as const
  })
  return { ...after, gains: new Map(gains) }
}

function addDifferences(
  access: Access,
  subject: AffectedIdentity,
  before: Reach,
  after: ReachAfter | undefined,
  paths: readonly ServicePaths[],
  tallies: Tallies,
): void {
  addBlocked(access, tallies.blockedLosses, subject, before, after?.grants ?? NO_SLOTS)
  for (const type of TYPES) {
    const rightsBefore = before.rights.get(type) as Bitset
    const rightsAfter = after?.rights.get(type)
    const lostServices = rightsAfter ? rightsBefore.without(rightsAfter) : rightsBefore
    tallies.loses.add(subject, type, access.index.listServicesInSlots(lostServices))
    if (!after) continue
    tallies.gains.add(subject, type, after.gains.get(type) ?? [])
    const cutOff = findCutOff(rightsBefore.without(lostServices), before.routers, after.routers, paths)
    tallies.unreachable.add(subject, type, access.index.listServicesInSlots(cutOff))
  }
}

/** Adds the permissions that policies grant on one side of the changes alone, and that posture blocks there. */
function addBlocked(
  access: Access,
  tally: Tally,
  subject: AffectedIdentity,
  { rights, grants, blocked }: Reach,
  otherGrants: SlotsByType,
): void {
  if (blocked.length === 0) return
  for (const type of TYPES) {
    const slots = (grants.get(type) as Bitset).without(otherGrants.get(type) as Bitset)
    const serviceIds = access.index.listServicesInSlots(slots.without(rights.get(type) as Bitset))
    tally.add(subject, type, serviceIds, (serviceId) => findBlockingChecks(access, blocked, type, serviceId))
  }
}

/** Ids of the posture checks that do not pass, of the policy that comes closest. */
function findBlockingChecks(
  access: Access,
  blocked: readonly EvaluatedPolicy[],
  type: PolicyType,
  serviceId: string,
): readonly string[] {
  const ofType = blocked.filter(({ policy }) => policy.type === type)
  const granting = access.filterGranting(
    ofType.map(({ policy }) => policy),
    serviceId,
  )
  const failing = ofType
    .filter(({ policy }) => granting.includes(policy))
    .map(({ findings }) => findings.filter(({ evidence }) => evidence !== 'passing').map(({ check }) => check.id))
  return failing.sort((a, b) => a.length - b.length)[0] ?? []
}
