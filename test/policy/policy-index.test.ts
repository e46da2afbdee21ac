// The policy index against the rules written down as plain loops, over random networks and random changes.
import { describe, expect, it } from 'vitest'
import {
  type EdgeRouterPolicyRecord,
  PolicyIndex,
  type ServiceEdgeRouterPolicyRecord,
  type ServicePolicyRecord,
} from '../../src/policy/policy-index.ts'
import { compilePostureCheck } from '../../src/policy/posture/posture-checks.ts'
import {
  matchesSelector,
  mergeSelectors,
  parseRoleSelector,
  type RoleBearer,
  type Semantic,
} from '../../src/policy/role-selector.ts'

describe('one side of a policy', () => {
  const record = { id: 'x', attributes: ['a', 'b'] }

  it.each([
    ['names it by id, whatever the semantic', 'AllOf', ['@x', '#missing'], true],
    ['is #all', 'AllOf', ['#all'], true],
    ['asks for one of its attributes', 'AnyOf', ['#b', '#missing'], true],
    ['asks for all of its attributes', 'AllOf', ['#a', '#b'], true],
    ['asks for an attribute it lacks, too', 'AllOf', ['#a', '#missing'], false],
    ['asks for attributes it lacks', 'AnyOf', ['#missing'], false],
    ['names another', 'AnyOf', ['@y'], false],
    ['is empty', 'AllOf', [], false],
    ['is empty and asks for any', 'AnyOf', [], false],
    ['differs in case', 'AnyOf', ['#A'], false],
  ] as const)('matches a record when it %s: %s %j → %s', (_when, semantic, roles, isMatch) => {
    expect(matchesSelector(parseRoleSelector(semantic, roles), record)).toBe(isMatch)
  })

  it('matches with #all a record without attributes', () => {
    expect(matchesSelector(parseRoleSelector('AllOf', ['#all']), { id: 'y', attributes: [] })).toBe(true)
  })
})

/** A small generator of random numbers, so that a failure can be repeated. */
function random(seed: number) {
  let state = seed
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  const some = <T>(from: readonly T[], most: number) => [
    ...new Set(Array.from({ length: below(most + 1) }, () => from[below(from.length)] as T)),
  ]
  return { below, some, chance: (share: number) => next() < share }
}

const ATTRIBUTES = ['a', 'b', 'c', 'd', 'e']
const IDENTITIES = ['i1', 'i2', 'i3', 'i4']
const SERVICES = ['s1', 's2', 's3', 's4', 's5', 's6']
const ROUTERS = ['r1', 'r2', 'r3', 'r4', 'r5']
const CHECKS = ['c1', 'c2', 'c3']
const POLICIES = ['p0', 'p1', 'p2', 'p3', 'p4', 'p5']

// ---- the rules as the documents state them, without any index ----

function plainMatch(semantic: Semantic, roles: readonly string[], { id, attributes }: RoleBearer): boolean {
  if (roles.includes(`@${id}`) || roles.includes('#all')) return true
  const selectedAttributes = roles.filter((role) => role.startsWith('#')).map((role) => role.slice(1))
  if (selectedAttributes.length === 0) return false
  return semantic === 'AllOf'
    ? selectedAttributes.every((one) => attributes.includes(one))
    : selectedAttributes.some((one) => attributes.includes(one))
}

class PlainNetwork {
  readonly services = new Map<string, RoleBearer>()
  readonly routers = new Map<string, RoleBearer>()
  readonly checks = new Map<string, RoleBearer>()
  readonly servicePolicies = new Map<string, ServicePolicyRecord>()
  readonly routerPolicies = new Map<string, EdgeRouterPolicyRecord>()
  readonly serviceRouterPolicies = new Map<string, ServiceEdgeRouterPolicyRecord>()

  findServicePolicies(identity: RoleBearer, type: string) {
    return [...this.servicePolicies.values()].filter(
      (policy) => policy.type === type && plainMatch(policy.semantic, policy.identityRoles, identity),
    )
  }

  toServicesScope(identity: RoleBearer, type: string): string[] {
    const policies = this.findServicePolicies(identity, type)
    return idsOf(
      [...this.services.values()].filter((service) =>
        policies.some(({ semantic, serviceRoles }) => plainMatch(semantic, serviceRoles, service)),
      ),
    )
  }

  routersOf(identity: RoleBearer): string[] {
    const policies = [...this.routerPolicies.values()].filter(({ semantic, identityRoles }) =>
      plainMatch(semantic, identityRoles, identity),
    )
    return this.#routersOf(policies)
  }

  routersOfService(service: RoleBearer): string[] {
    const policies = [...this.serviceRouterPolicies.values()].filter(({ semantic, serviceRoles }) =>
      plainMatch(semantic, serviceRoles, service),
    )
    return this.#routersOf(policies)
  }

  #routersOf(policies: readonly { semantic: Semantic; edgeRouterRoles: readonly string[] }[]): string[] {
    return idsOf(
      [...this.routers.values()].filter((router) =>
        policies.some(({ semantic, edgeRouterRoles }) => plainMatch(semantic, edgeRouterRoles, router)),
      ),
    )
  }
}

const idsOf = (records: Iterable<{ readonly id: string }>) => [...records].map(({ id }) => id).sort()

describe.each([1, 2, 3, 4, 5, 6, 7, 8])('a random network (seed %i)', (seed) => {
  const { below, some, chance } = random(seed)
  const index = new PolicyIndex()
  const plain = new PlainNetwork()
  const oneOf = (from: readonly string[]) => from[below(from.length)] as string
  const semantic = (): Semantic => (chance(0.5) ? 'AllOf' : 'AnyOf')

  const roles = (ids: readonly string[]) => {
    if (chance(0.1)) return ['#all']
    return [...some(ATTRIBUTES, 3).map((attribute) => `#${attribute}`), ...some(ids, 1).map((id) => `@${id}`)]
  }

  /** Makes, changes or deletes one record of a kind, in the index and in the plain network alike. */
  function alter<T extends { readonly id: string }>(
    records: Map<string, T>,
    ids: readonly string[],
    make: (id: string) => T,
    set: (record: T) => void,
    remove: (id: string) => void,
  ): void {
    const id = oneOf(ids)
    if (chance(0.3)) {
      records.delete(id)
      remove(id)
      return
    }
    const record = make(id)
    records.set(id, record)
    set(record)
  }

  const attributed = (id: string): RoleBearer => ({ id, attributes: some(ATTRIBUTES, 3) })
  const changes: readonly (() => void)[] = [
    () =>
      alter(
        plain.services,
        SERVICES,
        attributed,
        (record) => index.setService(record),
        (id) => index.deleteService(id),
      ),
    () =>
      alter(
        plain.routers,
        ROUTERS,
        attributed,
        (record) => index.setEdgeRouter(record),
        (id) => index.deleteEdgeRouter(id),
      ),
    () =>
      alter(
        plain.checks,
        CHECKS,
        attributed,
        (record) => index.setPostureCheck(record, compilePostureCheck({ ...record, typeId: 'DOMAIN', details: {} })),
        (id) => index.deletePostureCheck(id),
      ),
    () =>
      alter(
        plain.servicePolicies,
        POLICIES,
        (id) => ({
          id,
          name: id,
          type: chance(0.5) ? ('Dial' as const) : ('Bind' as const),
          semantic: semantic(),
          identityRoles: roles(IDENTITIES),
          serviceRoles: roles(SERVICES),
          postureCheckRoles: roles(CHECKS),
        }),
        (policy) => index.setServicePolicy(policy),
        (id) => index.deleteServicePolicy(id),
      ),
    () =>
      alter(
        plain.routerPolicies,
        POLICIES,
        (id) => ({
          id,
          name: id,
          semantic: semantic(),
          identityRoles: roles(IDENTITIES),
          edgeRouterRoles: roles(ROUTERS),
        }),
        (policy) => index.setEdgeRouterPolicy(policy),
        (id) => index.deleteEdgeRouterPolicy(id),
      ),
    () =>
      alter(
        plain.serviceRouterPolicies,
        POLICIES,
        (id) => ({
          id,
          name: id,
          semantic: semantic(),
          serviceRoles: roles(SERVICES),
          edgeRouterRoles: roles(ROUTERS),
        }),
        (policy) => index.setServiceEdgeRouterPolicy(policy),
        (id) => index.deleteServiceEdgeRouterPolicy(id),
      ),
  ]

  it('grants after every change what the rules grant', () => {
    for (let step = 0; step < 400; step++) {
      changes[below(changes.length)]?.()
      const identity = { id: oneOf(IDENTITIES), attributes: some(ATTRIBUTES, 4) }

      for (const type of ['Dial', 'Bind'] as const) {
        const policies = index.findServicePolicies(identity, type)

        expect(idsOf(policies)).toEqual(idsOf(plain.findServicePolicies(identity, type)))
        expect(index.listGrantedServices(policies).sort()).toEqual(plain.toServicesScope(identity, type))
      }
      expect(index.listRouters(identity).sort()).toEqual(plain.routersOf(identity))
      for (const service of plain.services.values()) {
        const ofService = plain.routersOfService(service)
        const common = plain.routersOf(identity).filter((id) => ofService.includes(id))

        expect(index.listRoutersOfService(service.id).sort()).toEqual(ofService)
        expect(index.listCommonRouters(identity, service.id).sort()).toEqual(common)
        for (const id of plain.routers.keys()) {
          expect(index.isCommonRouter(identity, service.id, id)).toBe(common.includes(id))
        }
      }
    }
  })

  it('knows after every change which policies match a record on either side', () => {
    const matching = <P extends { semantic: Semantic }>(
      policies: ReadonlyMap<string, P & { id: string }>,
      side: (policy: P) => readonly string[],
      record: RoleBearer,
    ) => idsOf([...policies.values()].filter((policy) => plainMatch(policy.semantic, side(policy), record)))

    for (let step = 0; step < 200; step++) {
      changes[below(changes.length)]?.()
      const { servicePolicies, routerPolicies, serviceRouterPolicies } = plain

      for (const service of plain.services.values()) {
        expect(idsOf(index.findServicePoliciesOfService(service.id))).toEqual(
          matching(servicePolicies, ({ serviceRoles }) => serviceRoles, service),
        )
        expect(idsOf(index.findServiceEdgeRouterPolicies(service.id))).toEqual(
          matching(serviceRouterPolicies, ({ serviceRoles }) => serviceRoles, service),
        )
      }
      for (const router of plain.routers.values()) {
        expect(idsOf(index.findEdgeRouterPoliciesOfRouter(router.id))).toEqual(
          matching(routerPolicies, ({ edgeRouterRoles }) => edgeRouterRoles, router),
        )
        expect(idsOf(index.findServiceEdgeRouterPoliciesOfRouter(router.id))).toEqual(
          matching(serviceRouterPolicies, ({ edgeRouterRoles }) => edgeRouterRoles, router),
        )
      }
      for (const check of plain.checks.values()) {
        expect(idsOf(index.findServicePoliciesOfPostureCheck(check.id))).toEqual(
          matching(servicePolicies, ({ postureCheckRoles }) => postureCheckRoles, check),
        )
      }
    }
  })

  it('matches by the union of sides what any of them matches', () => {
    for (let step = 0; step < 200; step++) {
      const sides = Array.from({ length: below(5) }, () => parseRoleSelector(semantic(), roles(IDENTITIES)))
      const union = mergeSelectors(sides)

      for (const id of IDENTITIES) {
        const record = { id, attributes: some(ATTRIBUTES, 4) }

        expect(union.some((side) => matchesSelector(side, record))).toBe(
          sides.some((side) => matchesSelector(side, record)),
        )
      }
    }
  })
})

it('the index knows nothing of records that do not exist', () => {
  const index = new PolicyIndex()
  index.setServicePolicy({
    id: 'p',
    name: 'p',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    serviceRoles: ['#all'],
    postureCheckRoles: ['#all'],
  })

  expect(index.findServicePoliciesOfService('nope')).toEqual([])
  expect(index.findServicePoliciesOfPostureCheck('nope')).toEqual([])
  expect(index.findServiceEdgeRouterPolicies('nope')).toEqual([])
  expect(index.findEdgeRouterPoliciesOfRouter('nope')).toEqual([])
  expect(index.listCommonRouters({ id: 'i', attributes: [] }, 'nope')).toEqual([])
  expect(index.isCommonRouter({ id: 'i', attributes: [] }, 'nope', 'nope')).toBe(false)
})
