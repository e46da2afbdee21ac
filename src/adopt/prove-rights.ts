// Proves that an adopted network grants what the former one granted.
//
// The grants of the former policies are computed here by plain set operations, apart from the evaluator that serves requests:
// both must grant the same. Neither may grant more than the former controller itself had computed and stored.
import type { PolicyReader, PolicyType } from '../policy/policy-index.ts'
import type { RoleBearer } from '../policy/role-selector.ts'
import type { Conversion } from './conversion.ts'
import type { SourceDatabase, SourceRecord } from './source-records.ts'

/** How many rights were compared, and the first of those that differ. */
export interface RightsProof {
  readonly dialPairs: number
  readonly bindPairs: number
  readonly routerPairs: number
  readonly differences: readonly string[]
}

/** A policy of the former database: whom it concerns, and what it leads to. */
interface PlainPolicy {
  readonly matches: (bearer: RoleBearer) => boolean
  readonly targets: ReadonlySet<string>
}

const MAX_DIFFERENCES = 20
const TYPES = [
  ['Dial', 1, 'dialServices'],
  ['Bind', 2, 'bindServices'],
] as const satisfies readonly (readonly [PolicyType, number, string])[]

export function proveRights(database: SourceDatabase, index: PolicyReader, conversion: Conversion): RightsProof {
  const services = listBearers(database, 'services', 'services', conversion)
  const edgeRouters = listBearers(database, 'routers', 'edge-routers', conversion)
  const byType = TYPES.map(([type, number, links]) => {
    const isOfType = (record: SourceRecord) => record.number('type') === number
    const policies = readPolicies(
      database,
      ['servicePolicies', 'service-policies'],
      'serviceRoles',
      services,
      conversion,
      isOfType,
    )
    return { type, links, policies }
  })
  const routerPolicies = readPolicies(
    database,
    ['edgeRouterPolicies', 'edge-router-policies'],
    'edgeRouterRoles',
    edgeRouters,
    conversion,
  )
  const pairs = { Dial: 0, Bind: 0, routers: 0 }
  const differences: string[] = []
  const compare = (
    what: string,
    granted: readonly string[],
    expected: ReadonlySet<string>,
    linked: readonly string[],
  ) => {
    const links = new Set(linked)
    const actual = new Set(granted)
    const report = (sentence: string) => {
      if (differences.length < MAX_DIFFERENCES) differences.push(sentence)
    }
    for (const id of actual) {
      if (!expected.has(id)) report(`${what} ${id}, which no policy of the former database grants`)
      if (!links.has(id)) report(`${what} ${id}, which the former controller did not grant`)
    }
    for (const id of expected) if (!actual.has(id)) report(`not ${what} ${id}, which a policy grants`)
  }
  for (const [id, record] of database.records('identities')) {
    if (!conversion.hasId('identities', id)) continue
    const bearer = { id, attributes: record.set('roleAttributes') }
    for (const { type, links, policies } of byType) {
      const serviceIds = index.listGrantedServices(index.findServicePolicies(bearer, type))
      pairs[type] += serviceIds.length
      compare(
        `the identity ${id} may ${type.toLowerCase()}`,
        serviceIds,
        collectTargets(policies, bearer),
        record.counted(links),
      )
    }
    const routers = index.listRouters(bearer)
    pairs.routers += routers.length
    compare(
      `the identity ${id} may use the router`,
      routers,
      collectTargets(routerPolicies, bearer),
      record.counted('routers'),
    )
  }
  return { dialPairs: pairs.Dial, bindPairs: pairs.Bind, routerPairs: pairs.routers, differences }
}

function collectTargets(policies: readonly PlainPolicy[], bearer: RoleBearer): ReadonlySet<string> {
  const targets = new Set<string>()
  for (const policy of policies) if (policy.matches(bearer)) for (const target of policy.targets) targets.add(target)
  return targets
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
  [kind, plural]: readonly [kind: string, plural: string],
  targetRoles: string,
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
    policies.push({ matches: createMatcher(record.set('identityRoles'), isAllOf), targets })
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
    const attributesOfBearer = new Set(bearer.attributes)
    return isAllOf
      ? attributes.every((each) => attributesOfBearer.has(each))
      : attributes.some((each) => attributesOfBearer.has(each))
  }
}
