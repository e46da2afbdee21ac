// The cost of terminators, to which load and failures add.
import { beforeEach, describe, expect, it } from 'vitest'
import { TerminatorCosts } from '../../src/network/terminators/terminator-costs.ts'
import { TestClock } from '../world/controller.ts'

let clock: TestClock
let costs: TerminatorCosts

beforeEach(() => {
  clock = new TestClock()
  costs = new TerminatorCosts(clock)
})

const MINUTE = 60_000

describe('the dynamic cost of a terminator', () => {
  it('is 2 for each open circuit', () => {
    costs.addCircuit('t')
    costs.addCircuit('t')
    expect(costs.get('t')).toBe(4)
    costs.removeCircuit('t')
    expect(costs.get('t')).toBe(2)
    costs.removeCircuit('t')
    costs.removeCircuit('t')
    expect(costs.get('t')).toBe(0)
  })

  it('is 20 more for each failure, and 2 less for each success after it', () => {
    costs.addFailure('t')
    costs.addFailure('t')
    expect(costs.get('t')).toBe(40)
    costs.addCircuit('t')
    costs.removeCircuit('t')
    expect(costs.get('t')).toBe(38)
  })

  it('loses what failures added, the faster the longer none follows', () => {
    for (let n = 0; n < 5; n += 1) costs.addFailure('t')
    expect(costs.get('t')).toBe(100)
    const costsByMinute: number[] = []
    for (let minute = 0; minute < 4; minute += 1) {
      clock.advance(MINUTE)
      costsByMinute.push(costs.get('t'))
    }
    expect(costsByMinute).toEqual([90, 70, 30, 0])
  })

  it('begins again with each failure', () => {
    costs.addFailure('t')
    clock.advance(MINUTE)
    costs.addFailure('t')
    expect(costs.get('t')).toBe(30)
    clock.advance(MINUTE)
    expect(costs.get('t')).toBe(20)
  })

  it('is at most 65535', () => {
    for (let n = 0; n < 4_000; n += 1) costs.addFailure('t')
    expect(costs.get('t')).toBe(65_535)
  })

  it('is dropped with the terminator', () => {
    costs.addFailure('t')
    costs.remove('t')
    expect(costs.get('t')).toBe(0)
  })

  it('does not move when the wall clock is set', () => {
    costs.addFailure('t')
    clock.set(10 * MINUTE)
    expect(costs.get('t')).toBe(20)
  })
})
