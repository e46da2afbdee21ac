// The policy index against the rules written down as plain loops, over random networks and random changes.
import { describe, expect, it } from 'vitest'
import { PolicyIndex, type ServicePolicyRecord } from '../../src/policy/policy-index.ts'
import { type Attributed, matches, parseSide, type Semantic } from '../../src/policy/side.ts'

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
    expect(matches(parseSide(semantic, roles), record)).toBe(isMatch)
  })

  it('matches with #all a record without attributes', () => {
    expect(matches(parseSide('AllOf', ['#all']), { id: 'y', attributes: [] })).toBe(true)
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

/** The rules as the documents state them, without any index. */
function naive(
  policies: readonly ServicePolicyRecord[],
  services: readonly Attributed[],
  identity: Attributed,
  type: string,
): string[] {
  const found = new Set<string>()
  for (const policy of policies) {
    if (policy.type !== type || !plainMatch(policy.semantic, policy.identityRoles, identity)) continue
    for (const service of services) if (plainMatch(policy.semantic, policy.serviceRoles, service)) found.add(service.id)
  }
  return [...found].sort()
}

function plainMatch(semantic: Semantic, roles: readonly string[], { id, attributes }: Attributed): boolean {
  if (roles.includes(`@${id}`) || roles.includes('#all')) return true
  const wanted = roles.filter((role) => role.startsWith('#')).map((role) => role.slice(1))
  if (wanted.length === 0) return false
  return semantic === 'AllOf'
    ? wanted.every((one) => attributes.includes(one))
    : wanted.some((one) => attributes.includes(one))
}

describe.each([1, 2, 3, 4, 5, 6, 7, 8])('a random network (seed %i)', (seed) => {
  const { below, some, chance } = random(seed)
  const index = new PolicyIndex()
  const services = new Map<string, Attributed>()
  const policies = new Map<string, ServicePolicyRecord>()

  const roles = (ids: readonly string[]) => {
    if (chance(0.1)) return ['#all']
    return [...some(ATTRIBUTES, 3).map((attribute) => `#${attribute}`), ...some(ids, 1).map((id) => `@${id}`)]
  }

  function change(): void {
    const id = SERVICES[below(SERVICES.length)] as string
    const policyId = `p${below(6)}`
    if (chance(0.35)) {
      const service = { id, attributes: some(ATTRIBUTES, 3) }
      services.set(id, service)
      index.setService(service)
    } else if (chance(0.2)) {
      services.delete(id)
      index.deleteService(id)
    } else if (chance(0.25)) {
      policies.delete(policyId)
      index.deleteServicePolicy(policyId)
    } else {
      const policy: ServicePolicyRecord = {
        id: policyId,
        name: policyId,
        type: chance(0.5) ? 'Dial' : 'Bind',
        semantic: chance(0.5) ? 'AllOf' : 'AnyOf',
        identityRoles: roles(IDENTITIES),
        serviceRoles: roles(SERVICES),
        postureCheckRoles: [],
      }
      policies.set(policyId, policy)
      index.setServicePolicy(policy)
    }
  }

  it('grants after every change what the rules grant', () => {
    for (let step = 0; step < 300; step++) {
      change()
      const identity = { id: IDENTITIES[below(IDENTITIES.length)] as string, attributes: some(ATTRIBUTES, 4) }
      for (const type of ['Dial', 'Bind'] as const) {
        const granted = index.servicesGrantedBy(index.servicePoliciesOf(identity, type)).sort()

        expect(granted).toEqual(naive([...policies.values()], [...services.values()], identity, type))
      }
      for (const service of services.values()) {
        const containing = index.servicePoliciesOfService(service.id).map(({ id }) => id)
        const expected = [...policies.values()]
          .filter((policy) => plainMatch(policy.semantic, policy.serviceRoles, service))
          .map(({ id }) => id)

        expect(containing.sort()).toEqual(expected.sort())
      }
    }
  })
})
