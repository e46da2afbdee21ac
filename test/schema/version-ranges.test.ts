// Which texts are ranges of versions.
import { describe, expect, it } from 'vitest'
import { isVersionRange } from '../../src/schema/version-ranges.ts'

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
