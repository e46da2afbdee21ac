// Query strings: read as forms are encoded, whatever a client sends.
import { parse } from 'node:querystring'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseQueryOf, readQuery } from '../../server/api/query.ts'

/** Objects have their members in an order of their own. */
const sortByName = (entries: readonly (readonly [string, unknown])[]) =>
  [...entries].sort(([a], [b]) => (a < b ? -1 : 1))

describe('a query', () => {
  it.each([
    ['nothing', '/identities', []],
    ['no parameters', '/identities?', []],
    [
      'values in percents and with plus signs',
      '/identities?filter=name%20%3D+%22a%2Bb%22',
      [['filter', 'name = "a+b"']],
    ],
    ['a value with an equals sign', '/identities?filter=name="a"', [['filter', 'name="a"']]],
    ['a name alone', '/identities?filter', [['filter', '']]],
    [
      'a name that is repeated',
      '/identities?r=1&s=2&r=3&r=',
      [
        ['r', ['1', '3', '']],
        ['s', '2'],
      ],
    ],
    [
      'percents that encode nothing',
      '/identities?filter=100%&sort=%zz',
      [
        ['filter', '100%'],
        ['sort', '%zz'],
      ],
    ],
  ])('may hold %s', (_what, url, parameters) => {
    expect([...parseQueryOf(url)]).toEqual(parameters)
  })

  it('is read as Node.js reads it', () => {
    const piece = fc.oneof(
      fc.string(),
      fc.constantFrom('filter', 'limit', '%', '%20', '%e4', '+', '=', '&', '?', '__proto__'),
    )
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const text = pieces.join('')

        const parsed = parse(text, '&', '=', { maxKeys: 0 })
        expect(sortByName([...parseQueryOf(`/identities?${text}`)])).toEqual(sortByName(Object.entries(parsed)))
      }),
    )
  })

  it('gives declared parameters only, and of a repeated one the last', () => {
    const declared = {
      limit: { schema: { type: 'integer' } },
      role: { schema: { type: 'string' }, isMultiple: true },
    } as const
    const parameters = parseQueryOf('/identities?limit=1&limit=2&role=a&role=b&toString=1')

    expect(readQuery(declared, parameters)).toEqual({ limit: 2, role: ['a', 'b'] })
  })
})
