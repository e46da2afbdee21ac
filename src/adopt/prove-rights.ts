// Proves that an adopted network grants what the former one granted.
//
// The grants of the former policies are computed here by plain set operations, apart from the evaluator that serves requests:
// both must grant the same. Neither may grant more than the former controller itself had computed and stored.
import { LRUCache } from 'lru-cache'
import type { PolicyReader, PolicyType } from '../policy/policy-index.ts'
import type { RoleBearer } from '../policy/role-selector.ts'
import type { Conversion } from './conversion.ts'
import type { SourceDatabase, SourceRecord } from './source-records.ts'

/** How many rights were compared, and the first of those that differ. */
export interface RightsProof {
  readonly dialPairs: number
  readonly bindPairs: number
  readonly routerPairs: number
  /** Services and the edge routers over which they may be used. */
  readonly serviceRouterPairs: number
  readonly differences: readonly string[]
}

/** A policy of the former database: whom it concerns, and what it leads to. */
interface PlainPolicy {
  readonly roles: readonly string[]
  readonly matches: (bearer: RoleBearer) => boolean
  readonly targets: ReadonlySet<string>
}

/** A kind of policy: its names in the former database and here, and its members. */
interface PolicyKind {
  readonly kind: string
  readonly plural: string
  readonly subjectRoles: string
  readonly targetRoles: string
}

const MAX_DIFFERENCES = 20
// Some 20 MB.
const MAX_CACHED_TARGETS = 500_000
const SERVICE_POLICIES = {
  kind: 'servicePolicies',
  plural: 'service-policies',
  subjectRoles: 'identityRoles',
  targetRoles: 'serviceRoles',
}
const ROUTER_POLICIES = {
  kind: 'edgeRouterPolicies',
  plural: 'edge-router-policies',
  subjectRoles: 'identityRoles',
  targetRoles: 'edgeRouterRoles',
}
const SERVICE_ROUTER_POLICIES = {
  kind: 'serviceEdgeRouterPolicies',
  plural: 'service-edge-router-policies',
  subjectRoles: 'serviceRoles',
  targetRoles: 'edgeRouterRoles',
}
const TYPES = [
  ['Dial', 1, 'dialServices'],
  ['Bind', 2, 'bindServices'],
] as const satisfies readonly (readonly [PolicyType, number, string])[]

export function proveRights(database: SourceDatabase, index: PolicyReader, conversion: Conversion): RightsProof {
  const services = listBearers(database, 'services', 'services', conversion)
  const edgeRouters = listBearers(database, 'routers', 'edge-routers', conversion)
  const read = (kind: PolicyKind, targets: readonly RoleBearer[], isIncluded?: (record: SourceRecord) => boolean) =>
    new PlainGrants(readPolicies(database, kind, targets, conversion, isIncluded))
  const byType = TYPES.map(([type, number, links]) => {
    const grants = read(SERVICE_POLICIES, services, (record) => record.number('type') === number)
    return { type, links, grants }
  })
  const routerGrants = read(ROUTER_POLICIES, edgeRouters)
  const serviceRouterGrants = read(SERVICE_ROUTER_POLICIES, edgeRouters)
  const comparison = new Comparison()
  const pairs = { Dial: 0, Bind: 0 }
  let [routerPairs, serviceRouterPairs] = [0, 0]
  for (const [id, record] of database.records('identities')) {
    if (!conversion.hasId('identities', id)) continue
    const bearer = { id, attributes: record.set('roleAttributes') }
    for (const { type, links, grants } of byType) {
      const serviceIds = index.listGrantedServices(index.findServicePolicies(bearer, type))
      pairs[type] += serviceIds.length
      const right = `the identity ${id} may ${type.toLowerCase()}`
      comparison.add(right, serviceIds, grants.collect(bearer), record.counted(links))
    }
    const routerIds = index.listRouters(bearer)
    routerPairs += routerIds.length
    const right = `the identity ${id} may use the router`
    comparison.add(right, routerIds, routerGrants.collect(bearer), record.counted('routers'))
  }
  for (const [id, record] of database.records('services')) {
    const edge = record.part('edge')
    if (!edge || !conversion.hasId('services', id)) continue
    const routerIds = index.listRoutersOfService(id)
    serviceRouterPairs += routerIds.length
    const expected = serviceRouterGrants.collect({ id, attributes: edge.set('roleAttributes') })
    comparison.add(`the service ${id} may be used over the router`, routerIds, expected, edge.counted('edgeRouters'))
  }
  const { differences } = comparison
  return { dialPairs: pairs.Dial, bindPairs: pairs.Bind, routerPairs, serviceRouterPairs, differences }
}

class Comparison {
  readonly differences: string[] = []

  /**
   * Compares rights of one subject.
   * @param granted by this controller
   * @param expected by the policies of the former database
   * @param linked those that the former controller had computed
   */
  add(right: string, granted: readonly string[], expected: ReadonlySet<string>, linked: readonly string[]): void {
    const links = new Set(linked)
    const actual = new Set(granted)
    for (const id of actual) {
      if (!expected.has(id)) this.#report(`${right} ${id}, which no policy of the former database grants`)
      if (!links.has(id)) this.#report(`${right} ${id}, which the former controller did not grant`)
    }
    for (const id of expected)
      if (!actual.has(id)) this.#report(`it is not so that ${right} ${id}, which a policy grants`)
  }

  #report(difference: string): void {
    if (this.differences.length < MAX_DIFFERENCES) this.differences.push(difference)
  }
}

/** The grants of policies of one kind. Bearers whom the roles of the policies do not tell apart are granted the same. */
class PlainGrants {
  readonly #policies: readonly PlainPolicy[]
  readonly #roles: ReadonlySet<string>
  readonly #byRoles = new LRUCache<string, ReadonlySet<string>>({
    maxSize: MAX_CACHED_TARGETS,
    sizeCalculation: ({ size }) => 1 + size,
  })

  constructor(policies: readonly PlainPolicy[]) {
    this.#policies = policies
    this.#roles = new Set(policies.flatMap(({ roles }) => roles))
  }

  collect(bearer: RoleBearer): ReadonlySet<string> {
    const roles = [`@${bearer.id}`, ...bearer.attributes.map((attribute) => `#${attribute}`)]
    const key = JSON.stringify(roles.filter((role) => this.#roles.has(role)))
    const cached = this.#byRoles.get(key)
    if (cached) return cached
    const targets = new Set<string>()
    for (const policy of this.#policies)
      if (policy.matches(bearer)) for (const target of policy.targets) targets.add(target)
    this.#byRoles.set(key, targets)
    return targets
  }
}

/** The adopted records of a kind with their role attributes, as the former database has them. */
function listBearers(database: SourceDatabase, kind: string, plural: string, conversion: Conversion): RoleBearer[] {
  const bearers: RoleBearer[] = []
  for (const [id, record] of database.records(kind)) {
    const edge = record.part('edge')
    if (edge && conversion.hasId(plural, id)) bearers.push({ id, attributes: edge.set('roleAttributes') })
  }
  return bearers
}

function readPolicies(
  database: SourceDatabase,
  { kind, plural, subjectRoles, targetRoles }: PolicyKind,
  bearers: readonly RoleBearer[],
  conversion: Conversion,
  isIncluded: (record: SourceRecord) => boolean = () => true,
): PlainPolicy[] {
  const policies: PlainPolicy[] = []
  for (const [id, record] of database.records(kind)) {
    if (!conversion.hasId(plural, id) || !isIncluded(record)) continue
    const isAllOf = record.text('semantic') === 'AllOf'
    const matchesTarget = createMatcher(record.set(targetRoles), isAllOf)
    const targets = new Set(bearers.filter(matchesTarget).map((bearer) => bearer.id))
    const roles = record.set(subjectRoles)
    policies.push({ roles, matches: createMatcher(roles, isAllOf), targets })
  }
  return policies
}

function createMatcher(roles: readonly string[], isAllOf: boolean): (bearer: RoleBearer) => boolean {
  if (roles.includes('#all')) return () => true
  const ids = new Set(roles.filter((role) => role.startsWith('@')).map((role) => role.slice(1)))
  const attributes = roles.filter((role) => role.startsWith('#')).map((role) => role.slice(1))
  return (bearer) => {
    if (ids.has(bearer.id)) return true
    if (attributes.length === 0) return false
    // Both lists are short.
    return isAllOf
      ? attributes.every((each) => bearer.attributes.includes(each))
      : attributes.some((each) => bearer.attributes.includes(each))
  }
}
