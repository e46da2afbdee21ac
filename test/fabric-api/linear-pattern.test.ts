// Expressions of clients match what the engine's own would match, and never take more than linear time.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LinearPattern, PatternError } from '../../server/operations/fabric-api/linear-pattern.ts'

describe('an expression of a client', () => {
  it.each([
    ['.*', 'anything', true],
    ['', '', true],
    ['^edge-\\d+$', 'edge-12', true],
    ['^edge-\\d+$', 'edge-12a', false],
    ['(north|south)-[a-c]', 'router south-b', true],
    ['(?:north|south)-[^a-c]', 'south-b', false],
    ['a+?b', 'caab', true],
    ['router\\.example', 'routerXexample', false],
    ['[]x]', ']', true],
    ['[a-]', '-', true],
    ['^(a|)+$', 'aaa', true],
    ['ö', 'Köln', true],
  ])('%s matches %s: %s', (source, text, isMatch) => {
    expect(new LinearPattern(source).test(text)).toBe(isMatch)
  })

  it.each(['(', ')', '[a', 'a{2}', '(?i)a', '*', '\\b', '\\1', '[b-a]', 'a'.repeat(201), '\\'])(
    'is refused if it cannot be read: %s',
    (source) => {
      expect(() => new LinearPattern(source)).toThrow(PatternError)
    },
  )

  it('matches what an expression of the engine matches', () => {
    const { source } = fc.letrec((tie) => ({
      source: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\d', '^', '$', '\\.'),
        tie('compound'),
      ),
      compound: fc.oneof(
        fc.tuple(tie('source'), tie('source')).map(([first, second]) => `${first}${second}`),
        fc.tuple(tie('source'), tie('source')).map(([first, second]) => `(${first}|${second})`),
        fc.tuple(tie('source'), fc.constantFrom('*', '+', '?', '*?')).map(([inside, mark]) => `(?:${inside})${mark}`),
      ),
    })) as { source: fc.Arbitrary<string> }
    const text = fc
      .array(fc.constantFrom('a', 'b', '.', '1'), { maxLength: 8 })
      .map((characters) => characters.join(''))

    fc.assert(
      fc.property(source, text, (expression, candidate) => {
        fc.pre(expression.length <= 200)
        expect(new LinearPattern(expression).test(candidate)).toBe(new RegExp(expression, 'u').test(candidate))
      }),
      { numRuns: 500 },
    )
  })

  it('that takes others exponential time is decided', () => {
    expect(new LinearPattern('^(a*)*(a|aa)+$').test(`${'a'.repeat(5000)}!`)).toBe(false)
  })
})
