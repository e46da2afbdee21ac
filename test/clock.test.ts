// The form of date-times on the wire.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { MAX_INSTANT, MIN_INSTANT, toIsoTime } from '../src/foundation/clock.ts'

// The standard form, made without the code under test.
const format = (instant: number) => new Date(instant).toISOString()

it('the form of every instant is that of ISO 8601, in whatever order instants are shown', () => {
  const instant = fc.integer({ min: MIN_INSTANT, max: MAX_INSTANT })
  const nearby = fc.integer({ min: -600_000, max: 600_000 }).map((ms) => Date.UTC(2026, 1, 28, 23, 55) + ms)
  fc.assert(
    fc.property(fc.array(fc.oneof(instant, nearby)), (instants) => {
      expect(instants.map(toIsoTime)).toEqual(instants.map(format))
    }),
  )
})

it.each([0, -1, -999, -1_000, -1_001, 999, 1_000, MIN_INSTANT, MAX_INSTANT, 1_700_000_000_000.75, -0.5])(
  'the form of %d has no fractions of a millisecond',
  (instant) => {
    expect(toIsoTime(instant)).toBe(format(instant))
  },
)

it('a number that is not a time is refused', () => {
  expect(() => toIsoTime(Number.NaN)).toThrow(RangeError)
})
