// Figures of the bench that could not be measured, as its results show them.
import { describe, expect, it } from 'vitest'
import { type Fact, failUnmeasured, type GrowthFigures } from '../../bench/report/results.ts'

const fact: Fact = { kind: 'fact', section: 'together', name: 'writes: p99', value: 1.5, unit: 'ms', atMost: null }
const growth: GrowthFigures = {
  kind: 'growth',
  section: 'growth',
  name: 'GET version',
  sizes: [10, 20],
  cpuMicroseconds: [30, 33],
  times: 1.1,
  atMostTimes: 1.2,
}

describe('a result', () => {
  it('stays as it is if all its figures were measured', () => {
    expect([fact, growth].map(failUnmeasured)).toEqual([fact, growth])
  })

  it('has failed if a figure is infinite or not a number', () => {
    const unmeasured = [
      { ...fact, value: Number.NaN },
      { ...fact, value: Number.POSITIVE_INFINITY },
      { ...growth, cpuMicroseconds: [30, Number.NaN] as const },
    ]

    expect(unmeasured.map(failUnmeasured)).toEqual([
      { kind: 'failed', section: 'together', name: 'writes: p99', why: 'nothing was completed: value is NaN' },
      { kind: 'failed', section: 'together', name: 'writes: p99', why: 'nothing was completed: value is Infinity' },
      {
        kind: 'failed',
        section: 'growth',
        name: 'GET version',
        why: 'nothing was completed: cpuMicroseconds is 30,NaN',
      },
    ])
  })
})
