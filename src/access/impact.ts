// What a deletion or a change takes away and gives, before it is made: by the evaluator that will decide afterwards.
import { setImmediate } from 'node:timers/promises'
import type { Context } from '../context.ts'
import type { Bitset } from '../policy/bitset.ts'
import type { PolicyReader, PolicyType } from '../policy/policy-index.ts'
import type { IndexedPolicy } from '../policy/policy-table.ts'
import {
  matchesSelector,
  mergeSelectors,
  parseRoleSelector,
  type RoleBearer,
  type RoleSelector,
  type Semantic,
} from '../policy/role-selector.ts'
import { identities } from '../resources/identities.ts'
import type { Change } from '../store/changes.ts'
import { planList } from '../store/list-plan.ts'
import { queryRows } from '../store/lists.ts'
import type { Store } from '../store/store.ts'
import type { Access } from './access.ts'
import type { RecordChange } from './index-updates.ts'
import { findRevokedSessions } from './session-revocation.ts'

/** How many identities and services an effect is about, how many pairs of them, and a few of these. */
interface Effect {
  readonly identities: number
  readonly services: number
  readonly pairs: number
  readonly examples: readonly Pair[]
}

interface Pair {
  readonly identity: { readonly id: string; readonly name: string }
  readonly serviceId: string
  readonly type: PolicyType
}

/** A service policy that would no longer demand a posture check, whether the machines of its identities pass it now or not. */
export interface OpenedGate {
  readonly policy: { readonly id: string; readonly name: string }
  /** How many identities the policy matches. */
  readonly identities: number
  /** How many posture checks it still demands. */
  readonly remainingChecks: number
}

export interface Impact {
  /** Rights to dial or host that end. */
  readonly loses: Effect
  /** Rights to dial or host that begin. */
  readonly gains: Effect
  /** Rights that stay, and of which the last edge router in common is gone. */
  readonly unreachable: Effect
  /** Sessions that end with their rights. */
  readonly sessions: number
  /** Service policies that demand less of machines. */
  readonly gates: readonly OpenedGate[]
  /** Whether every identity was looked at; in a large network only some thousands are. */
  readonly isComplete: boolean
}

const MAX_IDENTITIES = 5_000
const MAX_EXAMPLES = 10
// How many identities are looked at before other requests get a turn.
const BATCH = 250

/** What an impact is computed with. */
export interface ImpactParts {
  readonly access: Access
  readonly store: Store
}

/** Computes the impact of a change without making it; without `after`, of the deletion. */
export async function computeImpact(parts: ImpactParts, context: Context, change: RecordChange): Promise<Impact> {
  const loses = new Tally()
  const gains = new Tally()
  const unreachable = new Tally()
  const concerned = await findAffectedIdentities(parts, context, change)
  const looked = concerned.slice(0, MAX_IDENTITIES)
  for (let at = 0; at < looked.length; at += BATCH) {
    const some = looked.slice(at, at + BATCH)
    compare(parts.access, change, some, { loses, gains, unreachable })
    await setImmediate()
  }
  return {
    loses: loses.effect(),
    gains: gains.effect(),
    unreachable: unreachable.effect(),
    sessions: await countRevokedSessions(parts.access, context, change),
    gates: findOpenedGates(parts.access, change, looked),
    isComplete: looked.length === concerned.length,
  }
}

// ---- who is concerned -------------------------------------------------------------------------------------------------

/** An identity before and after the change; absent after it where it would be gone. */
interface Subject {
  readonly name: string
  readonly before: RoleBearer
  readonly after: RoleBearer | undefined
}

type Values = NonNullable<Change['before']>

async function findAffectedIdentities(
  { access, store }: ImpactParts,
  context: Context,
  { resource, id, before, after }: RecordChange,
): Promise<Subject[]> {
  if (resource === 'identities') {
    const values = (before ?? after) as Values
    const attributed = (of: Values): RoleBearer => ({ id, attributes: of.roleAttributes as string[] })
    const unborn = { id, attributes: [] }
    return [
      { name: values.name as string, before: before ? attributed(before) : unborn, after: after && attributed(after) },
    ]
  }
  const { index } = access
  const sides = [
    ...findSubjects(index, { resource, id, before }),
    ...access.withHypothetical([{ resource, id, before, after }], () =>
      findSubjects(index, { resource, id, before: after }),
    ),
  ]
  return findMatchingIdentities(store, context, mergeSelectors(sides))
}

/** The identities' sides of the policies that a record is, or by which it is reached. */
function findSubjects(index: PolicyReader, { resource, id, before }: RecordChange): RoleSelector[] {
  if (!before) return []
  const sides = (policies: Iterable<{ readonly subjects: RoleSelector }>) =>
    [...policies].map(({ subjects }) => subjects)
  const ofServices = (ids: Iterable<string>) =>
    [...ids].flatMap((one) => sides(index.findServicePoliciesOfService(one)))
  switch (resource) {
    case 'services':
      return ofServices([id])
    case 'posture-checks':
      return sides(index.findServicePoliciesOfPostureCheck(id))
    case 'service-policies':
    case 'edge-router-policies':
      return [parseRoleSelector(before.semantic as Semantic, before.identityRoles as string[])]
    case 'service-edge-router-policies':
      return ofServices(
        index.listMatchingServices(parseRoleSelector(before.semantic as Semantic, before.serviceRoles as string[])),
      )
    case 'edge-routers':
      return [
        ...sides(index.findEdgeRouterPoliciesOfRouter(id)),
        ...ofServices(
          index.findServiceEdgeRouterPoliciesOfRouter(id).flatMap((one) => index.listMatchingServices(one.subjects)),
        ),
      ]
    default:
      return []
  }
}

async function findMatchingIdentities(
  store: Store,
  context: Context,
  sides: readonly RoleSelector[],
): Promise<Subject[]> {
  if (sides.length === 0) return []
  const plan = { ...planList({}), limit: MAX_IDENTITIES + 1 }
  const query = (await queryRows(store, context, identities, plan, [{ sides }])).compile()
  const { rows } = await context.db.executeQuery(query)
  return rows.map((row) => {
    const attributed = { id: row.id, attributes: JSON.parse(row.roleAttributes as string) as string[] }
    return { name: row.name as string, before: attributed, after: attributed }
  })
}

// ---- before and after -------------------------------------------------------------------------------------------------

/** What an identity may dial and bind by policies whose posture checks pass, and the routers that it may use. */
interface Reach {
  readonly rights: ReadonlyMap<PolicyType, Bitset>
  readonly routers: Bitset
}

const TYPES: readonly PolicyType[] = ['Dial', 'Bind']

interface Tallies {
  readonly loses: Tally
  readonly gains: Tally
  readonly unreachable: Tally
}

function compare(access: Access, change: RecordChange, subjects: readonly Subject[], tallies: Tallies): void {
  const before = subjects.map((subject) => computeReach(access, subject.before))
  // What is gained is read now, because a new service is not in the index when this returns.
  const after = access.withHypothetical([change], (index) =>
    subjects.map((subject, at) => {
      if (!subject.after) return undefined
      const reach = computeReach(access, subject.after)
      const had = (before[at] as Reach).rights
      const gains = TYPES.map((type) => {
        const slots = (reach.rights.get(type) as Bitset).without(had.get(type) as Bitset)
        return [type, index.listServicesInSlots(slots)] as const
      })
      return { ...reach, gains: new Map(gains) }
    }),
  )
  const carried = mapServiceRouters(access.index)
  const carriedAfter = access.withHypothetical([change], (index) => {
    const carriersAfter = mapServiceRouters(index)
    // Asked for now, because the index is as it was before when this returns.
    for (const serviceId of new Set(before.flatMap((reach) => listReachedServices(access.index, reach))))
      carriersAfter(serviceId)
    return carriersAfter
  })
  for (const [at, subject] of subjects.entries()) {
    const was = before[at] as Reach
    const is = after[at]
    for (const type of TYPES) {
      const had = was.rights.get(type) as Bitset
      const has = is?.rights.get(type)
      const lostServices = has ? had.without(has) : had
      tallies.loses.add(subject, type, access.index.listServicesInSlots(lostServices))
      if (!is || !has) continue
      tallies.gains.add(subject, type, is.gains.get(type) ?? [])
      const keptServices = access.index.listServicesInSlots(had.without(lostServices))
      const cutOff = keptServices.filter(
        (id) => was.routers.intersects(carried(id)) && !is.routers.intersects(carriedAfter(id)),
      )
      tallies.unreachable.add(subject, type, cutOff)
    }
  }
}

function computeReach(access: Access, identity: RoleBearer): Reach {
  const evaluation = access.evaluatePosture({ identity })
  const passing = access
    .findPolicies(identity)
    .filter((policy) => evaluation.evaluatePolicy(policy).evidence === 'passing')
  const rightsByType = (wanted: PolicyType) =>
    access.index.collectServiceSlots(passing.filter(({ type }) => type === wanted))
  return {
    rights: new Map(TYPES.map((type) => [type, rightsByType(type)])),
    routers: access.index.collectRouterSlots(identity),
  }
}

function listReachedServices(index: PolicyReader, { rights }: Reach): string[] {
  return TYPES.flatMap((type) => index.listServicesInSlots(rights.get(type) as Bitset))
}

/** The routers that carry each service, worked out once. */
function mapServiceRouters(index: PolicyReader): (serviceId: string) => Bitset {
  const carriersByService = new Map<string, Bitset>()
  return (serviceId) => {
    let carriers = carriersByService.get(serviceId)
    if (!carriers) {
      carriers = index.collectRouterSlotsOfService(serviceId)
      carriersByService.set(serviceId, carriers)
    }
    return carriers
  }
}

class Tally {
  readonly #identities = new Set<string>()
  readonly #services = new Set<string>()
  readonly #examples: Pair[] = []
  #pairs = 0

  add({ name, before: { id } }: Subject, type: PolicyType, serviceIds: readonly string[]): void {
    if (serviceIds.length > 0) this.#identities.add(id)
    this.#pairs += serviceIds.length
    for (const serviceId of serviceIds) {
      this.#services.add(serviceId)
      if (this.#examples.length < MAX_EXAMPLES) this.#examples.push({ identity: { id, name }, serviceId, type })
    }
  }

  effect(): Effect {
    return {
      identities: this.#identities.size,
      services: this.#services.size,
      pairs: this.#pairs,
      examples: this.#examples,
    }
  }
}

// ---- gates ------------------------------------------------------------------------------------------------------------

/** The service policies that demand a posture check before the change, and not after it. */
function findOpenedGates(access: Access, change: RecordChange, subjects: readonly Subject[]): OpenedGate[] {
  const policies = findDemandingPolicies(access.index, change)
  const demandsBefore = policies.map((policy) => access.index.listRequiredPostureChecks(policy))
  const demandsAfter = access.withHypothetical([change], (index) =>
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
    const identities = subjects.filter(({ before }) => matchesSelector(policy.subjects, before)).length
    return [{ policy: { id, name }, identities, remainingChecks: remainingIds.length }]
  })
}

function findDemandingPolicies(index: PolicyReader, { resource, id }: RecordChange): IndexedPolicy[] {
  if (resource === 'posture-checks') return index.findServicePoliciesOfPostureCheck(id)
  const policy = resource === 'service-policies' ? index.findServicePolicy(id) : undefined
  return policy ? [policy] : []
}

// ---- sessions ---------------------------------------------------------------------------------------------------------

async function countRevokedSessions(access: Access, context: Context, change: RecordChange): Promise<number> {
  const { resource, id, before, after } = change
  const owner = { identities: 'identityId', services: 'serviceId' } as const
  const field = owner[resource as keyof typeof owner]
  if (field && !after) {
    const rows = await context.db.selectFrom('sessions').select('id').where(field, '=', id).execute()
    return rows.length
  }
  if (resource !== 'identities' || !before || !after)
    return (await findRevokedSessions({ access, db: context.db }, [], [change])).length
  // Its row still says what it was.
  const identity = { id, attributes: after.roleAttributes as string[] }
  const own = context.db.selectFrom('sessions').select(['serviceId', 'type', 'apiSessionId'])
  const rows = await own.where('identityId', '=', id).execute()
  return rows.filter((session) => !access.decide({ ...session, identity }).isAllowed).length
}
