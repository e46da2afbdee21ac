// What a deletion or a change takes away and gives, before it is made: by the evaluator that will decide afterwards.
import { setImmediate } from 'node:timers/promises'
import type { Context } from '../context.ts'
import type { Bitset } from '../policy/bitset.ts'
import type { PolicyIndex, PolicyType } from '../policy/policy-index.ts'
import { type Attributed, parseSide, type Semantic, type Side, unionOf } from '../policy/side.ts'
import { identities } from '../resources/identities.ts'
import type { Change } from '../store/changes.ts'
import { planList } from '../store/list-plan.ts'
import { allRows } from '../store/lists.ts'
import type { Altered } from './index-feed.ts'
import { lostSessions } from './lost-rights.ts'

/** How many identities and services an effect is about, how many pairs of them, and a few of these. */
export interface Effect {
  readonly identities: number
  readonly services: number
  readonly pairs: number
  readonly examples: readonly Pair[]
}

export interface Pair {
  readonly identity: { readonly id: string; readonly name: string }
  readonly serviceId: string
  readonly type: PolicyType
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
  /** Whether every identity was looked at; in a large network only some thousands are. */
  readonly isComplete: boolean
}

const MOST_IDENTITIES = 5_000
const MOST_EXAMPLES = 10
// How many identities are looked at before other requests get a turn.
const BATCH = 250

/** What a change, which nobody has made, would do; without `after` it is a deletion. */
export async function impactOf(context: Context, change: Altered): Promise<Impact> {
  const loses = new Tally()
  const gains = new Tally()
  const unreachable = new Tally()
  const concerned = await identitiesConcerned(context, change)
  const looked = concerned.slice(0, MOST_IDENTITIES)
  for (let at = 0; at < looked.length; at += BATCH) {
    const some = looked.slice(at, at + BATCH)
    compare(context, change, some, { loses, gains, unreachable })
    await setImmediate()
  }
  return {
    loses: loses.effect(),
    gains: gains.effect(),
    unreachable: unreachable.effect(),
    sessions: await sessionsLost(context, change),
    isComplete: looked.length === concerned.length,
  }
}

// ---- who is concerned -------------------------------------------------------------------------------------------------

/** An identity before and after the change; absent after it where it would be gone. */
interface Subject {
  readonly name: string
  readonly before: Attributed
  readonly after: Attributed | undefined
}

type Values = NonNullable<Change['before']>

async function identitiesConcerned(context: Context, { resource, id, before, after }: Altered): Promise<Subject[]> {
  if (resource === 'identities') {
    const values = before as Values
    const attributed = (of: Values): Attributed => ({ id, attributes: of.roleAttributes as string[] })
    return [{ name: values.name as string, before: attributed(values), after: after && attributed(after) }]
  }
  const { index } = context.controller.access
  const sides = [
    ...subjectsOf(index, { resource, id, before }),
    ...context.controller.access.asIf([{ resource, id, before, after }], () =>
      subjectsOf(index, { resource, id, before: after }),
    ),
  ]
  return matching(context, unionOf(sides))
}

/** The identities' sides of the policies that a record is, or by which it is reached. */
function subjectsOf(index: PolicyIndex, { resource, id, before }: Altered): Side[] {
  if (!before) return []
  const sides = (policies: Iterable<{ readonly subjects: Side }>) => [...policies].map(({ subjects }) => subjects)
  const ofServices = (ids: Iterable<string>) => [...ids].flatMap((one) => sides(index.servicePoliciesOfService(one)))
  switch (resource) {
    case 'services':
      return ofServices([id])
    case 'service-policies':
    case 'edge-router-policies':
      return [parseSide(before.semantic as Semantic, before.identityRoles as string[])]
    case 'service-edge-router-policies':
      return ofServices(index.servicesMatching(parseSide(before.semantic as Semantic, before.serviceRoles as string[])))
    case 'edge-routers':
      return [
        ...sides(index.edgeRouterPoliciesOfRouter(id)),
        ...ofServices(
          index.serviceEdgeRouterPoliciesOfRouter(id).flatMap((one) => index.servicesMatching(one.subjects)),
        ),
      ]
    default:
      return []
  }
}

async function matching(context: Context, sides: readonly Side[]): Promise<Subject[]> {
  if (sides.length === 0) return []
  const plan = { ...planList({}), limit: MOST_IDENTITIES + 1 }
  const query = (await allRows(context, identities, plan, [{ sides }])).compile()
  const { rows } = await context.db.executeQuery(query)
  return rows.map((row) => {
    const attributed = { id: row.id, attributes: JSON.parse(row.roleAttributes as string) as string[] }
    return { name: row.name as string, before: attributed, after: attributed }
  })
}

// ---- before and after -------------------------------------------------------------------------------------------------

/** What an identity may reach, by type, and over which routers. */
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

function compare({ controller }: Context, change: Altered, subjects: readonly Subject[], tallies: Tallies): void {
  const { access } = controller
  const before = subjects.map((subject) => reachOf(access.index, subject.before))
  const after = access.asIf([change], (index) =>
    subjects.map((subject) => (subject.after ? reachOf(index, subject.after) : undefined)),
  )
  const carried = carriers(access.index)
  const carriedAfter = access.asIf([change], (index) => {
    const carriersAfter = carriers(index)
    // Asked for now, because the index is as it was before when this returns.
    for (const serviceId of new Set(before.flatMap((reach) => servicesIn(access.index, reach))))
      carriersAfter(serviceId)
    return carriersAfter
  })
  for (const [at, subject] of subjects.entries()) {
    const was = before[at] as Reach
    const is = after[at]
    for (const type of TYPES) {
      const had = was.rights.get(type) as Bitset
      const has = is?.rights.get(type)
      const lost = has ? had.without(has) : had
      tallies.loses.add(subject, type, access.index.servicesIn(lost))
      if (!is || !has) continue
      tallies.gains.add(subject, type, access.index.servicesIn(has.without(had)))
      const kept = access.index.servicesIn(had.without(lost))
      const cutOff = kept.filter((id) => was.routers.meets(carried(id)) && !is.routers.meets(carriedAfter(id)))
      tallies.unreachable.add(subject, type, cutOff)
    }
  }
}

function reachOf(index: PolicyIndex, identity: Attributed): Reach {
  return {
    rights: new Map(TYPES.map((type) => [type, index.reach(identity, type)])),
    routers: index.routerSlotsOf(identity),
  }
}

function servicesIn(index: PolicyIndex, { rights }: Reach): string[] {
  return TYPES.flatMap((type) => index.servicesIn(rights.get(type) as Bitset))
}

/** The routers that carry each service, worked out once. */
function carriers(index: PolicyIndex): (serviceId: string) => Bitset {
  const known = new Map<string, Bitset>()
  return (serviceId) => {
    let found = known.get(serviceId)
    if (!found) {
      found = index.routerSlotsOfService(serviceId)
      known.set(serviceId, found)
    }
    return found
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
      if (this.#examples.length < MOST_EXAMPLES) this.#examples.push({ identity: { id, name }, serviceId, type })
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

// ---- sessions ---------------------------------------------------------------------------------------------------------

async function sessionsLost(context: Context, change: Altered): Promise<number> {
  const { resource, id, before, after } = change
  const owner = { identities: 'identityId', services: 'serviceId' } as const
  const field = owner[resource as keyof typeof owner]
  if (field && !after) {
    const rows = await context.db.selectFrom('sessions').select('id').where(field, '=', id).execute()
    return rows.length
  }
  if (resource !== 'identities' || !before || !after) return (await lostSessions(context, [], [change])).length
  // Its row still says what it was.
  const identity = { id, attributes: after.roleAttributes as string[] }
  const own = context.db.selectFrom('sessions').select(['serviceId', 'type']).where('identityId', '=', id)
  const rows = await own.execute()
  return rows.filter(({ serviceId, type }) => !context.controller.access.mayReach(identity, serviceId, type)).length
}
