// Behaviors provide everything that definitions leave to them, or the controller does not start.
import { describe, expect, it } from 'vitest'
import { defineResource } from '../src/definitions/resources/define.ts'
import { Behaviors } from '../src/storage/behavior.ts'

const common = { summary: 'A thing.', fields: {}, columns: [], example: { create: {}, filter: 'true' } } as const
const plain = defineResource({ ...common, name: 'thing', plural: 'things' })
const derived = defineResource({ ...common, name: 'thing', plural: 'things', derived: { size: { type: 'integer' } } })
const computed = defineResource({ ...common, name: 'thing', plural: 'things', computed: { age: { type: 'integer' } } })
const related = defineResource({
  ...common,
  name: 'thing',
  plural: 'things',
  relations: {
    friends: { kind: 'custom', resource: 'things' },
    parts: { kind: 'hasMany', resource: 'parts', field: 'x' },
  },
})
const compute = async () => []

describe('the registry of behaviors', () => {
  it('needs no behavior for a resource that leaves nothing to one', () => {
    const behaviors = new Behaviors()

    behaviors.assertComplete([plain])

    expect(behaviors.get(plain)).toEqual({})
  })

  it('refuses a resource whose derived fields no behavior provides', () => {
    expect(() => new Behaviors().assertComplete([derived])).toThrow('no behavior derives the fields of things')
  })

  it('refuses a resource whose computed fields no behavior provides', () => {
    expect(() => new Behaviors().assertComplete([computed])).toThrow('no behavior computes the fields of things')
  })

  it('refuses a custom relation that no behavior finds', () => {
    expect(() => new Behaviors().assertComplete([related])).toThrow('no behavior finds the relation friends of things')
  })

  it('accepts behaviors that provide all of it', () => {
    const behaviors = new Behaviors()
    behaviors.register(related, { relations: { friends: () => ({ ids: [] }) } })

    expect(() => behaviors.assertComplete([related])).not.toThrow()
  })

  it('refuses a behavior of a resource that does not exist', () => {
    const behaviors = new Behaviors()
    behaviors.register(plain, {})

    expect(() => behaviors.assertComplete([])).toThrow('a behavior is registered for the unknown resource things')
  })

  it('refuses a behavior that finds a relation which the resource does not leave to it', () => {
    const behavior = { relations: { parts: () => ({ ids: [] }) } }

    expect(() => new Behaviors().register(related, behavior)).toThrow('things has no custom relation parts')
  })

  it('refuses a behavior that computes fields which the resource does not declare', () => {
    expect(() => new Behaviors().register(plain, { deriveFields: compute })).toThrow(
      'things declares no derived fields',
    )
    expect(() => new Behaviors().register(plain, { computeFields: compute })).toThrow(
      'things declares no computed fields',
    )
  })

  it('refuses a second behavior of one resource', () => {
    const behaviors = new Behaviors()
    behaviors.register(plain, {})

    expect(() => behaviors.register(plain, {})).toThrow('things has a behavior already')
  })
})
