// The schemas that administrators bring: which drafts are understood, and that no schema can stop the controller.
import { describe, expect, it } from 'vitest'
import { ConfigSchemas } from '../../src/definitions/schema/config-schemas.ts'
import { runWithin, TimeLimitError } from '../../src/definitions/schema/time-limit.ts'
import type { FieldCause } from '../../src/foundation/errors.ts'
import { ControllerError } from '../../src/foundation/errors.ts'

function problemOf(work: () => void): FieldCause | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    if (error instanceof ControllerError) return error.publicCause as FieldCause
    throw error
  }
}

const matches = (schema: object, data: unknown) =>
  problemOf(() => new ConfigSchemas().assertMatches(JSON.stringify(schema), data))
const usable = (schema: object) => problemOf(() => new ConfigSchemas().assertUsable({ type: 'object', ...schema }))

describe('a schema', () => {
  it.each([
    ['draft-04', { exclusiveMinimum: true, minimum: 5 }],
    ['draft-06', { exclusiveMinimum: 5 }],
    ['draft-07', { exclusiveMinimum: 5 }],
  ])('of %s is read by the rules of that draft', (draft, port) => {
    const schema = {
      $schema: `http://json-schema.org/${draft}/schema#`,
      [draft === 'draft-04' ? 'id' : '$id']: 'http://example.com/port.json',
      type: 'object',
      properties: { port: { type: 'integer', ...port } },
    }

    expect(usable(schema)).toBeUndefined()
    expect(matches(schema, { port: 6 })).toBeUndefined()
    expect(matches(schema, { port: 5 })).toMatchObject({ field: 'port' })
  })

  it('that names another draft, or none, is read as draft-07', () => {
    const properties = { a: { const: 1 } }

    expect(matches({ $schema: 'http://example.com/types.json', id: 'type', properties }, { a: 2 })).toBeDefined()
    expect(matches({ properties }, { a: 2 })).toMatchObject({ field: 'a' })
  })

  it('names what a condition requires, and not the condition', () => {
    const schema = {
      type: 'object',
      properties: { protocol: { type: 'string' }, port: { type: 'integer' } },
      if: { required: ['forward'] },
      else: { required: ['protocol', 'address'] },
    }

    const { field, reason, others = [] } = matches(schema, { port: 'x' }) ?? {}

    expect([field, ...others.map((other) => other.field)].sort()).toEqual(['address', 'port', 'protocol'])
    expect([reason, ...others.map((other) => other.reason)].join()).not.toContain('rule')
  })

  it('names every member that breaks a rule, once', () => {
    const schema = {
      type: 'object',
      required: ['hostname', 'port', 'protocol'],
      properties: {
        hostname: { type: 'string' },
        port: { type: 'integer', minimum: 1 },
        protocol: { enum: ['tcp', 'udp'] },
        listen: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
      },
      additionalProperties: false,
    }

    const mistakes = (data: unknown) => {
      const { others = [], field, reason } = matches(schema, data) ?? {}
      return [{ field, reason }, ...others.map((other) => ({ field: other.field, reason: other.reason }))]
    }

    expect(mistakes({ hostnam: 'h', prt: 5, protocol: 'tpc', listen: {} })).toEqual([
      { field: 'hostnam', reason: 'is not known here: did you mean hostname?' },
      { field: 'prt', reason: 'is not known here: did you mean port?' },
      { field: 'protocol', reason: 'must be one of tcp, udp: did you mean tcp?' },
      { field: 'listen', reason: 'must be a string' },
    ])
    expect(mistakes({ colour: 1, port: 0 })).toEqual([
      { field: 'colour', reason: 'is not known here, and hostname is required' },
      { field: 'protocol', reason: 'is required' },
      { field: 'port', reason: 'must not be less than 1' },
    ])
  })

  it('has at most twenty mistakes named, and one if the data is large', () => {
    const schema = { type: 'object', additionalProperties: { type: 'integer' } }
    const data = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`member${at}`, 'text']))

    expect(matches(schema, data(1000))?.others).toHaveLength(19)
    expect(matches(schema, data(10_000))?.others).toBeUndefined()
  })

  it.each([
    ['resembles the missing one', { hostnam: 'h' }, 'hostnam', 'is not known here: did you mean hostname?'],
    ['resembles none', { colour: 'h' }, 'colour', 'is not known here, and hostname is required'],
    ['resembles one that may be missing', { hostname: 'h', prot: 1 }, 'prot', 'is not known here: did you mean port?'],
  ])('names an unknown member rather than a missing one: it %s', (_what, data, field, reason) => {
    const schema = {
      required: ['hostname'],
      properties: { hostname: { type: 'string' }, port: { type: 'integer' } },
      additionalProperties: false,
    }

    expect(matches({ ...schema, type: 'object' }, data)).toEqual({ field, reason, value: Object.values(data).at(-1) })
    expect(matches({ properties: { nested: schema } }, { nested: data })).toMatchObject({ field: `nested.${field}` })
    expect(matches(schema, {})).toMatchObject({ field: 'hostname', reason: 'is required' })
    expect(matches({ ...schema, additionalProperties: true }, { hostnam: 'h' })).toMatchObject({ field: 'hostname' })
  })

  it('may have the $id of another', () => {
    const schemas = new ConfigSchemas()
    const $id = 'http://example.com/same.json'

    schemas.assertUsable({ $id, type: 'object', required: ['a'] })
    schemas.assertUsable({ $id, type: 'object', required: ['b'] })

    expect(
      problemOf(() => schemas.assertMatches(JSON.stringify({ $id, type: 'object', required: ['b'] }), {})),
    ).toEqual(expect.objectContaining({ field: 'b' }))
  })

  it('may refer to its own definitions, and to itself', () => {
    const schema = {
      type: 'object',
      definitions: { node: { type: 'object', properties: { next: { $ref: '#/definitions/node' } }, required: ['v'] } },
      properties: { list: { $ref: '#/definitions/node' } },
    }

    expect(matches(schema, { list: { v: 1, next: { v: 2 } } })).toBeUndefined()
    expect(matches(schema, { list: { v: 1, next: {} } })).toMatchObject({ field: 'list.next.v' })
  })

  it.each([
    ['ipv4', '10.0.0.1', '10.0.0.256'],
    ['uri', 'https://example.com/', 'no uri'],
    ['date-time', '2026-01-01T00:00:00Z', 'tomorrow'],
  ])('knows the format %s', (format, good, bad) => {
    const schema = { properties: { a: { type: 'string', format } } }

    expect(matches(schema, { a: good })).toBeUndefined()
    expect(matches(schema, { a: bad })).toMatchObject({ field: 'a' })
  })

  it('may have unknown formats and keywords', () => {
    expect(usable({ properties: { a: { format: 'colour', 'x-order': 1 } } })).toBeUndefined()
  })
})

describe('a check that would take for ever', () => {
  it.each([
    ['a pattern that begins anew at every character', { type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(60)}!`],
    [
      'a list of objects that must all differ',
      { type: 'array', uniqueItems: true },
      Array.from({ length: 30_000 }, (_, at) => ({ at })),
    ],
  ])('ends by itself: %s', (_what, property, value) => {
    const problem = matches({ type: 'object', properties: { a: property } }, { a: value })

    expect(problem).toMatchObject({ field: 'data', reason: expect.stringContaining('takes too long') })
  })

  it('ends by itself where alternatives multiply with every level', () => {
    const child = { $ref: '#/definitions/node' }
    const alternative = (name: string) => ({ properties: { [name]: { type: 'string' }, child }, required: [name] })
    const schema = {
      type: 'object',
      definitions: { node: { anyOf: [{ allOf: [{ properties: { child } }, alternative('a')] }, alternative('b')] } },
      properties: { root: child },
    }
    let tree: object = {}
    for (let depth = 0; depth < 60; depth++) tree = { child: tree }

    expect(matches(schema, { root: tree })).toBeDefined()
  })
})

describe('a limit of time', () => {
  it('gives back what the work gives, and what it throws', () => {
    expect(runWithin(1000, () => ({ value: 42 }))).toEqual({ value: 42 })
    expect(() =>
      runWithin(1000, () => {
        throw new RangeError('no')
      }),
    ).toThrow(RangeError)
  })

  it('stops work that does not end', () => {
    expect(() =>
      runWithin(20, () => {
        for (;;);
      }),
    ).toThrow(TimeLimitError)
    expect(runWithin(1000, () => 'still here')).toBe('still here')
  })
})
