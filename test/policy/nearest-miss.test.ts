// The nearest miss of a record and a policy, and the roles by which a record matches.
import { describe, expect, it } from 'vitest'
import { findNearestMiss, isOneSided } from '../../src/policy/nearest-miss.ts'
import type { IndexedPolicy } from '../../src/policy/policy-table.ts'
import {
  findDecidingRoles,
  findLackingAttributes,
  matchesSelector,
  parseRoleSelector,
  type Semantic,
} from '../../src/policy/role-selector.ts'
import { random } from '../world/random.ts'

const ATTRIBUTES = ['a', 'b', 'c', 'd']

describe.each([21, 22, 23, 24])('random sides and records (seed %i)', (seed) => {
  const chance = random(seed)
  const cases = Array.from({ length: 300 }, () => {
    const semantic: Semantic = chance.oneIn(2) ? 'AllOf' : 'AnyOf'
    const named = chance.some(['x', 'y'], 1).map((id) => `@${id}`)
    const roles = chance.oneIn(12) ? ['#all'] : [...chance.some(ATTRIBUTES, 3).map((one) => `#${one}`), ...named]
    return {
      side: parseRoleSelector(semantic, roles),
      roles,
      record: { id: chance.pick(['x', 'z']), attributes: chance.some(ATTRIBUTES) },
    }
  })

  it('name deciding roles just where they match, and only such as are written', () => {
    for (const { side, roles, record } of cases) {
      const deciding = findDecidingRoles(side, record)

      expect(deciding.length > 0).toBe(matchesSelector(side, record))
      expect(roles).toEqual(expect.arrayContaining(deciding))
    }
  })

  it('match once the record has what it lacks, and not before it has all of that', () => {
    for (const { side, record } of cases) {
      const lacking = findLackingAttributes(side, record)
      if (lacking === undefined) {
        expect(matchesSelector(side, { id: 'unnamed', attributes: ATTRIBUTES })).toBe(false)
        continue
      }
      const attributes = [...record.attributes, ...lacking]

      expect(matchesSelector(side, { ...record, attributes })).toBe(true)
      for (const without of lacking) {
        const fewer = attributes.filter((one) => one !== without)
        expect(matchesSelector(side, { ...record, attributes: fewer })).toBe(false)
      }
    }
  })
})

describe('the nearest policy', () => {
  const policy = (name: string, semantic: Semantic, subjects: string[], objects: string[]): IndexedPolicy => ({
    id: name,
    name,
    subjects: parseRoleSelector(semantic, subjects),
    objects: parseRoleSelector(semantic, objects),
  })
  const laptop = { id: 'laptop', attributes: ['staff'] }
  const web = { id: 'web', attributes: ['inner'] }
  const nearest = (...policies: IndexedPolicy[]) => findNearestMiss(policies, laptop, [web])

  it('is none without a policy, or without anything to reach', () => {
    expect(nearest()).toBeUndefined()
    expect(findNearestMiss([policy('p', 'AnyOf', ['#all'], ['#all'])], laptop, [])).toBeUndefined()
  })

  it('lacks the fewest attributes', () => {
    const far = policy('far', 'AllOf', ['#staff', '#x', '#y'], ['#inner'])
    const near = policy('near', 'AllOf', ['#staff', '#x'], ['#inner'])

    expect(nearest(far, near)).toMatchObject({ policy: near, subjectLacks: ['x'], objectLacks: [] })
  })

  it('is, of equals, the one that lacks something on one side only', () => {
    const both = policy('a', 'AnyOf', ['#x'], ['#y'])
    const one = policy('b', 'AllOf', ['#x', '#y'], ['#inner'])

    const matches = nearest(both, one)

    expect(matches?.policy).toBe(one)
    expect(matches && isOneSided(matches)).toBe(true)
  })

  it('is, of equals, one that an attribute repairs before one that would have to name the record', () => {
    const byId = policy('a', 'AnyOf', ['@other'], ['#inner'])
    const byAttribute = policy('b', 'AnyOf', ['#x'], ['#inner'])

    expect(nearest(byId, byAttribute)?.policy).toBe(byAttribute)
    expect(nearest(byId)).toMatchObject({ subjectLacks: undefined })
  })

  it('leads to the object that lacks least', () => {
    const objects = [{ id: 'first', attributes: [] }, web]
    const side = policy('p', 'AllOf', ['#x'], ['#inner', '#outer'])

    expect(findNearestMiss([side], laptop, objects)).toMatchObject({ object: web, objectLacks: ['outer'] })
  })
})
