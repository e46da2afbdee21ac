// How many entries a body has, counted before it is parsed.
import { describe, expect, it } from 'vitest'
import { assertBodySize } from '../../src/definitions/schema/body-sizes.ts'

const limits = [
  { entries: 'records', maxEach: 3, maxInAll: 3 },
  { entries: 'members', maxEach: 2, maxInAll: 4 },
  { entries: 'values', maxEach: 3, maxInAll: 5 },
]

const measure = (text: string) => () => assertBodySize(Buffer.from(text), limits)
const error = (reason: string) => expect.objectContaining({ publicCause: expect.objectContaining({ reason }) })

describe('the size of a body', () => {
  it.each([
    '[{"a":1,"b":2},{"a":1},{}]',
    '[{"a":"[[[,,,,{{{","b":"\\",,,,\\\\"}]',
    '[{"a":[1,2,3]},{"a":[4]}]',
    '[]',
    '{"a":1',
    '"',
    ']]}}',
  ])('allows %s', (text) => {
    expect(measure(text)).not.toThrow()
  })

  it.each([
    ['[1,2,3,4]', 'must have at most 3 records in one place'],
    ['[{"a":1,"b":2,"c":3}]', 'must have at most 2 members in one place'],
    ['[{"a":1,"b":2},{"a":1,"b":2},{"a":1}]', 'must have at most 4 members in all'],
    ['[{"a":[1,2,3,4]}]', 'must have at most 3 values in one place'],
    ['[{"a":[1,2,3],"b":[1,[2,[3]]]}]', 'must have at most 5 values in all'],
    ['[{"a":[[[[[[[[', 'must have at most 5 values in all'],
  ])('refuses %s', (text, reason) => {
    expect(measure(text)).toThrow(error(reason))
  })
})
