// The reach of an identity: the services that it may dial and bind, and the edge routers over which it reaches them.
import { Bitset } from '../../policy/bitset.ts'
import type { PolicyReader, PolicyType } from '../../policy/policy-index.ts'
import type { IndexedPolicy } from '../../policy/policy-table.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import type { RecordChange } from '../../storage/transactions/changes.ts'
import type { Access } from '../access.ts'
import type { EvaluatedPolicy } from '../decision.ts'

/** The services that an identity may dial and bind, and the routers that it may use. */
export interface Reach {
  /** By policies whose posture checks pass. */
  readonly rights: SlotsByType
  /** By all its policies. */
  readonly grants: SlotsByType
  /** The policies whose posture checks do not pass. */
  readonly blocked: readonly EvaluatedPolicy[]
  readonly routers: Bitset
}

export type SlotsByType = ReadonlyMap<PolicyType, Bitset>

export const TYPES: readonly PolicyType[] = ['Dial', 'Bind']

/** Of an identity that does not exist yet. */
export const NO_SLOTS: SlotsByType = new Map(TYPES.map((type) => [type, new Bitset()]))
export const NO_REACH: Reach = { rights: NO_SLOTS, grants: NO_SLOTS, blocked: [], routers: new Bitset() }

/**
 * Computes the reach of an identity at this moment.
 * @param grants what is shared with other identities in the same state of the index
 */
export function computeReach(access: Access, identity: RoleBearer, grants: SharedGrants): Reach {
  const policies = access.findPolicies(identity)
  const routers = access.index.collectRouterSlots(identity)
  const shared = grants.find(policies)
  if (shared) return { rights: shared, grants: shared, blocked: [], routers }
  const evaluation = access.evaluatePosture({ identity })
  const evaluated = policies.map((policy) => evaluation.evaluatePolicy(policy))
  const blocked = evaluated.filter(({ evidence }) => evidence !== 'passing')
  const passing = evaluated.filter(({ evidence }) => evidence === 'passing').map(({ policy }) => policy)
  const rights = collectSlots(access.index, passing)
  if (evaluated.every(({ findings }) => findings.length === 0)) grants.add(policies, rights)
  return { rights, grants: blocked.length === 0 ? rights : collectSlots(access.index, policies), blocked, routers }
}

/**
 * The grants of policies without posture checks. Identities that have the same policies share them: with thousands of policies,
 * to compare two lists of them takes a fraction of the time of uniting what they grant. Valid for one state of the index.
 */
export class SharedGrants {
  readonly #entries = new Map<string, { readonly policies: readonly IndexedPolicy[]; readonly slots: SlotsByType }[]>()

  /** @param policies in the order of the index */
  find(policies: readonly IndexedPolicy[]): SlotsByType | undefined {
    const entries = this.#entries.get(toListKey(policies))
    return entries?.find((entry) => entry.policies.every((policy, at) => policy === policies[at]))?.slots
  }

  add(policies: readonly IndexedPolicy[], slots: SlotsByType): void {
    const key = toListKey(policies)
    const entries = this.#entries.get(key)
    if (entries) entries.push({ policies, slots })
    else this.#entries.set(key, [{ policies, slots }])
  }
}

/** Lists of one key have the same length. */
function toListKey(policies: readonly IndexedPolicy[]): string {
  return `${policies.length} ${policies[0]?.id} ${policies.at(-1)?.id}`
}

function collectSlots(index: PolicyReader, policies: readonly IndexedPolicy[]): SlotsByType {
  const ofType = (type: PolicyType) => policies.filter((policy) => policy.type === type)
  return new Map(TYPES.map((type) => [type, index.collectServiceSlots(ofType(type))]))
}

/** Services with the edge routers over which they are reached before and after the changes. */
export interface ServicePaths {
  readonly services: Bitset
  readonly routersBefore: Bitset
  readonly routersAfter: Bitset
}

/** The services in groups that are reached over the same edge routers: there are far fewer groups than services. */
export function groupServicesByRouters(access: Access, changes: readonly RecordChange[]): ServicePaths[] {
  const serviceIds = [...access.index.listServiceIds()]
  const collect = (index: PolicyReader) => serviceIds.map((id) => index.collectRouterSlotsOfService(id))
  const before = collect(access.index)
  const after = access.withHypothetical(changes, collect)
  const groups = new Map<string, ServicePaths & { readonly ids: string[] }>()
  for (const [at, id] of serviceIds.entries()) {
    const [routersBefore, routersAfter] = [before[at] as Bitset, after[at] as Bitset]
    const key = `${[...routersBefore].join()} ${[...routersAfter].join()}`
    const group = groups.get(key)
    if (group) group.ids.push(id)
    else groups.set(key, { ids: [id], services: new Bitset(), routersBefore, routersAfter })
  }
  return [...groups.values()].map(({ ids, ...group }) => ({
    ...group,
    services: access.index.collectSlotsOfServices(ids),
  }))
}

/** Filters services to those that an identity reached over an edge router before the changes, and over none after them. */
export function findCutOff(
  services: Bitset,
  identityRoutersBefore: Bitset,
  identityRoutersAfter: Bitset,
  paths: readonly ServicePaths[],
): Bitset {
  const cutOff = new Bitset()
  for (const { services: ofGroup, routersBefore, routersAfter } of paths) {
    if (!identityRoutersBefore.intersects(routersBefore) || identityRoutersAfter.intersects(routersAfter)) continue
    const slots = new Bitset()
    slots.addAll(services)
    slots.intersect(ofGroup)
    cutOff.addAll(slots)
  }
  return cutOff
}
