// Versions and ranges of versions: the texts that are such, and the versions that lie in a range.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  isInVersionRange,
  isVersionRange,
  parseVersion,
  parseVersionRange,
  type Version,
  type VersionRange,
} from '../../src/definitions/schema/version-ranges.ts'

describe('a version range', () => {
  it.each([
    '1.2.3',
    '=1.2.3',
    '>=10.0.0 <11.0.0',
    '>= 10.0.0  < 11.0.0',
    '!=1.0.0',
    '10.x',
    '10.2.x',
    '10.X.X',
    '*',
    '>=1.0.0 <2.0.0 || >3.0.0 !=3.1.0',
    '1.2.3-beta.1',
  ])('can be %s', (text) => {
    expect(isVersionRange(text)).toBe(true)
  })

  it.each([
    '',
    ' ',
    '10',
    '10.0',
    '~1.2.3',
    '^1.2.3',
    '1.2.3.4',
    'x.1.2',
    '01.2.3',
    '>=',
    '1.2.3 ||',
    'latest',
    '=>1.2.3',
    '1.2.3 - 2.0.0',
  ])('cannot be "%s"', (text) => {
    expect(isVersionRange(text)).toBe(false)
  })
})

describe('a version', () => {
  it.each([
    ['1.2.3', '>=1.2.3', true],
    ['1.2.3', '!=1.2.3', false],
    ['1.2.3', '1.2.3', true],
    ['1.2.3', '<1.2.3', false],
    ['1.2.3', '<=1.2.3 >1.2.2', true],
    ['1.10.0', '>1.9.0', true],
    ['10.4.0', '10.x', true],
    ['11.0.0', '10.x', false],
    ['9.9.9', '10.x', false],
    ['10.2.7', '10.2.x', true],
    ['10.3.0', '10.2.*', false],
    ['10.3.0', '>10.2.x', true],
    ['10.2.9', '>10.2.x', false],
    ['10.2.9', '<=10.2.x', true],
    ['10.2.0', '<10.2.x', false],
    ['10.2.0', '>=10.2.x', true],
    ['10.2.5', '!=10.2.x', false],
    ['0.0.1', '*', true],
    ['0.0.1', '>*', false],
    ['3.1.0', '>=1.0.0 <2.0.0 || >3.0.0 !=3.1.0', false],
    ['3.2.0', '>=1.0.0 <2.0.0 || >3.0.0 !=3.1.0', true],
    // semver.org 2.0.0, 11.
    ['1.0.0-alpha', '<1.0.0-alpha.1', true],
    ['1.0.0-alpha.1', '<1.0.0-alpha.beta', true],
    ['1.0.0-beta.2', '<1.0.0-beta.11', true],
    ['1.0.0-rc.1', '<1.0.0', true],
    ['1.0.0+build', '=1.0.0', true],
  ])('%s in %s: %s', (version, range, isInside) => {
    expect(isInVersionRange(parseVersion(version) as Version, parseVersionRange(range) as VersionRange)).toBe(isInside)
  })

  it.each(['', '1', '1.2', '1.2.3.4', 'v1.2.3', '01.2.3', '1.2.x', '1.2.3-', '1.2.3+', ' 1.2.3', 'latest'])(
    'cannot be "%s"',
    (text) => {
      expect(parseVersion(text)).toBeUndefined()
    },
  )

  it('is inside of a list of conditions exactly if it is inside of each, by plain comparison', () => {
    const part = fc.integer({ min: 0, max: 3 })
    const version = fc.tuple(part, part, part)
    const operators = ['', '=', '!=', '<', '<=', '>', '>=']
    const condition = fc.tuple(fc.constantFrom(...operators), version)
    const weigh = ([major, minor, patch]: readonly number[]) =>
      Number(major) * 10_000 + Number(minor) * 100 + Number(patch)
    const isMet = (operator: string, difference: number) =>
      operator === '!='
        ? difference !== 0
        : (difference === 0 && (operator === '' || operator.includes('='))) ||
          (difference < 0 && operator.startsWith('<')) ||
          (difference > 0 && operator.startsWith('>'))
    fc.assert(
      fc.property(version, fc.array(condition, { minLength: 1, maxLength: 3 }), (one, conditions) => {
        const text = conditions.map(([operator, other]) => operator + other.join('.')).join(' ')
        const isExpected = conditions.every(([operator, other]) => isMet(operator, weigh(one) - weigh(other)))
        const parsed = parseVersion(one.join('.')) as Version
        expect(isInVersionRange(parsed, parseVersionRange(text) as VersionRange)).toBe(isExpected)
      }),
    )
  })
})
