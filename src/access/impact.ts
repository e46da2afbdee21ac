// What a deletion or a change takes away and gives, before it is made: by the evaluator that will decide afterwards.
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import type { Context } from '../context.ts'
import { Bitset } from '../policy/bitset.ts'
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
import { isOneOf } from '../store/untyped.ts'
import type { Access } from './access.ts'
import type { EvaluatedPolicy } from './decision.ts'
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
  readonly identity: Named
  readonly serviceId: string
  readonly type: PolicyType
}

interface Named {
  readonly id: string
  readonly name: string
}

/** An effect on permissions that posture does not let their identities use at the moment. */
interface BlockedEffect extends Effect {
  readonly examples: readonly (Pair & {
    /** The posture checks that do not pass, of the policy that comes closest. */
    readonly blockedBy: readonly Named[]
  })[]
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
  /** Permissions that policies grant no longer, and that posture blocked anyway. */
  readonly blockedLosses: BlockedEffect
  /** Permissions that policies grant from now on, and that begin once posture checks pass. */
  readonly blockedGains: BlockedEffect
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
/** How many identities are compared at first, and at most, before other requests get a turn. */
const MIN_BATCH = 4
const MAX_BATCH = 250
/** How long a comparison may delay other requests, unless to try the changes takes longer. */
const MAX_TURN_MS = 20

/** What an impact is computed with. */
export interface ImpactParts {
  readonly access: Access
  readonly store: Store
}

/**
 * Computes the impact of changes without making them; those without `after` are deletions.
 * @param maxExamples how many pairs of an effect are named at most
 */
export async function computeImpact(
  parts: ImpactParts,
  context: Context,
  changes: readonly RecordChange[],
  maxExamples = MAX_EXAMPLES,
): Promise<Impact> {
  const loses = new Tally(maxExamples)
  const gains = new Tally(maxExamples)
  const unreachable = new Tally(maxExamples)
  const blockedLosses = new Tally(maxExamples)
  const blockedGains = new Tally(maxExamples)
  const concerned = await findAffectedIdentities(parts, context, changes)
  const looked = concerned.slice(0, MAX_IDENTITIES)
  const tallies = { loses, gains, blockedLosses, blockedGains, unreachable }
  const paths = groupServicesByRouters(parts.access, changes)
  for (let at = 0, batch = MIN_BATCH; at < looked.length; ) {
    const some = looked.slice(at, at + batch)
    const startedAt = context.clock.monotonic()
    const comparingMs = compare(parts.access, changes, some, paths, tallies, context.clock)
    const tryingMs = context.clock.monotonic() - startedAt - comparingMs
    at += batch
    batch = adjustBatch(batch, comparingMs, tryingMs)
    await setImmediate()
  }
  return {
    loses: loses.effect(),
    gains: gains.effect(),
    blockedLosses: await nameBlockingChecks(context, changes, blockedLosses),
    blockedGains: await nameBlockingChecks(context, changes, blockedGains),
    unreachable: unreachable.effect(),
    sessions: await countRevokedSessions(parts.access, context, changes),
    gates: findOpenedGates(parts.access, changes, looked),
    isComplete: looked.length === concerned.length,
  }
}

/**
 * The size of the next batch by how long the last one took. The changes are tried for each batch anew, so a batch compares for as
 * long as that takes: with shorter ones most of the time would go into trying.
 */
function adjustBatch(batch: number, comparingMs: number, tryingMs: number): number {
  const fitting = Math.floor((batch * Math.max(MAX_TURN_MS, tryingMs)) / Math.max(comparingMs, 1))
  return Math.min(Math.max(fitting, 1), 2 * batch, MAX_BATCH)
}

// ---- who is concerned -------------------------------------------------------------------------------------------------

/** An identity before and after the changes; absent before them if it is new, and after them if it would be gone. */
interface Subject {
  readonly id: string
  readonly name: string
  readonly before: RoleBearer | undefined
  readonly after: RoleBearer | undefined
}

type Values = NonNullable<Change['before']>

async function findAffectedIdentities(
  { access, store }: ImpactParts,
  context: Context,
  changes: readonly RecordChange[],
): Promise<Subject[]> {
  const changedIdentities = changes.filter(({ resource }) => resource === identities.plural).map(toSubject)
  const others = changes.filter(({ resource }) => resource !== identities.plural)
  if (others.length === 0) return changedIdentities
  const { index } = access
  const sides = [
    ...others.flatMap(({ resource, id, before }) => findSubjects(index, { resource, id, before })),
    ...access.withHypothetical(others, () =>
      others.flatMap(({ resource, id, after }) => findSubjects(index, { resource, id, before: after })),
    ),
  ]
  const changedIds = new Set(changedIdentities.map(({ id }) => id))
  const matching = await findMatchingIdentities(store, context, mergeSelectors(sides), MAX_IDENTITIES + 1)
  return [...changedIdentities, ...matching.filter(({ id }) => !changedIds.has(id))]
}

function toSubject({ id, before, after }: RecordChange): Subject {
  const toBearer = ({ roleAttributes }: Values): RoleBearer => ({ id, attributes: roleAttributes as string[] })
  const { name } = (before ?? after) as Values
  return { id, name: name as string, before: before && toBearer(before), after: after && toBearer(after) }
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

/** The identities that any of the selectors matches, at most `limit` of them. */
export async function findMatchingIdentities(
  store: Store,
  context: Context,
  sides: readonly RoleSelector[],
  limit: number,
): Promise<Subject[]> {
  if (sides.length === 0) return []
  const plan = { ...planList({}), limit }
  const query = (await queryRows(store, context, identities, plan, [{ sides }])).compile()
  const { rows } = await context.db.executeQuery(query)
  return rows.map((row) => {
    const attributed = { id: row.id, attributes: JSON.parse(row.roleAttributes as string) as string[] }
    return { id: row.id, name: row.name as string, before: attributed, after: attributed }
  })
}

// ---- before and after -------------------------------------------------------------------------------------------------

/** What an identity may dial and bind, and the routers that it may use. */
interface Reach {
  /** By policies whose posture checks pass. */
  readonly rights: SlotsByType
  /** By all its policies. */
  readonly grants: SlotsByType
  /** The policies whose posture checks do not pass. */
  readonly blocked: readonly EvaluatedPolicy[]
  readonly routers: Bitset
}

type SlotsByType = ReadonlyMap<PolicyType, Bitset>

const TYPES: readonly PolicyType[] = ['Dial', 'Bind']

/** Of an identity that does not exist yet. */
const NO_SLOTS: SlotsByType = new Map(TYPES.map((type) => [type, new Bitset()]))
const NO_REACH: Reach = { rights: NO_SLOTS, grants: NO_SLOTS, blocked: [], routers: new Bitset() }

interface Tallies {
  readonly loses: Tally
  readonly gains: Tally
  readonly blockedLosses: Tally
  readonly blockedGains: Tally
  readonly unreachable: Tally
}

/** Compares the reach of some identities. Returns the time that this took beside trying the changes, in milliseconds. */
function compare(
  access: Access,
  changes: readonly RecordChange[],
  subjects: readonly Subject[],
  paths: readonly ServicePaths[],
  tallies: Tallies,
  clock: Clock,
): number {
  let startedAt = clock.monotonic()
  const grantsBefore = new SharedGrants()
  const before = subjects.map(({ before }) => (before ? computeReach(access, before, grantsBefore) : NO_REACH))
  let comparingMs = clock.monotonic() - startedAt
  // What is gained is read now, because a new service is not in the index when this returns.
  const after = access.withHypothetical(changes, (index) => {
    startedAt = clock.monotonic()
    const grantsAfter = new SharedGrants()
    const reaches = subjects.map((subject, at) => {
      if (!subject.after) return undefined
      const reach = computeReach(access, subject.after, grantsAfter)
      const had = (before[at] as Reach).rights
      addBlocked(access, tallies.blockedGains, subject, reach, (before[at] as Reach).grants)
      const gains = TYPES.map((type) => {
        const slots = (reach.rights.get(type) as Bitset).without(had.get(type) as Bitset)
        return [type, index.listServicesInSlots(slots)] as const
      })
      return { ...reach, gains: new Map(gains) }
    })
    comparingMs += clock.monotonic() - startedAt
    return reaches
  })
  startedAt = clock.monotonic()
  for (const [at, subject] of subjects.entries()) {
    const was = before[at] as Reach
    const is = after[at]
    addBlocked(access, tallies.blockedLosses, subject, was, is?.grants ?? NO_SLOTS)
    for (const type of TYPES) {
      const had = was.rights.get(type) as Bitset
      const has = is?.rights.get(type)
      const lostServices = has ? had.without(has) : had
      tallies.loses.add(subject, type, access.index.listServicesInSlots(lostServices))
      if (!is || !has) continue
      tallies.gains.add(subject, type, is.gains.get(type) ?? [])
      const cutOff = findCutOff(had.without(lostServices), was.routers, is.routers, paths)
      tallies.unreachable.add(subject, type, access.index.listServicesInSlots(cutOff))
    }
  }
  return comparingMs + clock.monotonic() - startedAt
}

/** Services with the edge routers over which they are reached before and after the changes. */
interface ServicePaths {
  readonly services: Bitset
  readonly routersBefore: Bitset
  readonly routersAfter: Bitset
}

/** The services in groups that are reached over the same edge routers: there are far fewer groups than services. */
function groupServicesByRouters(access: Access, changes: readonly RecordChange[]): ServicePaths[] {
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

/** Those of the services that an identity reached over an edge router before the changes, and over none after them. */
function findCutOff(
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

/** @param grants what is shared with other identities in the same state of the index */
function computeReach(access: Access, identity: RoleBearer, grants: SharedGrants): Reach {
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
 * What policies without posture checks grant together. Identities that have the same policies share it: with thousands of policies,
 * to compare two lists of them takes a fraction of the time of uniting what they grant. Valid for one state of the index.
 */
class SharedGrants {
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
  const slotsOf = (wanted: PolicyType) => index.collectServiceSlots(policies.filter(({ type }) => type === wanted))
  return new Map(TYPES.map((type) => [type, slotsOf(type)]))
}

/** Adds the permissions that policies grant on one side of the changes alone, and that posture blocks there. */
function addBlocked(
  access: Access,
  tally: Tally,
  subject: Subject,
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

class Tally {
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
    { id, name }: Subject,
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

  effect(): Effect {
    return {
      identities: this.#identities.size,
      services: this.#services.size,
      pairs: this.#pairs,
      examples: this.#examples,
    }
  }
}

/** The effect with the names of the posture checks; those of checks that are new or have another name by the changes. */
async function nameBlockingChecks(
  context: Context,
  changes: readonly RecordChange[],
  tally: Tally,
): Promise<BlockedEffect> {
  const effect = tally.effect()
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
    if (resource === 'posture-checks' && after) names.set(id, after.name as string)
  }
  const named = (checkIds: readonly string[] = []) => checkIds.map((id) => ({ id, name: names.get(id) ?? id }))
  return {
    ...effect,
    examples: effect.examples.map((pair, at) => ({ ...pair, blockedBy: named(tally.checkIds[at]) })),
  }
}

// ---- gates ------------------------------------------------------------------------------------------------------------

/** The service policies that demand a posture check before the changes, and not after them. */
function findOpenedGates(access: Access, changes: readonly RecordChange[], subjects: readonly Subject[]): OpenedGate[] {
  const demanding = changes.flatMap((change) => findDemandingPolicies(access.index, change))
  const policies = [...new Map(demanding.map((policy) => [policy.id, policy])).values()]
  if (policies.length === 0) return []
  const demandsBefore = policies.map((policy) => access.index.listRequiredPostureChecks(policy))
  const demandsAfter = access.withHypothetical(changes, (index) =>
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
    const identities = subjects.filter(({ before }) => before && matchesSelector(policy.subjects, before)).length
    return [{ policy: { id, name }, identities, remainingChecks: remainingIds.length }]
  })
}

function findDemandingPolicies(index: PolicyReader, { resource, id }: RecordChange): IndexedPolicy[] {
  if (resource === 'posture-checks') return index.findServicePoliciesOfPostureCheck(id)
  const policy = resource === 'service-policies' ? index.findServicePolicy(id) : undefined
  return policy ? [policy] : []
}

// ---- sessions ---------------------------------------------------------------------------------------------------------

async function countRevokedSessions(
  access: Access,
  context: Context,
  changes: readonly RecordChange[],
): Promise<number> {
  const sessionIds = new Set<string>()
  for (const [resource, field] of OWNERS) {
    const deletedIds = changes.flatMap((change) => (change.resource === resource && !change.after ? change.id : []))
    if (deletedIds.length === 0) continue
    const owned = context.db.selectFrom('sessions').select('id')
    for (const { id } of await owned.where(isOneOf(context.db, field, deletedIds)).execute()) sessionIds.add(id)
  }
  const isDeletedOwner = ({ resource, after }: RecordChange) => !after && OWNERS.has(resource)
  for (const id of await findRevokedIdentitySessions(access, context, changes)) sessionIds.add(id)
  const others = changes.filter((change) => change.resource !== identities.plural && !isDeletedOwner(change))
  for (const { id } of await findRevokedSessions({ access, db: context.db }, [], others)) sessionIds.add(id)
  return sessionIds.size
}

/** The resources with whose records sessions end, and the fields of sessions that name these. */
const OWNERS: ReadonlyMap<string, 'identityId' | 'serviceId'> = new Map([
  ['identities', 'identityId'],
  ['services', 'serviceId'],
])

/** The sessions of identities that lose their rights by their own changes: their rows still say what they were. */
async function findRevokedIdentitySessions(
  access: Access,
  context: Context,
  changes: readonly RecordChange[],
): Promise<string[]> {
  const changed = new Map<string, RoleBearer>()
  for (const { resource, id, before, after } of changes) {
    if (resource === identities.plural && before && after)
      changed.set(id, { id, attributes: after.roleAttributes as string[] })
  }
  if (changed.size === 0) return []
  const rows = await context.db
    .selectFrom('sessions')
    .select(['id', 'serviceId', 'type', 'apiSessionId', 'identityId'])
    .where(isOneOf(context.db, 'identityId', [...changed.keys()]))
    .execute()
  return access.withHypothetical(changes, () =>
    rows.flatMap((session) => {
      const identity = changed.get(session.identityId) as RoleBearer
      return access.decide({ ...session, identity }).isAllowed ? [] : session.id
    }),
  )
}
